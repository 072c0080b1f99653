//! Foreground load: whether somebody is waiting for answers, and how far background work steps back for them. It knows
//! counts and times only and is handed the time; it never reads a clock and never waits.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// How long after its last request a client counts as present. Clients that poll, or submit one run after the other,
/// come back sooner; a machine that is left alone for this long works at full speed.
const RECENT: Duration = Duration::from_millis(100);

/// How much longer than it worked background work rests while somebody is present: it has a sixth of the time.
const REST_RATIO: u32 = 5;

/// The longest rest: what was measured may have been a pause of the machine and not work.
const MAX_REST: Duration = Duration::from_millis(10);

/// How long background writes wait for a commit that somebody waits for, in order to share it, before they have one of
/// their own.
const SHARE_WITHIN: Duration = Duration::from_millis(20);

/// Requests under way and the time of the last one. Clones share them.
#[derive(Clone, Debug)]
pub struct Foreground(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    base: Instant,
    in_flight: AtomicUsize,
    /// In microseconds after `base`, plus one; zero before the first request.
    last: AtomicU64,
}

/// One request under way, until it is over.
#[derive(Debug)]
pub struct Request(Foreground);

/// Foreground load at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub in_flight: usize,
    /// How long ago the last request came or was over.
    pub idle: Option<Duration>,
}

impl Foreground {
    /// No request was seen before `base`.
    pub fn new(base: Instant) -> Self {
        Self(Arc::new(Shared { base, in_flight: AtomicUsize::new(0), last: AtomicU64::new(0) }))
    }

    /// A request has come.
    pub fn enter(&self, now: Instant) -> Request {
        self.0.in_flight.fetch_add(1, Ordering::Relaxed);
        self.note(now);
        Request(self.clone())
    }

    /// The load as background work sees it now.
    pub fn load(&self, now: Instant) -> Load {
        let last = self.0.last.load(Ordering::Relaxed).checked_sub(1).map(Duration::from_micros);
        let idle = last.map(|last| now.saturating_duration_since(self.0.base + last));
        Load { in_flight: self.0.in_flight.load(Ordering::Relaxed), idle }
    }

    fn note(&self, now: Instant) {
        let since = now.saturating_duration_since(self.0.base).as_micros();
        self.0.last.fetch_max(u64::try_from(since).unwrap_or(u64::MAX - 1) + 1, Ordering::Relaxed);
    }
}

impl Request {
    /// The request is over; its client may come back at once.
    pub fn leave(self, now: Instant) {
        self.0.note(now);
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.0.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Load {
    /// Somebody waits for an answer, or was here a moment ago.
    pub fn is_active(self) -> bool {
        self.in_flight > 0 || self.idle.is_some_and(|idle| idle < RECENT)
    }

    /// How long background work that took `worked` rests before it goes on.
    pub fn rest(self, worked: Duration) -> Duration {
        if self.is_active() { (worked * REST_RATIO).min(MAX_REST) } else { Duration::ZERO }
    }

    /// How long a background write waits for a commit that it can share.
    pub fn share_within(self) -> Duration {
        if self.is_active() { SHARE_WITHIN } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    fn idle(idle: Duration) -> Load {
        Load { in_flight: 0, idle: Some(idle) }
    }

    #[test]
    fn nobody_makes_background_work_rest_or_wait() {
        for load in [Load::default(), idle(RECENT), idle(1_000 * RECENT)] {
            assert!(!load.is_active());
            assert_eq!((load.rest(MILLI), load.share_within()), (Duration::ZERO, Duration::ZERO));
        }
    }

    #[test]
    fn somebody_leaves_it_a_sixth_of_the_time() {
        for load in [Load { in_flight: 1, idle: None }, idle(Duration::ZERO), idle(RECENT - MILLI)] {
            assert!(load.is_active());
            assert_eq!(load.rest(MILLI), REST_RATIO * MILLI);
            assert_eq!(load.share_within(), SHARE_WITHIN);
        }
    }

    #[test]
    fn a_rest_is_bounded_however_long_the_work_took() {
        assert_eq!(idle(Duration::ZERO).rest(Duration::from_secs(60)), MAX_REST);
    }

    #[test]
    fn a_request_counts_while_it_is_under_way_and_a_moment_longer() {
        let now = Instant::now();
        let foreground = Foreground::new(now);
        assert_eq!(foreground.load(now), Load::default());
        let (one, two) = (foreground.enter(now + MILLI), foreground.enter(now + 2 * MILLI));
        assert_eq!(foreground.load(now + 5 * MILLI), Load { in_flight: 2, idle: Some(3 * MILLI) });
        one.leave(now + 4 * MILLI);
        drop(two);
        assert_eq!(foreground.load(now + 5 * MILLI), Load { in_flight: 0, idle: Some(MILLI) });
        assert!(!foreground.load(now + 4 * MILLI + RECENT).is_active());
    }

    #[test]
    fn a_request_that_is_noted_late_takes_nothing_back() {
        let now = Instant::now();
        let foreground = Foreground::new(now);
        foreground.enter(now + 9 * MILLI).leave(now + 9 * MILLI);
        foreground.enter(now + 3 * MILLI).leave(now + 3 * MILLI);
        assert_eq!(foreground.load(now + 9 * MILLI).idle, Some(Duration::ZERO));
    }
}
