//! What the writer has done so far, counted while it works and read at any time. It measures; it decides nothing.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Counts since the store was opened.
#[derive(Debug)]
pub struct Stats {
    /// How long transactions took, from their begin to their sync. Its count is the number of transactions.
    pub seconds: Histogram,
    /// How many batches went into one transaction.
    pub batches: Histogram,
    /// Roughly the bytes that were handed in.
    pub bytes: AtomicU64,
}

/// How often values fell below each of some bounds, as Prometheus counts them.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One more than bounds: the last is for what is above them all.
    counts: Box<[AtomicU64]>,
    /// In millionths, because there are no atomic fractions.
    sum: AtomicU64,
}

/// From half a millisecond, a fast disk's sync, to five seconds, a disk in trouble.
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

    /// Each bound with the number of values that are not above it; the last bound is infinite.
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
