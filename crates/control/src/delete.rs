//! Deleting runs, with everything of theirs: rows, logs, artifacts, and the runs that belong to them.
//! Nothing that cannot be deleted keeps a run: files are warned of, artifacts wait in a queue of their own.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use octoflow_engine::Command;
use octoflow_model::RunId;
use octoflow_runtime::logs::Logs;
use octoflow_store::{Batch, Change, Filter, Page, Reader, RunRow, Store};

use crate::{
    Controller, Error,
    controller::{owned, world},
    event_loop::Message,
    read,
    sweep::{Doomed, doom_with_run},
};
use octoflow_model::garbage::GcStrategy;

/// How long a run may take to end before it is forgotten as it is.
const PATIENCE: Duration = Duration::from_secs(60);

/// More runs than one run could sensibly make; a list must end somewhere.
const MOST_CHILDREN: usize = 1_000_000;

/// What became of a deletion that succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// The names of the runs that are gone, owners first.
    pub names: Vec<String>,
    /// What of them is still there, in words.
    pub warnings: Vec<String>,
}

impl Controller {
    /// Ends the run if it is still going on, and forgets it and the runs that belong to it, with logs and artifacts.
    /// Blocks until what runs has ended.
    pub fn delete_run(&self, run: RunId) -> Result<Removed, Error> {
        let row = self.store().reader()?.run(run)?.ok_or(Error::UnknownRun(run))?;
        let family = family(&self.store().reader()?, row)?;
        let mut removed = Removed::default();
        for row in &family {
            if !row.archived {
                self.end(row)?;
            }
            let name = (row.namespace.clone(), row.kind.clone(), row.name.clone());
            self.handle().ask(|reply| Message::Forget { run: row.run, name, reply })?;
        }
        for row in &family {
            let row = &self.store().reader()?.run(row.run)?.unwrap_or_else(|| row.clone());
            // Whoever must agree removes its name from the run, and that deletes it.
            if crate::registry::steer::hold_back(self.handle(), row).unwrap_or(false) {
                continue;
            }
            let forgotten = forget(self.store(), self.data_dir(), row)?;
            removed.names.push(row.name.clone());
            removed.warnings.extend(forgotten.warnings);
            if let Some(doomed) = forgotten.doomed {
                let world = world(&self.store().reader()?)?;
                self.sweep(doomed.mission(&world));
            }
        }
        Ok(removed)
    }

    /// Waits until the run is over, but not for ever.
    fn end(&self, row: &RunRow) -> Result<(), Error> {
        if self.handle().size_at_work(row.run)?.is_none() {
            match self.handle().take_up(row.run) {
                Ok(_) => {}
                // Nobody can go on with it, so there is nothing to end.
                Err(Error::Journal { .. } | Error::UnknownRun(_)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        let facts = self.watch(row.run);
        match self.handle().command(row.run, Command::Terminate) {
            // It may be ending by itself.
            Ok(()) | Err(Error::Refused(_)) => {}
            Err(error) => return Err(error),
        }
        let until = Instant::now() + PATIENCE;
        while facts.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
        Ok(())
    }
}

/// The run and the runs that belong to it, which would have no owner afterwards; owners first.
pub fn family(reader: &Reader, row: RunRow) -> Result<Vec<RunRow>, Error> {
    let mut all = vec![row];
    let mut next = 0;
    while let Some(owner) = all.get(next).cloned() {
        next += 1;
        let filter = Filter { parent: Some(owner.run), ..Filter::default() };
        for child in reader.list(&filter, Page { limit: MOST_CHILDREN, after: None })?.0 {
            let known = all.iter().any(|row| row.run == child.run);
            // Whose it is cannot be told of one that cannot be read.
            if !known && read::object(reader, child.run).is_ok_and(|object| owned(&object, &owner.uid)) {
                all.push(child);
            }
        }
    }
    Ok(all)
}

/// What is left of a run that was forgotten.
#[derive(Debug, Default)]
pub struct Forgotten {
    pub warnings: Vec<String>,
    pub(crate) doomed: Option<Doomed>,
}

/// Forgets a run that nobody works on. Its artifacts are written down to be swept; see `sweep_deleted`.
pub fn forget(store: &Store, data_dir: &Path, row: &RunRow) -> Result<Forgotten, Error> {
    forget_if(store, data_dir, row, Batch::new())
}

/// The same, unless something in the batch is refused.
pub(crate) fn forget_if(store: &Store, data_dir: &Path, row: &RunRow, mut batch: Batch) -> Result<Forgotten, Error> {
    let mut left = Forgotten::default();
    let mut kept = |why: String| left.warnings.push(format!("the artifacts of `{}` are kept: {why}", row.name));
    // Nothing of it may be forgotten with the run; a record that cannot be read must not keep the run, though.
    let garbage = read::garbage(&store.reader()?, row.run).unwrap_or_else(|error| {
        kept(error.to_string());
        Vec::new()
    });
    if !garbage.is_empty() {
        left.doomed = Some(Doomed::new(row.run, &row.namespace, GcStrategy::OnWorkflowDeletion, garbage.clone()));
    }
    if let Err(error) = doom_with_run(data_dir, row.run, &row.namespace, garbage) {
        kept(error.to_string());
    }
    let numbers = read::numbers(&store.reader()?, row.run).unwrap_or_else(|_| vec![row.run]);
    batch.extend([
        Change::DeleteRun { run: row.run },
        Change::DeleteObject { kind: row.kind.clone(), namespace: row.namespace.clone(), name: row.name.clone() },
    ]);
    store.commit_wait(batch)?;
    // The run is gone whatever becomes of its files, so a leftover is worth a warning only.
    for error in numbers.into_iter().filter_map(|run| Logs::new(data_dir).delete(run).err()) {
        let why = std::error::Error::source(&error).map_or(String::new(), |source| format!(": {source}"));
        left.warnings.push(format!("{error}{why}"));
    }
    Ok(left)
}
