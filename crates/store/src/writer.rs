//! The store as its one writer sees it: a queue in front of a thread that turns everything waiting into one
//! transaction, syncs it, and only then tells each caller. It decides nothing about what is written.

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
    apply::Journal,
    checkpoint::{Checkpointer, QUIET},
    connect,
    error::{Doing, is_full},
    files::OpenFiles,
    foreground::Foreground,
    lock::Lock,
    note::{Ears, Observer, OnFailure, Told},
    pool::ReaderPool,
    private,
    pulse::Pulse,
    queue::{Job, Queue, Then, Work},
    reserve::Reserve,
    rewrite::{Left, PlaintextLeft, Rewriter},
    seal::{self, SecretsKey},
    space,
    stats::Stats,
};

/// Between two pieces of what is deleted when nobody writes: whoever comes finds the writer at rest most of the time.
const DELETE_PAUSE: Duration = Duration::from_millis(4);

/// The same while somebody is present, whose next commit would wait for the piece.
const PRESENT_DELETE_PAUSE: Duration = Duration::from_millis(20);

/// A piece is deleted this often although somebody always writes.
const DELETE_WITHIN: Duration = Duration::from_millis(100);

/// The right to write to a data directory. Clones share it; it ends with `close` or with the last clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    data_dir: PathBuf,
    queue: Arc<Queue>,
    ears: Ears,
    readers: ReaderPool,
    key: Option<SecretsKey>,
    stats: Arc<Stats>,
    pulse: Pulse,
    foreground: Foreground,
    left: Left,
    /// The next number of a record in parts, once one was given out.
    next_record: Mutex<Option<RecordId>>,
    writer: ThreadId,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Held here as well as by the writer: a writer that panicked is gone, but until its owner lets go nobody else may
    /// write.
    lock: Mutex<Option<Arc<Lock>>>,
}

/// Faults that tests put into the controller.
#[derive(Clone, Copy, Default)]
pub(crate) struct Faults {
    /// The file may not grow beyond this many pages, as if the disk were full.
    pub(crate) max_pages: Option<u32>,
}

impl Store {
    /// Takes the directory's lock, creates or migrates the database, and starts the writer.
    pub fn open(data_dir: &Path) -> Result<Self, Error> {
        Self::open_with(data_dir, Faults::default(), None)
    }

    /// The same with the key that the keys of Secrets are encrypted with; those that are not yet are encrypted now.
    pub fn open_keyed(data_dir: &Path, key: Option<SecretsKey>) -> Result<Self, Error> {
        Self::open_with(data_dir, Faults::default(), key)
    }

