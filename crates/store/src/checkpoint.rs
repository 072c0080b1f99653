//! Decides when the log is moved into the database file: when nobody wants to write, never inside a commit.
//! It decides nothing about durability: what is in the log is safe already.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use rusqlite::Connection;

use crate::{Error, connect::PATIENCE, error::Doing};

/// Pages in the log at which it is moved: 1 MiB, what `connect` has allocated before the first commit, so that in
/// quiet times the log never grows. A thread of its own for it was measured to gain nothing.
const MOVE_AT_PAGES: u32 = 240;

/// The same when it is never quiet: 32 MiB. A busy house fills a megabyte within a few commits, and moving it that often
/// makes everybody wait for two more syncs and writes the same pages again and again.
const MOVE_AT_LAST: u32 = 8_192;

/// It is quiet when nobody has wanted to write for this long.
pub(crate) const QUIET: Duration = Duration::from_millis(20);

/// A reader of an old state keeps the log from being emptied; it is tried again after this long.
const TRIED_AGAIN: Duration = Duration::from_millis(500);

pub(crate) struct Checkpointer {
    pages: Arc<AtomicU32>,
    next_at: u32,
    /// The log holds what is to be forgotten, and a reader has kept it from being emptied.
    forgets: bool,
}

impl Checkpointer {
    /// Watches the commits of `writer`.
    pub(crate) fn watch(writer: &mut Connection) -> Result<Self, Error> {
        let pages = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&pages);
        let hook = move |_: &mut rusqlite::hooks::Wal, count: i32| {
            seen.store(u32::try_from(count).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        };
        writer.wal_hook(Some(hook)).doing("watch its log")?;
        Ok(Self { pages, next_at: MOVE_AT_PAGES, forgets: false })
    }

    /// To be called after each commit, when everybody who waited for it was told.
    pub(crate) fn committed(&mut self, writer: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < MOVE_AT_PAGES {
            self.next_at = MOVE_AT_PAGES;
        } else if pages >= self.next_at.max(MOVE_AT_LAST) {
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
        let patience = writer.busy_timeout(Duration::ZERO);
        let held: rusqlite::Result<i64> = writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        // As for any other move, a sick disk shows itself at the next commit.
        let _ = patience.and_then(|()| writer.busy_timeout(PATIENCE));
        self.forgets = !matches!(held, Ok(0));
        if !self.forgets {
            self.pages.store(0, Ordering::Relaxed);
            self.next_at = MOVE_AT_PAGES;
        }
    }

    pub(crate) fn move_now(&mut self, writer: &Connection) {
        if self.forgets {
            return self.forget(writer);
        }
        // A failure loses nothing: the log stays as it is, and a sick disk shows itself at the next commit.
        let _ = writer.pragma_query(None, "wal_checkpoint", |_| Ok(()));
        // The log begins anew with the next commit. Unless a reader of an old state holds it back; then trying again at
        // once is useless.
        self.next_at = self.pages.load(Ordering::Relaxed) + MOVE_AT_PAGES;
    }
}
