//! Backpressure of submissions on running. While many runs are being submitted, submissions are served first and runs begin
//! a little later; how much later is bounded here. It knows counts and times only, no runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use octoflow_model::Time;

/// The number of submissions in flight that makes a burst. One client that submits run after run makes none.
const BURST: usize = 4;

/// How long a burst counts after it was last seen: clients that were answered come back with the next run.
const WINDOW: Duration = Duration::from_millis(10);

/// The same for a burst that has lasted: a machine that stalls for a moment has not ended it.
const LONG_WINDOW: Duration = Duration::from_millis(50);

/// The longest time for which running waits for submissions. Some thousands come in meanwhile even on a machine of two
/// processors, and a start that is two seconds later is what a cluster has people used to.
const LONGEST: Duration = Duration::from_secs(2);

/// Counts submissions in flight, from before a manifest is judged until its client is answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight(Arc<AtomicUsize>);

/// One submission in flight.
pub(crate) struct Permit(InFlight);

impl InFlight {
    pub(crate) fn enter(&self) -> Permit {
        self.0.fetch_add(1, Ordering::Relaxed);
        Permit(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Decides until when running waits for submissions.
#[derive(Debug, Default)]
pub(super) struct Backpressure {
    /// When a burst was last seen.
    burst_at: Option<Time>,
    /// Since when running waits.
    since: Option<Time>,
    /// Running does not wait again before this: it gets at least as much time as it gave.
    not_before: Option<Time>,
}

impl Backpressure {
    /// Until when running waits, if it does, with so many submissions in flight.
    pub(super) fn busy(&mut self, count: usize, now: Time) -> Option<Time> {
        if count >= BURST {
            self.burst_at = Some(now);
        }
        let until = self.burst_at.map(|at| at.saturating_add(self.window(at))).filter(|until| *until > now);
        let until = match (until, self.since) {
            (Some(until), Some(since)) => Some(until.min(since.saturating_add(LONGEST))).filter(|until| *until > now),
            (Some(until), None) if self.not_before.is_none_or(|at| at <= now) => {
                self.since = Some(now);
                Some(until)
            }
            (_, None) | (None, _) => None,
        };
        if until.is_none()
            && let Some(since) = self.since.take()
        {
            self.not_before = Some(now.saturating_add(now.since(since)));
        }
        until
    }

    /// How long a burst that was seen then is expected to go on.
    fn window(&self, seen: Time) -> Duration {
        let stayed = self.since.map_or(Duration::ZERO, |since| seen.since(since));
        (stayed / 10).clamp(WINDOW, LONG_WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);
    const NOW: Time = Time(1_700_000_000_000_000);

    /// For so many milliseconds so many submissions are in flight; in which of them running waits.
    fn days(backpressure: &mut Backpressure, from: Time, millis: u32, count: usize) -> Vec<bool> {
        (0..millis).map(|at| backpressure.busy(count, from.saturating_add(at * MILLI)).is_some()).collect()
    }

    #[test]
    fn a_few_make_nobody_wait() {
        let waits = days(&mut Backpressure::default(), NOW, 5_000, BURST - 1);
        assert!(!waits.contains(&true));
    }

    #[test]
    fn running_waits_while_a_burst_is_there_and_hardly_longer() {
        let (mut backpressure, now) = (Backpressure::default(), NOW);
        assert!(!days(&mut backpressure, now, 100, BURST).contains(&false));
        let last = now.saturating_add(99 * MILLI);
        assert_eq!(
            backpressure.busy(0, last.saturating_add(MILLI)),
            Some(last.saturating_add(WINDOW)),
            "they may come back"
        );
        assert_eq!(backpressure.busy(0, last.saturating_add(WINDOW)), None);
        assert_eq!(backpressure.busy(1, last.saturating_add(WINDOW + MILLI)), None);
    }

    #[test]
    fn running_never_waits_longer_than_the_bound_and_has_half_of_the_time() {
        let waits = days(&mut Backpressure::default(), NOW, 12_000, 1_000);
        let longest = waits.split(|waits| !waits).map(<[bool]>::len).max();
        assert_eq!(longest.map(|millis| millis as u128), Some(LONGEST.as_millis()));
        let waited = waits.iter().filter(|waits| **waits).count();
        assert!((5_900..=6_100).contains(&waited), "{waited}");
    }

    #[test]
    fn a_burst_that_was_here_for_long_is_waited_for_a_little_longer() {
        let (mut backpressure, now) = (Backpressure::default(), NOW);
        assert!(!days(&mut backpressure, now, 1_000, BURST).contains(&false));
        let last = now.saturating_add(999 * MILLI);
        assert_eq!(backpressure.busy(0, last.saturating_add(MILLI)), Some(last.saturating_add(LONG_WINDOW)));
        assert_eq!(backpressure.busy(0, last.saturating_add(LONG_WINDOW)), None);
    }

    #[test]
    fn whoever_is_answered_is_at_the_door_no_more() {
        let in_flight = InFlight::default();
        let (one, two) = (in_flight.enter(), in_flight.enter());
        assert_eq!(in_flight.count(), 2);
        drop((one, two));
        assert_eq!(in_flight.count(), 0);
    }
}
