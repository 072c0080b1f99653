//! Restoring open runs from their journals, at a start and after an outage: all of them have their locks and their room
//! before the first one goes on.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use octoflow_engine::{Engine, Input, Run};
use octoflow_model::{Fact, RunId, Time};
use octoflow_store::{Reader, RunRow};
use serde_json::Value;

use super::{EventLoop, Limits};
use crate::{
    Error,
    event_loop::{meters, record, usage},
    node,
    objects::{
        features,
        keyed::{self, KeyedObject},
        scheduling,
    },
    read::{self, Journal},
};

/// How far a start is. Shared by whoever starts and whoever is asked about it.
#[derive(Debug, Default)]
pub struct StartProgress {
    /// Runs are still to be restored.
    pending: AtomicBool,
    /// Nobody wants the start to come to its end any more.
    pub(crate) cancelled: AtomicBool,
    pub(crate) read: AtomicUsize,
    pub(crate) total: AtomicUsize,
}

impl StartProgress {
    pub(crate) fn pending() -> Self {
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

    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// An open run as its journal describes it.
pub(crate) struct Restored {
    pub run: Box<Run>,
    /// How many facts its journal has.
    pub facts: u64,
}

/// A journal that cannot be read: the facts before the damage, and what is wrong.
pub(crate) type Damaged = (Vec<Fact>, String);

/// Folds the journal of an unfinished run. The inner error says what is wrong with this journal; the outer one that nothing
/// can be read.
pub(crate) fn folded(reader: &Reader, row: &RunRow) -> Result<Result<Restored, Damaged>, Error> {
    let Journal { facts, damage } = read::journal(reader, row.run)?;
    if let Some(why) = damage {
        return Ok(Err((facts, why)));
    }
    let count = facts.len() as u64;
    let folded = record::fold(row.run, facts);
    Ok(folded.map(|run| Restored { run: Box::new(run), facts: count }).map_err(|why| (Vec::new(), why)))
}

/// An engine with everything that is kept and that it works with: nodes, queues and classes, plugins, ConfigMaps and
/// Secrets, metrics and usage; and what cannot be read of the latter.
pub(crate) fn engine(reader: &Reader, limits: &Limits, now: Time) -> Result<(Engine, Vec<String>), Error> {
    let (meters, mut unread) = meters::load(reader)?;
    let nodes = limits.nodes.iter().map(|node| node::stored(reader, node)).collect::<Result<_, _>>()?;
    let mut engine = limits.engine(nodes, meters);
    scheduling::each_stored(reader, |change| drop(engine.handle(change.into_input(), now)))?;
    let (plugins, left_out) = features::table(reader)?;
    engine.handle(Input::Plugins(Arc::new(plugins)), now);
    unread.extend(left_out);
    let (records, odd) = usage::load(reader)?;
    engine.handle(Input::Usage(records), now);
    unread.extend(odd);
    each_keyed(reader, |object| {
        let KeyedObject { kind, namespace, name, data } = object;
        engine.handle(Input::Object { kind, namespace, name, data: Some(data) }, now);
    })?;
    Ok((engine, unread))
}

impl EventLoop {
    pub(super) fn restore_run(&mut self, run: RunId, facts: Vec<Fact>, now: Time) -> Result<(), Error> {
        let count = facts.len() as u64;
        let folded = record::fold(run, facts).map_err(|why| Error::Journal { run, why })?;
        self.memory.take(run);
        let believed = if self.restore(folded, count) { self.continue_runs(vec![run], now) } else { Vec::new() };
        self.adopt(believed)
    }

    /// Takes a run back as its journal of so many facts describes it; whether there is something left to decide. One that
    /// is over needs nothing but its record: the process before this one did not come to pack it.
    pub(super) fn restore(&mut self, run: Run, facts: u64) -> bool {
        let open = !run.finished();
        if open {
            self.driver.restore(run, facts);
        } else if !self.archive.takes_care_of(run.id()) {
            self.pack(Box::new(run));
        }
        open
    }

    pub(super) fn restore_all(
        &mut self,
        mut runs: Vec<Restored>,
        unreadable: Vec<(RunId, Vec<Fact>)>,
        now: Time,
    ) -> Result<(), Error> {
        // An outage may have come between: what was read back after it is here already.
        let reader = self.storage.reader()?;
        let mut known = Ok(());
        runs.retain(|Restored { run, .. }| {
            let here = self.driver.engine.run(run.id()).is_some() || self.archive.takes_care_of(run.id());
            // Its record may have been written since it was read.
            let over = run.finished()
                && reader.run(run.id()).map(|row| row.is_none_or(|row| row.archived)).unwrap_or_else(|error| {
                    known = Err(error);
                    false
                });
            !here && !over
        });
        known?;
        drop(reader);
        let mut ids = Vec::with_capacity(runs.len());
        for Restored { run, facts } in runs {
            let id = run.id();
            self.memory.take(id);
            if self.restore(*run, facts) {
                ids.push(id);
            }
        }
        for (run, facts) in unreadable {
            // What it is known to hold stays taken; the rest of it is told to people.
            let _ = record::reserve_locks(&mut self.driver.engine, run, facts);
        }
        let believed = self.continue_runs(ids, now);
        self.progress.done();
        self.adopt(believed)
    }
}

/// What people are told about a run whose journal is damaged.
pub(crate) fn unreadable(row: &RunRow, why: &str) -> String {
    let RunRow { kind, namespace, name, run, .. } = row;
    format!(
        "{kind} `{name}` in namespace `{namespace}` (run {run}) cannot be read and is left as it is: {why} [OF1115]; locks \
         that it is known to hold stay taken; if it is damaged, restore the database from a backup, or delete the run"
    )
}

/// Keeps the locks of an open run that nobody has restored here. Of one that cannot be read, as far as it can be; says so.
pub(crate) fn reserve_locks(engine: &mut Engine, reader: &Reader, row: &RunRow) -> Result<Option<String>, Error> {
    let journal = read::journal(reader, row.run)?;
    let respected = record::reserve_locks(engine, row.run, journal.facts);
    Ok(journal.damage.or_else(|| respected.err()).map(|why| unreadable(row, &why)))
}

pub(crate) fn each_keyed(reader: &Reader, mut take: impl FnMut(KeyedObject)) -> Result<(), Error> {
    for kind in ["ConfigMap", "Secret", "PersistentVolumeClaim"] {
        for object in reader.objects(kind, None)? {
            let body: Value = serde_json::from_slice(&object.body)
                .map_err(|error| Error::Object { what: format!("{kind} `{}`", object.name), why: error.to_string() })?;
            take(keyed::parse(&body)?);
        }
    }
    Ok(())
}
