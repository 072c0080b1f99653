//! How long requests take under load, judged by the same requests before it: the limit holds on a slow machine too.

use std::time::{Duration, Instant};

/// What a busy machine may add to any request. Whatever waits behind the load takes longer.
const SLACK: Duration = Duration::from_millis(900);
/// How many times as long as before a request may take. Goals for a quiet machine are rows of the benchmarks.
const FACTOR: u32 = 10;

/// Returns the longest of several tries.
pub(crate) fn slowest(tries: usize, mut ask: impl FnMut()) -> Duration {
    (0..tries).map(|_| once(&mut ask)).max().unwrap_or_default()
}

pub(crate) fn once(ask: impl FnOnce()) -> Duration {
    let began = Instant::now();
    ask();
    began.elapsed()
}

/// Returns how long a request may take under load that took `before` without it.
pub(crate) fn limit(before: Duration) -> Duration {
    SLACK + FACTOR * before
}
