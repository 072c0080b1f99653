//! Decides when and where the write-ahead log is checkpointed into the database file: most of it on a background
//! thread, the rest on the writer's thread, so that the log restarts. Never concerned with durability: whatever is in
//! the log is durable already.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::Connection;

use self::background::Background;
use crate::{Error, database::connect::BUSY_TIMEOUT, error::Doing};

mod background;

/// Log pages at which a checkpoint runs once the writer is idle: 1 MiB, the size that `connect` has allocated before
/// the first commit, so that under light load the log never grows.
const MOVE_AT_PAGES: u32 = 240;

/// Pages that the writer checkpoints itself while it is idle: 2 MiB.
const QUIET_PAGES: u32 = 512;

/// Pages that the writer checkpoints itself while it is busy: a few milliseconds, most of them for two syncs.
const SHORT_PAGES: u32 = 256;

/// Pages not yet in the database file at which a background checkpoint starts: 4 MiB. A smaller round writes the same
/// pages again and again; a larger one keeps the disk busy for so long that commits wait for it.
const ROUND_PAGES: u32 = 1_024;

/// Log pages at which the log is restarted although the writer is never idle: 16 MiB. Each restart costs every
/// committer two more syncs.
const RESTART_AT_PAGES: u32 = 4_096;

/// Limit of the log if the background thread is slower than the writer: 32 MiB.
const MAX_PAGES: u32 = 8_192;

/// Time without any commit after which the writer counts as idle.
pub(crate) const QUIET: Duration = Duration::from_millis(20);

/// Delay before the log is truncated again after a reader of an old snapshot prevented it.
const TRUNCATE_RETRY: Duration = Duration::from_millis(500);

pub(crate) struct Checkpointer {
    /// Pages in the log after the last commit.
    pages: Arc<AtomicU32>,
    /// Pages in the log at the last call.
    seen: u32,
    /// Pages in the log that a background round has copied.
    moved: u32,
    /// Log pages below which the writer checkpoints nothing itself.
    next_at: u32,
    /// Log pages below which no background round starts.
    round_at: u32,
    background: Background,
    /// True while the log holds a value that must be erased and a reader keeps the log from being truncated.
    forgets: bool,
    /// Time of the last attempt to truncate the log.
    tried: Instant,
}

impl Checkpointer {
    /// Registers a hook that follows the commits of `writer`.
    pub(crate) fn watch(writer: &mut Connection, data_dir: &Path) -> Result<Self, Error> {
        let pages = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&pages);
        let hook = move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            count.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        };
        writer.wal_hook(Some(hook)).doing("watch its log")?;
        let background = Background::new(data_dir);
        let (seen, moved, next_at, round_at) = (0, 0, MOVE_AT_PAGES, ROUND_PAGES);
        Ok(Self { pages, seen, moved, next_at, round_at, background, forgets: false, tried: Instant::now() })
    }

    /// Called after each commit, once its committers have been notified.
    pub(crate) fn committed(&mut self, writer: &Connection) {
        let (pages, left) = self.look();
        if self.forgets && self.tried.elapsed() >= TRUNCATE_RETRY {
            return self.forget(writer);
        }
        if pages >= self.next_at.max(MAX_PAGES) {
            self.background.wait();
            return self.move_now(writer);
        }
        let restarts = pages >= RESTART_AT_PAGES;
        if self.background.is_busy() {
            return;
        }
        if pages >= self.round_at && (left >= ROUND_PAGES || restarts && left > SHORT_PAGES) {
            self.begin_round(writer);
        } else if restarts && left <= SHORT_PAGES && pages >= self.next_at {
            self.move_now(writer);
        }
    }

    /// Called when `is_due` and no commit has arrived for `pause`.
    pub(crate) fn quiet(&mut self, writer: &Connection) {
        let (pages, left) = self.look();
        if self.forgets {
            self.forget(writer);
        } else if self.background.is_busy() {
            // The writer calls again while the checkpoint is due.
        } else if left > QUIET_PAGES && pages >= self.round_at {
            self.begin_round(writer);
        } else {
            self.move_now(writer);
        }
    }

    /// Returns whether a checkpoint is worthwhile once the writer is idle.
    pub(crate) fn is_due(&self) -> bool {
        self.forgets || self.pages.load(Ordering::Relaxed) >= self.next_at
    }

    /// Returns how long the writer must be idle before a checkpoint.
    pub(crate) fn pause(&self) -> Duration {
        if self.forgets { TRUNCATE_RETRY } else { QUIET }
    }

    /// Returns whether a reader keeps the log from being truncated although it holds a value that must be erased.
    pub(crate) fn is_held(&self) -> bool {
        self.forgets
    }

    /// Checkpoints and truncates the log, so that it holds no deleted value. Never waits for a reader.
    pub(crate) fn forget(&mut self, writer: &Connection) {
        // Two checkpoints cannot run at the same time.
        self.background.wait();
        let patience = writer.busy_timeout(Duration::ZERO);
        let held: rusqlite::Result<i64> = writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        // As for any other checkpoint, a failing disk shows at the next commit.
        let _ = patience.and_then(|()| writer.busy_timeout(BUSY_TIMEOUT));
        (self.forgets, self.tried) = (!matches!(held, Ok(0)), Instant::now());
        if !self.forgets {
            self.pages.store(0, Ordering::Relaxed);
            self.began_anew();
        }
    }

    /// Returns the pages of the log, and how many of them are not known to be in the database file.
    fn look(&mut self) -> (u32, u32) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.seen {
            self.began_anew();
        }
        self.seen = pages;
        match self.background.take_outcome() {
            // A round of a log that has restarted since has no meaning.
            Some(Some(round)) if round.log > pages => {}
            Some(Some(round)) if round.moved > self.moved => {
                self.moved = round.moved;
                self.round_at = 0;
            }
            // A reader of an old snapshot blocks it, or the disk is failing: retrying at once is useless.
            Some(_) => self.round_at = pages + ROUND_PAGES,
            None => {}
        }
        (pages, pages - self.moved.min(pages))
    }

    fn began_anew(&mut self) {
        (self.seen, self.moved, self.next_at, self.round_at) = (0, 0, MOVE_AT_PAGES, 0);
    }

    fn begin_round(&mut self, writer: &Connection) {
        // Without a thread all committers wait, which is better than a log that grows.
        if self.background.start().is_err() {
            self.round_at = self.pages.load(Ordering::Relaxed) + ROUND_PAGES;
            self.move_now(writer);
        }
    }

    fn move_now(&mut self, writer: &Connection) {
        if self.forgets {
            return self.forget(writer);
        }
        // A failure loses nothing: the log stays as it is, and a failing disk shows at the next commit.
        let _ = background::checkpoint(writer);
        // The log restarts with the next commit, unless a reader of an old snapshot blocks it; then retrying at once is
        // useless.
        self.next_at = self.pages.load(Ordering::Relaxed) + MOVE_AT_PAGES;
    }
}
