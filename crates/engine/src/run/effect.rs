//! Effects: everything one turn of a run did beyond changing the run itself. A dialect records them where it decides,
//! in one exhaustive match; no caller scans facts to find out what happened.

use octoflow_model::{
    Fact, NodeIx, Order, RunFact, RunId, Time, meter::Metered, plugin::LifeState, run::outputs::OutputValues,
};

use crate::engine::{input::Command, locks::Waiter};

/// The effects of one turn. Whoever ends a turn applies all of them: there is no other way to learn of any.
#[derive(Debug, Default)]
#[must_use]
pub struct Effects {
    pub facts: Vec<Fact>,
    pub orders: Vec<Order>,
    /// Tasks whose room is freed: no runtime has them any more, or they need none.
    pub(crate) freed: Vec<NodeIx>,
    /// Nodes that are over and release their locks.
    pub(crate) unlocked: Vec<NodeIx>,
    /// Tasks that are ended for others and leave their gangs.
    pub(crate) preempted: Vec<NodeIx>,
    /// Tasks that a runtime was ordered to end, for whatever reason.
    pub(crate) ending: Vec<NodeIx>,
    /// True if the run's gangs dissolve; its next attempt forms new ones.
    pub(crate) gangs_dissolved: bool,
    /// Readings of custom metrics, in the order they were taken.
    pub(crate) metered: Vec<Metered>,
    /// Commands to runs that this one ordered and ends.
    pub(crate) commands: Vec<(RunId, Command)>,
    /// New cache entries, in order of creation.
    pub(crate) cached: Vec<CacheEntry>,
    /// Tasks that wait for the scheduler from now on. One that is freed as well waits anew.
    pub(crate) queued: Vec<NodeIx>,
    /// When a node, or the run itself, is visited again.
    pub(crate) wakes: Vec<(Time, Option<NodeIx>)>,
    /// Nodes, or the run itself, that want locks.
    pub(crate) lock_requests: Vec<(Option<NodeIx>, Waiter)>,
    pub change: Change,
}

/// A cache entry written by a memoized node.
#[derive(Clone, Debug)]
pub(crate) struct CacheEntry {
    pub node: String,
    pub at: Time,
    pub cache: String,
    pub key: String,
    pub outputs: OutputValues,
}

/// Changes of a run in a turn, for observers outside the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// True if the run was submitted (its first fact).
    pub submitted: bool,
    /// True if its phase, or another field that lists show, changed.
    pub phase: bool,
    /// True if its lifecycle changed: it began, was suspended, resumed or shut down, or ended.
    pub lifecycle: bool,
    /// True if labels, annotations, owners or finalizers changed.
    pub marked: bool,
    /// True if the run ended (its last fact).
    pub ended: bool,
    /// Names of the caches that got entries.
    pub caches: Vec<String>,
    /// Control units by attempt: true if created, false if deleted.
    pub units: Vec<(u32, bool)>,
    /// True if the objects that the run brings along changed.
    pub objects: bool,
    /// True if a caller waits for the facts to be durable. Other facts may wait for the next commit.
    pub urgent: bool,
    /// The states that the run entered, in order, each when it did. Never the same twice in a row.
    pub life: Vec<(LifeState, Time)>,
}

/// The decisions of one run for an input.
#[derive(Debug)]
pub struct Decided {
    pub run: RunId,
    pub facts: Vec<Fact>,
    pub change: Change,
    /// The number of states that the run had entered before.
    pub lived: u32,
}

impl Effects {
    /// Records that a fact has brought the run from one state to another, or left it in the same.
    pub(crate) fn note_life(&mut self, before: LifeState, after: LifeState, at: Time) {
        if before != after {
            self.change.life.push((after, at));
        }
    }

    /// Records the effects of a fact that all dialects share.
    pub(crate) fn note(&mut self, fact: &RunFact) {
        let change = &mut self.change;
        change.urgent = true;
        match fact {
            RunFact::Submitted(_) => change.submitted = true,
            RunFact::Suspended { .. } | RunFact::Resumed { .. } | RunFact::ShuttingDown { .. } => {
                change.lifecycle = true
            }
            RunFact::DeadlinePassed { .. } => {}
            RunFact::Deadlock { .. } => change.phase = true,
            RunFact::Marked { .. } => {
                change.phase = true;
                change.marked = true;
            }
            RunFact::Ended { .. } => {
                change.lifecycle = true;
                change.ended = true;
            }
        }
    }
}
