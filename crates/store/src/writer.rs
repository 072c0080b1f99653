//! The write side of the store: a queue in front of a thread that commits everything queued as one transaction, syncs
//! it, and only then notifies each committer. It decides nothing about what is written.

pub(crate) mod apply;
pub(crate) mod busy_timer;
pub(crate) mod checkpoint;
pub(crate) mod foreground;
pub(crate) mod queue;
pub(crate) mod reserve;
pub(crate) mod rewrite;
pub(crate) mod stage;
pub(crate) mod stats;

use std::{
    fmt,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread::{self, JoinHandle, ThreadId},
    time::{Duration, Instant},
};

use octoflow_model::{Revision, space::submission_floor};
use rusqlite::Connection;

use crate::{
    Batch, Error, Reader, RecordId, Space,
    database::{
        connect,
        files::OpenFiles,
        lock::Lock,
        private,
        seal::{self, SecretsKey},
        space,
    },
    error::{Doing, is_full},
    reader::pool::ReaderPool,
    rows::change_event::{Notification, Observer, Observers, OnFailure},
    writer::{
        apply::Journal,
        busy_timer::BusyTimer,
        checkpoint::{Checkpointer, QUIET},
        foreground::Foreground,
        queue::{Job, Queue, Then, Work},
        reserve::Reserve,
        rewrite::{PlaintextLeft, PlaintextStatus, Rewriter},
        stats::Stats,
    },
};

/// Pause between two chunks of garbage collection while the writer is idle: a new commit finds the writer free most of
/// the time.
const DELETE_PAUSE: Duration = Duration::from_millis(4);

/// The same while somebody is present, whose next commit would wait for the piece.
const PRESENT_DELETE_PAUSE: Duration = Duration::from_millis(20);

/// A piece is deleted this often although somebody always writes.
const DELETE_WITHIN: Duration = Duration::from_millis(100);

/// Exclusive write access to a data directory. Shared by clones; ends with `close` or with the last clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    data_dir: PathBuf,
    queue: Arc<Queue>,
    observers: Observers,
    readers: ReaderPool,
    key: Option<SecretsKey>,
    stats: Arc<Stats>,
    busy: BusyTimer,
    foreground: Foreground,
    left: PlaintextStatus,
    /// The next number of a record in parts, once one was given out.
    next_record: Mutex<Option<RecordId>>,
    writer: ThreadId,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Held here as well as by the writer: a writer that panicked is gone, but until its owner drops the store no other
    /// process may write.
    lock: Mutex<Option<Arc<Lock>>>,
}

/// Faults that tests inject into the writer.
#[derive(Clone, Copy, Default)]
pub(crate) struct Faults {
    /// Limit of the database file in pages, as if the disk were full.
    pub(crate) max_pages: Option<u32>,
}

impl Store {
    /// Locks the directory, creates or migrates the database, and starts the writer.
    pub fn open(data_dir: &Path) -> Result<Self, Error> {
        Self::open_with(data_dir, Faults::default(), None)
    }

    /// Opens the store with the master key for Secrets; keys that are not yet encrypted with it are encrypted now.
    pub fn open_keyed(data_dir: &Path, key: Option<SecretsKey>) -> Result<Self, Error> {
        Self::open_with(data_dir, Faults::default(), key)
    }

    pub(crate) fn open_with(data_dir: &Path, faults: Faults, key: Option<SecretsKey>) -> Result<Self, Error> {
        private::secure(data_dir)?;
        let lock = Arc::new(Lock::take(data_dir)?);
        let mut reserve = Reserve::new(data_dir);
        let left = PlaintextStatus::default();
        let open = || connect::writer(data_dir).and_then(|conn| Open::new(conn, data_dir, faults, key.as_ref(), &left));
        let open = match open() {
            // The reserve exists for this case.
            Err(error) if error.is_full() && reserve.release() => open()?,
            opened => opened?,
        };
        let queue = Arc::new(Queue::default());
        let observers = Observers::default();
        let (stats, readers, busy) = (Arc::new(Stats::default()), ReaderPool::default(), BusyTimer::default());
        let foreground = Foreground::new(Instant::now());
        let writer = Writer {
            data_dir: data_dir.to_owned(),
            queue: Arc::clone(&queue),
            observers: observers.clone(),
            stats: Arc::clone(&stats),
            readers: readers.clone(),
            busy: busy.clone(),
            foreground: foreground.clone(),
            key: key.clone(),
            faults,
            left: left.clone(),
            reserve,
            anchor: None,
            suspicious: false,
            full: false,
            deleted: Instant::now(),
            open: Some(open),
            _lock: Arc::clone(&lock),
        };
        let thread = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(|source| Error::Database { doing: "start its threads", source: Arc::new(source) })?;
        Ok(Self {
            inner: Arc::new(Inner {
                data_dir: data_dir.to_owned(),
                queue,
                observers,
                readers,
                key,
                stats,
                busy,
                foreground,
                left,
                next_record: Mutex::new(None),
                writer: thread.thread().id(),
                thread: Mutex::new(Some(thread)),
                lock: Mutex::new(Some(lock)),
            }),
        })
    }

