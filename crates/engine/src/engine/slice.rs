//! Slices: the work limit of one input. A run with much to decide does it in several slices, and commands, reports and
//! timers of all runs are served in between. Work is estimated from what was done and never timed, so that a simulation
//! behaves the same.

/// Work, in approximate microseconds of a fast machine.
pub type Work = u64;

/// Default work limit of one input: short enough that waiting callers do not notice, and long enough that the overhead
/// of a slice is negligible.
pub const SLICE: Work = 400;

const VISIT: Work = 1;
const FACT: Work = 10;
/// A member of a run that a fact about many of them names: it is folded, and comes to the scheduler or leaves it.
const MEMBER: Work = 2;
/// A list of items is one fact.
const ITEMS_A_UNIT: u64 = 10;

/// Members of a run that one fact names at most, so that a slice ends soon after its limit. It is the same for every
/// limit, so that a limit changes when something is decided and never what.
pub(crate) const MEMBERS_A_FACT: u32 = 200;

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

    pub(crate) fn decided(&mut self) {
        self.work += FACT;
    }

    /// Counts the members that a fact names.
    pub(crate) fn covered(&mut self, members: usize) {
        self.work += members as u64 * MEMBER;
    }

    /// Counts the items that a fact lists.
    pub(crate) fn listed(&mut self, items: usize) {
        self.work += items as u64 / ITEMS_A_UNIT;
    }

    /// Reports whether the limit is reached, by a run without expressions.
    pub(crate) fn is_spent(&self) -> bool {
        self.work >= self.limit
    }

    /// Returns the total work, given the evaluation steps the run's expressions have used by now.
    pub(crate) fn done(&self, steps: u64) -> Work {
        self.work + steps.saturating_sub(self.steps) / STEPS_A_UNIT
    }
}
