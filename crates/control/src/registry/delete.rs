//! Deletion of runs with everything they own: rows, logs, artifacts, and owned runs. Leftovers never keep a run: files
//! become warnings, artifacts wait in the sweeper's queue.

use std::{
    collections::BTreeMap,
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
    maintenance::sweep::{QueuedDeletion, queue_artifact_deletion},
    read,
};
use octoflow_model::garbage::GcStrategy;

/// Time limit for a run to end before it is deleted as it is.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of owned runs read; more than one run could sensibly create.
const MAX_CHILDREN: usize = 1_000_000;

/// Result of a successful deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Names of the deleted runs, owners first.
    pub names: Vec<String>,
    /// Descriptions of what is left of them.
    pub warnings: Vec<String>,
}

impl Controller {
    /// Ends the run if it is open, and deletes it and the runs it owns, with logs and artifacts. Blocks until running
    /// tasks have ended.
    pub fn delete_run(&self, run: RunId) -> Result<Removed, Error> {
        let row = self.store().reader()?.run(run)?.ok_or(Error::UnknownRun(run))?;
        let rows = with_owned_runs(&self.store().reader()?, row)?;
        let mut removed = Removed::default();
        let mut events = BTreeMap::new();
        for row in &rows {
            if !row.archived {
                self.end(row)?;
            }
            events.insert(row.run, self.handle().forget_run(row)?);
        }
        for row in &rows {
            let row = &self.store().reader()?.run(row.run)?.unwrap_or_else(|| row.clone());
            // Removing the last finalizer deletes the run.
            if crate::registry::steer::mark_if_held(self.handle(), row).unwrap_or(false) {
                continue;
            }
            let (batch, hooks) = events.remove(&row.run).unwrap_or_default();
            let removed_run = remove_run_if(self.store(), self.data_dir(), row, batch)?;
            self.handle().hooks.send_due(hooks);
            removed.names.push(row.name.clone());
            removed.warnings.extend(removed_run.warnings);
            if let Some(deletion) = removed_run.deletion {
                let world = world(&self.store().reader()?)?;
                self.sweep(deletion.locate(&world));
            }
        }
        Ok(removed)
    }

    /// Terminates an open run and waits until it ends, up to the time limit.
    fn end(&self, row: &RunRow) -> Result<(), Error> {
        if self.handle().size_at_work(row.run)?.is_none() {
            match self.handle().restore_run(row.run) {
                Ok(_) => {}
                // It cannot be resumed, so there is nothing to end.
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
        let until = Instant::now() + END_TIMEOUT;
        while facts.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
        Ok(())
    }
}

/// Returns the run and all runs it owns, directly or not; owners first.
pub fn with_owned_runs(reader: &Reader, row: RunRow) -> Result<Vec<RunRow>, Error> {
    let mut all = vec![row];
    let mut next = 0;
    while let Some(owner) = all.get(next).cloned() {
        next += 1;
        let filter = Filter { parent: Some(owner.run), ..Filter::default() };
        for child in reader.list(&filter, Page { limit: MAX_CHILDREN, after: None })?.0 {
            let known = all.iter().any(|row| row.run == child.run);
            // The owner of an unreadable run is unknown.
            if !known && read::object(reader, child.run).is_ok_and(|object| owned(&object, &owner.uid)) {
                all.push(child);
            }
        }
    }
    Ok(all)
}

/// What is left of a deleted run.
#[derive(Debug, Default)]
pub struct RunLeftovers {
    pub warnings: Vec<String>,
    pub(crate) deletion: Option<QueuedDeletion>,
}

/// Deletes a run that is not being run. Its artifacts are queued for the sweeper; see `sweep_deleted`.
pub fn remove_run(store: &Store, data_dir: &Path, row: &RunRow) -> Result<RunLeftovers, Error> {
    remove_run_if(store, data_dir, row, Batch::new())
}

/// Like [`remove_run`], unless a precondition in the batch fails.
pub(crate) fn remove_run_if(
    store: &Store,
    data_dir: &Path,
    row: &RunRow,
    mut batch: Batch,
) -> Result<RunLeftovers, Error> {
    let mut left = RunLeftovers::default();
    let mut kept = |why: String| left.warnings.push(format!("the artifacts of `{}` are kept: {why}", row.name));
    // Artifacts must not be lost track of with the run; an unreadable record must not keep the run, though.
    let garbage = read::garbage(&store.reader()?, row.run).unwrap_or_else(|error| {
        kept(error.to_string());
        Vec::new()
    });
    if !garbage.is_empty() {
        left.deletion =
            Some(QueuedDeletion::new(row.run, &row.namespace, GcStrategy::OnWorkflowDeletion, garbage.clone()));
    }
    if let Err(error) = queue_artifact_deletion(data_dir, row.run, &row.namespace, garbage) {
        kept(error.to_string());
    }
    let numbers = read::numbers(&store.reader()?, row.run).unwrap_or_else(|_| vec![row.run]);
    batch.extend([
        Change::DeleteRun { run: row.run },
        Change::DeleteObject { kind: row.kind.clone(), namespace: row.namespace.clone(), name: row.name.clone() },
    ]);
    store.commit_wait(batch)?;
    // The run is deleted whatever happens to its files, so a leftover is only a warning.
    for error in numbers.into_iter().filter_map(|run| Logs::new(data_dir).delete(run).err()) {
        let why = std::error::Error::source(&error).map_or(String::new(), |source| format!(": {source}"));
        left.warnings.push(format!("{error}{why}"));
    }
    Ok(left)
}
