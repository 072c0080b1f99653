//! Waits for external conditions, with a time limit.

use std::{
    thread,
    time::{Duration, Instant},
};

/// A test that waits longer than this has hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Fails the test if the condition is never met.
#[track_caller]
pub(crate) fn eventually(what: &str, happened: impl FnMut() -> bool) {
    assert!(within(PATIENCE, happened), "waited in vain until {what}");
}

/// Returns whether the condition is met within this time.
pub(crate) fn within(patience: Duration, mut happened: impl FnMut() -> bool) -> bool {
    let give_up = Instant::now() + patience;
    while !happened() {
        if Instant::now() >= give_up {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}
