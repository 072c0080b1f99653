//! The machine's own clock, for whoever measures how long something takes. It says nothing about the date.

use std::time::Duration;

/// How long ago the machine booted, the time it slept included. Setting the date does not touch it.
pub fn since_boot() -> Duration {
    crate::process::sys::since_boot()
}
