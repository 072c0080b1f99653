//! Notices a seed on which the engine hangs; a story cannot notice that itself, because it has no real time.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// A story that takes longer than this does not come back.
const PATIENCE: Duration = Duration::from_secs(60);

/// Shared by workers, each in a lane of its own, and one guard.
pub struct Watch {
    /// By lane: the seed it is at, plus one; zero when it is at none.
    at: [AtomicU64; Self::LANES],
    /// By lane: how many stories it has begun.
    begun: [AtomicU64; Self::LANES],
    over: AtomicBool,
}

impl Default for Watch {
    fn default() -> Self {
        let none = || [const { AtomicU64::new(0) }; Self::LANES];
        Self { at: none(), begun: none(), over: AtomicBool::new(false) }
    }
}

impl Watch {
    pub const LANES: usize = 64;

    /// A story of this seed begins.
    pub fn begin(&self, lane: usize, seed: u64) {
        self.at[lane].store(seed + 1, Ordering::Relaxed);
        self.begun[lane].fetch_add(1, Ordering::Relaxed);
    }

    pub fn end(&self, lane: usize) {
        self.at[lane].store(0, Ordering::Relaxed);
    }

    /// Everybody is done; the guard may go.
    pub fn dismiss(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Looks after the others until it is dismissed, and tells the first seed that hangs.
    pub fn guard(&self, hangs: impl Fn(u64)) {
        let mut since: Vec<(u64, Instant)> = self.at.iter().map(|_| (0, Instant::now())).collect();
        while !self.over.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(20));
            for (lane, (begun, began)) in since.iter_mut().enumerate() {
                let (seed, now) = (self.at[lane].load(Ordering::Relaxed), self.begun[lane].load(Ordering::Relaxed));
                if now != *begun {
                    (*begun, *began) = (now, Instant::now());
                } else if seed != 0 && began.elapsed() > PATIENCE {
                    hangs(seed - 1);
                    return;
                }
            }
        }
    }
}
