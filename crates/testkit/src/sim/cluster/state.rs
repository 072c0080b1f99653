//! Nodes and queues as the story goes on: what the controller was told of, and what there is. It outlives crashes.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_control::VirtualLoop;
use octoflow_engine::{
    kinds::scheduling::{self, QUEUE, QueueState, QueueTree},
    schedule::{TaskRef, spec::NodeSpec},
};
use octoflow_model::{
    AttemptId, Report, RunId,
    task::placement::{Taint, TaintEffect},
};
use serde_json::Value;

use super::{
    Cluster, ClusterAct, INNER, LEAVES,
    judge::{Batch, Preempted},
    large_nodes, plain_queue,
};
use crate::{
    recount::{Declared, gang::Key},
    sim::failure::{Broken, Guarantee, broken},
};

pub(in crate::sim) struct ClusterState {
    /// Nodes as they joined, without what people have marked.
    nodes: BTreeMap<String, NodeSpec>,
    /// By node: whether it is cordoned, and whether it is tainted. This is stored, so it holds for a node that comes back.
    marks: BTreeMap<String, (bool, bool)>,
    tree: QueueTree,
    /// What the scheduler goes by.
    pub(super) declared: Declared,
    /// What it went by before, as far as it may still act on that.
    pub(super) before: Vec<Declared>,
    /// Counts changes of what is declared.
    pub(super) epoch: u64,
    /// Attempts whose end the controller was told, in this life of it.
    pub(super) told_over: BTreeSet<AttemptId>,
    /// In this world runs may have more to decide than one input may.
    pub(super) lenient: bool,
    /// Preemptions that are being collected.
    pub(super) batch: Option<Batch>,
    /// Members of gangs that have started since the last audit.
    pub(super) begun: BTreeSet<(Key, TaskRef)>,
    /// Preemptions whose beneficiary has not started.
    pub(super) preempted: Vec<Preempted>,
    /// How often a task was ended for a run since something was declared.
    pub(super) again: BTreeMap<(RunId, TaskRef), u32>,
    /// How much there was to judge.
    pub(super) seen: Seen,
}

/// How often something happened that is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub starts: u64,
    pub preemptions: u64,
    pub gangs: u64,
    pub drained: u64,
}

impl Seen {
    pub fn add(&mut self, other: Self) {
        self.starts += other.starts;
        self.preemptions += other.preemptions;
        self.gangs += other.gangs;
        self.drained += other.drained;
    }
}

impl ClusterState {
    pub(in crate::sim) fn new(cluster: &Cluster, lenient: bool) -> Self {
        let nodes: BTreeMap<String, NodeSpec> =
            cluster.nodes.iter().map(|node| (node.name.to_string(), node.clone())).collect();
        let declared = Declared { nodes: nodes.clone(), ..Declared::default() };
        Self {
            nodes,
            marks: BTreeMap::new(),
            tree: QueueTree::default(),
            declared,
            before: Vec::new(),
            epoch: 0,
            told_over: BTreeSet::new(),
            lenient,
            batch: None,
            begun: BTreeSet::new(),
            preempted: Vec::new(),
            again: BTreeMap::new(),
            seen: Seen::default(),
        }
    }

    pub(in crate::sim) fn seen(&self) -> Seen {
        self.seen
    }

    /// The nodes that there are now, as a controller that starts is configured with.
    pub(in crate::sim) fn nodes(&self) -> Vec<NodeSpec> {
        self.nodes.values().cloned().collect()
    }

    pub(in crate::sim) fn has_node(&self, name: &str) -> bool {
        self.nodes.contains_key(name)
    }

    /// A controller starts, or has read everything back: it goes by what there is.
    pub(in crate::sim) fn controller_starts(&mut self) {
        self.declared.nodes = self.nodes.keys().map(|name| (name.clone(), self.marked(name))).collect();
        self.before.clear();
        self.batch = None;
        self.begun.clear();
        self.told_over.clear();
        self.preempted.clear();
        self.again.clear();
        self.epoch += 1;
    }

    fn marked(&self, name: &str) -> NodeSpec {
        let mut node = self.nodes[name].clone();
        let (cordoned, tainted) = self.marks.get(name).copied().unwrap_or_default();
        node.cordoned = cordoned;
        node.taints = if tainted { taints() } else { Vec::new() };
        node
    }

    pub(in crate::sim) fn heard(&mut self, report: &Report) {
        if matches!(report, Report::Ended { .. } | Report::Answered { .. } | Report::Lost { .. }) {
            self.told_over.insert(report.attempt());
        }
    }

    /// Reports whether somebody may submit to this queue now.
    pub(in crate::sim) fn takes(&self, queue: Option<&str>) -> bool {
        queue.is_none_or(|queue| self.tree.state(queue) == QueueState::Open)
    }

    /// Something is done that needs no controller: nodes come and go. False if it is for people, who need one.
    pub(in crate::sim) fn happens(&mut self, act: &ClusterAct) -> bool {
        match act {
            ClusterAct::Join(node) => drop(self.nodes.insert(node.name.to_string(), (**node).clone())),
            ClusterAct::Vanish(name) => drop(self.nodes.remove(name)),
            ClusterAct::Repair => self.nodes.extend(large_nodes().map(|node| (node.name.to_string(), node))),
            ClusterAct::Mark { .. }
            | ClusterAct::Drain(_)
            | ClusterAct::PutQueue(_)
            | ClusterAct::Close { .. }
            | ClusterAct::DeleteQueue(_) => return false,
        }
        true
    }

