//! Timers of all runs, by time and by run: removing those of one run costs as much as it has, not as there are.

use std::collections::BTreeSet;

use octoflow_model::{IdMap, NodeIx, RunId, Time};

/// A run, or one of its nodes, to be woken at a time.
pub(super) type Timer = (Time, RunId, Option<NodeIx>);

#[derive(Debug, Default)]
pub(super) struct Timers {
    all: BTreeSet<Timer>,
    of_run: IdMap<RunId, BTreeSet<(Time, Option<NodeIx>)>>,
}

impl Timers {
    pub(super) fn insert(&mut self, timer @ (at, run, node): Timer) {
        if self.all.insert(timer) {
            self.of_run.entry(run).or_default().insert((at, node));
        }
    }

    pub(super) fn remove(&mut self, timer @ (at, run, node): &Timer) {
        if self.all.remove(timer)
            && let Some(own) = self.of_run.get_mut(run)
        {
            own.remove(&(*at, *node));
            if own.is_empty() {
                self.of_run.remove(run);
            }
        }
    }

    pub(super) fn remove_run(&mut self, run: RunId) {
        for (at, node) in self.of_run.remove(&run).unwrap_or_default() {
            self.all.remove(&(at, run, node));
        }
    }

    /// Returns the timer that is due next.
    pub(super) fn first(&self) -> Option<Timer> {
        self.all.first().copied()
    }

    /// Iterates over the timers that are due, the earliest first.
    pub(super) fn due(&self, now: Time) -> impl Iterator<Item = &Timer> {
        self.all.iter().take_while(move |(at, _, _)| *at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_takes_its_timers_with_it_and_no_others() {
        let mut timers = Timers::default();
        for run in 1..4 {
            for second in 0..3 {
                timers.insert((Time::from_secs(10 * second + run), RunId(run as u64), None));
            }
        }
        timers.remove(&(Time::from_secs(1), RunId(1), None));
        timers.remove_run(RunId(2));
        let left: Vec<u64> = timers.due(Time::from_secs(100)).map(|(_, run, _)| run.0).collect();
        assert_eq!(left, [3, 1, 3, 1, 3]);
        timers.remove_run(RunId(1));
        timers.remove_run(RunId(3));
        assert_eq!((timers.first(), timers.of_run.len()), (None, 0));
    }
}
