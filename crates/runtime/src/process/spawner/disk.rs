//! The disk, watched while tasks run: below the floor logs stop, nothing new starts, and the task that wrote most is
//! evicted; a task that wrote more than its limit is evicted whatever is free. So a task cannot take the space the
//! engine's own records need, as far as looking a few times a second can tell.

use std::{
    path::PathBuf,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use octoflow_model::ids::AttemptId;

use super::{attempt::State, hands::Key, turn::Spawner, usage::Usage};
use crate::{
    logs::Pressure,
    port::ConditionKind,
    process::sys,
    space::{Space, size},
};

/// How often the free space is asked for while a task runs. One call of the kernel, so this is cheap.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// It is asked for earlier when so much was written to logs meanwhile.
const LOOK_AFTER: u64 = 256 << 10;
/// How often tasks with a limit are measured, and all of them while the disk is low.
const MEASURE_EVERY: Duration = Duration::from_secs(1);
/// Measuring walks whole trees; it may take this share of the time at most.
const MEASURE_SHARE: u32 = 10;
/// Nobody is evicted for less: it would gain nothing.
const LEAST_EVICTED: u64 = 1 << 20;

pub(crate) struct Disk {
    space: Space,
    pressure: Pressure,
    /// When to look next; nothing while no task runs or waits.
    look_at: Option<Instant>,
    looked: Option<Instant>,
    /// Bytes written to logs since the last look.
    logged: u64,
    /// Tasks are being measured.
    measuring: bool,
    measure_at: Instant,
}

impl Disk {
    pub(crate) fn new(space: Space) -> Self {
        let pressure = Pressure::default();
        Self { space, pressure, look_at: None, looked: None, logged: 0, measuring: false, measure_at: Instant::now() }
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.look_at
    }

    pub(crate) fn set_floor(&mut self, floor: Option<u64>) {
        self.space.set_floor(floor);
        self.looked = None;
    }

    /// Shared with the logs.
    pub(crate) fn pressure(&self) -> Pressure {
        self.pressure.clone()
    }

    /// Nothing may start.
    pub(crate) fn holds_back(&self) -> bool {
        self.pressure.load(Ordering::Relaxed)
    }
}

impl Spawner {
    /// Looks while something runs or wants to, and not more often than need be.
    pub(super) fn look_at_disk(&mut self) {
        let now = Instant::now();
        if self.disk.looked.is_some_and(|looked| now < looked + LOOK_EVERY) {
            return;
        }
        let busy = !self.jobs.is_empty() || !self.pids.is_empty() || self.disk.holds_back();
        if !busy {
            self.disk.look_at = None;
            return;
        }
        self.disk.looked = Some(now);
        self.disk.logged = 0;
        self.disk.look_at = Some(now + LOOK_EVERY);
        let Some(free) = self.disk.space.look() else { return };
        let was_low = self.disk.holds_back();
        let low = if was_low { !free.is_ample() } else { free.is_low() };
        self.disk.pressure.store(low, Ordering::Relaxed);
        if low && !was_low {
            let why = format!("{}: free some space, tasks go on by themselves", free.describe());
            self.waiting.hinder(ConditionKind::DiskPressure, why);
        } else if was_low && !low {
            self.waiting.clear(ConditionKind::DiskPressure);
        }
        self.measure(now, low);
    }

    /// Logs are written by us, faster than any clock ticks.
    pub(super) fn logged(&mut self, bytes: u64) {
        self.disk.logged += bytes;
        if self.disk.logged >= LOOK_AFTER {
            self.disk.looked = None;
            self.look_at_disk();
        }
    }

    /// Has those measured that may have written too much. All of them matter when the disk is low.
    fn measure(&mut self, now: Instant, low: bool) {
        if self.disk.measuring || now < self.disk.measure_at {
            return;
        }
        let running = self.table.iter().filter(|(_, entry)| matches!(entry.state, State::Running(_)));
        let asked = running.filter(|(_, entry)| entry.evicted.is_none() && (low || entry.storage_limit.is_some()));
        let places: Vec<(Key, AttemptId, PathBuf)> = asked
            .filter_map(|(key, entry)| Some((key, entry.attempt, entry.place.as_ref()?.dir().to_owned())))
            .collect();
        if !places.is_empty() {
            self.disk.measuring = true;
            self.hands.measure(places);
        }
    }

    pub(super) fn measured(&mut self, usages: &[Usage], began: Instant) {
        self.disk.measuring = false;
        self.disk.measure_at = Instant::now() + MEASURE_EVERY.max(began.elapsed() * MEASURE_SHARE);
        for usage in usages {
            let Some(entry) = self.table.get(usage.key).filter(|entry| entry.attempt == usage.attempt) else {
                continue;
            };
            if let Some(limit) = entry.storage_limit.filter(|limit| usage.bytes > *limit) {
                let (bytes, limit) = (size(usage.bytes), size(limit));
                let why = format!("it wrote {bytes} to its file system, and its ephemeral-storage limit is {limit}");
                self.evict(usage.key, why);
            }
        }
        // Those of above free space first.
        let Some(free) = self.disk.space.look().filter(|free| free.is_low()) else { return };
        let running = |usage: &&Usage| {
            self.table.iter().any(|(key, entry)| {
                key == usage.key && entry.attempt == usage.attempt && matches!(entry.state, State::Running(_))
            })
        };
        let any_evicted = self.table.iter().any(|(_, entry)| entry.evicted.is_some());
        let largest = usages.iter().filter(running).max_by_key(|usage| usage.bytes);
        if let Some(usage) = largest.filter(|usage| usage.bytes >= LEAST_EVICTED && !any_evicted) {
            let (key, bytes) = (usage.key, size(usage.bytes));
            let why = format!("the disk is nearly full and it wrote most of all, {bytes}: {}", free.describe());
            self.evict(key, why);
        }
    }

    fn evict(&mut self, key: Key, why: String) {
        let Some(entry) = self.table.get(key) else { return };
        if let (State::Running(running), None) = (&entry.state, &entry.evicted) {
            sys::signal_group(running.pid, libc::SIGKILL);
            entry.evicted = Some(why);
        }
    }
}
