//! Runs as objects: found by name, read wherever they stand, submitted, and steered by changes of their object.

use octoflow_engine::{Command, admit::admit, argo::admit::LONGEST_WORKFLOW_NAME, taskset::admit::LONGEST_NAME};
use octoflow_model::{Revision, RunId, taskset};
use octoflow_store::{Filter, Page, RunRow};
use serde_json::{Value, json};

use super::{Cause, Fault, Kind, Registry, WriteOptions, find, meta};
use crate::{
    Claim, Error,
    house::{Entered, Submit},
    name_suffix, new_uid,
    objects::Around,
};

/// How often a drawn name that is taken is drawn again.
const DRAWS: usize = 8;

/// How often a run that changes while it is looked at is looked at again.
const LOOKS: usize = 16;

/// Means the newest run of a namespace.
const LATEST: &str = "@latest";

/// A run found by its name.
#[derive(Clone, Debug)]
pub struct Named {
    pub run: RunId,
    pub row: RunRow,
}

impl Registry {
    /// A run of this kind by its name, or the newest one by `@latest`.
    pub fn find_run(&self, kind: &'static Kind, namespace: &str, name: &str) -> Result<Named, Fault> {
        let row = match name {
            LATEST => self.newest(kind, namespace)?,
            name => self.row(kind, namespace, name)?,
        };
        let row = row.ok_or_else(|| Fault::NotFound { kind, name: name.to_owned() })?;
        Ok(Named { run: row.run, row })
    }

    fn newest(&self, kind: &Kind, namespace: &str) -> Result<Option<RunRow>, Fault> {
        let (kind, namespace) = (Some(kind.name.to_owned()), Some(namespace.to_owned()));
        let filter = Filter { kind, namespace, ..Filter::default() };
        let (rows, _) = self.read(|reader| Ok(reader.list(&filter, Page { limit: 1, after: None })?))?;
        Ok(rows.into_iter().next())
    }

    /// A run of this kind by its uid.
    pub fn find_run_by_uid(&self, kind: &'static Kind, uid: &str) -> Result<Named, Fault> {
        let row = self.read(|reader| Ok(reader.run_by_uid(uid)?))?.filter(|row| row.kind == kind.name);
        let row = row.ok_or_else(|| Fault::NotFound { kind, name: uid.to_owned() })?;
        Ok(Named { run: row.run, row })
    }

    /// A run by the number it was given here.
    pub fn run_by_number(&self, run: RunId) -> Result<Value, Fault> {
        let row = self.read(|reader| Ok(reader.run(run)?))?;
        let row = row.ok_or_else(|| Fault::NotFound { kind: workflow(), name: run.to_string() })?;
        self.run_object(&row)
    }