    pub(crate) fn open_with(data_dir: &Path, faults: Faults, key: Option<SecretsKey>) -> Result<Self, Error> {
        private::secure(data_dir)?;
        let lock = Arc::new(Lock::take(data_dir)?);
        let mut reserve = Reserve::new(data_dir);
        let left = Left::default();
        let open = || connect::writer(data_dir).and_then(|conn| Open::new(conn, data_dir, faults, key.as_ref(), &left));
        let open = match open() {
            // What was kept for this moment is given back.
            Err(error) if error.is_full() && reserve.release() => open()?,
            opened => opened?,
        };
        let queue = Arc::new(Queue::default());
        let ears = Ears::default();
        let (stats, readers, pulse) = (Arc::new(Stats::default()), ReaderPool::default(), Pulse::default());
        let foreground = Foreground::new(Instant::now());
        let writer = Writer {
            data_dir: data_dir.to_owned(),
            queue: Arc::clone(&queue),
            ears: ears.clone(),
            stats: Arc::clone(&stats),
            readers: readers.clone(),
            pulse: pulse.clone(),
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
                ears,
                readers,
                key,
                stats,
                pulse,
                foreground,
                left,
                next_record: Mutex::new(None),
                writer: thread.thread().id(),
                thread: Mutex::new(Some(thread)),
                lock: Mutex::new(Some(lock)),
            }),
        })
    }

    /// Queues the batch. `then` runs on the writer's thread when the outcome is known: after the sync, or at once on
    /// this thread when the store takes nothing more. While it runs nothing is written, so it must be short and must
    /// not wait for a thread that commits. When very much is queued already this call waits for room.
    /// An empty batch is told the current revision once everything before it is durable.
    pub fn commit(&self, batch: Batch, then: impl FnOnce(Result<Revision, Error>) + Send + 'static) {
        let patient = thread::current().id() != self.inner.writer;
        self.inner.queue.push(Job { batch, then: Box::new(then) }, patient);
    }

    /// Commits and waits until it is durable. Not for use within `then`.
    pub fn commit_wait(&self, batch: Batch) -> Result<Revision, Error> {
        assert!(thread::current().id() != self.inner.writer, "the writer cannot wait for itself");
        let (tell, told) = mpsc::sync_channel(1);
        self.commit(batch, move |outcome| {
            tell.send(outcome).expect("the committer waits for the outcome");
        });
        told.recv().unwrap_or_else(|_| Err(panicked()))
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
        let (tell, told) = mpsc::channel();
        self.inner.queue.ask_reopen(tell)?;
        told.recv().unwrap_or_else(|_| Err(self.failure().unwrap_or_else(panicked)))
    }

    /// Why nothing can be written at present.
    pub fn failure(&self) -> Option<Error> {
        self.inner.queue.failure()
    }

    /// From now on every failed write is told, before those whose write it was. There is one who hears it; a second is a
    /// bug of ours.
    pub fn on_failure(&self, hear: OnFailure) {
        let set = self.inner.ears.failures.set(hear);
        assert!(set.is_ok(), "one hears of a store's failures");
    }

    /// From now on every commit is told. There is one observer; a second is a bug of ours.
    pub fn observe(&self, observer: Observer) {
        let set = self.inner.ears.commits.set(observer);
        assert!(set.is_ok(), "a store has one observer");
    }

    /// A reader of what is committed, one that is idle if there is one.
    pub fn reader(&self) -> Result<Reader, Error> {
        Ok(Reader::on(self.inner.readers.lend(&self.inner.data_dir)?, self.inner.key.clone()))
    }

    /// What has been written so far.
    pub fn stats(&self) -> &Stats {
        &self.inner.stats
    }

    /// How long the writer has been busy with one transaction, if it is.
    pub fn busy_for(&self) -> Option<Duration> {
        self.inner.pulse.busy_for()
    }

    /// What of Secrets may still lie open in the file, and why.
    pub fn plaintext_left(&self) -> Option<PlaintextLeft> {
        self.inner.left.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many batches wait to be written.
    pub fn queued(&self) -> usize {
        self.inner.queue.len()
    }

    pub(crate) fn records(&self) -> MutexGuard<'_, Option<RecordId>> {
        self.inner.next_record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn data_dir(&self) -> &Path {
        &self.inner.data_dir
    }

    /// Refuses to begin anything new while the last of the space is needed for what runs.
    pub fn check_space(&self) -> Result<(), Error> {
        // Who cannot be asked says nothing against it; a write will tell.
        let Ok(space) = Space::of(&self.inner.data_dir) else { return Ok(()) };
        let floor = submission_floor(space.total);
        if space.free < floor {
            return Err(Error::LowSpace { data_dir: self.inner.data_dir.clone(), free: space.free, floor });
        }
        Ok(())
    }

    /// Writes what is queued, merges the log, and releases the directory. Other clones are closed with it.
    /// An error is the reason why not everything that was queued could be written.
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
        // The last clone may die inside a callback; a thread cannot wait for itself, and it is about to end anyway.
        if let Some(thread) = thread
            && thread::current().id() != self.writer
        {
            // A panic over there has ended the queue with its own reason.
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

/// The database as it is open for writing.
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
        left: &Left,
    ) -> Result<Self, Error> {
        if let Some(max_pages) = faults.max_pages {
            conn.pragma_update_and_check(None, "max_page_count", max_pages, |_| Ok(())).doing("limit its size")?;
        }
        let mut checkpointer = Checkpointer::watch(&mut conn, data_dir)?;
        if seal::adopt(&conn, key)? != seal::Adopted::default() {
            checkpointer.forget(&conn);
        }
        let rewriter = Rewriter::start(&conn, &mut checkpointer, data_dir, left.clone())?;
        let files = OpenFiles::of(data_dir);
        Ok(Self { checkpointer, rewriter, files, journal: Journal::new(conn, key.cloned())? })
    }
}

impl Open {
    /// To be called after each commit, when everybody who waited for it was told.
    fn committed(&mut self) {
        self.checkpointer.committed(self.journal.connection());
        self.log_moved();
    }

    fn log_moved(&mut self) {
        self.rewriter.log_moved(self.journal.connection(), &self.checkpointer);
    }
}

