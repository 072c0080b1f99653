//! Decides when and where the log is moved into the database file: much of it beside the writer, the last of it on the
//! writer's thread, so that the log begins anew. It decides nothing about durability: what is in the log is safe already.

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
use crate::{Error, connect::PATIENCE, error::Doing};

mod background;

/// Pages in the log at which it is moved once it is quiet: 1 MiB, what `connect` has allocated before the first commit, so
/// that in quiet times the log never grows.
const MOVE_AT_PAGES: u32 = 240;

/// What the writer moves itself when it is quiet: 2 MiB.
const QUIET_PAGES: u32 = 512;

/// The same when it is not: it takes a few milliseconds, most of them for two syncs.
const SHORT_PAGES: u32 = 256;

/// Pages that are not in the database file at which a round begins beside the writer: 4 MiB. A smaller round writes the
/// same pages again and again; a larger one keeps the disk busy for so long that commits wait for it.
const ROUND_PAGES: u32 = 1_024;

/// Pages at which the log is to begin anew although it is never quiet: 16 MiB. Each time costs everybody two more syncs.
const RESTART_AT_PAGES: u32 = 4_096;

/// The log never grows beyond this because the thread beside the writer is slower than the writer: 32 MiB.
const MOST_PAGES: u32 = 8_192;

/// It is quiet when nobody has wanted to write for this long.
pub(crate) const QUIET: Duration = Duration::from_millis(20);

/// A reader of an old state keeps the log from being emptied; it is tried again after this long.
const TRIED_AGAIN: Duration = Duration::from_millis(500);

pub(crate) struct Checkpointer {
    /// In the log, after the last commit.
    pages: Arc<AtomicU32>,
    /// The same when this was called last.
    seen: u32,
    /// Of them, those that a round has moved.
    moved: u32,
    /// The writer moves nothing before there are so many.
    next_at: u32,
    /// No round begins before there are so many.
    round_at: u32,
    background: Background,
    /// The log holds what is to be forgotten, and a reader has kept it from being emptied.
    forgets: bool,
    /// When it was tried to empty it last.
    tried: Instant,
}

impl Checkpointer {
    /// Watches the commits of `writer`.
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

    /// To be called after each commit, when everybody who waited for it was told.
    pub(crate) fn committed(&mut self, writer: &Connection) {
        let (pages, left) = self.look();
        if self.forgets && self.tried.elapsed() >= TRIED_AGAIN {
            return self.forget(writer);
        }
        if pages >= self.next_at.max(MOST_PAGES) {
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

    /// To be called when `is_due` and nobody has wanted to write for `pause`.
    pub(crate) fn quiet(&mut self, writer: &Connection) {
        let (pages, left) = self.look();
        if self.forgets {
            self.forget(writer);
        } else if self.background.is_busy() {
            // It is asked again.
        } else if left > QUIET_PAGES && pages >= self.round_at {
            self.begin_round(writer);
        } else {
            self.move_now(writer);
        }
    }

    /// The log is worth being moved once it is quiet.
    pub(crate) fn is_due(&self) -> bool {
        self.forgets || self.pages.load(Ordering::Relaxed) >= self.next_at
    }

    /// How long nobody must want to write before the log is moved.
    pub(crate) fn pause(&self) -> Duration {
        if self.forgets { TRIED_AGAIN } else { QUIET }
    }

    /// A reader keeps the log from being emptied, and it holds what is to be forgotten.
    pub(crate) fn is_held(&self) -> bool {
        self.forgets
    }

    /// Moves the log and empties it, so that nothing of what was deleted is left in it. Never waits for a reader.
    pub(crate) fn forget(&mut self, writer: &Connection) {
        // Two cannot move the log at the same time.
        self.background.wait();
        let patience = writer.busy_timeout(Duration::ZERO);
        let held: rusqlite::Result<i64> = writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        // As for any other move, a sick disk shows itself at the next commit.
        let _ = patience.and_then(|()| writer.busy_timeout(PATIENCE));
        (self.forgets, self.tried) = (!matches!(held, Ok(0)), Instant::now());
        if !self.forgets {
            self.pages.store(0, Ordering::Relaxed);
            self.began_anew();
        }
    }

    /// How many pages the log has, and how many of them are not in the database file as far as is known.
    fn look(&mut self) -> (u32, u32) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.seen {
            self.began_anew();
        }
        self.seen = pages;
        match self.background.take_outcome() {
            // A round of a log that has begun anew since says nothing.
            Some(Some(round)) if round.log > pages => {}
            Some(Some(round)) if round.moved > self.moved => {
                self.moved = round.moved;
                self.round_at = 0;
            }
            // A reader of an old state holds it back, or the disk is sick: trying again at once is useless.
            Some(_) => self.round_at = pages + ROUND_PAGES,
            None => {}
        }
        (pages, pages - self.moved.min(pages))
    }

    fn began_anew(&mut self) {
        (self.seen, self.moved, self.next_at, self.round_at) = (0, 0, MOVE_AT_PAGES, 0);
    }

    fn begin_round(&mut self, writer: &Connection) {
        // Without a thread everybody waits, which is better than a log that grows.
        if self.background.start().is_err() {
            self.round_at = self.pages.load(Ordering::Relaxed) + ROUND_PAGES;
            self.move_now(writer);
        }
    }

    fn move_now(&mut self, writer: &Connection) {
        if self.forgets {
            return self.forget(writer);
        }
        // A failure loses nothing: the log stays as it is, and a sick disk shows itself at the next commit.
        let _ = background::checkpoint(writer);
        // The log begins anew with the next commit. Unless a reader of an old state holds it back; then trying again at
        // once is useless.
        self.next_at = self.pages.load(Ordering::Relaxed) + MOVE_AT_PAGES;
    }
}
