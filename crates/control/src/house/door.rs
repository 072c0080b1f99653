//! When those who hand in runs come before those that run. While many stand at the door they are let in first, and what
//! was let in begins a little later; how much later is bounded here. It knows numbers and times only, no runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// So many at once are a crowd. Whoever hands in one run after the other, or waits for the end of each, is none.
const CROWD: usize = 4;

/// A crowd that was here this long ago is still one: who was answered comes back with the next run.
const MOMENT: Duration = Duration::from_millis(10);

/// The same for one that has been here for long: a machine that halts for a moment has not sent it away.
const LONG_MOMENT: Duration = Duration::from_millis(50);

/// The longest time for which running waits for letting in. Some thousands come in meanwhile even on a machine of two
/// processors, and a start that is two seconds later is what a cluster has people used to.
const LONGEST: Duration = Duration::from_secs(2);

/// Counts those who are handing in a run, from before it is judged until they are answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Threshold(Arc<AtomicUsize>);

/// Somebody who is handing in a run.
pub(crate) struct Guest(Threshold);

impl Threshold {
    pub(crate) fn enter(&self) -> Guest {
        self.0.fetch_add(1, Ordering::Relaxed);
        Guest(self.clone())
    }

    pub(super) fn guests(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
pub(super) struct Door {
    /// When a crowd was last seen.
    crowded: Option<Instant>,
    /// Since when running waits.
    since: Option<Instant>,
    /// Running does not wait again before this: it gets at least as much time as it gave.
    not_before: Option<Instant>,
}

impl Door {
    /// Until when running waits, if it does, with so many at the door.
    pub(super) fn busy(&mut self, guests: usize, now: Instant) -> Option<Instant> {
        if guests >= CROWD {
            self.crowded = Some(now);
        }
        let until = self.crowded.map(|at| at + self.moment(at)).filter(|until| *until > now);
        let until = match (until, self.since) {
            (Some(until), Some(since)) => Some(until.min(since + LONGEST)).filter(|until| *until > now),
            (Some(until), None) if self.not_before.is_none_or(|at| at <= now) => {
                self.since = Some(now);
                Some(until)
            }
            (_, None) | (None, _) => None,
        };
        if until.is_none()
            && let Some(since) = self.since.take()
        {
            self.not_before = Some(now + (now - since));
        }
        until
    }

    /// How long a crowd that was seen then is believed to come back.
    fn moment(&self, seen: Instant) -> Duration {
        let stayed = self.since.map_or(Duration::ZERO, |since| seen.saturating_duration_since(since));
        (stayed / 10).clamp(MOMENT, LONG_MOMENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    /// For so many milliseconds so many stand at the door; in which of them running waits.
    fn days(door: &mut Door, from: Instant, millis: u32, guests: usize) -> Vec<bool> {
        (0..millis).map(|at| door.busy(guests, from + at * MILLI).is_some()).collect()
    }

    #[test]
    fn a_few_make_nobody_wait() {
        let waits = days(&mut Door::default(), Instant::now(), 5_000, CROWD - 1);
        assert!(!waits.contains(&true));
    }

    #[test]
    fn running_waits_while_a_crowd_is_there_and_hardly_longer() {
        let (mut door, now) = (Door::default(), Instant::now());
        assert!(!days(&mut door, now, 100, CROWD).contains(&false));
        let last = now + 99 * MILLI;
        assert_eq!(door.busy(0, last + MILLI), Some(last + MOMENT), "they may come back");
        assert_eq!(door.busy(0, last + MOMENT), None);
        assert_eq!(door.busy(1, last + MOMENT + MILLI), None);
    }

    #[test]
    fn running_never_waits_longer_than_the_bound_and_has_half_of_the_time() {
        let waits = days(&mut Door::default(), Instant::now(), 12_000, 1_000);
        let longest = waits.split(|waits| !waits).map(<[bool]>::len).max();
        assert_eq!(longest.map(|millis| millis as u128), Some(LONGEST.as_millis()));
        let waited = waits.iter().filter(|waits| **waits).count();
        assert!((5_900..=6_100).contains(&waited), "{waited}");
    }

    #[test]
    fn a_crowd_that_was_here_for_long_is_waited_for_a_little_longer() {
        let (mut door, now) = (Door::default(), Instant::now());
        assert!(!days(&mut door, now, 1_000, CROWD).contains(&false));
        let last = now + 999 * MILLI;
        assert_eq!(door.busy(0, last + MILLI), Some(last + LONG_MOMENT));
        assert_eq!(door.busy(0, last + LONG_MOMENT), None);
    }

    #[test]
    fn whoever_is_answered_is_at_the_door_no_more() {
        let threshold = Threshold::default();
        let (one, two) = (threshold.enter(), threshold.enter());
        assert_eq!(threshold.guests(), 2);
        drop((one, two));
        assert_eq!(threshold.guests(), 0);
    }
}
