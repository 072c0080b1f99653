//! Changes of a run's object: metadata, suspension and shutdown, and what its dialect allows beside. Nothing else of a run
//! can change; the error names each field that cannot.

use octoflow_engine::{Command, Refusal};
use octoflow_model::{
    MutableMetadata, Time,
    mark::{COMPLETED_LABEL, PHASE_LABEL},
    plugin::term,
};
use octoflow_store::{Archive, Batch, Change, RunRow, RunUpdate};
use serde_json::{Value, json};

use super::{Cause, Fault, Kind, meta};
use crate::{Error, clock, controller::Handle};

/// Update of a run as metadata and commands.
pub(crate) struct ObjectUpdate {
    marks: Option<(Box<MutableMetadata>, Box<MutableMetadata>)>,
    commands: Vec<Command>,
}

impl ObjectUpdate {
    /// Computes the difference between two versions of a run's object, or returns every change that is not allowed.
    pub(crate) fn between(kind: &'static Kind, before: &Value, after: &Value) -> Result<Self, Fault> {
        let mut causes = Vec::new();
        let (was, is) = (&before["spec"], &after["spec"]);
        let changed = changed_fields(was, is);
        let mut commands = Vec::new();
        match kind.dialect().and_then(|dialect| dialect.forbidden_changes) {
            _ if changed.is_empty() => {}
            Some(forbidden) => {
                causes.extend(forbidden(was, is).into_iter().map(|(path, why)| Cause::invalid(path, why)));
                commands.push(Command::Amend { spec: Box::new(is.clone()) });
            }
            None => causes.extend(changed.into_iter().map(|field| {
                let only = "only spec.suspend and spec.shutdown can be changed; submit another one";
                Cause::invalid(format!("spec.{field}"), format!("of a {} {only}", kind.noun))
            })),
        }
        if after.get("status").is_some_and(|status| !status.is_null() && *status != before["status"]) {
            let why = format!("the engine alone says what became of a {}", kind.noun);
            causes.push(Cause::invalid("status", why));
        }
        let held = |spec: &Value| spec["suspend"] == Value::Bool(true);
        match (held(was), held(is)) {
            (false, true) => commands.push(Command::Suspend),
            (true, false) => commands.push(Command::Resume { selector: None, supplied: Default::default() }),
            (true, true) | (false, false) => {}
        }
        match (was["shutdown"].as_str().unwrap_or_default(), is["shutdown"].as_str().unwrap_or_default()) {
            (one, other) if one == other => {}
            ("", "Stop") => commands.push(Command::Stop),
            ("" | "Stop", "Terminate") => commands.push(Command::Terminate),
            (_, "Stop" | "Terminate" | "") => {
                let why = format!("a {} that is being ended cannot be called back", kind.noun);
                causes.push(Cause::invalid("spec.shutdown", why));
            }
            (_, other) => {
                let why = format!("must be Stop or Terminate, not '{other}'");
                causes.push(Cause::invalid("spec.shutdown", why));
            }
        }
        if !causes.is_empty() {
            let name = before["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            return Err(Fault::Invalid { kind, name, causes });
        }
        let (read, write) = (MutableMetadata::of(&before["metadata"]), MutableMetadata::of(&after["metadata"]));
        let marks = (read != write).then(|| (Box::new(read), Box::new(write)));
        Ok(Self { marks, commands })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.marks.is_none() && self.commands.is_empty()
    }

    /// Applies the update. A conflict means that a concurrent change came first and a retry may help.
    pub(crate) fn apply(self, handle: &Handle, kind: &'static Kind, row: &RunRow) -> Result<(), Fault> {
        if let Some((read, write)) = self.marks {
            mark(handle, kind, row, read, write)?;
        }
        for command in self.commands {
            handle.command(row.run, command)?;
        }
        Ok(())
    }
}

/// Returns the fields of a specification that differ, except suspension and shutdown, which are commands.
fn changed_fields(was: &Value, is: &Value) -> Vec<String> {
    let fields = |spec: &Value| spec.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>());
    let mut names: Vec<String> = fields(was).into_iter().chain(fields(is)).flatten().collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|field| !matches!(field.as_str(), "suspend" | "shutdown") && was.get(field) != is.get(field));
    names
}