    /// Queues the batch. `then` is called on the writer's thread when the outcome is known: after the sync, or at once
    /// on this thread if the store accepts no more. Nothing is written while it runs, so it must be short and must not
    /// wait for a thread that commits. If very much is queued already this call blocks until there is room. An empty
    /// batch gets the current revision once everything before it is durable.
    pub fn commit(&self, batch: Batch, then: impl FnOnce(Result<Revision, Error>) + Send + 'static) {
        let patient = thread::current().id() != self.inner.writer;
        self.inner.queue.push(Job { batch, then: Box::new(then) }, patient);
    }

    /// Commits and waits until the batch is durable. Must not be called from `then`.
    pub fn commit_wait(&self, batch: Batch) -> Result<Revision, Error> {
        assert!(thread::current().id() != self.inner.writer, "the writer cannot wait for itself");
        let (send, receive) = mpsc::sync_channel(1);
        self.commit(batch, move |outcome| {
            send.send(outcome).expect("the committer waits for the outcome");
        });
        receive.recv().unwrap_or_else(|_| Err(panicked()))
    }

    /// The same for what nobody waits for soon and whose order among other commits does not matter: it shares the
    /// transaction of a commit that somebody waits for, or has one of its own when none comes for a while.
    pub(crate) fn commit_background(&self, batch: Batch) -> Result<Revision, Error> {
        assert!(thread::current().id() != self.inner.writer, "the writer cannot wait for itself");
        let (tell, told) = mpsc::sync_channel(1);
        let then = move |outcome| tell.send(outcome).expect("the committer waits for the outcome");
        self.inner.queue.push_background(Job { batch, then: Box::new(then) });
        told.recv().unwrap_or_else(|_| Err(panicked()))
    }

    /// Who waits for answers. Whoever serves requests notes them here; background work steps back for them.
    pub fn foreground(&self) -> &Foreground {
        &self.inner.foreground
    }

    /// Opens the database again after a failed write, once, and says where it stands. What was not acknowledged may be
    /// in it or not: whoever holds more in memory than was acknowledged must have let go of it. Until this succeeds every
    /// commit is turned down. The directory stays taken all the time.
    pub fn reopen(&self) -> Result<Revision, Error> {
        assert!(thread::current().id() != self.inner.writer, "the writer cannot wait for itself");
        let (send, receive) = mpsc::channel();
        self.inner.queue.ask_reopen(send)?;
        receive.recv().unwrap_or_else(|_| Err(self.failure().unwrap_or_else(panicked)))
    }

    /// Returns why nothing can be written at present.
    pub fn failure(&self) -> Option<Error> {
        self.inner.queue.failure()
    }

    /// Registers the callback for failed writes, which runs before the affected committers are notified. There is one;
    /// a second is a bug.
    pub fn on_failure(&self, callback: OnFailure) {
        let set = self.inner.observers.failures.set(callback);
        assert!(set.is_ok(), "a store has one callback for failures");
    }

    /// Registers the observer of commits. There is one; a second is a bug.
    pub fn observe(&self, observer: Observer) {
        let set = self.inner.observers.commits.set(observer);
        assert!(set.is_ok(), "a store has one observer");
    }

    /// Returns a reader of the committed state, on an idle connection if there is one.
    pub fn reader(&self) -> Result<Reader, Error> {
        let pooled = self.inner.readers.get(&self.inner.data_dir).inspect_err(|_| {
            // A database that was deleted may be noticed here first. With every batch the writer checks its files, and ends
            // the store if they are gone; otherwise a server that is only read from would never learn of it.
            self.commit(Batch::new(), |_| {});
        })?;
        Ok(Reader::on(pooled, self.inner.key.clone()))
    }

