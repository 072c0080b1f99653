//! Runs of a schedule: which are open, how finished ones are counted, and which are kept.

use octoflow_engine::{
    cron::{CronStatus, Timetable},
    dialect::PhaseClass,
};
use octoflow_model::RunId;
use octoflow_store::{Filter, LabelTest, Page, RunRow};

use super::{CronScheduler, Entry};
use crate::registry::Fault;

/// Number of past times to search for runs that a crash kept out of the status.
const UNRECORDED: usize = 1000;

/// Maximum number of runs read per schedule; more than anybody keeps.
const MAX_RUNS: usize = 10_000;

impl CronScheduler {
    /// Updates the status from the runs. Each is counted once: when it ends it leaves the active ones.
    pub(super) fn count_children(&self, entry: &mut Entry, status: &mut CronStatus) -> Result<(), Fault> {
        self.registry.read(|reader| {
            // A crash may have come between starting a run and recording it.
            let noted = status.last;
            let restarted = entry.checked.is_none();
            for tick in reader.ticks(&entry.uid, UNRECORDED)? {
                if Some(tick.nominal) == noted || noted.is_some() && !restarted {
                    break;
                }
                let Some(run) = tick.run else { continue };
                let Some(row) = reader.run(run)? else { continue };
                if !status.active.iter().any(|known| known["uid"] == row.uid.as_str()) {
                    status.add_active(entry.row.runs, &row.namespace, &row.name, &row.uid);
                }
                status.last = status.last.max(Some(tick.nominal));
            }
            let mut open = Vec::new();
            let mut active = Vec::new();
            for known in std::mem::take(&mut status.active) {
                let found = reader.run_by_name(
                    &entry.namespace,
                    Some(entry.row.runs.key),
                    known["name"].as_str().unwrap_or_default(),
                )?;
                let Some(row) = found.filter(|row| known["uid"] == row.uid.as_str()) else { continue };
                if !row.archived {
                    open.push(row.run);
                    active.push(known);
                } else if succeeded(entry, &row) {
                    status.succeeded += 1;
                    status.last_success = status.last_success.max(row.finished);
                } else {
                    status.failed += 1;
                }
            }
            (status.active, entry.active) = (active, open);
            Ok(())
        })
    }

    /// Returns the runs of a schedule, newest first.
    fn all_runs(&self, entry: &Entry) -> Result<Vec<RunRow>, Fault> {
        self.registry.read(|reader| {
            if let Some(label) = entry.row.label {
                let label = LabelTest::Equals { key: label.to_owned(), value: entry.name.clone() };
                let namespace = Some(entry.namespace.clone());
                let filter = Filter { namespace, labels: vec![label], ..Filter::default() };
                return Ok(reader.list(&filter, Page { limit: MAX_RUNS, after: None })?.0);
            }
            let mut rows = Vec::new();
            for name in reader.owned_by(&entry.uid)?.into_iter().filter(|name| name.kind == entry.row.runs.key) {
                rows.extend(reader.run_by_name(&name.namespace, Some(&name.kind), &name.name)?);
            }
            rows.sort_by_key(|row| std::cmp::Reverse(row.run));
            Ok(rows)
        })
    }

    /// Deletes the oldest finished runs beyond the history limits.
    pub(super) fn prune(&self, entry: &Entry, timetable: &Timetable) -> Result<(), Fault> {
        let rows = self.all_runs(entry)?;
        let mut surplus: Vec<RunId> = Vec::new();
        for (limit, good) in [(timetable.keep_succeeded, true), (timetable.keep_failed, false)] {
            let finished = rows.iter().filter(|row| row.archived && succeeded(entry, row) == good);
            surplus.extend(finished.skip(limit).map(|row| row.run));
        }
        for run in surplus {
            match self.registry.controller().delete_run(run) {
                Ok(_) | Err(crate::Error::UnknownRun(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Reports whether a finished run succeeded, by the meaning of its phase.
fn succeeded(entry: &Entry, row: &RunRow) -> bool {
    let dialect = entry.row.runs.dialect();
    dialect.and_then(|dialect| dialect.phase_class(&row.phase)) == Some(PhaseClass::Succeeded)
}
