//! What the scheduler is told: demands of tasks, nodes, queues and priority classes. Plain data without behaviour; the
//! registry and the dialects make it, the scheduler decides by it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use octoflow_model::{
    RunId,
    task::{
        Labels, Resources,
        placement::{NodeConstraints, Taint},
    },
};

/// The root of the tree of queues.
pub const ROOT: &str = "root";
/// The queue of tasks that name none.
pub const DEFAULT: &str = "default";

/// Amounts by resource name: `cpu` in thousandths, `memory` and storage in bytes, everything else in units.
pub type Quantities = BTreeMap<String, u64>;

/// Everything that the scheduler needs to know about a waiting task, except since when it waits. Equal tasks share one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Whom usage is charged to: the submitter, else the namespace.
    pub tenant: Arc<str>,
    pub queue: Arc<str>,
    pub priority: i32,
    /// A PriorityClass by name; its value takes the place of `priority`.
    pub class: Option<Arc<str>>,
    pub resources: Resources,
    pub gang: Option<Gang>,
    pub constraints: Arc<NodeConstraints>,
    /// True: may always be a victim. False: never. `None`: only while its queue uses more than it deserves.
    pub preemptable: Option<bool>,
    /// The longest it runs: its deadline, or an estimate from history.
    pub bound: Option<Duration>,
    /// After this time it is first in its queue. `None`: the queue's, or the default.
    pub longest_wait: Option<Duration>,
}

/// A gang: tasks that start together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gang {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// If set, only tasks of this run belong to it; otherwise tasks of every run.
    pub own: Option<RunId>,
    /// How many must start at once before any other.
    pub least: u32,
    /// The part of the gang that this task belongs to, such as its role.
    pub part: Arc<str>,
    /// How many of each part must be among the first. Parts that are missing here have no minimum.
    pub least_of: Arc<BTreeMap<String, u32>>,
}

/// A node: a machine that runs tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    pub name: Arc<str>,
    pub capacity: BTreeMap<String, ResourceCapacity>,
    /// True if a resource that `capacity` does not name is unlimited: nobody has declared what the node has. Otherwise the
    /// node has none of it.
    pub open_ended: bool,
    pub labels: Labels,
    /// True if somebody declared labels. While nobody did, selectors exclude no node.
    pub labels_declared: bool,
    pub taints: Vec<Taint>,
    pub cordoned: bool,
}

/// How much of one resource a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceCapacity {
    pub amount: u64,
    /// True if somebody declared the amount: it is never exceeded. A measured amount is: a task larger than the node gets
    /// all of it, and a gang larger than the node runs alone.
    pub declared: bool,
}

/// A queue. A resource that a field does not name is neither limited nor a reason to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    pub name: Arc<str>,
    /// `None`: below [`ROOT`].
    pub parent: Option<Arc<str>>,
    pub weight: u32,
    pub priority: i32,
    /// Never lent.
    pub guarantee: Quantities,
    /// Lent, and taken back on demand. A resource it does not name is deserved by weight.
    pub deserved: Quantities,
    /// The most it may use, with what it borrows.
    pub capability: Quantities,
    /// True if others may take back what it uses above `deserved`.
    pub reclaimable: bool,
    /// True if nothing passes the first waiting task while that does not fit.
    pub strict: bool,
    /// True if tasks go to the emptiest node; otherwise to the fullest that fits.
    pub spread: bool,
    /// The longest wait before a task is first in the queue.
    pub longest_wait: Option<Duration>,
}

/// A priority class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassSpec {
    pub value: i32,
    /// True if its tasks may end tasks of strictly lower classes in their queue.
    pub preempts: bool,
}

impl QueueSpec {
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            parent: None,
            weight: 1,
            priority: 0,
            guarantee: Quantities::new(),
            deserved: Quantities::new(),
            capability: Quantities::new(),
            reclaimable: true,
            strict: false,
            spread: false,
            longest_wait: None,
        }
    }
}

impl NodeSpec {
    /// Creates a node that nobody configured: its amounts are measured.
    pub fn measured(name: impl Into<Arc<str>>, pods: u64, cpu_milli: u64, memory_bytes: u64) -> Self {
        let measured = |amount| ResourceCapacity { amount, declared: false };
        let capacity = [("pods", pods), ("cpu", cpu_milli), ("memory", memory_bytes)];
        Self {
            name: name.into(),
            capacity: capacity.into_iter().map(|(name, amount)| (name.to_owned(), measured(amount))).collect(),
            open_ended: true,
            labels: Labels::new(),
            labels_declared: false,
            taints: Vec::new(),
            cordoned: false,
        }
    }
}

impl Demand {
    /// Creates a demand for resources in the default queue.
    pub fn new(tenant: impl Into<Arc<str>>, resources: Resources) -> Self {
        Self {
            tenant: tenant.into(),
            queue: DEFAULT.into(),
            priority: 0,
            class: None,
            resources,
            gang: None,
            constraints: Arc::default(),
            preemptable: None,
            bound: None,
            longest_wait: None,
        }
    }
}