    pub(super) fn row(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<RunRow>, Fault> {
        self.read(|reader| Ok(reader.run_by_name(namespace, Some(kind.name), name)?))
    }

    /// The run as people see it, with the revision it is at least of.
    pub fn run_object(&self, row: &RunRow) -> Result<Value, Fault> {
        let revision = self.run_revision(row)?;
        let object = if row.archived {
            // What is over does not change, so nobody who works need be asked.
            self.read(|reader| Ok(crate::read::object(reader, row.run)))?
        } else {
            self.desk().object(row.run)
        };
        let mut object = match object {
            Err(Error::UnknownRun(_)) => {
                return match self.successor(row)? {
                    Some(next) => self.run_object(&next),
                    None => Err(Fault::NotFound { kind: of_row(row), name: row.name.clone() }),
                };
            }
            object => object?,
        };
        object["metadata"]["resourceVersion"] = json!(revision.to_string());
        Ok(object)
    }

    /// The run with exactly the revision it is of, for whoever compares it. One that changes all the time is a conflict.
    pub(super) fn exact_run_object(&self, row: &RunRow) -> Result<Value, Fault> {
        for _ in 0..LOOKS {
            let object = self.run_object(row)?;
            // Nothing was committed between the two looks at the revision, so the object is what that commit left.
            if object["metadata"]["resourceVersion"] == self.run_revision(row)?.to_string() {
                return Ok(object);
            }
        }
        Err(Fault::stale(of_row(row), &row.name))
    }

    /// Who took the place of a run that is gone: a retry is another run under the same uid.
    pub(super) fn successor(&self, row: &RunRow) -> Result<Option<RunRow>, Fault> {
        let found = self.read(|reader| Ok(reader.run_by_uid(&row.uid)?))?;
        Ok(found.filter(|next| next.run != row.run))
    }

    pub(super) fn run_revision(&self, row: &RunRow) -> Result<Revision, Fault> {
        self.read(|reader| Ok(reader.run_revision(row.run)?.unwrap_or(row.revision)))
    }

    /// Admits and submits a run. When this returns it is on disk and will not be lost.
    pub(super) fn submit(
        &self,
        kind: &'static Kind,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Value, Fault> {
        let _guest = self.desk().threshold.enter();
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (given, prefix) = (text("name"), text("generateName"));
        if let Some(fields) = object.as_object_mut() {
            // What became of some other run is nothing this one begins with.
            fields.remove("status");
        }
        object["metadata"]["namespace"] = json!(namespace);
        if given.is_empty() && prefix.is_empty() {
            let cause = Cause::required("metadata.name", "name or generateName is required");
            return Err(Fault::Invalid { kind, name: String::new(), causes: vec![cause] });
        }
        let claim = options.claim.as_ref().filter(|_| !options.dry_run);
        for _ in 0..DRAWS {
            // Asked first: what was made before has the name that was asked for.
            if let Some(claim) = claim
                && let Some(run) = self.read(|reader| Ok(claim.made(reader)?))?
            {
                return self.made(kind, run, &claim.key);
            }
            let name = match given.as_str() {
                "" => drawn(kind, &prefix)?,
                name => name.to_owned(),
            };
            object["metadata"]["name"] = json!(name);
            let wrong = meta::wrong(kind, &object);
            if !wrong.is_empty() {
                return Err(Fault::Invalid { kind, name, causes: wrong });
            }
            let around = Around(self.desk().store.reader()?);
            let admitted = admit(&object, &around).map_err(|problems| Fault::problems(kind, &name, &problems))?;
            if options.dry_run {
                if self.row(kind, namespace, &name)?.is_none() {
                    return Ok(admitted.manifest);
                }
                if given.is_empty() {
                    continue;
                }
                return Err(Fault::Exists { kind, name });
            }
            let (manifest, stored) = (admitted.manifest, admitted.stored);
            let submit =
                Submit { namespace: namespace.to_owned(), name: name.clone(), manifest, stored, claim: claim.cloned() };
            match self.desk().enter_shown(submit, new_uid()?) {
                Ok(Entered { shown: Some((revision, mut object)), .. }) => {
                    object["metadata"]["resourceVersion"] = json!(revision.to_string());
                    return Ok(object);
                }
                Ok(Entered { run, shown: None }) => {
                    let row = self.read(|reader| Ok(reader.run(run)?))?;
                    // It may have ended and been cleaned away in this very moment.
                    let row = row.ok_or(Fault::NotFound { kind, name })?;
                    return self.run_object(&row);
                }
                Err(Error::NameTaken { .. }) => {
                    if !given.is_empty() && !self.just_made(claim)? {
                        return Err(Fault::Exists { kind, name });
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Fault::Conflict { kind, name: prefix, why: "every name that was drawn is taken".to_owned() })
    }

    /// The one who asked at the same time with the same key was faster.
    fn just_made(&self, claim: Option<&Claim>) -> Result<bool, Fault> {
        claim.map_or(Ok(false), |claim| self.read(|reader| Ok(claim.made(reader)?.is_some())))
    }

    fn made(&self, kind: &'static Kind, run: RunId, key: &str) -> Result<Value, Fault> {
        let row = self.read(|reader| Ok(reader.run(run)?))?.ok_or_else(|| Fault::Conflict {
            kind,
            name: key.to_owned(),
            why: format!("the {} that was made for this idempotency key has been deleted", kind.word()),
        })?;
        self.run_object(&row)
    }

    /// Tells a run to do something.
    pub fn command(&self, run: RunId, command: Command) -> Result<(), Fault> {
        Ok(self.desk().command(run, command)?)
    }
}

/// The prefix with a few letters of chance, not longer than a name may be.
fn drawn(kind: &Kind, prefix: &str) -> Result<String, Error> {
    let suffix = name_suffix()?;
    let longest = if kind.name == taskset::KIND { LONGEST_NAME } else { LONGEST_WORKFLOW_NAME };
    let kept: String = prefix.chars().take(longest - suffix.len()).collect();
    Ok(format!("{kept}{suffix}"))
}

pub(crate) fn workflow() -> &'static Kind {
    find("Workflow").expect("the table has workflows")
}

/// The kind of a run. A row of a kind that is not in the table is of an older or newer house than this one.
pub(crate) fn of_row(row: &RunRow) -> &'static Kind {
    find(&row.kind).unwrap_or_else(workflow)
}
