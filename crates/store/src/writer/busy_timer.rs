//! Measures how long a thread has been busy: the thread marks the begin and the end of each piece of work, and other
//! threads read how long the current one takes. A thread that waits for work is not busy.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Shared by its clones.
#[derive(Clone, Debug, Default)]
pub struct BusyTimer(Arc<AtomicU64>);

impl BusyTimer {
    pub fn begin(&self) {
        self.0.store(millis().max(1), Ordering::Relaxed);
    }

    pub fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns how long the current piece of work has taken, if there is one.
    pub fn busy_for(&self) -> Option<Duration> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            since => Some(Duration::from_millis(millis().saturating_sub(since))),
        }
    }
}

/// Returns milliseconds since the first call. Zero is reserved for "idle".
fn millis() -> u64 {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    u64::try_from(EPOCH.get_or_init(Instant::now).elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_who_has_begun_and_not_ended() {
        let busy = BusyTimer::default();
        assert_eq!(busy.busy_for(), None);
        busy.begin();
        assert!(busy.busy_for().is_some_and(|busy| busy < Duration::from_secs(60)));
        busy.end();
        assert_eq!(busy.busy_for(), None);
    }
}