    /// The controller is told, or asked by people. False if nothing was to be done.
    pub(in crate::sim) fn tell(&mut self, act: &ClusterAct, event_loop: &mut VirtualLoop) -> Result<bool, Broken> {
        let before = self.declared.clone();
        let done = self.act(act, event_loop)?;
        if done {
            self.before.push(before);
            self.epoch += 1;
            self.again.clear();
        }
        Ok(done)
    }

    fn act(&mut self, act: &ClusterAct, event_loop: &mut VirtualLoop) -> Result<bool, Broken> {
        match act {
            ClusterAct::Join(node) => self.join(&node.name, event_loop),
            ClusterAct::Vanish(name) => {
                event_loop.remove_node(name);
                return Ok(self.declared.nodes.remove(name).is_some());
            }
            ClusterAct::Mark { node, cordoned, tainted } => return self.mark(node, *cordoned, *tainted, event_loop),
            ClusterAct::Drain(node) => {
                let tainted = self.marks.get(node).is_some_and(|(_, tainted)| *tainted);
                if !self.mark(node, true, tainted, event_loop)? {
                    return Ok(false);
                }
                event_loop.drain_node(node);
                self.seen.drained += 1;
            }
            ClusterAct::PutQueue(object) => return self.put_queue(object, false, event_loop),
            ClusterAct::Close { queue, closed } => {
                let Some(spec) = self.tree.get(queue).cloned() else { return Ok(false) };
                // Closing is a state of the queue and says nothing to the scheduler.
                self.tree.put(spec, *closed);
            }
            ClusterAct::DeleteQueue(name) => {
                let has_work = |queue: &str| event_loop.engine().scheduler().has_work(queue);
                if self.tree.get(name).is_none() || self.tree.check_delete(name, has_work).is_err() {
                    return Ok(false);
                }
                self.tree.remove(name);
                self.declared.queues.remove(name);
                event_loop.delete_scheduling(&QUEUE, name).or_else(no_store)?;
            }
            // One message after the other: what is decided in between is judged by what was declared then.
            ClusterAct::Repair => {
                for node in large_nodes() {
                    self.before.push(self.declared.clone());
                    self.join(&node.name, event_loop);
                }
                for queue in LEAVES.iter().chain(&[INNER]) {
                    self.before.push(self.declared.clone());
                    let parent = self.tree.get(queue).and_then(|spec| spec.parent.clone());
                    self.put_queue(&plain_queue(queue, parent.as_deref()), true, event_loop)?;
                }
            }
        }
        Ok(true)
    }

    fn join(&mut self, name: &str, event_loop: &mut VirtualLoop) {
        event_loop.join_node(self.nodes[name].clone());
        self.declared.nodes.insert(name.to_owned(), self.marked(name));
    }

    fn mark(
        &mut self,
        name: &str,
        cordoned: bool,
        tainted: bool,
        event_loop: &mut VirtualLoop,
    ) -> Result<bool, Broken> {
        let Some(node) = self.nodes.get(name).cloned() else { return Ok(false) };
        let taints = if tainted { taints() } else { Vec::new() };
        event_loop.mark_node(&node, cordoned, taints).or_else(no_store)?;
        self.marks.insert(name.to_owned(), (cordoned, tainted));
        self.declared.nodes.insert(name.to_owned(), self.marked(name));
        Ok(true)
    }

    /// Creates or changes a queue, unless admission refuses it.
    pub(in crate::sim) fn put_queue(
        &mut self,
        object: &Value,
        by_force: bool,
        event_loop: &mut VirtualLoop,
    ) -> Result<bool, Broken> {
        let spec = scheduling::queue(object);
        let has_work = |queue: &str| event_loop.engine().scheduler().has_work(queue);
        let (problems, _) = QUEUE.check.map(|check| check(object)).unwrap_or_default();
        if !by_force && (!problems.is_empty() || !self.tree.check(&spec, has_work).is_empty()) {
            return Ok(false);
        }
        let closed = !by_force && self.tree.is_closed(&spec.name);
        self.tree.put(spec.clone(), closed);
        self.declared.queues.insert(spec.name.to_string(), spec);
        event_loop.put_scheduling(&QUEUE, object).or_else(no_store)?;
        Ok(true)
    }

    /// Everything that is declared at the beginning.
    pub(in crate::sim) fn begin(&mut self, cluster: &Cluster, event_loop: &mut VirtualLoop) -> Result<(), Broken> {
        for (kind, object) in &cluster.objects {
            if **kind == QUEUE {
                if !self.put_queue(object, false, event_loop)? {
                    let name = object["metadata"]["name"].as_str().unwrap_or_default();
                    self.put_queue(&plain_queue(name, object["spec"]["parent"].as_str()), false, event_loop)?;
                }
            } else {
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                self.declared.classes.insert(name, scheduling::class(object).spec);
                event_loop.put_scheduling(kind, object).or_else(no_store)?;
            }
        }
        Ok(())
    }
}

fn taints() -> Vec<Taint> {
    vec![Taint { key: "spot".to_owned(), value: String::new(), effect: TaintEffect::NoSchedule, added: None }]
}

fn no_store<T>(error: octoflow_control::Error) -> Result<T, Broken> {
    broken(Guarantee::Acknowledged, format!("the simulated disk cannot be used: {error}"))
}
