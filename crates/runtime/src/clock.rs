//! The machine's clocks: the wall clock, and the time since boot. Reads them and stores nothing.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use octoflow_model::Time;

/// Returns the wall-clock time, which can be set at any moment.
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Returns the time since boot, including suspend. Setting the date does not affect it.
pub fn since_boot() -> Duration {
    crate::process::sys::since_boot()
}
