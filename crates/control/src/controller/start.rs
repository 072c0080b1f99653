//! Starting with the runs that earlier processes left open: their journals are read once, by several threads and away
//! from the event loop, which then takes all of them over in one message.

use std::{
    num::NonZeroUsize,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use octoflow_engine::{
    Engine, Input, Run,
    engine::{Capacity, Setup},
    slice::SLICE,
};
use octoflow_model::{Fact, RunId, Time};
use octoflow_store::{RunRow, Store};

use super::{each_keyed, event_loop::EventLoop};
use crate::{
    Error, clock,
    keyed::KeyedObject,
    meters,
    read::{self, Journal},
    record,
};

/// Threads that read journals. More would only wait for the same disk.
const MOST_READERS: usize = 4;

/// The pause after storage was out of order while journals were read.
pub(super) const AFTER_OUTAGE: Duration = Duration::from_secs(1);

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

/// What the journals of unfinished runs say.
#[derive(Default)]
pub(super) struct Found {
    pub runs: Vec<Restored>,
    /// Those that cannot be read, as far as they can.
    pub unreadable: Vec<(RunId, Vec<Fact>)>,
    /// For people.
    pub notices: Vec<String>,
}

/// A journal that cannot be read: the facts before the damage, and what is wrong.
type Damaged = (Vec<Fact>, String);

/// Folds the journal of every unfinished run, in the order of the runs. What cannot be read is left out and told.
pub(super) fn restore_all(store: &Store, progress: &StartProgress) -> Result<Found, Error> {
    let rows = store.reader()?.unfinished()?;
    progress.read.store(0, Ordering::Relaxed);
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

/// An engine with every ConfigMap, Secret and metric that is kept, and what cannot be read of the metrics.
pub(super) fn engine(reader: &octoflow_store::Reader, capacity: Capacity) -> Result<(Engine, Vec<String>), Error> {
    let (meters, unread) = meters::load(reader)?;
    // Whatever one run has to decide, everybody else is served in between.
    let mut engine = Engine::new(Setup { meters, slice: SLICE, ..capacity.into() });
    each_keyed(reader, |object| {
        let KeyedObject { kind, namespace, name, data } = object;
        engine.handle(Input::Object { kind, namespace, name, data: Some(data) }, clock::steady());
    })?;
    Ok((engine, unread))
}

impl EventLoop {
    pub(super) fn take_up(&mut self, run: RunId, facts: Vec<Fact>, now: Time) -> Result<(), Error> {
        let count = facts.len() as u64;
        let folded = record::fold(run, facts).map_err(|why| Error::Journal { run, why })?;
        self.recovery.take(run);
        let believed = if self.restore(folded, count) {
            let watched = &self.watched;
            self.driver.go_on(vec![run], now, |run| watched.contains(&run))
        } else {
            Vec::new()
        };
        self.adopt(believed)
    }

    /// Takes a run back as its journal of so many facts describes it; whether there is something left to decide. One that
    /// is over needs nothing but its record: the process before this one did not come to pack it.
    pub(super) fn restore(&mut self, run: Run, facts: u64) -> bool {
        let open = !run.finished();
        if open {
            self.driver.restore(run, facts);
        } else if !self.archiver.has(run.id()) {
            self.archiver.pack(Box::new(run));
        }
        open
    }

    pub(super) fn take_up_all(
        &mut self,
        mut runs: Vec<Restored>,
        unreadable: Vec<(RunId, Vec<Fact>)>,
        now: Time,
    ) -> Result<(), Error> {
        // An outage may have come between: what was read back after it is here already.
        runs.retain(|Restored { run, .. }| self.driver.engine.run(run.id()).is_none() && !self.archiver.has(run.id()));
        let mut ids = Vec::with_capacity(runs.len());
        for Restored { run, facts } in runs {
            let id = run.id();
            self.recovery.take(id);
            if self.restore(*run, facts) {
                ids.push(id);
            }
        }
        for (run, facts) in unreadable {
            // What it is known to hold stays taken; the rest of it is told to people.
            let _ = record::reserve_locks(&mut self.driver.engine, run, facts);
        }
        let watched = &self.watched;
        let believed = self.driver.go_on(ids, now, |run| watched.contains(&run));
        self.progress.done();
        self.adopt(believed)
    }
}

/// What people are told about a run whose journal is damaged.
pub(super) fn unreadable(row: &RunRow, why: &str) -> String {
    let RunRow { kind, namespace, name, run, .. } = row;
    format!(
        "{kind} `{name}` in namespace `{namespace}` (run {run}) cannot be read and is left as it is: {why} [OF1115]; locks \
         that it is known to hold stay taken; if it is damaged, restore the database from a backup, or delete the run"
    )
}

/// The inner error says what is wrong with this journal; the outer one that nothing can be read.
fn restore(reader: &octoflow_store::Reader, row: &RunRow) -> Result<Result<Restored, Damaged>, Error> {
    let Journal { facts, damage } = read::journal(reader, row.run)?;
    if let Some(why) = damage {
        return Ok(Err((facts, why)));
    }
    let count = facts.len() as u64;
    let folded = record::fold(row.run, facts);
    Ok(folded.map(|run| Restored { run: Box::new(run), facts: count }).map_err(|why| (Vec::new(), why)))
}
