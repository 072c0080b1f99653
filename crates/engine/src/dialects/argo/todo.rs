//! Holds the work list of a run: what a turn visits next. It is not part of the state: it is discarded on restart, and
//! then everything open is visited once. The fold never sees it, but emits notes, which are entered here in order.

use std::collections::{BTreeSet, VecDeque};

use octoflow_model::{IdMap, IdSet, NodeIx, Time, argo::NodeKind};

use super::{
    node::Node,
    run::{Run, State},
};

/// A change that the fold reports to the work list. A note says what changed, never what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// A node changed in a way that may let it go on.
    Changed(NodeIx),
    /// The run itself may be able to go on: begin, start its exit handler, or end.
    RunChanged,
    /// The rules changed for all open nodes.
    RulesChanged,
    /// A value changed that hooks of other nodes may depend on.
    Watched,
    /// A pod waits for the scheduler.
    Queued(NodeIx),
    /// A node, or the run, wants locks.
    Wants(Option<NodeIx>),
    /// A node, or the run, must be visited at this time.
    Wake(Time, Option<NodeIx>),
    /// A boundary has one child less that counts against its limit.
    ChildOver(NodeIx),
    /// A task of an open DAG has no unsettled dependencies left.
    Ready { dag: NodeIx, task: u32 },
    /// A retried call holds its locks.
    RetryLocked(NodeIx),
    /// A node is final.
    Finished(NodeIx),
    /// A node is settled.
    Settled(NodeIx),
    /// The run is over.
    Ended,
}

/// The work list of a run.
#[derive(Default)]
pub(super) struct Todo {
    /// Queue of nodes to visit.
    pub(super) agenda: VecDeque<NodeIx>,
    /// DAG tasks without unsettled dependencies, by DAG.
    pub(super) ready: IdMap<NodeIx, VecDeque<u32>>,
    /// Nodes that the run's parallelism limit keeps from starting a pod.
    pub(super) parked: VecDeque<NodeIx>,
    /// Nodes that their boundary's parallelism limit keeps from starting a child, by boundary.
    pub(super) parked_in: IdMap<NodeIx, VecDeque<NodeIx>>,
    /// All parked nodes with the boundary whose limit they wait for, or `None` for the run's, so that none is parked twice
    /// for the same limit. A node may wait for two: its hook for a slot beside it, its next child for a slot inside it.
    pub(super) parked_nodes: IdSet<(Option<NodeIx>, NodeIx)>,
    /// Boundaries with parked nodes in which a child ended, so that a slot may be free.
    pub(super) with_free_slot: VecDeque<NodeIx>,
    /// New pods that wait for the scheduler.
    pub(super) queued: Vec<NodeIx>,
    /// Nodes, or the run itself, that want locks and are not in the lock table yet.
    pub(super) wants: Vec<Option<NodeIx>>,
    /// Timers to set, for a node or for the run itself.
    pub(super) wakes: Vec<(Time, Option<NodeIx>)>,
    /// Retried calls that hold locks. They keep a slot between their attempts.
    pub(super) locked_retries: BTreeSet<NodeIx>,
    /// Nodes with hooks that depend on more than the node itself.
    pub(super) watchers: BTreeSet<NodeIx>,
    /// True if the run's parallelism limit keeps a hook of the run from starting.
    pub(super) run_parked: bool,
    /// True if the run itself must be visited.
    pub(super) run: bool,
    /// True if a loop was paused; the node it expands is the first of the queue.
    pub(super) paused: bool,
}

impl Run {
    /// Enters the notes of a fold into the work list.
    pub(super) fn enter_notes(&mut self) {
        for note in self.notes.drain(..) {
            if let Note::Finished(at) = note {
                self.instances.remove(&at);
            } else if note == Note::Ended {
                self.instances.clear();
            }
            self.todo.enter(note, &self.state);
        }
    }
}

impl Todo {
    fn enter(&mut self, note: Note, state: &State) {
        match note {
            Note::Changed(at) => self.agenda.push_back(at),
            Note::RunChanged => self.run = true,
            Note::RulesChanged => self.visit_all(state),
            Note::Watched => self.agenda.extend(&self.watchers),
            Note::Queued(at) => self.queued.push(at),
            Note::Wants(node) => self.wants.push(node),
            Note::Wake(at, node) => self.wakes.push((at, node)),
            Note::ChildOver(boundary) => {
                if self.parked_in.contains_key(&boundary) {
                    self.with_free_slot.push_back(boundary);
                }
            }
            // Without a list the DAG's next visit builds a complete one; a list begun here would hide earlier ready
            // tasks.
            Note::Ready { dag, task } => {
                if let Some(ready) = self.ready.get_mut(&dag) {
                    ready.push_back(task);
                }
            }
            Note::RetryLocked(at) => {
                self.locked_retries.insert(at);
            }
            Note::Finished(at) => {
                self.locked_retries.remove(&at);
                self.ready.remove(&at);
                for parked in self.parked_in.remove(&at).into_iter().flatten() {
                    // The node may have to be parked elsewhere next, for example for its own exit handler.
                    self.parked_nodes.remove(&(Some(at), parked));
                }
            }
            Note::Settled(at) => {
                self.watchers.remove(&at);
            }
            Note::Ended => *self = Self::default(),
        }
    }

    /// Puts all open nodes on the work list: after a restart, and when a command changes the rules for all.
    pub(super) fn visit_all(&mut self, state: &State) {
        self.parked.clear();
        self.parked_in.clear();
        self.parked_nodes.clear();
        self.with_free_slot.clear();
        self.ready.clear();
        self.run_parked = false;
        let open = || state.nodes.iter().enumerate().filter(|(_, node)| !node.settled);
        self.agenda = open().map(|(at, _)| NodeIx(at as u32)).collect();
        let locked = |node: &Node| node.kind == NodeKind::Retry && node.lock.as_ref().is_some_and(|lock| lock.held);
        self.locked_retries = open().filter(|(_, node)| locked(node)).map(|(at, _)| NodeIx(at as u32)).collect();
        self.run = true;
    }
}
