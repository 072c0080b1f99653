//! Defines a node of a run: identity, phase, and the bookkeeping that its kind needs.
//! Only the fold writes it.

use std::collections::BTreeMap;

use octoflow_model::{
    AttemptId, Claim, NodeIx, Time,
    argo::{InputValues, Items, NodeKind, NodeList, OutputValues, Phase, Role},
    phases,
};

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub name: Box<str>,
    pub kind: NodeKind,
    pub role: Role,
    pub phase: Phase,
    /// True if nothing about the node is open: it is final, and its hooks and exit handler are over.
    pub settled: bool,
    /// True if an exit handler or hook may follow its end.
    pub followed: bool,
    /// True if hooks other than the exit handler may fire while it runs and when it ends.
    pub hooked: bool,
    /// True if the node belongs to an exit handler, which stopping and deadlines do not end.
    pub after_end: bool,
    /// Node of the cluster that its task runs or ran on, as an index of [`State::hosts`](super::run::State::hosts).
    pub host: Option<HostIx>,
    /// Number of calls between the node and the root.
    pub depth: u16,
    pub parent: Option<NodeIx>,
    pub boundary: Option<NodeIx>,
    pub template: Option<std::sync::Arc<str>>,
    pub message: Option<Box<str>>,
    pub display: Option<Box<str>>,
    /// Time the node was added.
    pub created_at: Time,
    pub started: Time,
    /// True if a runtime reported that its task began.
    pub ran: bool,
    pub finished: Option<Time>,
    /// Time of the next visit that no event triggers: a deadline or a backoff.
    pub wake: Option<Time>,
    pub children: Vec<NodeIx>,
    pub outbound: NodeList,
    pub inputs: Option<Box<InputValues>>,
    pub outputs: Option<Box<OutputValues>>,
    /// Progress that its task reported, as (done, total).
    pub progress: Option<Box<(u32, u32)>>,
    /// True while the node must not go on because it does not hold its locks.
    pub barred: bool,
    /// Locks that the node wants or holds; `None` once it is over.
    pub lock: Option<Box<Lock>>,
    /// True if the node is a daemon that is up, so that nothing waits for it any longer.
    pub daemoned: bool,
    /// True if the daemon is being stopped because it is not needed any longer.
    pub dismissed: bool,
    /// Result of the cache lookup of a memoized node.
    pub memo: Option<Box<Memo>>,
    /// Results of the previous run that this node, and the nodes below it, reuse.
    pub reuse: Option<Box<ReuseState>>,
    pub body: Body,
}

/// A node of the cluster, as an index of the names that a run has met. Never zero, so that an optional one takes no more
/// room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostIx(pub(super) std::num::NonZeroU32);

/// A task that a runtime has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    pub at: Time,
    /// Numbers of its devices by resource.
    pub devices: BTreeMap<String, Vec<u32>>,
}

/// Preemptions of a node's task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preemptions {
    /// Number of attempts that were preempted and are over; the number of the current attempt.
    pub count: u32,
    /// Time and reason of the last one.
    pub at: Time,
    pub why: Box<str>,
}

/// Relation of a rerun's node to the results of the previous run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReuseState {
    /// True if the node's result is reused and the node does not run again.
    pub own: bool,
    /// True if the node is shown as skipped because another run executed it.
    pub skipped: bool,
    /// Machine that the node ran on in the previous run.
    pub host: Option<Box<str>>,
    /// Attempt whose log is this node's log.
    pub attempt: Option<AttemptId>,
    /// Time the last reused node at or below this one ended.
    pub until: Option<Time>,
    /// True if some node below this one runs again.
    pub fresh: bool,
}

/// Cache lookup of a memoized node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memo {
    pub cache: String,
    pub key: String,
    pub hit: bool,
}

/// A set of locks that is acquired as a whole: all of them are held, or none is.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    pub claims: Vec<Claim>,
    pub held: bool,
    /// While waiting: the contended lock, and its holders at the time the wait began.
    pub waits: Option<(String, Vec<String>)>,
}

impl Lock {
    pub(super) fn wanted(claims: &[Claim]) -> Self {
        Self { claims: claims.to_vec(), held: false, waits: None }
    }
}

