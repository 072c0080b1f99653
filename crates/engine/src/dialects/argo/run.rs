//! Defines a workflow's run: the state folded from facts, the work list that is discarded on restart, and the program.
//! Only the fold can write a `State` that belongs to a run: see [`Folded`].

use std::{collections::BTreeMap, sync::Arc};

use octoflow_model::{
    IdMap, IdSet, NodeIx, RunId, RunPhase, Shutdown, Time,
    argo::{OutputArtifactValue, TemplateRef},
    meter::Metered,
    previous::PreviousRun,
    submission::{Stored, SubmitContext},
};

use super::{
    demand::Demands,
    fold::Folded,
    instance::Instance,
    node::{Leaf, Lock, Node, Placed, Preemptions},
    program::{CompiledTemplate, Program},
    refer,
    todo::{Note, Todo},
};
use crate::{expr::Meter, run::head::Head};

/// The state of a run as folded from its facts. Two folds of the same facts are equal.
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
    /// Open attempts of steps and DAGs whose deadline has passed.
    pub expired: IdSet<NodeIx>,
    /// Locks of the run as a whole.
    pub lock: Option<Box<Lock>>,
    pub nodes: Vec<Node>,
    pub root: Option<NodeIx>,
    pub exit: Option<NodeIx>,
    /// Daemons that have not settled, by open steps or DAG node; each as the node that others waited for.
    pub daemons: IdMap<NodeIx, Vec<NodeIx>>,
    /// Hooks that have fired, by node that is not settled (`None` is the run). The exit handler of a call is included.
    pub fired: IdMap<Option<NodeIx>, Vec<NodeIx>>,
    /// Hooks that are due and wait for a free slot, by the same key.
    pub due: IdMap<Option<NodeIx>, Vec<String>>,
    /// Number of pods that are not final.
    pub active_pods: u32,
    /// Number of direct pods, steps and DAGs that are not final, by boundary.
    pub active_children: IdMap<NodeIx, u32>,
    /// Number of calls that ended badly after their last attempt, by open boundary.
    pub failed_children: IdMap<NodeIx, u32>,
    /// Log sizes in bytes of ended tasks that wrote something, by node and attempt.
    pub logs: Vec<(NodeIx, u32, u64)>,
    /// Tasks that a runtime has.
    pub placed: IdMap<NodeIx, Placed>,
    /// Names of nodes of the cluster that tasks were launched on, other than the machine that the run was submitted on.
    pub hosts: Vec<Arc<str>>,
    /// Nodes whose tasks were preempted.
    pub preempted: IdMap<NodeIx, Preemptions>,
    /// Runs that open nodes have ordered and wait for.
    pub children: IdMap<NodeIx, RunId>,
    /// Work done, and work known so far. Each task counts as one unit unless it reports more.
    pub progress: (u64, u64),
    /// Gauges that follow the run and its nodes while it is open.
    pub following: Vec<Metered>,
    /// Error of the last metric that could not be read.
    pub unmetered: Option<String>,
    /// Bytes of names, items, inputs and outputs.
    pub weight: u64,
    /// Results to take over from the previous run that have not been taken over yet.
    pub before: PreviousRun,
}

impl State {
    pub fn node(&self, at: NodeIx) -> &Node {
        &self.nodes[at.at()]
    }

