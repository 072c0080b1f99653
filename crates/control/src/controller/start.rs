//! Starting with the runs that earlier processes left open: their journals are read once, by several threads and away
//! from the event loop, which then takes all of them over in one message.

use std::{
    num::NonZeroUsize,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use octoflow_model::{Fact, RunId};
use octoflow_store::Store;

use crate::{
    Error,
    event_loop::{
        Restored, StartProgress,
        restore::{folded, unreadable},
    },
};

/// Threads that read journals. More would only wait for the same disk.
const MAX_READERS: usize = 4;

/// The pause after storage was out of order while journals were read.
pub(super) const AFTER_OUTAGE: Duration = Duration::from_secs(1);

/// What the journals of unfinished runs say.
#[derive(Default)]
pub(super) struct Found {
    pub runs: Vec<Restored>,
    /// Those that cannot be read, as far as they can.
    pub unreadable: Vec<(RunId, Vec<Fact>)>,
    /// For people.
    pub notices: Vec<String>,
}

/// Folds the journal of every unfinished run, in the order of the runs. What cannot be read is left out and told.
pub(super) fn restore_all(store: &Store, progress: &StartProgress) -> Result<Found, Error> {
    let rows = store.reader()?.unfinished()?;
    progress.read.store(0, Ordering::Relaxed);
    progress.total.store(rows.len(), Ordering::Relaxed);
    let readers = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_READERS).min(rows.len().max(1));
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::with_capacity(rows.len()));
    let work = || -> Result<(), Error> {
        let reader = store.reader()?;
        let mut own = Vec::new();
        while let (at, false) = (next.fetch_add(1, Ordering::Relaxed), progress.cancelled.load(Ordering::Relaxed))
            && let Some(row) = rows.get(at)
        {
            own.push((at, folded(&reader, row)?));
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
    let mut outcomes = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(at, _)| *at);
    let mut found = Found::default();
    for (at, outcome) in outcomes {
        match outcome {
            Ok(restored) => found.runs.push(restored),
            Err((facts, why)) => {
                found.notices.push(unreadable(&rows[at], &why));
                found.unreadable.push((rows[at].run, facts));
            }
        }
    }
    Ok(found)
}