    /// Returns the counters of the writer.
    pub fn stats(&self) -> &Stats {
        &self.inner.stats
    }

    /// Returns how long the writer has been busy with the current transaction, if there is one.
    pub fn busy_for(&self) -> Option<Duration> {
        self.inner.busy.busy_for()
    }

    /// Returns why values of Secrets may still be stored in plain text, if they may.
    pub fn plaintext_left(&self) -> Option<PlaintextLeft> {
        self.inner.left.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of queued batches.
    pub fn queued(&self) -> usize {
        self.inner.queue.len()
    }

    pub(crate) fn records(&self) -> MutexGuard<'_, Option<RecordId>> {
        self.inner.next_record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn data_dir(&self) -> &Path {
        &self.inner.data_dir
    }

    /// Refuses new work while the last of the space is needed for existing runs.
    pub fn check_space(&self) -> Result<(), Error> {
        // If the file system cannot be asked, the check passes; a write will fail if something is wrong.
        let Ok(space) = Space::of(&self.inner.data_dir) else { return Ok(()) };
        let floor = submission_floor(space.total);
        if space.free < floor {
            return Err(Error::LowSpace { data_dir: self.inner.data_dir.clone(), free: space.free, floor });
        }
        Ok(())
    }

    /// Writes what is queued, checkpoints the log, and unlocks the directory. Other clones are closed with it. An error
    /// says why not everything queued could be written.
    pub fn close(self) -> Result<(), Error> {
        let failed = self.failure();
        self.inner.stop();
        match self.inner.queue.ended() {
            None | Some(Error::Closed) => failed.map_or(Ok(()), Err),
            Some(reason) => Err(reason),
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("data_dir", &self.inner.data_dir).finish_non_exhaustive()
    }
}

impl Inner {
    fn stop(&self) {
        self.readers.close();
        self.queue.end(Error::Closed);
        let thread = self.thread.lock().expect("nothing panics while it holds the thread").take();
        // The last clone may be dropped inside a callback; a thread cannot join itself, and it is about to end anyway.
        if let Some(thread) = thread
            && thread::current().id() != self.writer
        {
            // A panic of the writer has ended the queue with its own reason.
            let _ = thread.join();
        }
        self.lock.lock().expect("nothing panics while it holds the lock").take();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The database while it is open for writing.
struct Open {
    checkpointer: Checkpointer,
    rewriter: Rewriter,
    files: OpenFiles,
    journal: Journal,
}

impl Open {
    fn new(
        mut conn: Connection,
        data_dir: &Path,
        faults: Faults,
        key: Option<&SecretsKey>,
        left: &PlaintextStatus,
    ) -> Result<Self, Error> {
        if let Some(max_pages) = faults.max_pages {
            conn.pragma_update_and_check(None, "max_page_count", max_pages, |_| Ok(())).doing("limit its size")?;
        }
        let mut checkpointer = Checkpointer::watch(&mut conn, data_dir)?;
        if seal::encrypt_existing(&conn, key)? != seal::EncryptedExisting::default() {
            checkpointer.forget(&conn);
        }
        let rewriter = Rewriter::start(&conn, &mut checkpointer, data_dir, left.clone())?;
        let files = OpenFiles::of(data_dir);
        Ok(Self { checkpointer, rewriter, files, journal: Journal::new(conn, key.cloned())? })
    }
}

impl Open {
    /// Called after each commit, once its committers have been notified.
    fn committed(&mut self) {
        self.checkpointer.committed(self.journal.connection());
        self.log_moved();
    }

    fn log_moved(&mut self) {
        self.rewriter.log_moved(self.journal.connection(), &self.checkpointer);
    }
}

/// State of the writer's thread. Fields are dropped in order: the lock is released after the connection is closed.
struct Writer {
    data_dir: PathBuf,
    queue: Arc<Queue>,
    observers: Observers,
    stats: Arc<Stats>,
    readers: ReaderPool,
    busy: BusyTimer,
    foreground: Foreground,
    key: Option<SecretsKey>,
    faults: Faults,
    left: PlaintextStatus,
    reserve: Reserve,
    /// Read connection that keeps the log and its index in place while no connection writes, so that readers continue.
    anchor: Option<Connection>,
    /// True if the database reported that it is damaged.
    suspicious: bool,
    /// True if the write failed for lack of space. Whatever fails during the repair is attributed to that.
    full: bool,
    /// Time of the last chunk of garbage collection.
    deleted: Instant,
    /// `None` while a failed write is not repaired.
    open: Option<Open>,
    _lock: Arc<Lock>,
}

impl Writer {
    fn run(mut self) {
        let _guard = PanicGuard(Arc::clone(&self.queue), self.observers.clone());
        loop {
            match self.next() {
                Some(Work::Jobs(jobs)) => {
                    self.busy.begin();
                    self.write(jobs);
                    self.busy.end();
                    if self.deleted.elapsed() > DELETE_WITHIN {
                        self.delete_piece();
                    }
                }
                Some(Work::Reopen(reopened)) => {
                    // The caller may have closed the store meanwhile.
                    let _ = reopened.send(self.reopen());
                }
                Some(Work::End) => return,
                Some(Work::Background) | None => {}
            }
        }
    }

    /// Waits for the next work; `None` if the writer was idle and did background work instead.
    fn next(&mut self) -> Option<Work> {
        let load = self.foreground.load(Instant::now());
        if self.queue.has_background() {
            let next = self.queue.take_within(load.share_within());
            return next.or_else(|| self.queue.take_background().map(|job| Work::Jobs(vec![job])));
        }
        if self.has_garbage() {
            let next = self.queue.take_within(if load.is_active() { PRESENT_DELETE_PAUSE } else { DELETE_PAUSE });
            if next.is_none() {
                self.delete_piece();
            }
            return next;
        }
        let moves = self.open.as_ref().filter(|open| open.checkpointer.is_due()).map(|open| open.checkpointer.pause());
        let keeps = self.reserve.wanted_in().filter(|_| self.open.is_some()).map(|due| due.max(QUIET));
        let rewrites = self.open.as_ref().and_then(|open| open.rewriter.due_in()).map(|due| due.max(QUIET));
        let soonest = keeps.into_iter().chain(rewrites).min();
        let Some(patience) = moves.or(soonest) else { return Some(self.queue.take()) };
        let next = self.queue.take_within(patience);
        if next.is_none() {
            match &mut self.open {
                Some(open) if moves.is_some() => {
                    open.checkpointer.quiet(open.journal.connection());
                    open.log_moved();
                }
                Some(open) if keeps != soonest => {
                    open.rewriter.retry(open.journal.connection(), &mut open.checkpointer)
                }
                _ => self.reserve.keep(),
            }
        }
        next
    }

    fn write(&mut self, jobs: Vec<Job>) {
        let Some(open) = &mut self.open else {
            // These jobs were queued while the failure was being reported.
            let failure = self.queue.failure().unwrap_or_else(panicked);
            return notify_all(jobs.into_iter().map(|job| (job.then, Err(failure.clone()))));
        };
        if let Err(lost) = open.files.check() {
            return self.fail(&lost, jobs);
        }
        let batches: Vec<&Batch> = jobs.iter().map(|job| &job.batch).collect();
        let began = Instant::now();
        let written = open.journal.write(&batches);
        let full = batches.iter().filter(|batch| !batch.is_empty());
        let (count, bytes) = full.fold((0, 0), |(count, bytes), batch| (count + 1, bytes + batch.bytes));
        if count > 0 {
            self.stats.wrote(count, bytes, began.elapsed());
        }
        match written {
            Ok(outcomes) => {
                let events = open.journal.take_events();
                if !events.is_empty() {
                    self.observers.notify(Notification::Commits(events));
                }
                notify_all(jobs.into_iter().map(|job| job.then).zip(outcomes));
                if let Some(open) = &mut self.open {
                    if open.journal.take_forgets() {
                        open.checkpointer.forget(open.journal.connection());
                    }
                    open.committed();
                }
            }
            Err(error) => self.fail(&error, jobs),
        }
    }

    fn has_garbage(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.journal.has_garbage())
    }

    /// Deletes one chunk of garbage, if there is any.
    fn delete_piece(&mut self) {
        let Some(open) = self.open.as_mut().filter(|open| open.journal.has_garbage()) else { return };
        self.busy.begin();
        let deleted = open.files.check().and_then(|()| open.journal.delete_piece());
        self.deleted = Instant::now();
        match deleted {
            Ok(()) => open.committed(),
            Err(error) => self.fail(&error, Vec::new()),
        }
        self.busy.end();
    }

    /// Stops writing, because the state of the disk is unknown, and notifies every waiting committer of the reason.
    fn fail(&mut self, error: &Error, jobs: Vec<Job>) {
        let repairable = error.is_outage() || error.is_corruption();
        let failure = match error {
            error if repairable => self.unwritable(error),
            Error::Lost { .. } => error.clone(),
            error => Error::Poisoned { cause: error.chain() },
        };
        self.suspicious |= error.is_corruption();
        self.full = failure.is_full();
        if repairable {
            self.queue.fail(failure.clone());
        } else {
            self.queue.end(failure.clone());
        }
        self.close_connection();
        self.observers.notify_failure(&failure);
        let more = self.queue.drain();
        notify_all(jobs.into_iter().chain(more).map(|job| (job.then, Err(failure.clone()))));
    }

    /// Closes the writing connection. Readers continue: the log and its index are kept in place, unless the database is
    /// damaged.
    fn close_connection(&mut self) {
        // Opened while the writing connection still keeps the log in place.
        let anchor = self.anchor.take().or_else(|| connect::reader(&self.data_dir).ok());
        self.anchor = anchor.filter(|_| !self.suspicious);
        self.open = None;
    }

    fn unwritable(&self, error: &Error) -> Error {
        // SQLite does not pass on the file system's error, so a probe determines it.
        let probed = space::probe(&self.data_dir).err();
        let full = self.full || error.is_full() || probed.as_ref().is_some_and(is_full);
        let cause = match probed {
            Some(probed) => format!("{}: {probed}", error.chain()),
            None => error.chain(),
        };
        Error::Unwritable { data_dir: self.data_dir.clone(), cause, full }
    }

    fn reopen(&mut self) -> Result<Revision, Error> {
        let opened = self
            .try_reopen()
            .or_else(|error| if error.is_full() && self.reserve.release() { self.try_reopen() } else { Err(error) });
        match opened {
            Ok(open) => {
                let revision = open.journal.revision();
                self.open = Some(open);
                self.anchor = None;
                (self.suspicious, self.full) = (false, false);
                self.observers.notify(Notification::Reopened(revision));
                self.queue.recover();
                Ok(revision)
            }
            Err(error) => {
                // Nothing may be written through a connection that is only partly repaired.
                self.queue.fail(error.clone());
                Err(error)
            }
        }
    }

    fn try_reopen(&mut self) -> Result<Open, Error> {
        self.close_connection();
        self.readers.clear();
        let outage = |error: Error| if error.is_outage() { self.unwritable(&error) } else { error };
        space::probe(&self.data_dir)
            .map_err(|error| connect::file_error("write to", &self.data_dir, error))
            .and_then(|()| connect::reopen_writer(&self.data_dir, self.suspicious))
            .and_then(|conn| Open::new(conn, &self.data_dir, self.faults, self.key.as_ref(), &self.left))
            .and_then(|mut open| {
                open.journal.touch()?;
                Ok(open)
            })
            .map_err(outage)
    }
}

/// Ends the queue when the writer's thread panics, so that no committer waits for ever.
struct PanicGuard(Arc<Queue>, Observers);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(panicked());
            self.1.notify_failure(&panicked());
            notify_all(self.0.drain().into_iter().map(|job| (job.then, Err(panicked()))));
        }
    }
}

/// Notifies every committer of its outcome, also those behind a callback that panics. The panic is propagated
/// afterwards.
fn notify_all(outcomes: impl Iterator<Item = (Then, Result<Revision, Error>)>) {
    let mut panics = Vec::new();
    for (then, outcome) in outcomes {
        panics.extend(panic::catch_unwind(AssertUnwindSafe(|| then(outcome))).err());
    }
    if let Some(first) = panics.into_iter().next()
        && !thread::panicking()
    {
        panic::resume_unwind(first);
    }
}

fn panicked() -> Error {
    Error::Poisoned { cause: "the writer's thread panicked".to_owned() }
}