/// Bookkeeping of an open node, by kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// No bookkeeping: skipped and suspended nodes, and all nodes that are over.
    Plain,
    Leaf(Leaf),
    Steps {
        groups: Vec<NodeIx>,
    },
    Group(Group),
    Dag(Box<Dag>),
    /// The items of a looped task.
    TaskGroup(Expansion),
    Retry {
        attempts: Vec<NodeIx>,
    },
}

phases! {
    /// Life cycle of a task. It ends with its node in whatever state it is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Leaf {
        /// Waits for its locks. Owned by the lock table.
        Barred = "Barred" -> [Queued],
        /// Waits for the scheduler. Owned by the scheduler's queue.
        Queued = "Queued" -> [Launched],
        /// Handed to a runtime that has not reported it as running. Owned by the runtime.
        Launched = "Launched" -> [Running, Preempting, Stopping],
        /// Reported as running by the runtime.
        Running = "Running" -> [Preempting, Stopping],
        /// Ordered to stop for another task. Whatever end the runtime reports, it waits again as a new attempt.
        Preempting = "Preempting" -> [Queued, Stopping],
        /// Ordered to stop. Its end counts as that stop, whatever end the runtime reports.
        Stopping = "Stopping" -> [],
    }
}

impl Leaf {
    pub fn owned_by_runtime(self) -> bool {
        match self {
            Self::Barred | Self::Queued => false,
            Self::Launched | Self::Running | Self::Preempting | Self::Stopping => true,
        }
    }
}

/// The calls of one step group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub calls: Vec<Expansion>,
    /// Index of the first call that does not have all its nodes.
    pub cursor: u32,
    /// Number of children that are not settled.
    pub open: u32,
}

/// A call and the nodes made for it: one, or one per item of its loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expansion {
    /// Items of the loop; `None` until it is expanded, or without a loop.
    pub items: Option<Items>,
    /// Nodes in the order of their items.
    pub nodes: Vec<NodeIx>,
    /// Number of these nodes that are not settled.
    pub open: u32,
}

impl Expansion {
    /// Whether the call has all nodes that it will ever have.
    pub fn complete(&self) -> bool {
        match &self.items {
            Some(items) => self.nodes.len() == items.len(),
            None => !self.nodes.is_empty(),
        }
    }
}

/// The tasks of one DAG.
#[derive(Clone, Debug, PartialEq)]
pub struct Dag {
    /// Nodes by task; `None` until a task has one.
    pub nodes: Vec<Option<NodeIx>>,
    /// Number of unsettled dependencies, by task.
    pub waits: Vec<u32>,
    /// Number of tasks that have a node.
    pub made: u32,
    /// Number of nodes that are not settled.
    pub open: u32,
}

impl Node {
    pub fn input(&self, name: &str) -> Option<&str> {
        self.inputs.as_ref()?.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn leaf(&self) -> Option<Leaf> {
        let Body::Leaf(leaf) = self.body else { return None };
        Some(leaf)
    }

    /// The attempts of an open retry node.
    pub fn attempts(&self) -> &[NodeIx] {
        let Body::Retry { attempts } = &self.body else { return &[] };
        attempts
    }

    /// Returns the node's share of the run's progress as (done, total), for nodes that progress counts.
    pub fn share(&self) -> (u64, u64) {
        let (done, total) = self.progress.as_deref().copied().unwrap_or((0, 1));
        let well = matches!(self.phase, Phase::Succeeded | Phase::Skipped | Phase::Omitted);
        (u64::from(if well { total } else { done }), u64::from(total))
    }

    /// Whether the node's result is reused from the previous run.
    pub fn reused(&self) -> bool {
        self.reuse.as_ref().is_some_and(|reuse| reuse.own)
    }

    /// Whether the node has results and all of them are from the previous run.
    pub fn untouched(&self) -> bool {
        self.reuse.as_ref().is_some_and(|reuse| reuse.own || !reuse.fresh)
    }

    /// Whether the node counts against parallelism limits while it is not final.
    pub fn counts_as_child(&self) -> bool {
        is_counted(self.kind)
    }
}

/// Whether nodes of this kind count against the parallelism limit of their boundary.
pub(super) fn is_counted(kind: NodeKind) -> bool {
    matches!(kind, NodeKind::Pod | NodeKind::Steps | NodeKind::Dag)
}
