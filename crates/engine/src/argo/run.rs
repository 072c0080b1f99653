//! One run: the state that facts fold into, the work list that is thrown away on restart, and what both are about.
//! Only the fold can write a `State` that belongs to a run: see [`Folded`].

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use octoflow_model::{
    NodeIx, RunId, RunPhase, Shutdown, Time,
    argo::{OutputArtifactValue, TemplateRef},
    meter::Metered,
    previous::PreviousRun,
    submission::{Stored, SubmitContext},
};

use super::{
    fold::Folded,
    instance::Instance,
    node::{Leaf, Lock, Node},
    program::{Program, Recipe},
    refer,
    todo::{Note, Todo},
};
use crate::{expr::Meter, head::Head};

/// What the facts say. Two folds of the same facts are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub head: Head,
    pub phase: RunPhase,
    pub message: String,
    pub began: Option<Time>,
    pub ended: Option<Time>,
    pub parameters: BTreeMap<String, String>,
    pub exported: BTreeMap<String, String>,
    pub exported_artifacts: BTreeMap<String, OutputArtifactValue>,
    /// Open attempts of steps and DAGs whose time is up.
    pub expired: HashSet<NodeIx>,
    /// The locks of the run as a whole.
    pub lock: Option<Box<Lock>>,
    pub nodes: Vec<Node>,
    pub root: Option<NodeIx>,
    pub exit: Option<NodeIx>,
    /// By open steps or DAG node: its daemons that are not over, each as the node others waited for.
    pub daemons: HashMap<NodeIx, Vec<NodeIx>>,
    /// By node that is not settled, and by the run itself: the hooks that have fired, the exit handler of a call included.
    pub fired: HashMap<Option<NodeIx>, Vec<NodeIx>>,
    /// By the same: hooks whose moment has come and who wait for room.
    pub due: HashMap<Option<NodeIx>, Vec<String>>,
    /// Pods that are there and not final.
    pub active_pods: u32,
    /// By boundary: its direct pods, steps and DAGs that are not final.
    pub active_children: HashMap<NodeIx, u32>,
    /// By open boundary: the calls in it that ended badly, after their last attempt.
    pub failed_children: HashMap<NodeIx, u32>,
    /// How long the logs of ended tasks were, of those that wrote something.
    pub logs: Vec<(NodeIx, u64)>,
    /// The work done, and the work known so far: one for each task unless it says more about itself.
    pub progress: (u64, u64),
    /// The gauges that follow the run and its nodes while it is open.
    pub following: Vec<Metered>,
    /// Why the last metric that could not be read could not.
    pub unmetered: Option<String>,
    /// Bytes of names, items, inputs and outputs.
    pub weight: u64,
    /// What it takes over from the run it comes after, as far as it has not been taken yet.
    pub before: PreviousRun,
}

impl State {
    pub fn node(&self, at: NodeIx) -> &Node {
        &self.nodes[at.at()]
    }

    /// The template a node runs, as written.
    pub(super) fn recipe_of<'p>(&self, at: NodeIx, program: &'p Program) -> &'p Arc<Recipe> {
        let recipe = self.node(at).template.as_deref().and_then(|name| program.recipe(name));
        recipe.expect("a node that runs names a template of its program")
    }

    /// A node's name without the run's.
    pub(super) fn suffix<'n>(&self, name: &'n str) -> &'n str {
        name.strip_prefix(&*self.head.name).unwrap_or(name)
    }

    pub fn finished(&self) -> bool {
        self.phase.finished()
    }

    /// No new work outside exit handlers: the run is being ended.
    pub fn closing(&self) -> bool {
        self.head.closing()
    }

    /// Nothing new until someone resumes it. A run that is being ended does not wait for that.
    pub fn held(&self) -> bool {
        self.head.suspended && !self.closing()
    }

    /// The run is being ended and this node with it. Only terminating ends exit handlers too.
    pub fn closes(&self, at: NodeIx) -> bool {
        let ends = || self.closing() || self.is_expired(at);
        self.head.shutdown == Some(Shutdown::Terminate) || !self.node(at).after_end && ends()
    }

    /// It belongs to an attempt whose time is up, or is one.
    fn is_expired(&self, at: NodeIx) -> bool {
        if self.expired.is_empty() {
            return false;
        }
        let catalog = std::iter::successors(Some(at), |at| self.node(*at).boundary);
        catalog.into_iter().any(|at| self.expired.contains(&at))
    }

    /// Hooks of a node, or of the run, are to be waited for.
    pub fn waits_for_hooks(&self, owner: Option<NodeIx>) -> bool {
        // What is being ended starts no more of them.
        let ends = owner.map_or(self.closing(), |at| self.closes(at));
        let open = |fired: &Vec<NodeIx>| fired.iter().any(|hook| !self.node(*hook).settled);
        !ends && self.due.contains_key(&owner) || self.fired.get(&owner).is_some_and(open)
    }

    /// The entrypoint is over and every hook of the run that has fired.
    pub fn worked(&self) -> bool {
        self.root.is_some_and(|root| self.node(root).settled) && !self.waits_for_hooks(None)
    }

    pub fn id_of(&self, at: NodeIx) -> String {
        super::ident::node_id(&self.head.name, &self.node(at).name)
    }

    /// The WorkflowTemplate whose template called this node; nothing when the run's own did.
    pub fn caller_home(&self, at: NodeIx) -> Option<&str> {
        refer::home(self.node(self.node(at).boundary?).template.as_deref()?)
    }

    /// The reference a node was called by; nothing when its caller named a template that stands beside itself.
    pub fn reference_of(&self, at: NodeIx) -> Option<TemplateRef> {
        let template = self.node(at).template.as_deref()?;
        if refer::home(template) == self.caller_home(at) {
            return None;
        }
        refer::reference(template)
    }

    pub fn display_of(&self, at: NodeIx) -> &str {
        let node = self.node(at);
        match &node.display {
            Some(display) => display,
            None => super::ident::display_name(&node.name, node.boundary.map(|boundary| &*self.node(boundary).name)),
        }
    }
}

