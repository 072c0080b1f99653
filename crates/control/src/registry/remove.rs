//! Deletion of objects. An object that nothing holds back is deleted at once; everything else is marked as terminating
//! and left to the collector, which finds the mark again after a restart.

use octoflow_engine::{Command, Refusal, schedule::TaskRef, view::LogFilter};
use octoflow_model::{MutableMetadata, Time, mark::Ownership, run::stop::StopReason};
use octoflow_store::{Batch, Change, RunRow};
use serde_json::{Value, json};

use super::{
    DeleteOptions, Deleted, Fault, Kind, ListOptions, Propagation, Registry, Storage, kinds, meta, run::of_row,
    size::NodeDetail, steer, stored::StoredObject,
};
use crate::{
    Error, clock,
    objects::{Key, scheduling::SchedulingChange},
    read,
    registry::delete,
};

/// Finalizer: dependents are deleted first.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer: dependents are kept, without the owner reference.
pub(super) const ORPHAN: &str = "orphan";

/// Number of tries when concurrent changes interfere.
const TRIES: usize = 8;

/// Page size when a whole selection is deleted.
const PAGE: usize = 200;

impl Registry {
    pub fn delete(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Fault> {
        if kind.name == "Pod" {
            return self.end_pod(kind, namespace, name, StopReason::Deleted, options);
        }
        if kind.is_view() {
            return Err(Fault::ReadOnly { kind });
        }
        if kind.name == "Namespace" {
            return self.delete_namespace(kind, name, options);
        }
        let _turn = self.undeclare(kind, name)?;
        for _ in 1..TRIES {
            match self.delete_once(kind, namespace, name, options)? {
                Err(Fault::Conflict { .. }) => {}
                done => return done,
            }
        }
        self.delete_once(kind, namespace, name, options)?
    }

    /// Deletes every selected object and returns what was deleted.
    pub fn delete_many(
        &self,
        kind: &'static Kind,
        selected: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Vec<Deleted>, Fault> {
        let mut deleted = Vec::new();
        let mut after = None;
        loop {
            let listing = self.list(kind, &ListOptions { limit: Some(PAGE), after, ..selected.clone() })?;
            for object in &listing.items {
                let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
                // Only the selected object, not another that took its name meanwhile.
                let options = DeleteOptions { uid: Some(text("uid").to_owned()), ..options.clone() };
                match self.delete(kind, text("namespace"), text("name"), &options) {
                    Ok(one) => deleted.push(one),
                    Err(Fault::NotFound { .. } | Fault::Conflict { .. }) => {}
                    Err(fault) => return Err(fault),
                }
            }
            after = listing.next;
            if after.is_none() {
                return Ok(deleted);
            }
        }
    }

    /// Evicts a pod, so that it gives up its resources to others. One that is over has none, and stays as part of the
    /// record of its run: it is not found, because whoever drains a node would wait for it to go.
    pub fn evict(&self, namespace: &str, name: &str, options: &DeleteOptions) -> Result<Deleted, Fault> {
        let kind = &kinds::core::POD;
        self.end_pod(kind, namespace, name, StopReason::Evicted, options)
    }

    /// Ends a pod whose run replaces it.
    fn end_pod(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        why: StopReason,
        options: &DeleteOptions,
    ) -> Result<Deleted, Fault> {
        let missing = || Fault::NotFound { kind, name: name.to_owned() };
        let pod = self.view(kind, namespace, name)?.ok_or_else(missing)?;
        preconditions(kind, name, &pod, options)?;
        if why == StopReason::Evicted && is_over(&pod) {
            return Err(missing());
        }
        let row = self.run_of_pod(namespace, name)?.row;
        let of = of_row(&row);
        if why == StopReason::Evicted && of.dialect().is_some_and(|dialect| dialect.pod_delete_refusal.is_some()) {
            return self.end_task(kind, &row, pod, options);
        }
        if let Some(instead) = of.dialect().and_then(|dialect| dialect.pod_delete_refusal) {
            let why = format!("it is a task of {} {} and goes with it; {instead}", of.noun, row.name);
            return Err(Fault::Forbidden { kind, name: name.to_owned(), why });
        }
        if !options.dry_run {
            match self.handle().command(row.run, Command::Evict { pod: name.to_owned(), why }) {
                Ok(()) => {}
                // The pod ended on its own in the meantime.
                Err(Error::Refused(Refusal::NoSuchPod { .. } | Refusal::Finished { .. } | Refusal::UnknownRun(_))) => {
                    return Err(missing());
                }
                Err(error) => return Err(error.into()),
            }
        }
        match self.view(kind, namespace, name)? {
            Some(pod) => Ok(Deleted::Going(pod)),
            None => Ok(Deleted::Gone(pod)),
        }
    }

    /// Ends the task of a pod, which waits again and starts where there is room.
    fn end_task(
        &self,
        kind: &'static Kind,
        row: &RunRow,
        pod: Value,
        options: &DeleteOptions,
    ) -> Result<Deleted, Fault> {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let Some(view) = of_row(row).dialect().map(|dialect| dialect.view) else { return Ok(Deleted::Gone(pod)) };
        let (object, attempts) = (self.run_with_pods(row)?, self.handle().attempts(row.run)?);
        let filter = LogFilter { pod: Some(&name), selects: None };
        let running = view.pod_logs(&object, &attempts, &filter).into_iter().find(|log| !log.over);
        if let Some(log) = running.filter(|_| !options.dry_run) {
            let task = TaskRef { run: row.run, node: log.attempt.task };
            self.handle().schedule(SchedulingChange::Evict { task, why: "Evicted".to_owned() })?;
        }
        match self.view(kind, &row.namespace, &name)? {
            Some(pod) => Ok(Deleted::Going(pod)),
            None => Ok(Deleted::Gone(pod)),
        }
    }

    /// The inner error is worth a retry.
    fn delete_once(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Result<Deleted, Fault>, Fault> {
        let found = match self.find(kind, namespace, name) {
            Err(conflict @ Fault::Conflict { .. }) => return Ok(Err(conflict)),
            found => found?.ok_or_else(|| Fault::NotFound { kind, name: name.to_owned() })?,
        };
        let before = found.object();
        preconditions(kind, name, before, options)?;
        let mut ties = Ownership::of(&before["metadata"]);
        let terminating = ties.deleted.is_some();
        ties.deleted = ties.deleted.or(Some(Time::from_secs(clock::now().seconds())));
        let wanted = match options.propagation {
            Propagation::Background => None,
            Propagation::Foreground => Some(FOREGROUND),
            Propagation::Orphan => Some(ORPHAN),
        };
        let uid = before["metadata"]["uid"].as_str().unwrap_or_default();
        if let Some(wanted) = wanted
            && !ties.finalizers.iter().any(|name| name == wanted)
            && !self.read(|reader| Ok(reader.owned_by(uid)?))?.is_empty()
        {
            ties.finalizers.retain(|name| name != FOREGROUND && name != ORPHAN);
            ties.finalizers.push(wanted.to_owned());
        }
        let mut after = before.clone();
        if let Some(metadata) = after["metadata"].as_object_mut() {
            ties.write(metadata);
        }
        let held = meta::is_held(&ties) || found.is_open();
        if options.dry_run {
            return Ok(Ok(if held { Deleted::Going(after) } else { Deleted::Gone(after) }));
        }
        if !held {
            return match self.erase(kind, &found) {
                Ok(()) => Ok(Ok(Deleted::Gone(found.into_object()))),
                Err(conflict @ Fault::Conflict { .. }) => Ok(Err(conflict)),
                Err(fault) => Err(fault),
            };
        }
        let same = terminating && Ownership::of(&before["metadata"]) == ties;
        let marked = match &found {
            _ if same => Ok(()),
            DeleteTarget::Run { row, object } => {
                let mut write = MutableMetadata::of(&object["metadata"]);
                let read = write.clone();
                write.ownership = ties;
                steer::mark(self.handle(), kind, row, Box::new(read), Box::new(write))
            }
            DeleteTarget::Stored(kept) => self.store_object(kind, &after, &kept.uid, Some(kept.revision)).map(drop),
        };
        match marked {
            Ok(()) => {}
            Err(conflict @ Fault::Conflict { .. }) => return Ok(Err(conflict)),
            Err(fault) => return Err(fault),
        }
        if let DeleteTarget::Run { row, .. } = &found
            && !row.archived
        {
            self.terminate(row)?;
        }
        match &found {
            DeleteTarget::Run { row, .. } => self.run_terminating(row),
            DeleteTarget::Stored(_) => self.terminating(kind, namespace, name),
        }
        match self.get(kind, namespace, name) {
            Ok(object) => Ok(Ok(Deleted::Going(object))),
            // The object was deleted concurrently.
            Err(Fault::NotFound { .. }) => Ok(Ok(Deleted::Gone(after))),
            Err(fault) => Err(fault),
        }
    }

    /// Terminates an open run.
    pub(super) fn terminate(&self, row: &RunRow) -> Result<(), Fault> {
        match self.handle().command(row.run, Command::Terminate) {
            Ok(()) | Err(Error::Refused(Refusal::Finished { .. } | Refusal::UnknownRun(_))) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes an object that nothing holds back from the store, unless a concurrent change came first.
    pub(super) fn erase(&self, kind: &'static Kind, found: &DeleteTarget) -> Result<(), Fault> {
        let stale = |error: Error, name: &str| {
            use octoflow_store::Error as StoreError;
            if matches!(error, Error::Store(StoreError::Stale { .. } | StoreError::UnknownRun { .. })) {
                Fault::stale(kind, name)
            } else {
                Fault::Controller(error)
            }
        };
        match found {
            DeleteTarget::Run { row, .. } => {
                let (mut batch, hooks) = self.handle().forget_run(row)?;
                // An open run is deleted without an expected revision: nothing runs it, so nothing else changes it.
                let expect = row.archived.then_some(Change::ExpectRun { run: row.run, revision: row.revision });
                batch.extend(expect);
                let (controller, store) = (self.controller(), &self.handle().store);
                let removed_run = delete::remove_run_if(store, controller.data_dir(), row, batch)
                    .map_err(|error| stale(error, &row.name))?;
                self.handle().hooks.send_due(hooks);
                if let Some(deletion) = removed_run.deletion {
                    controller.sweep(deletion.locate(&crate::controller::world(&store.reader()?)?));
                }
                Ok(())
            }
            DeleteTarget::Stored(kept) => {
                let metadata = &kept.object["metadata"];
                let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
                let key = Key::new(kind.key, &text("namespace"), &text("name"));
                let expect = Change::Expect {
                    kind: key.kind.clone(),
                    namespace: key.namespace.clone(),
                    name: key.name.clone(),
                    revision: Some(kept.revision),
                };
                self.handle().delete_object_with(&key, Batch::from(expect)).map_err(|error| stale(error, &key.name))
            }
        }
    }

    /// Returns the object together with its row or revision in the store.
    pub(super) fn find(&self, kind: &'static Kind, namespace: &str, name: &str) -> Result<Option<DeleteTarget>, Fault> {
        match kind.storage {
            Storage::View => Ok(None),
            Storage::Stored => Ok(self.stored_object(kind, namespace, name)?.map(DeleteTarget::Stored)),
            Storage::Run(_) => match self.row(kind, namespace, name)? {
                // Whether it may be deleted does not depend on its nodes.
                Some(row) => match self.exact_run_object(&row, NodeDetail::Trim) {
                    Ok(object) => Ok(Some(DeleteTarget::Run { row: Box::new(row), object })),
                    Err(Fault::NotFound { .. }) => Ok(None),
                    Err(fault) => Err(fault),
                },
                None => Ok(None),
            },
        }
    }
}

/// Object to delete.
pub(super) enum DeleteTarget {
    Run { row: Box<RunRow>, object: Value },
    Stored(StoredObject),
}

impl DeleteTarget {
    pub(super) fn object(&self) -> &Value {
        match self {
            Self::Run { object, .. } => object,
            Self::Stored(kept) => &kept.object,
        }
    }

    pub(super) fn into_object(self) -> Value {
        match self {
            Self::Run { object, .. } => object,
            Self::Stored(kept) => kept.object,
        }
    }

    /// Returns true if the event loop works on the run and has to end it first. Unreadable runs are not worked on.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Run { row, object } if !row.archived && !read::is_unreadable(object))
    }
}

fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

pub(super) fn preconditions(
    kind: &'static Kind,
    name: &str,
    object: &Value,
    options: &DeleteOptions,
) -> Result<(), Fault> {
    let wanted =
        [("uid", options.uid.clone()), ("resourceVersion", options.revision.map(|revision| revision.to_string()))];
    for (field, wanted) in wanted {
        let found = &object["metadata"][field];
        if let Some(wanted) = wanted.filter(|wanted| *found != json!(wanted)) {
            let why = format!("Precondition failed: {field} is {}, not {wanted}", found.as_str().unwrap_or_default());
            // A retry does not help, so this is not an inner conflict.
            return Err(Fault::Conflict { kind, name: name.to_owned(), why });
        }
    }
    Ok(())
}
