//! The machine's clocks: the wall clock, and the time since the machine booted. It reads them and keeps nothing.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use octoflow_model::Time;

/// The wall clock. It can be set at any moment.
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// How long ago the machine booted, the time it slept included. Setting the date does not touch it.
pub fn since_boot() -> Duration {
    crate::process::sys::since_boot()
}
