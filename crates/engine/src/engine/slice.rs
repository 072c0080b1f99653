//! Slices: the work limit of one input. A run with much to decide does it in several slices, and commands, reports and
//! timers of all runs are served in between. Work is estimated from what was done and never timed, so that a simulation
//! behaves the same.

use octoflow_model::{
    Fact,
    argo::{Items, WorkflowFact},
};

/// Work, in approximate microseconds of a fast machine.
pub type Work = u64;

/// Default work limit of one input: short enough that waiting callers do not notice, and long enough that the overhead
/// of a slice is negligible.
pub const SLICE: Work = 400;

const VISIT: Work = 1;
const FACT: Work = 10;
/// A list of items is one fact.
const ITEMS_A_UNIT: u64 = 10;
const STEPS_A_UNIT: u64 = 20;

/// The work of one turn so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub limit: Work,
    work: Work,
    /// Evaluation steps the run's expressions had used before the turn.
    steps: u64,
}

impl Slice {
    /// Creates a slice without a limit.
    pub(crate) fn new(steps: u64) -> Self {
        Self { limit: Work::MAX, work: 0, steps }
    }

    pub(crate) fn visited(&mut self) {
        self.work += VISIT;
    }

    pub(crate) fn decided(&mut self, fact: &Fact) {
        self.work += FACT;
        if let Fact::Workflow(WorkflowFact::Expanded { items: Items::List(items), .. }) = fact {
            self.work += items.len() as u64 / ITEMS_A_UNIT;
        }
    }

    /// Returns the total work, given the evaluation steps the run's expressions have used by now.
    pub(crate) fn done(&self, steps: u64) -> Work {
        self.work + steps.saturating_sub(self.steps) / STEPS_A_UNIT
    }
}
