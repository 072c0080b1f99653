//! Checkpoints the log on a thread and a connection of its own, in the background of the writer. Never truncates the
//! log: only the writer does that, between two commits.

use std::{
    panic,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, SyncSender},
    },
    thread::{self, JoinHandle},
};

use rusqlite::Connection;

use crate::{Error, database::connect, error::Doing};

/// Result of one checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    /// Pages in the log when the checkpoint was done.
    pub(super) log: u32,
    /// Pages of the log that are in the database file.
    pub(super) moved: u32,
}

/// Handle of the checkpoint thread. Dropping it ends the thread after the current round.
pub(super) struct Background {
    data_dir: PathBuf,
    /// Started with the first round: most processes never write that much.
    worker: Option<Worker>,
}

struct Worker {
    rounds: Option<SyncSender<()>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    idle: Condvar,
}

#[derive(Default)]
struct State {
    busy: bool,
    /// Outcome of the last round until it is taken; `Some(None)` if the round failed.
    outcome: Option<Option<Moved>>,
}

impl Background {
    pub(super) fn new(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.to_owned(), worker: None }
    }

    /// Starts a round, unless one is running.
    pub(super) fn start(&mut self) -> Result<(), Error> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => Worker::spawn(&self.data_dir)?,
        };
        let worker = self.worker.insert(worker);
        if worker.shared.lock().busy {
            return Ok(());
        }
        worker.shared.lock().busy = true;
        let sent = worker.rounds.as_ref().is_some_and(|rounds| rounds.try_send(()).is_ok());
        if !sent {
            // Only a panic ends the thread before its owner does, and such a panic is propagated.
            let ended = self.worker.take().and_then(|mut worker| worker.end());
            panic::resume_unwind(ended.unwrap_or_else(|| Box::new("the checkpoint thread is gone")));
        }
        Ok(())
    }

    pub(super) fn is_busy(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| worker.shared.lock().busy)
    }

    /// Takes the outcome of the last round; `Some(None)` if it failed.
    pub(super) fn take_outcome(&self) -> Option<Option<Moved>> {
        self.worker.as_ref().and_then(|worker| worker.shared.lock().outcome.take())
    }

    /// Waits for the current round.
    pub(super) fn wait(&self) {
        if let Some(worker) = &self.worker {
            let idle = worker.shared.idle.wait_while(worker.shared.lock(), |state| state.busy);
            drop(idle.unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl Worker {
    fn spawn(data_dir: &Path) -> Result<Self, Error> {
        let conn = connect::checkpointer(data_dir)?;
        let (rounds, work) = mpsc::sync_channel(1);
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("store-checkpoint".to_owned())
            .spawn(move || run(&conn, &work, &own))
            .map_err(|source| Error::Database { doing: "start its threads", source: Arc::new(source) })?;
        Ok(Self { rounds: Some(rounds), shared, thread: Some(thread) })
    }

    /// Ends the thread. Returns the payload if it panicked.
    fn end(&mut self) -> Option<Box<dyn std::any::Any + Send>> {
        self.rounds = None;
        self.thread.take().and_then(|thread| thread.join().err())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the round as over when dropped, also during a panic.
struct Round<'a>(&'a Shared, Option<Moved>);

impl Drop for Round<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        (state.busy, state.outcome) = (false, Some(self.1));
        drop(state);
        self.0.idle.notify_all();
    }
}

fn run(conn: &Connection, work: &Receiver<()>, shared: &Shared) {
    while work.recv().is_ok() {
        let mut round = Round(shared, None);
        // A failure loses nothing: the log stays as it is, and a failing disk shows at the next commit.
        round.1 = checkpoint(conn).ok();
    }
}

/// Copies as many pages as readers allow, without waiting for them.
pub(super) fn checkpoint(conn: &Connection) -> Result<Moved, Error> {
    let count = |count: i64| u32::try_from(count).unwrap_or(0);
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        Ok(Moved { log: count(row.get(1)?), moved: count(row.get(2)?) })
    })
    .doing("merge its log")
}
