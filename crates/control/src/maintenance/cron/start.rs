//! Starts the run of one scheduled time, or skips the time. Either is recorded in the same commit.

use octoflow_engine::{Command, admit::admit, cron::CronStatus};
use octoflow_model::{RunId, Time};
use octoflow_store::{Batch, Change, Tick};

use super::{CronScheduler, Entry};
use crate::{Error, controller::Submit, new_uid, registry::Fault};

impl CronScheduler {
    pub(super) fn start(
        &self,
        entry: &mut Entry,
        status: &mut CronStatus,
        nominal: Time,
        replaces: &[RunId],
        now: Time,
    ) -> Result<(), Fault> {
        for run in replaces {
            match self.registry.command(*run, Command::Terminate) {
                // It may be ending at this moment.
                Ok(()) | Err(Fault::Controller(Error::Refused(_))) => {}
                Err(fault) => return Err(fault),
            }
        }
        let manifest = (entry.row.child)(&entry.object, &entry.uid, nominal);
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let catalog = self.registry.controller().catalog()?;
        let admitted = match admit(&manifest, &catalog) {
            Ok(admitted) => admitted,
            Err(problems) => {
                let why = problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("; ");
                return self.refused(entry, status, nominal, now, why);
            }
        };
        let submit = Submit {
            namespace: entry.namespace.clone(),
            name: name.clone(),
            manifest: admitted.manifest,
            stored: admitted.stored,
            claim: None,
        };
        let tick = Tick { uid: entry.uid.clone(), nominal, at: now, run: None, outcome: "started".to_owned() };
        let beside = |run| vec![Change::Tick(Box::new(Tick { run: Some(run), ..tick }))];
        match self.registry.handle().enter_with(submit, new_uid()?, None, None, beside) {
            Ok(run) => {
                status.last = Some(nominal);
                status.submission_error = None;
                entry.active.push(run);
                // A run that has ended and was deleted already has no status entry.
                if let Some(row) = self.registry.read(|reader| Ok(reader.run(run)?))? {
                    status.add_active(entry.row.runs, &row.namespace, &row.name, &row.uid);
                    entry.dirty |= row.archived;
                }
                Ok(())
            }
            Err(Error::Store(octoflow_store::Error::TickTaken { .. })) => Ok(()),
            Err(Error::NameTaken { .. }) => self.refused(
                entry,
                status,
                nominal,
                now,
                format!("there is a {} '{name}' already", entry.row.runs.noun),
            ),
            Err(Error::Refused(refusal)) => self.refused(entry, status, nominal, now, refusal.to_string()),
            Err(error) => Err(error.into()),
        }
    }

    /// Counts a run that could not be created as failed.
    fn refused(
        &self,
        entry: &Entry,
        status: &mut CronStatus,
        nominal: Time,
        now: Time,
        why: String,
    ) -> Result<(), Fault> {
        self.skip(entry, nominal, now, &format!("not started: {why}"))?;
        status.failed += 1;
        status.last = Some(nominal);
        status.submission_error = Some(why);
        Ok(())
    }

    /// Records that the time is skipped.
    pub(super) fn skip(&self, entry: &Entry, nominal: Time, now: Time, why: &str) -> Result<(), Fault> {
        let tick = Tick { uid: entry.uid.clone(), nominal, at: now, run: None, outcome: why.to_owned() };
        match self.registry.controller().store().commit_wait(Batch::from(Change::Tick(Box::new(tick)))) {
            Ok(_) | Err(octoflow_store::Error::TickTaken { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the status into the object.
    pub(super) fn write(&self, entry: &mut Entry, status: &CronStatus) -> Result<(), Fault> {
        let after = self.registry.note_status(entry.kind, &entry.namespace, &entry.name, &entry.uid, |object| {
            (entry.row.write)(status, object);
        })?;
        if let Some(after) = after {
            entry.object["status"] = after["status"].clone();
            entry.object["metadata"]["labels"] = after["metadata"]["labels"].clone();
        }
        Ok(())
    }
}