/// Marks a finished run as terminating if finalizers hold it. Returns whether they do.
pub(crate) fn mark_if_held(handle: &Handle, row: &RunRow) -> Result<bool, Error> {
    let object = handle.object(row.run)?;
    let read = MutableMetadata::of(&object["metadata"]);
    if !row.archived || !meta::is_held(&read.ownership) {
        return Ok(false);
    }
    if read.ownership.deleted.is_none() {
        let mut write = read.clone();
        write.ownership.deleted = Some(Time::from_secs(clock::now().seconds()));
        rewrite(handle, row, &read, &write)?;
    }
    Ok(true)
}

/// Writes metadata of a run, open or finished. A conflict means that a concurrent change came first.
pub(super) fn mark(
    handle: &Handle,
    kind: &'static Kind,
    row: &RunRow,
    read: Box<MutableMetadata>,
    write: Box<MutableMetadata>,
) -> Result<(), Fault> {
    let done = if row.archived {
        rewrite(handle, row, &read, &write)
    } else {
        handle.command(row.run, Command::Mark { read, write })
    };
    done.map_err(|error| {
        let stale = matches!(
            error,
            Error::Store(octoflow_store::Error::Stale { .. } | octoflow_store::Error::RecordDropped { .. })
                | Error::Refused(Refusal::Stale | Refusal::UnknownRun(_) | Refusal::Finished { .. })
        );
        if stale { Fault::stale(kind, &row.name) } else { error.into() }
    })
}

/// Writes metadata of a finished run: its record and its row change together, unless a concurrent change came first.
fn rewrite(handle: &Handle, row: &RunRow, read: &MutableMetadata, write: &MutableMetadata) -> Result<(), Error> {
    let run = row.run;
    let bytes = handle.store.reader()?.archive(run)?.ok_or(Error::UnknownRun(run))?;
    let mut record: Value =
        serde_json::from_slice(&bytes).map_err(|error| Error::Journal { run, why: error.to_string() })?;
    drop(bytes);
    let metadata = &mut record["object"]["metadata"];
    let stale = || {
        Error::Store(octoflow_store::Error::Stale {
            kind: row.kind.clone(),
            namespace: row.namespace.clone(),
            name: row.name.clone(),
        })
    };
    if MutableMetadata::of(metadata) != *read {
        return Err(stale());
    }
    let mut labels = write.labels.clone();
    for label in [PHASE_LABEL, COMPLETED_LABEL] {
        if let Some(value) = metadata["labels"][label].as_str() {
            labels.insert(label.to_owned(), value.to_owned());
        }
    }
    metadata["labels"] = json!(labels);
    let terms = row.labels.iter().filter(|(name, _)| term::is_term(name));
    let listed = labels.iter().chain(terms).map(|(name, value)| (name.clone(), value.clone())).collect();
    metadata["annotations"] = json!(write.annotations);
    let Some(fields) = metadata.as_object_mut() else { return Err(stale()) };
    for (field, empty) in [("annotations", write.annotations.is_empty()), ("labels", labels.is_empty())] {
        if empty {
            fields.remove(field);
        }
    }
    write.ownership.write(fields);
    let text = serde_json::to_vec(&record).expect("a value is always writable");
    let archive = handle.store.stage(run, Archive::pack(&text))?;
    let batch = Batch::from_iter([
        Change::ExpectRun { run, revision: row.revision },
        Change::Rewrite { run, archive },
        Change::UpdateRun { run, row: RunUpdate { labels: Some(listed), ..RunUpdate::default() } },
        Change::SetOwners {
            kind: row.kind.clone(),
            namespace: row.namespace.clone(),
            name: row.name.clone(),
            owners: write.ownership.owner_uids(),
            deleting: write.ownership.deleted.is_some(),
        },
    ]);
    handle.store.commit_wait(batch)?;
    Ok(())
}
