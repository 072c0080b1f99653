//! Starting with the runs that earlier processes left open: their journals are read once, by several threads and away
//! from the event loop, which then takes all of them over in one message.

use std::{
    num::NonZeroUsize,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use octoflow_engine::{Run, engine::fold};
use octoflow_store::{RunRow, Store};

use crate::{Error, read};

/// Threads that read journals. More would only wait for the same disk.
const MOST_READERS: usize = 4;

/// How far a start is. Shared by whoever starts and whoever is asked about it.
#[derive(Debug, Default)]
pub struct StartProgress {
    /// Runs are still to be taken up.
    pending: AtomicBool,
    /// Nobody wants the start to come to its end any more.
    cancelled: AtomicBool,
    read: AtomicUsize,
    total: AtomicUsize,
}

impl StartProgress {
    pub(super) fn pending() -> Self {
        Self { pending: AtomicBool::new(true), ..Self::default() }
    }

    pub fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    pub(super) fn done(&self) {
        self.pending.store(false, Ordering::Release);
    }

    /// The journals that were read, and how many there are.
    pub fn journals(&self) -> (usize, usize) {
        (self.read.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// An open run as its journal describes it.
pub(crate) struct Restored {
    pub run: Box<Run>,
    /// How many facts its journal has.
    pub facts: u64,
}

/// Folds the journal of every unfinished run, in the order of the runs. What cannot be read is left out and told.
pub(super) fn restore_all(store: &Store, progress: &StartProgress) -> Result<(Vec<Restored>, Vec<String>), Error> {
    let rows = store.reader()?.unfinished()?;
    progress.total.store(rows.len(), Ordering::Relaxed);
    let readers = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_READERS).min(rows.len().max(1));
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::with_capacity(rows.len()));
    let work = || -> Result<(), Error> {
        let reader = store.reader()?;
        let mut own = Vec::new();
        while let (at, false) = (next.fetch_add(1, Ordering::Relaxed), progress.cancelled.load(Ordering::Relaxed))
            && let Some(row) = rows.get(at)
        {
            own.push((at, restore(&reader, row)?));
            progress.read.fetch_add(1, Ordering::Relaxed);
        }
        found.lock().unwrap_or_else(PoisonError::into_inner).append(&mut own);
        Ok(())
    };
    thread::scope(|scope| -> Result<(), Error> {
        let others: Vec<_> = (1..readers).map(|_| scope.spawn(work)).collect();
        let mut outcome = work();
        for other in others {
            let ended = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome = outcome.and(ended);
        }
        outcome
    })?;
    if progress.cancelled.load(Ordering::Relaxed) {
        return Err(Error::Gone);
    }
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(at, _)| *at);
    let (mut runs, mut notices) = (Vec::with_capacity(found.len()), Vec::new());
    for (at, outcome) in found {
        match outcome {
            Ok(restored) => runs.push(restored),
            Err(why) => notices.push(format!("workflow `{}` is left as it is: {why}", rows[at].name)),
        }
    }
    Ok((runs, notices))
}

/// The inner error says what is wrong with this journal; the outer one that nothing can be read.
fn restore(reader: &octoflow_store::Reader, row: &RunRow) -> Result<Result<Restored, Error>, Error> {
    let facts = match read::facts(reader, row.run) {
        Ok(facts) => facts,
        Err(error @ (Error::Journal { .. } | Error::UnknownRun(_))) => return Ok(Err(error)),
        Err(error) => return Err(error),
    };
    let count = facts.len() as u64;
    let folded = fold(row.run, facts).map_err(|why| Error::Journal { run: row.run, why });
    Ok(folded.map(|run| Restored { run: Box::new(run), facts: count }))
}
