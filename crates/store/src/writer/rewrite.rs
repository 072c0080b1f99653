//! Rewrites the database file (`VACUUM`) once, so that it holds no remains of Secrets from before they were encrypted.
//! Completion is recorded in the database only after the log was truncated too; until then every start retries, and so
//! does an open store while it is idle. Never blocks writers: what cannot be done now is reported.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use octoflow_model::space::submission_floor;
use rusqlite::Connection;

use crate::{Error, Reader, Space, error::Doing, writer::checkpoint::Checkpointer};

/// Interval between retries of an open store.
const PAUSE: Duration = Duration::from_secs(600);

/// Limit of the file size for a rewrite by an open store, because nothing can be committed meanwhile. A larger file is
/// rewritten only at a start.
const LARGEST_WHILE_OPEN: u64 = 256 << 20;

/// Selects whether plain text may be left. A row says that there is none; earlier versions wrote no such row.
const DUE: &str = "SELECT NOT EXISTS (SELECT 1 FROM meta WHERE key = 'rewritten')";

/// Reason why the database file could not be rewritten yet, so that old values of Secrets may still be found in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaintextLeft {
    pub path: PathBuf,
    pub why: String,
}

impl fmt::Display for PlaintextLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "old values of Secrets, from before they were encrypted, may still be readable in `{}`: the file could not be \
             written anew, {} [OF1116]. Everything else works; it is tried again at every start and every {} minutes. Until \
             it has succeeded keep the file and its backups as secret as those values, or replace them",
            self.path.display(),
            self.why,
            PAUSE.as_secs() / 60
        )
    }
}

/// Current status, shared with readers.
pub(crate) type PlaintextStatus = Arc<Mutex<Option<PlaintextLeft>>>;

impl Reader {
    /// Returns whether the file may still hold plain text of Secrets.
    pub fn may_hold_plaintext(&self) -> Result<bool, Error> {
        is_due(&self.conn)
    }
}

/// Inserts the id of the installation, and for a new database, which has never held plain text, the row that says so.
/// One statement, since each statement is a sync.
pub(crate) const NEW_INSTALLATION: &str = "INSERT INTO meta (key, value)
    SELECT 'installation', random() & 0x7fffffffffffffff
    UNION ALL SELECT 'rewritten', 1 FROM meta WHERE key = 'revision' AND value = 0";

/// Requires a rewrite because plain text was found. Called in the transaction that encrypts it.
pub(crate) fn require(conn: &Connection) -> Result<(), Error> {
    conn.execute("DELETE FROM meta WHERE key = 'rewritten'", []).map(drop).doing("note what is left to do")
}

fn is_due(conn: &Connection) -> Result<bool, Error> {
    conn.query_row(DUE, [], |row| row.get(0)).doing("read whether it was rewritten")
}

/// The pending rewrite of one open database.
#[derive(Debug)]
pub(crate) struct Rewriter {
    data_dir: PathBuf,
    state: State,
    left: PlaintextStatus,
}

#[derive(Debug)]
enum State {
    Done,
    /// Time of the next attempt.
    Due(Instant),
    /// The file was rewritten, and a reader of an old snapshot still holds the log.
    LogHeld,
}

impl Rewriter {
    /// Checks whether a rewrite is due, and attempts it. Fails only if the database cannot be used.
    pub(crate) fn start(
        conn: &Connection,
        checkpointer: &mut Checkpointer,
        data_dir: &Path,
        left: PlaintextStatus,
    ) -> Result<Self, Error> {
        let mut rewriter = Self { data_dir: data_dir.to_owned(), state: State::Done, left };
        if is_due(conn)? {
            match rewriter.rewrite(conn, checkpointer, u64::MAX) {
                Err(error) if !error.is_outage() => return Err(error),
                tried => rewriter.record_outcome(tried),
            }
        } else {
            rewriter.record_outcome(Ok(State::Done));
        }
        Ok(rewriter)
    }

    /// Returns the time until `retry` is due; `None` if it is not.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        match self.state {
            State::Due(at) => Some(at.saturating_duration_since(Instant::now())),
            State::Done | State::LogHeld => None,
        }
    }

    /// Retries the rewrite. Called while the writer is idle.
    pub(crate) fn retry(&mut self, conn: &Connection, checkpointer: &mut Checkpointer) {
        let tried = self.rewrite(conn, checkpointer, LARGEST_WHILE_OPEN);
        self.record_outcome(tried);
    }

    /// Called after the log may have been truncated.
    pub(crate) fn log_moved(&mut self, conn: &Connection, checkpointer: &Checkpointer) {
        if matches!(self.state, State::LogHeld) && !checkpointer.is_held() {
            let tried = remember(conn).map(|()| State::Done);
            self.record_outcome(tried);
        }
    }

    fn rewrite(&self, conn: &Connection, checkpointer: &mut Checkpointer, largest: u64) -> Result<State, Error> {
        let size: i64 = conn
            .query_row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [], |row| row.get(0))
            .doing("read its size")?;
        let size = size.unsigned_abs();
        if size > largest {
            let why = format!("it has {} MiB, which is too much while runs are recorded", size >> 20);
            return Ok(self.refused(why));
        }
        // The whole file goes through the log, and must not fill the disk.
        if let Ok(space) = Space::of(&self.data_dir)
            && space.free < size.saturating_add(submission_floor(space.total))
        {
            let needed = size.saturating_add(submission_floor(space.total)) - space.free;
            let why = format!("because {} MiB more of free space are needed there", needed.div_ceil(1 << 20));
            return Ok(self.refused(why));
        }
        let vacuumed = vacuum(conn);
        // Also after a failure: what was written takes space in the log.
        checkpointer.forget(conn);
        vacuumed?;
        if checkpointer.is_held() {
            return Ok(State::LogHeld);
        }
        remember(conn).map(|()| State::Done)
    }

    fn refused(&self, why: String) -> State {
        self.set_left(Some(why));
        State::Due(Instant::now() + PAUSE)
    }

    fn record_outcome(&mut self, tried: Result<State, Error>) {
        self.state = match tried {
            Ok(State::Due(at)) => State::Due(at),
            Ok(State::Done) => {
                self.set_left(None);
                State::Done
            }
            Ok(State::LogHeld) => {
                self.set_left(Some("because a reader still holds an old snapshot of it".to_owned()));
                State::LogHeld
            }
            Err(error) => self.refused(format!("because {}", error.chain())),
        };
    }

    fn set_left(&self, why: Option<String>) {
        let path = self.data_dir.join(crate::database::schema::FILE);
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = why.map(|why| PlaintextLeft { path, why });
    }
}

/// Rewrites the file. The copy goes to a temporary file and not to memory, which may be smaller than the database.
fn vacuum(conn: &Connection) -> Result<(), Error> {
    let set = |place: &str| conn.pragma_update(None, "temp_store", place).doing("choose where to rewrite");
    set("file")?;
    let vacuumed = conn.execute_batch("VACUUM").doing("rewrite itself");
    set("memory")?;
    vacuumed
}

fn remember(conn: &Connection) -> Result<(), Error> {
    conn.execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('rewritten', 1)", [])
        .map(drop)
        .doing("record that it was rewritten")
}
