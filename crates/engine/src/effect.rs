//! Effects: everything one turn of a run did beside changing the run itself. A dialect notes them where it decides, in one
//! exhaustive match; nobody downstream looks through facts to find out what happened.

use octoflow_model::{Fact, NodeIx, Order, RunFact, RunId, Time, argo::OutputValues, meter::Metered};

/// What one turn did.
#[derive(Debug, Default)]
pub struct Effects {
    pub facts: Vec<Fact>,
    pub orders: Vec<Order>,
    /// Tasks whose room is free: no runtime has them any more, or they need none.
    pub(crate) freed: Vec<NodeIx>,
    /// Nodes that are over and give their locks back.
    pub(crate) unlocked: Vec<NodeIx>,
    /// The run's gangs dissolve; its next attempt gathers new ones.
    pub(crate) gangs_dissolved: bool,
    /// Readings of custom metrics, in the order they were taken.
    pub(crate) metered: Vec<Metered>,
    /// Entries for caches, in the order they were made.
    pub(crate) cached: Vec<CacheEntry>,
    pub change: Change,
}

/// An entry that a memoized node puts into a cache.
#[derive(Clone, Debug)]
pub(crate) struct CacheEntry {
    pub node: String,
    pub at: Time,
    pub cache: String,
    pub key: String,
    pub outputs: OutputValues,
}

/// What others must hear about a run after a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Its first fact was decided.
    pub submitted: bool,
    /// Its phase, or something else that lists show, is not what it was.
    pub phase: bool,
    /// It began, was suspended, resumed or shut down, or it ended.
    pub steered: bool,
    /// Labels, annotations, owners or finalizers were written.
    pub marked: bool,
    /// Its last fact was decided.
    pub ended: bool,
    /// Caches that were filled, by name.
    pub caches: Vec<String>,
    /// Control units by attempt: whether they exist from now on.
    pub units: Vec<(u32, bool)>,
    /// Somebody waits for the facts to be durable. Others may wait for the next ones that are.
    pub urgent: bool,
}

/// What one run decided for an input.
#[derive(Debug)]
pub struct Decided {
    pub run: RunId,
    pub facts: Vec<Fact>,
    pub change: Change,
}

impl Effects {
    /// Notes what any run can meet.
    pub(crate) fn note(&mut self, fact: &RunFact) {
        let change = &mut self.change;
        change.urgent = true;
        match fact {
            RunFact::Submitted(_) => change.submitted = true,
            RunFact::Suspended { .. } | RunFact::Resumed { .. } | RunFact::ShuttingDown { .. } => change.steered = true,
            RunFact::DeadlinePassed { .. } => {}
            RunFact::Marked { .. } => {
                change.phase = true;
                change.marked = true;
            }
            RunFact::Ended { .. } => {
                change.steered = true;
                change.ended = true;
            }
        }
    }
}