    /// Returns the compiled template that a node runs.
    pub(super) fn compiled_of<'p>(&self, at: NodeIx, program: &'p Program) -> &'p Arc<CompiledTemplate> {
        let compiled = self.node(at).template.as_deref().and_then(|name| program.compiled(name));
        compiled.expect("a node that runs names a template of its program")
    }

    /// Returns the number of the current attempt of a node's task.
    pub fn attempt_number(&self, at: NodeIx) -> u32 {
        if self.preempted.is_empty() { 0 } else { self.preempted.get(&at).map_or(0, |preempted| preempted.count) }
    }

    /// Returns the node of the cluster that a task was launched on, if its launch recorded one.
    pub fn host_of(&self, at: NodeIx) -> Option<&str> {
        let host = self.node(at).host?;
        self.hosts.get(host.0.get() as usize - 1).map(|name| &**name)
    }

    /// Strips the run's name from a node's name.
    pub(super) fn suffix<'n>(&self, name: &'n str) -> &'n str {
        name.strip_prefix(&*self.head.name).unwrap_or(name)
    }

    pub fn finished(&self) -> bool {
        self.phase.finished()
    }

    /// Whether the run is being ended and starts no new work outside exit handlers.
    pub fn closing(&self) -> bool {
        self.head.closing()
    }

    /// Whether nothing new may start until the run is resumed. A run that is being ended does not wait for that.
    pub fn held(&self) -> bool {
        self.head.suspended && !self.closing()
    }

    /// Whether the run is being ended and this node with it. Only terminating ends exit handlers too.
    pub fn closes(&self, at: NodeIx) -> bool {
        let ends = || self.closing() || self.is_expired(at);
        self.head.shutdown == Some(Shutdown::Terminate) || !self.node(at).after_end && ends()
    }

    /// Whether the node is an attempt past its deadline, or belongs to one.
    fn is_expired(&self, at: NodeIx) -> bool {
        if self.expired.is_empty() {
            return false;
        }
        let catalog = std::iter::successors(Some(at), |at| self.node(*at).boundary);
        catalog.into_iter().any(|at| self.expired.contains(&at))
    }

    /// Whether hooks of a node, or of the run, are still to be waited for.
    pub fn waits_for_hooks(&self, owner: Option<NodeIx>) -> bool {
        // An owner that is being ended starts no more hooks.
        let ends = owner.map_or(self.closing(), |at| self.closes(at));
        let open = |fired: &Vec<NodeIx>| fired.iter().any(|hook| !self.node(*hook).settled);
        !ends && self.due.contains_key(&owner) || self.fired.get(&owner).is_some_and(open)
    }

    /// Whether the entrypoint and every fired hook of the run are over.
    pub fn worked(&self) -> bool {
        self.root.is_some_and(|root| self.node(root).settled) && !self.waits_for_hooks(None)
    }

    /// Returns the message of the run: that of its end, else why it does not go on.
    pub(super) fn message_now(&self) -> &str {
        let open = self.head.deadlock.as_deref().filter(|_| self.ended.is_none());
        open.unwrap_or(&self.message)
    }

    pub fn id_of(&self, at: NodeIx) -> String {
        super::ident::node_id(&self.head.name, &self.node(at).name)
    }

    /// Returns the WorkflowTemplate whose template called this node; `None` if the run's own did.
    pub fn caller_scope(&self, at: NodeIx) -> Option<&str> {
        refer::scope_of(self.node(self.node(at).boundary?).template.as_deref()?)
    }

    /// Returns the reference a node was called by; `None` if its caller named a template of the same WorkflowTemplate.
    pub fn reference_of(&self, at: NodeIx) -> Option<TemplateRef> {
        let template = self.node(at).template.as_deref()?;
        if refer::scope_of(template) == self.caller_scope(at) {
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
    /// The read-only state.
    pub state: Folded,
    pub program: Arc<Program>,
    /// Copies of the objects that the manifest refers to, as of submission.
    pub(super) stored: Stored,
    /// Facts about the environment that were known at submission.
    pub(crate) known: SubmitContext,
    /// True if the run follows a previous one (retry or resubmit).
    pub(super) resumes: bool,
    /// The manifest as submitted, kept as text: a tree of values would be several times as large.
    pub(super) manifest: Box<str>,
    pub(super) todo: Todo,
    /// Notes of the last fold for the work list; empty between facts.
    pub(super) notes: Vec<Note>,
    /// True while the run was read from a journal and not reopened yet.
    pub(super) asleep: bool,
    /// Budget that the run's expressions have used since it was loaded into memory.
    pub(super) meter: Meter,
    /// Templates with variables filled in, for open nodes. Rebuilt when missing.
    pub(super) instances: IdMap<NodeIx, Arc<Instance>>,
    /// Demands of its templates. Rebuilt when missing.
    pub(super) demands: Demands,
}

impl Run {
    /// Parses the manifest as submitted.
    pub fn manifest(&self) -> serde_json::Value {
        serde_json::from_str(&self.manifest).expect("a manifest survives being written down")
    }

    /// Puts the node, or the run itself, on the work list because its timer fired.
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

    /// Returns the compiled template that a node runs.
    pub(super) fn compiled_of(&self, at: NodeIx) -> &Arc<CompiledTemplate> {
        self.state.compiled_of(at, &self.program)
    }

    /// Whether the node's task is a request rather than a process.
    pub(crate) fn is_request(&self, at: NodeIx) -> bool {
        super::answer::is_request(&self.compiled_of(at).template)
    }

    /// Returns the machine a task ran on, once it has started.
    pub(crate) fn host_of(&self, at: NodeIx) -> Option<&str> {
        let node = self.state.node(at);
        match node.reuse.as_ref().filter(|reuse| reuse.own) {
            Some(reuse) => reuse.host.as_deref(),
            None => self.state.host_of(at).or_else(|| self.host()).filter(|_| node.ran),
        }
    }

    /// Returns the machine that the run was submitted on.
    pub(super) fn host(&self) -> Option<&str> {
        self.known.host.as_deref()
    }

    /// Returns the duration in seconds of the node, or of the run for `None`, in the newest similar run that succeeded.
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
