//! Watches the disk while tasks run: below the floor logs stop, nothing new starts, and the task that wrote most is
//! evicted; a task that exceeds its limit is evicted regardless of the free space. So a task cannot take the space that
//! the engine's own records need, as far as a few checks a second can tell.

use std::{
    path::PathBuf,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use octoflow_model::ids::AttemptId;

use super::{attempt::State, turn::Spawner, usage::Usage, workers::Key};
use crate::{
    logs::{Pressure, Writer},
    port::ConditionKind,
    process::sys,
    space::{Space, size},
};

/// Interval between checks of the free space while a task runs. One system call, so this is cheap.
const CHECK_EVERY: Duration = Duration::from_millis(200);
/// Log bytes after which the free space is checked earlier.
const CHECK_AFTER: u64 = 256 << 10;
/// Interval at which tasks with a limit are measured, and all of them while the disk is low.
const MEASURE_EVERY: Duration = Duration::from_secs(1);
/// Measuring walks whole trees; it may take one part in this many of the time.
const MEASURE_SHARE: u32 = 10;
/// Logs of ended tasks that are kept open until they can say what they lack. Each holds a descriptor.
const MAX_UNNOTED: usize = 32;
/// Smallest usage for an eviction: less would gain nothing.
const MIN_EVICTED: u64 = 1 << 20;

pub(crate) struct Disk {
    space: Space,
    pressure: Pressure,
    /// Time of the next check; `None` while no task runs or waits.
    check_at: Option<Instant>,
    checked: Option<Instant>,
    /// Bytes written to logs since the last check.
    logged: u64,
    /// True while tasks are being measured.
    measuring: bool,
    measure_at: Instant,
    /// Logs of ended tasks in which there was no room for the note of what is missing.
    unnoted: Vec<Writer>,
}

impl Disk {
    pub(crate) fn new(space: Space) -> Self {
        let pressure = Pressure::default();
        let measure_at = Instant::now();
        let unnoted = Vec::new();
        Self { space, pressure, check_at: None, checked: None, logged: 0, measuring: false, measure_at, unnoted }
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.check_at
    }

    pub(crate) fn set_floor(&mut self, floor: Option<u64>) {
        self.space.set_floor(floor);
        self.checked = None;
    }

    /// Returns the flag that is shared with the logs.
    pub(crate) fn pressure(&self) -> Pressure {
        self.pressure.clone()
    }

    /// Returns whether nothing may start.
    pub(crate) fn is_low(&self) -> bool {
        self.pressure.load(Ordering::Relaxed)
    }
}

impl Spawner {
    /// Ends the log of a task. What it lacks is noted as soon as there is room, often when the task's own files are gone.
    pub(super) fn close_log(&mut self, mut log: Writer) {
        if !log.close(sys::now()) && self.disk.unnoted.len() < MAX_UNNOTED {
            self.disk.unnoted.push(log);
            self.disk.check_at.get_or_insert(Instant::now() + CHECK_EVERY);
        }
    }

    /// Checks the disk while something runs or is queued, at most every `CHECK_EVERY`.
    pub(super) fn check_disk(&mut self) {
        let now = Instant::now();
        if self.disk.checked.is_some_and(|checked| now < checked + CHECK_EVERY) {
            return;
        }
        self.disk.unnoted.retain_mut(|log| !log.close(sys::now()));
        let waiting = !self.jobs.is_empty() || !self.disk.unnoted.is_empty();
        let busy = waiting || !self.pids.is_empty() || self.disk.is_low();
        if !busy {
            self.disk.check_at = None;
            return;
        }
        self.disk.checked = Some(now);
        self.disk.logged = 0;
        self.disk.check_at = Some(now + CHECK_EVERY);
        let Some(free) = self.disk.space.measure() else { return };
        let was_low = self.disk.is_low();
        let low = if was_low { !free.is_ample() } else { free.is_low() };
        self.disk.pressure.store(low, Ordering::Relaxed);
        if low && !was_low {
            let why = format!("{}: free some space, tasks continue by themselves", free.describe());
            self.waiting.add_condition(ConditionKind::DiskPressure, why);
        } else if was_low && !low {
            self.waiting.clear(ConditionKind::DiskPressure);
        }
        self.measure(now, low);
    }

    /// Counts log bytes, which this process writes faster than the checks come.
    pub(super) fn logged(&mut self, bytes: u64) {
        self.disk.logged += bytes;
        if self.disk.logged >= CHECK_AFTER {
            self.disk.checked = None;
            self.check_disk();
        }
    }

    /// Starts to measure the tasks that may have written too much; all of them if the disk is low.
    fn measure(&mut self, now: Instant, low: bool) {
        if self.disk.measuring || now < self.disk.measure_at {
            return;
        }
        let running = self.table.iter().filter(|(_, entry)| matches!(entry.state, State::Running(_)));
        let asked = running.filter(|(_, entry)| entry.evicted.is_none() && (low || entry.storage_limit.is_some()));
        let workspaces: Vec<(Key, AttemptId, PathBuf)> = asked
            .filter_map(|(key, entry)| Some((key, entry.attempt, entry.workspace.as_ref()?.dir().to_owned())))
            .collect();
        if !workspaces.is_empty() {
            self.disk.measuring = true;
            self.workers.measure(workspaces);
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
        // The evictions above free space first.
        let Some(free) = self.disk.space.measure().filter(|free| free.is_low()) else { return };
        let running = |usage: &&Usage| {
            self.table.iter().any(|(key, entry)| {
                key == usage.key && entry.attempt == usage.attempt && matches!(entry.state, State::Running(_))
            })
        };
        let any_evicted = self.table.iter().any(|(_, entry)| entry.evicted.is_some());
        let largest = usages.iter().filter(running).max_by_key(|usage| usage.bytes);
        if let Some(usage) = largest.filter(|usage| usage.bytes >= MIN_EVICTED && !any_evicted) {
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
