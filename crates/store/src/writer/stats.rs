//! Counters of the writer, updated while it works and readable at any time. They measure; they decide nothing.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Counters since the store was opened.
#[derive(Debug)]
pub struct Stats {
    /// Durations of transactions from begin to sync. The count is the number of transactions.
    pub seconds: Histogram,
    /// Batches per transaction.
    pub batches: Histogram,
    /// Estimated bytes that were committed.
    pub bytes: AtomicU64,
}

/// Cumulative histogram as in Prometheus.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One more than `bounds`: the last counts values above them all.
    counts: Box<[AtomicU64]>,
    /// Sum in millionths, because there are no atomic floats.
    sum: AtomicU64,
}

/// Bucket bounds from half a millisecond, a fast disk's sync, to five seconds, a failing disk.
const SECONDS: &[f64] = &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
const BATCHES: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

impl Default for Stats {
    fn default() -> Self {
        Self { seconds: Histogram::new(SECONDS), batches: Histogram::new(BATCHES), bytes: AtomicU64::new(0) }
    }
}

impl Stats {
    pub(crate) fn wrote(&self, batches: usize, bytes: usize, took: Duration) {
        self.seconds.add(took.as_secs_f64());
        self.batches.add(batches as f64);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Histogram {
    pub fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(), sum: AtomicU64::new(0) }
    }

    pub fn add(&self, value: f64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add((value * 1e6) as u64, Ordering::Relaxed);
    }

    /// Returns each bound with the number of values not above it; the last bound is infinite.
    pub fn below(&self) -> Vec<(f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let mut total = 0;
        bounds
            .zip(&self.counts)
            .map(|(bound, count)| {
                total += count.load(Ordering::Relaxed);
                (bound, total)
            })
            .collect()
    }

    pub fn sum(&self) -> f64 {
        self.sum.load(Ordering::Relaxed) as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_count_for_every_bound_they_are_not_above() {
        let tally = Histogram::new(&[1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 9.0] {
            tally.add(value);
        }
        assert_eq!(tally.below(), [(1.0, 2), (2.0, 3), (f64::INFINITY, 4)]);
        assert!((tally.sum() - 12.0).abs() < 1e-6);
    }
}
