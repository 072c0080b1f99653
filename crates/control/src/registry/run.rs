//! Runs as objects: looked up by name, rendered whether open or finished, and sent commands.

use octoflow_engine::Command;
use octoflow_model::{Revision, RunId};
use octoflow_store::{Filter, Page, RunRow};
use serde_json::{Value, json};

use super::{Fault, Kind, Registry, kinds, size::NodeDetail};
use crate::Error;

/// Number of tries to read a run that changes while it is rendered.
const MAX_READS: usize = 16;

/// Alias for the newest run of a namespace.
const LATEST: &str = "@latest";

/// Run that was found by name.
#[derive(Clone, Debug)]
pub struct FoundRun {
    pub run: RunId,
    pub row: RunRow,
}

impl Registry {
    /// Finds a run of this kind by name, or the newest one by `@latest`.
    pub fn find_run(&self, kind: &'static Kind, namespace: &str, name: &str) -> Result<FoundRun, Fault> {
        let row = match name {
            LATEST => self.newest(kind, namespace)?,
            name => self.row(kind, namespace, name)?,
        };
        let row = row.ok_or_else(|| Fault::NotFound { kind, name: name.to_owned() })?;
        Ok(FoundRun { run: row.run, row })
    }

    fn newest(&self, kind: &Kind, namespace: &str) -> Result<Option<RunRow>, Fault> {
        let (kind, namespace) = (Some(kind.key.to_owned()), Some(namespace.to_owned()));
        let filter = Filter { kind, namespace, ..Filter::default() };
        let (rows, _) = self.read(|reader| Ok(reader.list(&filter, Page { limit: 1, after: None })?))?;
        Ok(rows.into_iter().next())
    }

    /// Finds a run of this kind by uid.
    pub fn find_run_by_uid(&self, kind: &'static Kind, uid: &str) -> Result<FoundRun, Fault> {
        let row = self.read(|reader| Ok(reader.run_by_uid(uid)?))?.filter(|row| row.kind == kind.key);
        let row = row.ok_or_else(|| Fault::NotFound { kind, name: uid.to_owned() })?;
        Ok(FoundRun { run: row.run, row })
    }

    /// Returns a run by its id.
    pub fn run_by_number(&self, run: RunId) -> Result<Value, Fault> {
        let row = self.read(|reader| Ok(reader.run(run)?))?;
        let row = row.ok_or_else(|| Fault::NotFound { kind: &kinds::UNKNOWN, name: run.to_string() })?;
        self.run_object(&row)
    }

    pub(super) fn row(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<RunRow>, Fault> {
        self.read(|reader| Ok(reader.run_by_name(namespace, Some(kind.key), name)?))
    }

    /// Returns the run as clients see it. Its revision is a lower bound.
    pub fn run_object(&self, row: &RunRow) -> Result<Value, Fault> {
        self.run_as(row, NodeDetail::Whole)
    }

    pub(super) fn run_as(&self, row: &RunRow, detail: NodeDetail<'_>) -> Result<Value, Fault> {
        let revision = self.run_revision(row)?;
        let mut object = match self.render(row, detail) {
            Err(Fault::Controller(Error::UnknownRun(_))) => {
                return match self.successor(row)? {
                    Some(next) => self.run_as(&next, detail),
                    None => Err(Fault::NotFound { kind: of_row(row), name: row.name.clone() }),
                };
            }
            // An unreadable run is shown as such, so that it does not break lists.
            Err(Fault::Controller(Error::Journal { why, .. })) => {
                crate::read::unreadable(&of_row(row).api_version(), row, &why)
            }
            object => object?,
        };
        object["metadata"]["resourceVersion"] = json!(revision.to_string());
        Ok(object)
    }

    /// Returns the run with its exact revision, for callers that compare it. A run that keeps changing is a conflict.
    /// Of a run that is too large to render, nodes are left out as in lists.
    pub(super) fn exact_run_object(&self, row: &RunRow, detail: NodeDetail<'_>) -> Result<Value, Fault> {
        for _ in 0..MAX_READS {
            let object = self.run_as(row, detail)?;
            // No commit happened between the two reads of the revision, so the object is of that revision.
            if object["metadata"]["resourceVersion"] == self.run_revision(row)?.to_string() {
                return Ok(object);
            }
        }
        Err(Fault::stale(of_row(row), &row.name))
    }

    /// Returns the run that replaced a deleted one: a retry is another run with the same uid.
    pub(super) fn successor(&self, row: &RunRow) -> Result<Option<RunRow>, Fault> {
        let found = self.read(|reader| Ok(reader.run_by_uid(&row.uid)?))?;
        Ok(found.filter(|next| next.run != row.run))
    }

    pub(super) fn run_revision(&self, row: &RunRow) -> Result<Revision, Fault> {
        self.read(|reader| Ok(reader.run_revision(row.run)?.unwrap_or(row.revision)))
    }

    /// Sends a command to a run.
    pub fn command(&self, run: RunId, command: Command) -> Result<(), Fault> {
        Ok(self.handle().command(run, command)?)
    }
}

/// Returns the kind of a run. A row of an unknown kind was written by a newer version.
pub(crate) fn of_row(row: &RunRow) -> &'static Kind {
    kinds::of_key(&row.kind).unwrap_or(&kinds::UNKNOWN)
}
