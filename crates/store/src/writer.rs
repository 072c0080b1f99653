//! The store as its one writer sees it: a queue in front of a thread that turns everything waiting into one
//! transaction, syncs it, and only then tells each caller. It decides nothing about what is written.

use std::{
    fmt,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, mpsc},
    thread::{self, JoinHandle, ThreadId},
    time::Instant,
};

use octoflow_model::Revision;

use crate::{
    Batch, Error, Reader,
    apply::Journal,
    checkpoint::Checkpointer,
    connect,
    error::Doing,
    lock::Lock,
    note::{Ears, Observer},
    private,
    queue::{Job, Queue, Then},
    seal::{self, SecretsKey},
    shelf::Shelf,
    stats::Stats,
};

/// The right to write to a data directory. Clones share it; it ends with `close` or with the last clone.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    data_dir: PathBuf,
    queue: Arc<Queue>,
    ears: Ears,
    readers: Shelf,
    key: Option<SecretsKey>,
    stats: Arc<Stats>,
    writer: ThreadId,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Held here as well as by the writer: a poisoned writer ends, but until its owner lets go nobody else may write.
    lock: Mutex<Option<Arc<Lock>>>,
}

/// Faults that tests put into the house.
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
        let path = connect::database(data_dir);
        let mut conn = connect::writer(&path)?;
        if let Some(max_pages) = faults.max_pages {
            conn.pragma_update_and_check(None, "max_page_count", max_pages, |_| Ok(())).doing("limit its size")?;
        }
        let mut checkpointer = Checkpointer::watch(&mut conn)?;
        let adopted = seal::adopt(&conn, key.as_ref())?;
        if adopted.sealed > 0 {
            // Secrets from before this format lay open; a file that is written anew holds nothing of them.
            conn.execute_batch("VACUUM").doing("write itself anew without what Secrets were")?;
        }
        if adopted != seal::Adopted::default() {
            checkpointer.forget(&conn);
        }
        let journal = Journal::new(conn, key.clone())?;
        let queue = Arc::new(Queue::default());
        let ears = Ears::default();
        let stats = Arc::new(Stats::default());
        let writer = Writer {
            queue: Arc::clone(&queue),
            ears: ears.clone(),
            stats: Arc::clone(&stats),
            checkpointer,
            journal,
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
                readers: Shelf::default(),
                key,
                stats,
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

    /// From now on every commit is told. There is one observer; a second is a bug of ours.
    pub fn observe(&self, observer: Observer) {
        let set = self.inner.ears.0.set(observer);
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

    /// How many batches wait to be written.
    pub fn queued(&self) -> usize {
        self.inner.queue.len()
    }

    pub fn data_dir(&self) -> &Path {
        &self.inner.data_dir
    }

    /// Writes what is queued, merges the log, and releases the directory. Other clones are closed with it.
    /// An error is the reason why not everything that was queued could be written.
    pub fn close(self) -> Result<(), Error> {
        self.inner.stop();
        match self.inner.queue.ended() {
            None | Some(Error::Closed) => Ok(()),
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

/// What the writer's thread owns. The order of the fields is the order of their end: the lock goes when the
/// connection is closed.
struct Writer {
    queue: Arc<Queue>,
    ears: Ears,
    stats: Arc<Stats>,
    checkpointer: Checkpointer,
    journal: Journal,
    _lock: Arc<Lock>,
}

impl Writer {
    fn run(mut self) {
        let _fuse = Fuse(Arc::clone(&self.queue));
        loop {
            let jobs = if self.checkpointer.is_due() {
                let Some(jobs) = self.queue.take_within(self.checkpointer.pause()) else {
                    self.checkpointer.move_now(self.journal.connection());
                    continue;
                };
                jobs
            } else {
                self.queue.take()
            };
            if jobs.is_empty() {
                return;
            }
            let batches: Vec<&Batch> = jobs.iter().map(|job| &job.batch).collect();
            let began = Instant::now();
            let written = self.journal.write(&batches);
            let full = batches.iter().filter(|batch| !batch.is_empty());
            let (count, bytes) = full.fold((0, 0), |(count, bytes), batch| (count + 1, bytes + batch.bytes));
            if count > 0 {
                self.stats.wrote(count, bytes, began.elapsed());
            }
            match written {
                Ok(outcomes) => {
                    let notes = self.journal.take_notes();
                    if let (Some(observer), false) = (self.ears.0.get(), notes.is_empty()) {
                        observer(notes);
                    }
                    tell(jobs.into_iter().map(|job| job.then).zip(outcomes));
                    if self.journal.take_forgets() {
                        self.checkpointer.forget(self.journal.connection());
                    }
                    self.checkpointer.committed(self.journal.connection());
                }
                Err(error) => {
                    let poisoned = Error::Poisoned { cause: error.chain() };
                    self.queue.end(poisoned.clone());
                    tell(jobs.into_iter().map(|job| (job.then, Err(error.clone()))));
                    fail_all(&self.queue, &poisoned);
                    return;
                }
            }
        }
    }
}

/// Ends the queue when the writer's thread panics, so that nobody waits for it for ever.
struct Fuse(Arc<Queue>);

impl Drop for Fuse {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(panicked());
            fail_all(&self.0, &panicked());
        }
    }
}

/// The queue has ended, so what it holds now is all it will ever hold.
fn fail_all(queue: &Queue, reason: &Error) {
    tell(queue.take().into_iter().map(|job| (job.then, Err(reason.clone()))));
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