pub struct Run {
    pub id: RunId,
    /// What the facts say, to be read.
    pub state: Folded,
    pub program: Arc<Program>,
    /// What the manifest refers to, as it was when it was submitted.
    pub(super) stored: Stored,
    /// What was known about it where it was submitted.
    pub(crate) known: SubmitContext,
    /// It comes after another run.
    pub(super) resumes: bool,
    /// The manifest as it was given, kept as text: a tree of values would be several times as large.
    pub(super) manifest: Box<str>,
    pub(super) todo: Todo,
    /// What the last fold tells the work list; empty between facts.
    pub(super) notes: Vec<Note>,
    /// Read from a journal, and not taken up yet.
    pub(super) asleep: bool,
    /// What its expressions have used since it is in memory.
    pub(super) meter: Meter,
    /// Templates with variables put in, for nodes that are still open. Rebuilt when missing.
    pub(super) instances: HashMap<NodeIx, Arc<Instance>>,
}

impl Run {
    /// The manifest as it was given.
    pub fn manifest(&self) -> serde_json::Value {
        serde_json::from_str(&self.manifest).expect("a manifest survives being written down")
    }

    /// A wake-up is due: the node, or the run itself, wants a look.
    pub(crate) fn wake(&mut self, node: Option<NodeIx>) {
        match node {
            Some(node) => self.todo.agenda.push_back(node),
            None => self.todo.run = true,
        }
    }

    pub fn open_leaves(&self) -> impl Iterator<Item = (NodeIx, Leaf)> + '_ {
        let open = self.state.nodes.iter().enumerate().filter(|(_, node)| !node.phase.fulfilled());
        open.filter_map(|(at, node)| Some((NodeIx(at as u32), node.leaf()?)))
    }

    /// The run may have one more task at a time.
    pub(super) fn has_room(&self) -> bool {
        match self.program.workflow.spec.parallelism {
            // Nothing at a time would be nothing for ever.
            Some(limit) if limit > 0 => u64::from(self.state.active_pods) < limit,
            Some(_) | None => true,
        }
    }

    /// The template a node runs, as written.
    pub(super) fn recipe_of(&self, at: NodeIx) -> &Arc<Recipe> {
        self.state.recipe_of(at, &self.program)
    }

    /// The node's task is a request.
    pub(crate) fn is_request(&self, at: NodeIx) -> bool {
        super::answer::is_request(&self.recipe_of(at).template)
    }

    /// The machine a task ran on, once it did.
    pub(crate) fn host_of(&self, at: NodeIx) -> Option<&str> {
        let node = self.state.node(at);
        match node.past.as_ref().filter(|past| past.own) {
            Some(past) => past.host.as_deref(),
            None => self.host().filter(|_| node.ran),
        }
    }

    /// The machine it was submitted on.
    pub(super) fn host(&self) -> Option<&str> {
        self.known.host.as_deref()
    }

    /// How long the node took in the newest run like this one that succeeded; the run itself for none. In seconds.
    pub(crate) fn estimate(&self, at: Option<NodeIx>) -> Option<u64> {
        let earlier = self.known.earlier.as_deref()?;
        match at {
            Some(at) => {
                let suffix = self.state.node(at).name.strip_prefix(&*self.state.head.name)?;
                earlier.nodes.get(suffix).copied()
            }
            None => Some(earlier.run),
        }
    }
}
