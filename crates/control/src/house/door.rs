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

/// The longest time for which running waits for letting in. A thousand and more come in meanwhile even on a busy
/// machine of two processors, and a start that is a second later is what a cluster has people used to.
const LONGEST: Duration = Duration::from_secs(1);

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
        let until = self.crowded.map(|at| at + MOMENT).filter(|until| *until > now);
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
        let waits = days(&mut Door::default(), Instant::now(), 10_000, 1_000);
        let longest = waits.split(|waits| !waits).map(<[bool]>::len).max();
        assert_eq!(longest.map(|millis| millis as u128), Some(LONGEST.as_millis()));
        let waited = waits.iter().filter(|waits| **waits).count();
        assert!((4_900..=5_100).contains(&waited), "{waited}");
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
