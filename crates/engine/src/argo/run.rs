//! One run: the state that facts fold into, and the work list that is thrown away on restart.
//! `State` is only ever written by the fold.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use octoflow_model::{
    NodeIx, RunId, RunPhase, Shutdown, Time,
    argo::{OutputArtifactValue, TemplateRef},
    before::Before,
    meter::Metered,
    submission::{Known, Stored},
    task::Resources,
};

use super::{
    instance::Instance,
    node::{Body, Leaf, Lock, Node},
    program::Program,
    refer,
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
}

impl State {
    pub fn node(&self, at: NodeIx) -> &Node {
        &self.nodes[at.at()]
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
        let around = std::iter::successors(Some(at), |at| self.node(*at).boundary);
        around.into_iter().any(|at| self.expired.contains(&at))
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
    pub state: State,
    pub program: Arc<Program>,
    /// What the manifest refers to, as it was when it was submitted.
    pub(super) stored: Stored,
    /// What was known about it where it was submitted.
    pub(crate) known: Known,
    /// What it takes over from the run it comes after, as far as it has not been taken yet.
    pub(super) before: Before,
    /// It comes after another run.
    pub(super) resumes: bool,
    /// The manifest as it was given, kept as text: a tree of values would be several times as large.
    pub(super) manifest: Box<str>,
    pub(super) todo: Todo,
    /// Read from a journal, and not taken up yet.
    pub(super) asleep: bool,
    /// What its expressions have used since it is in memory.
    pub(super) meter: Meter,
    /// Templates with variables put in, for nodes that are still open. Rebuilt when missing.
    pub(super) instances: HashMap<NodeIx, Arc<Instance>>,
}

/// What to look at next. Not part of the state: after a restart everything open is looked at once.
#[derive(Default)]
pub struct Todo {
    /// Nodes to visit.
    pub agenda: VecDeque<NodeIx>,
    /// DAG tasks whose waiting is over, by DAG.
    pub ready: HashMap<NodeIx, VecDeque<u32>>,
    /// Nodes that would start a pod but for the run's own limit.
    pub parked: VecDeque<NodeIx>,
    /// Nodes that would start a child but for their boundary's limit.
    pub parked_in: HashMap<NodeIx, VecDeque<NodeIx>>,
    /// Everything that is parked somewhere, so that nothing is parked twice.
    pub parked_nodes: HashSet<NodeIx>,
    /// Boundaries with parked nodes that have lost a child.
    pub roomy: VecDeque<NodeIx>,
    /// Pods that came into being and wait for the scheduler.
    pub queued: Vec<NodeIx>,
    /// Who wants locks and is not in their table yet: nodes, or the run itself.
    pub wants: Vec<Option<NodeIx>>,
    /// Wake-ups to be set: a node's, or the run's own.
    pub wakes: Vec<(Time, Option<NodeIx>)>,
    /// Nodes with hooks that look beyond the node itself.
    pub watchers: BTreeSet<NodeIx>,
    /// A hook of the run would start but for the run's own limit.
    pub run_parked: bool,
    /// The run's own next step (begin, exit handler, end) wants a look.
    pub run: bool,
    /// A loop was stopped in the middle; the node it unfolds is the first of the agenda.
    pub paused: bool,
}

impl Run {
    /// The manifest as it was given.
    pub fn manifest(&self) -> serde_json::Value {
        serde_json::from_str(&self.manifest).expect("a manifest survives being written down")
    }

    /// Reading an old journal left notes about work that was done long ago.
    pub(crate) fn settle_journal(&mut self) {
        self.todo = Todo::default();
        self.asleep = true;
    }

    /// Everything open is looked at once, and every wake-up is set again.
    pub(crate) fn reopen(&mut self) {
        self.asleep = false;
        self.look_everywhere();
        self.todo.queued.clear();
        self.todo.wants = self.waiters().map(|(node, _)| node).collect();
        let wakes = self.state.nodes.iter().enumerate().filter(|(_, node)| !node.phase.fulfilled());
        self.todo.wakes = wakes.filter_map(|(at, node)| Some((node.wake?, Some(NodeIx(at as u32))))).collect();
        if let (Some(began), Some(seconds)) = (self.state.began, self.program.workflow.spec.active_deadline_seconds) {
            let span = std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            self.todo.wakes.push((began.saturating_add(span), None));
        }
    }

    /// A wake-up is due: the node, or the run itself, wants a look.
    pub(crate) fn wake(&mut self, node: Option<NodeIx>) {
        match node {
            Some(node) => self.todo.agenda.push_back(node),
            None => self.todo.run = true,
        }
    }

    /// A wake-up set earlier still has something to wake.
    pub(crate) fn awaits(&self, at: Time, node: Option<NodeIx>) -> bool {
        let state = &self.state;
        match node {
            Some(node) => !state.node(node).phase.fulfilled() && state.node(node).wake == Some(at),
            None => !state.closing() && !state.worked(),
        }
    }

    pub(crate) fn take_queued(&mut self) -> Vec<NodeIx> {
        std::mem::take(&mut self.todo.queued)
    }

    pub(crate) fn take_wakes(&mut self) -> Vec<(Time, Option<NodeIx>)> {
        std::mem::take(&mut self.todo.wakes)
    }

    pub(crate) fn is_queued(&self, at: NodeIx) -> bool {
        let node = self.state.node(at);
        node.body == Body::Leaf(Leaf::Queued) && !node.phase.fulfilled()
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

    pub(crate) fn priority(&self, at: NodeIx) -> i32 {
        let own = self.state.node(at).template.as_deref().and_then(|name| self.program.recipe(name)?.template.priority);
        own.or(self.program.workflow.spec.priority).unwrap_or(0)
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

    pub(crate) fn resources(&self, at: NodeIx) -> Resources {
        super::task::resources(&self.recipe_of(at).template)
    }
}