/// What the writer's thread owns. The order of the fields is the order of their end: the lock goes when the
/// connection is closed.
struct Writer {
    data_dir: PathBuf,
    queue: Arc<Queue>,
    ears: Ears,
    stats: Arc<Stats>,
    readers: ReaderPool,
    pulse: Pulse,
    foreground: Foreground,
    key: Option<SecretsKey>,
    faults: Faults,
    left: Left,
    reserve: Reserve,
    /// Keeps the log and its index in place while no connection writes, so that readers go on.
    anchor: Option<Connection>,
    /// The database said that it is damaged.
    suspicious: bool,
    /// The write that failed had no room. Whatever fails while that is repaired fails because of it.
    full: bool,
    /// When something that nobody sees any more was deleted last.
    deleted: Instant,
    /// Nothing while a failed write is not repaired.
    open: Option<Open>,
    _lock: Arc<Lock>,
}

impl Writer {
    fn run(mut self) {
        let _fuse = Fuse(Arc::clone(&self.queue), self.ears.clone());
        loop {
            match self.next() {
                Some(Work::Jobs(jobs)) => {
                    self.pulse.begin();
                    self.write(jobs);
                    self.pulse.end();
                    if self.deleted.elapsed() > DELETE_WITHIN {
                        self.delete_piece();
                    }
                }
                Some(Work::Reopen(reopened)) => {
                    // Whoever asked may have closed meanwhile.
                    let _ = reopened.send(self.reopen());
                }
                Some(Work::End) => return,
                Some(Work::Background) | None => {}
            }
        }
    }

    /// What comes next. Nothing when it was quiet and something was done that waits for that.
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
                    open.rewriter.again(open.journal.connection(), &mut open.checkpointer)
                }
                _ => self.reserve.keep(),
            }
        }
        next
    }

    fn write(&mut self, jobs: Vec<Job>) {
        let Some(open) = &mut self.open else {
            // They came in while the failure was being told.
            let failure = self.queue.failure().unwrap_or_else(panicked);
            return tell(jobs.into_iter().map(|job| (job.then, Err(failure.clone()))));
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
                let notes = open.journal.take_notes();
                if !notes.is_empty() {
                    self.ears.tell(Told::Commits(notes));
                }
                tell(jobs.into_iter().map(|job| job.then).zip(outcomes));
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

    /// Deletes a piece of what nobody sees any more, if there is something.
    fn delete_piece(&mut self) {
        let Some(open) = self.open.as_mut().filter(|open| open.journal.has_garbage()) else { return };
        self.pulse.begin();
        let deleted = open.files.check().and_then(|()| open.journal.delete_piece());
        self.deleted = Instant::now();
        match deleted {
            Ok(()) => open.committed(),
            Err(error) => self.fail(&error, Vec::new()),
        }
        self.pulse.end();
    }

    /// Nothing is written from now on, because nobody knows any more what is on disk. Everybody who waits hears why.
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
        self.ears.failed(&failure);
        let more = self.queue.drain();
        tell(jobs.into_iter().chain(more).map(|job| (job.then, Err(failure.clone()))));
    }

    /// Readers go on: what they need is held in place, unless it is damaged.
    fn close_connection(&mut self) {
        // Opened while the writing connection still holds everything in place.
        let anchor = self.anchor.take().or_else(|| connect::reader(&self.data_dir).ok());
        self.anchor = anchor.filter(|_| !self.suspicious);
        self.open = None;
    }

    fn unwritable(&self, error: &Error) -> Error {
        // The database does not say what the file system said, so that is asked.
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
                self.ears.tell(Told::Reopened(revision));
                self.queue.recover();
                Ok(revision)
            }
            Err(error) => {
                // Nobody may write through a connection that is half repaired.
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
            .and_then(|()| connect::writer_again(&self.data_dir, self.suspicious))
            .and_then(|conn| Open::new(conn, &self.data_dir, self.faults, self.key.as_ref(), &self.left))
            .and_then(|mut open| {
                open.journal.touch()?;
                Ok(open)
            })
            .map_err(outage)
    }
}

/// Ends the queue when the writer's thread panics, so that nobody waits for it for ever.
struct Fuse(Arc<Queue>, Ears);

impl Drop for Fuse {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(panicked());
            self.1.failed(&panicked());
            tell(self.0.drain().into_iter().map(|job| (job.then, Err(panicked()))));
        }
    }
}

/// Everybody hears the outcome, also those behind a callback that panics. The panic goes on afterwards.
fn tell(outcomes: impl Iterator<Item = (Then, Result<Revision, Error>)>) {
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
