//! Slices: how much is decided for one input. A run with very much to decide at once does it in several of them, and
//! commands, reports and timers of all runs are served in between. Work is estimated from what was done and never timed, so
//! that a simulation does the same.

use octoflow_model::{
    Fact,
    argo::{Items, WorkflowFact},
};

/// Work, in about microseconds of a fast machine.
pub type Work = u64;

/// What one input may decide when decisions are sliced: short enough that nobody notices who waits for it, and long
/// enough that what surrounds a slice is no cost.
pub const SLICE: Work = 400;

const VISIT: Work = 1;
const FACT: Work = 10;
/// A list of items is one fact.
const ITEMS_A_UNIT: u64 = 10;
const STEPS_A_UNIT: u64 = 20;

/// What one turn has done so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub limit: Work,
    work: Work,
    /// What the run's expressions had used before.
    steps: u64,
}

impl Slice {
    /// Without an end.
    pub(crate) fn new(steps: u64) -> Self {
        Self { limit: Work::MAX, work: 0, steps }
    }

    pub(crate) fn visited(&mut self) {
        self.work += VISIT;
    }

    pub(crate) fn decided(&mut self, fact: &Fact) {
        let items = match fact {
            Fact::Workflow(WorkflowFact::Expanded { items: Items::List(items), .. }) => {
                items.len() as u64 / ITEMS_A_UNIT
            }
            _ => 0,
        };
        self.work += FACT + items;
    }

    /// All of it, when the run's expressions have used so much.
    pub(crate) fn done(&self, steps: u64) -> Work {
        self.work + steps.saturating_sub(self.steps) / STEPS_A_UNIT
    }
}
