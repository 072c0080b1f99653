//! What the scheduler counts since it was made: how long tasks waited until they started, and who was ended for others.
//! Nothing is decided by it.

use std::{collections::BTreeMap, time::Duration};

use super::{Scheduler, TaskRef};

/// Why a running task was ended so that it waits again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PreemptionKind {
    /// A queue took back what it deserves.
    Reclaimed,
    /// A higher class of the same queue.
    LowerClass,
    /// Its node was drained, or somebody evicted it.
    Drained,
    /// A taint of its node.
    Tainted,
}

impl PreemptionKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Reclaimed => "reclaim",
            Self::LowerClass => "priority",
            Self::Drained => "drain",
            Self::Tainted => "taint",
        }
    }
}

/// Upper bounds in milliseconds: from what nobody notices to the longest wait of a queue that says nothing.
const BOUNDS: [u64; 14] = [1, 5, 10, 20, 50, 100, 250, 500, 1_000, 5_000, 10_000, 60_000, 600_000, 3_600_000];

/// How long tasks waited until they were started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// One more than there are bounds: the last counts longer waits.
    counts: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

impl Latency {
    pub(super) fn add(&mut self, wait: Duration) {
        let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let at = BOUNDS.partition_point(|bound| *bound < millis);
        self.counts[at] += 1;
        self.sum = self.sum.saturating_add(wait);
    }

    /// Returns each bound in milliseconds with the number of waits not above it; the last bound is infinite.
    pub fn below(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS.iter().map(|bound| *bound as f64).chain([f64::INFINITY]);
        let mut total = 0;
        let add = |(bound, count): (f64, &u64)| {
            total += count;
            (bound, total)
        };
        bounds.zip(&self.counts).map(add).collect()
    }

    /// Returns the sum of all waits in milliseconds.
    pub fn sum_millis(&self) -> f64 {
        self.sum.as_secs_f64() * 1e3
    }
}

/// What was counted since the scheduler was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub latency: Latency,
    pub preemptions: BTreeMap<PreemptionKind, u64>,
    /// How often victims were looked for.
    pub preemption_attempts: u64,
}

impl Scheduler {
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Notes that a running task is being ended although it could go on. It is nobody's victim any more.
    pub fn note_ending(&mut self, task: TaskRef, kind: PreemptionKind) {
        if self.change_ending(task, true) {
            *self.counters.preemptions.entry(kind).or_default() += 1;
        }
    }

    /// Takes back [`Scheduler::note_ending`], for a task that nobody has told yet.
    pub(super) fn note_spared(&mut self, task: TaskRef, kind: PreemptionKind) {
        if self.change_ending(task, false) {
            self.counters.preemptions.entry(kind).and_modify(|count| *count -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_up_to_each_bound() {
        let mut latency = Latency::default();
        for millis in [0, 1, 2, 4_000, 7_200_000] {
            latency.add(Duration::from_millis(millis));
        }
        let below = latency.below();
        assert_eq!((below[0], below[1]), ((1.0, 2), (5.0, 3)));
        assert_eq!(below.last(), Some(&(f64::INFINITY, 5)));
        assert_eq!(below[below.len() - 2].1, 4);
        assert_eq!(latency.sum_millis(), 7_204_003.0);
    }
}
