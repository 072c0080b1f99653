//! Whether a thread makes progress: it says when it begins a piece of work and when that is done, and others ask for how
//! long the piece under way has taken. A thread that waits for work is not busy.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    pub fn begin(&self) {
        self.0.store(millis().max(1), Ordering::Relaxed);
    }

    pub fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// For how long the piece under way has taken.
    pub fn busy_for(&self) -> Option<Duration> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            since => Some(Duration::from_millis(millis().saturating_sub(since))),
        }
    }
}

/// Since the first question; zero means that nothing is under way.
fn millis() -> u64 {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    u64::try_from(EPOCH.get_or_init(Instant::now).elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_who_has_begun_and_not_ended() {
        let pulse = Pulse::default();
        assert_eq!(pulse.busy_for(), None);
        pulse.begin();
        assert!(pulse.busy_for().is_some_and(|busy| busy < Duration::from_secs(60)));
        pulse.end();
        assert_eq!(pulse.busy_for(), None);
    }
}
