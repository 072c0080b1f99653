//! Slices: how much is decided for one input. A run with very much to decide at once does it in several of them, and
//! commands, reports and timers of all runs are served in between. Work is estimated from what was done and never timed, so
//! that a simulation does the same.

use octoflow_model::{Fact, argo::WorkflowFact};

/// Work, in about microseconds of a fast machine.
pub type Work = u64;

/// What one input may decide when decisions are sliced: short enough that nobody notices who waits for it, and long
/// enough that what surrounds a slice is no cost.
pub const SLICE: Work = 2_000;

const VISIT: Work = 1;
const FACT: Work = 10;
/// A loop's items are kept as one fact.
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
        let items = if let Fact::Workflow(WorkflowFact::Expanded { items, .. }) = fact {
            items.len() as u64 / ITEMS_A_UNIT
        } else {
            0
        };
        self.work += FACT + items;
    }

    /// All of it, when the run's expressions have used so much.
    pub(crate) fn done(&self, steps: u64) -> Work {
        self.work + steps.saturating_sub(self.steps) / STEPS_A_UNIT
    }
}
