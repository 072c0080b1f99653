//! Runs of a schedule: which are open, how finished ones are counted, and which are kept.

use octoflow_engine::cron::{LABEL, Timetable};
use octoflow_model::RunId;
use octoflow_store::{Filter, LabelTest, Page};

use super::{CronScheduler, Entry, Status};
use crate::registry::Fault;

/// Number of past times to search for runs that a crash kept out of the status.
const UNRECORDED: usize = 1000;

/// Maximum number of runs read per schedule; more than anybody keeps.
const MAX_RUNS: usize = 10_000;

impl CronScheduler {
    /// Updates the status from the runs. Each is counted once: when it ends it leaves the active ones.
    pub(super) fn count_children(&self, entry: &mut Entry, status: &mut Status) -> Result<(), Fault> {
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
                    status.add_active(&row);
                }
                status.last = status.last.max(Some(tick.nominal));
            }
            let mut open = Vec::new();
            let mut active = Vec::new();
            for known in std::mem::take(&mut status.active) {
                let found = reader.run_by_name(
                    &entry.namespace,
                    Some("Workflow"),
                    known["name"].as_str().unwrap_or_default(),
                )?;
                let Some(row) = found.filter(|row| known["uid"] == row.uid.as_str()) else { continue };
                match row.phase.as_str() {
                    "Succeeded" if row.archived => status.succeeded += 1,
                    _ if row.archived => status.failed += 1,
                    _ => {
                        open.push(row.run);
                        active.push(known);
                    }
                }
            }
            (status.active, entry.active) = (active, open);
            Ok(())
        })
    }

    /// Deletes the oldest finished runs beyond the history limits.
    pub(super) fn prune(&self, entry: &Entry, timetable: &Timetable) -> Result<(), Fault> {
        let rows = self.registry.read(|reader| {
            let label = LabelTest::Equals { key: LABEL.to_owned(), value: entry.name.clone() };
            let filter = Filter { namespace: Some(entry.namespace.clone()), labels: vec![label], ..Filter::default() };
            Ok(reader.list(&filter, Page { limit: MAX_RUNS, after: None })?.0)
        })?;
        let mut surplus: Vec<RunId> = Vec::new();
        for (limit, good) in [(timetable.keep_succeeded, true), (timetable.keep_failed, false)] {
            let finished = rows.iter().filter(|row| row.archived && (row.phase == "Succeeded") == good);
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
