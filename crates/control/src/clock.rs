//! The one place where the time is read for the engine.

use std::time::{SystemTime, UNIX_EPOCH};

use octoflow_model::Time;

pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
