//! The collector finishes deletions: it follows the feed, works on objects that are terminating, and deletes dependents
//! of deleted owners. It persists nothing of its own; after a restart it finds its work in the store.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Condvar, Mutex, PoisonError, Weak},
    thread::{self, JoinHandle},
    time::Duration,
};

use octoflow_model::{Revision, RunId, mark::Ownership};
use octoflow_store::{ChangedItem, Name, RunRow};
use serde_json::Value;

use super::{
    DeleteOptions, Deleted, Fault, Inner, Kind, Propagation, Registry, Storage, kinds, meta,
    namespace::namespaced_kinds,
    remove::{DeleteTarget, FOREGROUND, ORPHAN},
};
use crate::{Error, event_loop::unit};

/// Pause after a failure.
const FAILURE_PAUSE: Duration = Duration::from_secs(2);

/// Commits within this time are handled together, unless a deletion is requested.
const DEBOUNCE: Duration = Duration::from_millis(2);

/// Limit when following chains of owners.
const MAX_ANCESTORS: usize = 1000;

/// Batch size when emptying a namespace.
const BATCH: usize = 500;

pub(super) struct Collector {
    signal: Arc<CollectorSignal>,
    thread: Mutex<Option<JoinHandle<Result<(), Error>>>>,
}

#[derive(Default)]
struct CollectorSignal {
    state: Mutex<State>,
    condvar: Condvar,
}

#[derive(Default)]
struct State {
    /// True once runs were resumed or a deletion was requested: objects left terminating may be worked on.
    ready: bool,
    changed: bool,
    closing: bool,
    /// Objects marked as terminating since the last pass.
    marked: Vec<(Name, Option<RunId>)>,
}

impl Collector {
    pub(super) fn new() -> Self {
        Self { signal: Arc::default(), thread: Mutex::new(None) }
    }

    /// Starts the thread and subscribes to commits. Work begins after [`Collector::ready`].
    pub(super) fn start(&self, registry: &Registry) -> Result<(), Error> {
        let signal = self.signal.clone();
        let (of, since) = (Arc::downgrade(&registry.0), registry.0.feed.latest());
        let weak = Arc::downgrade(&signal);
        registry.on_change(move |_| {
            if let Some(signal) = weak.upgrade() {
                signal.update(|state| state.changed = true);
            }
        });
        let work = move || {
            CollectorLoop {
                of,
                cursor: since,
                terminating: HashSet::new(),
                runs: HashMap::new(),
                todo: BTreeSet::new(),
                all: true,
            }
            .run(&signal);
            Ok(())
        };
        let thread = registry.0.controller.supervisor().spawn("collector", work).map_err(Error::Thread)?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    pub(super) fn ready(&self) {
        self.signal.update(|state| (state.ready, state.changed) = (true, true));
    }

    fn mark(&self, name: Name, run: Option<RunId>) {
        self.signal.update(|state| {
            state.marked.push((name, run));
            (state.ready, state.changed) = (true, true);
        });
    }

    pub(super) fn finish(&self) {
        self.signal.update(|state| state.closing = true);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.signal.update(|state| state.closing = true);
    }
}

impl CollectorSignal {
    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.condvar.notify_one();
    }
}

impl Registry {
    /// Lets the collector work on objects that were left terminating.
    pub(super) fn collect(&self) {
        self.0.collector.ready();
    }

    /// Tells the collector that this object was just marked as terminating.
    pub(super) fn terminating(&self, kind: &Kind, namespace: &str, name: &str) {
        let name = Name { kind: kind.key.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() };
        self.0.collector.mark(name, None);
    }

    pub(super) fn run_terminating(&self, row: &RunRow) {
        let name = Name { kind: row.kind.clone(), namespace: row.namespace.clone(), name: row.name.clone() };
        self.0.collector.mark(name, Some(row.run));
    }
}

struct CollectorLoop {
    of: Weak<Inner>,
    cursor: Revision,
    /// Objects marked as terminating.
    terminating: HashSet<Name>,
    /// The runs among them.
    runs: HashMap<RunId, Name>,
    todo: BTreeSet<Name>,
    /// True if everything must be scanned because the feed no longer covers what happened.
    all: bool,
}

impl CollectorLoop {
    fn run(mut self, signal: &CollectorSignal) {
        let mut pause = None;
        loop {
            let marked = {
                let mut state = signal.state.lock().unwrap_or_else(PoisonError::into_inner);
                while !state.closing && !(state.ready && (state.changed || pause.is_some())) {
                    state = signal.condvar.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                if let (Some(pause), false, false) = (pause, state.closing, state.changed) {
                    state = signal.condvar.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
                }
                if state.marked.is_empty() && !state.closing {
                    // No caller waits for this pass: what is committed meanwhile is handled with it.
                    drop(state);
                    thread::sleep(DEBOUNCE);
                    state = signal.state.lock().unwrap_or_else(PoisonError::into_inner);
                }
                if state.closing {
                    return;
                }
                state.changed = false;
                std::mem::take(&mut state.marked)
            };
            marked.into_iter().for_each(|(name, run)| self.marked(name, run));
            let Some(inner) = self.of.upgrade() else { return };
            let registry = Registry(inner);
            pause = self.work(&registry).err().map(|_| FAILURE_PAUSE);
        }
    }

    /// Works through the queue. Failed objects stay in it for a retry.
    fn work(&mut self, registry: &Registry) -> Result<(), Fault> {
        self.read_feed(registry)?;
        let mut failed = Ok(());
        while let Some(name) = self.todo.pop_first() {
            let Some(kind) = kinds::of_key(&name.kind) else { continue };
            match progress(registry, kind, &name, self.terminating.len()) {
                Ok(Progress::Gone) => self.forget(&name),
                Ok(Progress::Waiting) => {}
                // A concurrent change came first; the current state is handled in the next pass.
                Err(fault) => {
                    self.todo.insert(name);
                    failed = Err(fault);
                    break;
                }
            }
        }
        failed
    }

    /// Turns the commits since the last pass into objects to check.
    fn read_feed(&mut self, registry: &Registry) -> Result<(), Fault> {
        let changes = registry.0.feed.since(self.cursor, |_| true);
        let Ok((notes, latest)) = changes else {
            self.cursor = registry.0.feed.latest();
            self.all = true;
            return self.scan_all(registry);
        };
        if self.all {
            self.cursor = latest;
            return self.scan_all(registry);
        }
        for note in notes {
            self.on_change(registry, note.what)?;
        }
        self.cursor = latest;
        Ok(())
    }

    fn on_change(&mut self, registry: &Registry, what: ChangedItem) -> Result<(), Fault> {
        match what {
            ChangedItem::Put { kind, namespace, name, new } => {
                self.touched(registry, Name { kind, namespace, name }, new)
            }
            ChangedItem::NewRun { kind, namespace, name, .. } => {
                self.touched(registry, Name { kind, namespace, name }, true)
            }
            ChangedItem::Run(run) => {
                self.todo.extend(self.runs.get(&run).cloned());
                Ok(())
            }
            ChangedItem::Deleted(object) => self.owner_deleted(registry, &object.uid, &object.namespace),
            ChangedItem::DeletedRun(row) => self.owner_deleted(registry, &row.uid, &row.namespace),
        }
    }

    fn touched(&mut self, registry: &Registry, name: Name, new: bool) -> Result<(), Fault> {
        // A new object may belong to an owner that is gone already.
        if self.terminating.contains(&name) || new && registry.read(|reader| Ok(reader.has_owner(&name)?))? {
            self.todo.insert(name);
        }
        Ok(())
    }

    /// Queues the dependents of a deleted object, and terminating objects that may have waited for it.
    fn owner_deleted(&mut self, registry: &Registry, uid: &str, namespace: &str) -> Result<(), Fault> {
        self.todo.extend(registry.read(|reader| Ok(reader.owned_by(uid)?))?);
        // A namespace waits for everything in it, an owner perhaps for this object.
        let waits = |name: &&Name| name.kind != "Namespace" || name.name == namespace;
        self.todo.extend(self.terminating.iter().filter(waits).cloned());
        Ok(())
    }

    fn marked(&mut self, name: Name, run: Option<RunId>) {
        self.runs.extend(run.map(|run| (run, name.clone())));
        self.terminating.insert(name.clone());
        self.todo.insert(name);
    }

    fn forget(&mut self, name: &Name) {
        if self.terminating.remove(name) {
            self.runs.retain(|_, known| known != name);
        }
    }

    fn scan_all(&mut self, registry: &Registry) -> Result<(), Fault> {
        let (terminating, owned) = registry.read(|reader| Ok((reader.being_deleted()?, reader.all_owned()?)))?;
        for name in terminating {
            let run = match kinds::of_key(&name.kind) {
                Some(kind) if kind.runs() => registry.row(kind, &name.namespace, &name.name)?.map(|row| row.run),
                _ => None,
            };
            self.marked(name, run);
        }
        self.todo.extend(owned);
        self.all = false;
        Ok(())
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Gone,
    Waiting,
}

/// Does what can be done now about one object that is terminating or has owners.
fn progress(registry: &Registry, kind: &'static Kind, name: &Name, terminating: usize) -> Result<Progress, Fault> {
    let Some(found) = registry.find(kind, &name.namespace, &name.name)? else { return Ok(Progress::Gone) };
    let metadata = &found.object()["metadata"];
    let ties = Ownership::of(metadata);
    if ties.deleted.is_none() {
        return orphaned(registry, kind, name, found.object(), &ties);
    }
    if kind.name == "Namespace" {
        return empty_namespace(registry, kind, name, &found, terminating);
    }
    let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
    if ties.finalizers.iter().any(|one| one == ORPHAN) {
        let dependents = registry.read(|reader| Ok(reader.owned_by(&uid)?))?;
        for dependent in dependents {
            disown(registry, &dependent, &HashSet::from([uid.clone()]))?;
        }
        return release(registry, kind, name, ORPHAN);
    }
    if ties.finalizers.iter().any(|one| one == FOREGROUND) {
        return dependents_first(registry, kind, name, &uid);
    }
    if meta::is_held(&ties) {
        return Ok(Progress::Waiting);
    }
    if let DeleteTarget::Run { row, .. } = &found
        && !row.archived
    {
        if registry.handle().size_at_work(row.run)?.is_some() {
            registry.terminate(row)?;
            return Ok(Progress::Waiting);
        }
        // It may have ended between the two reads; otherwise no event loop runs it, and none will.
        if registry.row(kind, &name.namespace, &name.name)?.is_some_and(|now| now.archived) {
            return progress(registry, kind, name, terminating);
        }
    }
    registry.erase(kind, &found)?;
    Ok(Progress::Gone)
}

/// Deletes an object once its last owner is gone.
fn orphaned(
    registry: &Registry,
    kind: &'static Kind,
    name: &Name,
    object: &Value,
    ties: &Ownership,
) -> Result<Progress, Fault> {
    let mut gone = HashSet::new();
    for owner in &ties.owners {
        if !owner_exists(registry, &name.namespace, owner)? {
            gone.extend(owner["uid"].as_str().map(str::to_owned));
        }
    }
    if gone.is_empty() {
        return Ok(Progress::Waiting);
    }
    if gone.len() < ties.owner_uids().len() {
        disown(registry, name, &gone)?;
        return Ok(Progress::Waiting);
    }
    let options = DeleteOptions {
        uid: object["metadata"]["uid"].as_str().map(str::to_owned),
        propagation: Propagation::Background,
        ..DeleteOptions::default()
    };
    ok_if_gone(registry.delete(kind, &name.namespace, &name.name, &options).map(drop))?;
    Ok(Progress::Waiting)
}

/// Returns whether an owner exists. Owners of kinds that are not served here count as existing: their absence cannot be
/// known.
fn owner_exists(registry: &Registry, namespace: &str, owner: &Value) -> Result<bool, Fault> {
    let text = |field: &str| owner[field].as_str().unwrap_or_default();
    let Some(kind) = kinds::find(kinds::group_of(text("apiVersion")), text("kind"))
        .filter(|kind| kind.accepts_api_version(text("apiVersion")))
    else {
        return Ok(true);
    };
    let namespace = if kind.namespaced { namespace } else { "" };
    Ok(match kind.storage {
        Storage::View => true,
        Storage::Run(_) => registry.row(kind, namespace, text("name"))?.is_some_and(|row| row.uid == text("uid")),
        Storage::Stored => {
            registry.stored_object(kind, namespace, text("name"))?.is_some_and(|kept| kept.uid == text("uid"))
        }
    })
}

/// Removes references to owners that are gone or to be deleted.
fn disown(registry: &Registry, name: &Name, uids: &HashSet<String>) -> Result<(), Fault> {
    let Some(kind) = kinds::of_key(&name.kind) else { return Ok(()) };
    let changed = registry.update(kind, &name.namespace, &name.name, &Default::default(), |before| {
        let mut after = before.clone();
        if let Some(owners) = after["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|owner| !owner["uid"].as_str().is_some_and(|uid| uids.contains(uid)));
        }
        Ok(after)
    });
    ok_if_gone(changed.map(drop))
}

/// Removes a finalizer, and the object if nothing else holds it.
fn release(registry: &Registry, kind: &'static Kind, name: &Name, finalizer: &str) -> Result<Progress, Fault> {
    let changed = registry.update(kind, &name.namespace, &name.name, &Default::default(), |before| {
        let mut after = before.clone();
        if let Some(names) = after["metadata"]["finalizers"].as_array_mut() {
            names.retain(|name| name != finalizer);
        }
        Ok(after)
    });
    ok_if_gone(changed.map(drop))?;
    match registry.find(kind, &name.namespace, &name.name)? {
        Some(_) => progress(registry, kind, name, 0),
        None => Ok(Progress::Gone),
    }
}

fn dependents_first(registry: &Registry, kind: &'static Kind, name: &Name, uid: &str) -> Result<Progress, Fault> {
    let mut blocked = false;
    let ancestors = ancestors(registry, name)?;
    let set = match kind.storage {
        Storage::Run(_) => registry.row(kind, &name.namespace, &name.name)?.filter(|row| !row.archived),
        Storage::Stored | Storage::View => None,
    };
    for dependent in registry.read(|reader| Ok(reader.owned_by(uid)?))? {
        let Some(of) = kinds::of_key(&dependent.kind) else { continue };
        let Some(found) = registry.find(of, &dependent.namespace, &dependent.name)? else { continue };
        let ties = Ownership::of(&found.object()["metadata"]);
        let reference = ties.owners.iter().find(|owner| owner["uid"] == uid);
        // Objects that own each other in a cycle would wait for ever.
        let above = found.object()["metadata"]["uid"].as_str().is_some_and(|uid| ancestors.contains(uid));
        blocked |= !above && reference.is_some_and(|owner| owner["blockOwnerDeletion"] == true);
        let others = ties.owners.iter().filter(|owner| owner["uid"] != uid);
        let mut kept = false;
        for other in others {
            kept |= owner_exists(registry, &dependent.namespace, other)?;
        }
        if kept {
            // Another owner still exists.
            disown(registry, &dependent, &HashSet::from([uid.to_owned()]))?;
        } else if let Some(set) = set.as_ref().filter(|_| is_unit(&found)) {
            // A control unit is deleted with the attempt it represents, after that attempt's pods.
            registry.terminate(set)?;
        } else if ties.deleted.is_none() {
            let options = DeleteOptions { propagation: Propagation::Foreground, ..DeleteOptions::default() };
            ok_if_gone(registry.delete(of, &dependent.namespace, &dependent.name, &options).map(drop))?;
        }
    }
    if blocked {
        let left = registry.read(|reader| Ok(reader.owned_by(uid)?))?;
        let mut waits = false;
        for dependent in left {
            let Some(of) = kinds::of_key(&dependent.kind) else { continue };
            let found = registry.find(of, &dependent.namespace, &dependent.name)?;
            let Some(found) = found else { continue };
            let ties = Ownership::of(&found.object()["metadata"]);
            let above = found.object()["metadata"]["uid"].as_str().is_some_and(|uid| ancestors.contains(uid));
            waits |=
                !above && ties.owners.iter().any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true);
        }
        if waits {
            return Ok(Progress::Waiting);
        }
    }
    release(registry, kind, name, FOREGROUND)
}

/// Returns whether the object is the control unit of an attempt.
fn is_unit(found: &DeleteTarget) -> bool {
    kinds::of_manifest(found.object()).is_ok_and(|kind| kind == unit::KIND) && unit::owner(found.object()).is_some()
}

/// Returns the uids of all transitive owners.
fn ancestors(registry: &Registry, name: &Name) -> Result<HashSet<String>, Fault> {
    let mut known = HashSet::new();
    let mut open = vec![name.clone()];
    while let Some(name) = open.pop().filter(|_| known.len() < MAX_ANCESTORS) {
        let Some(kind) = kinds::of_key(&name.kind) else { continue };
        let Some(found) = registry.find(kind, &name.namespace, &name.name)? else { continue };
        for owner in Ownership::of(&found.object()["metadata"]).owners {
            let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
            if known.insert(text("uid"))
                && let Some(kind) = kinds::find(kinds::group_of(&text("apiVersion")), &text("kind"))
            {
                let namespace = if kind.namespaced { name.namespace.clone() } else { String::new() };
                open.push(Name { kind: kind.key.to_owned(), namespace, name: text("name") });
            }
        }
    }
    Ok(known)
}

/// Deletes what is in a namespace, and the namespace once it is empty.
fn empty_namespace(
    registry: &Registry,
    kind: &'static Kind,
    name: &Name,
    found: &DeleteTarget,
    terminating: usize,
) -> Result<Progress, Fault> {
    loop {
        // Objects with finalizers come first in the result, so more than their number must be fetched.
        let inside =
            registry.read(|reader| Ok(reader.contents(&name.name, &namespaced_kinds(), BATCH + terminating)?))?;
        if inside.is_empty() {
            registry.erase(kind, found)?;
            return Ok(Progress::Gone);
        }
        let mut waits = false;
        for one in &inside {
            let Some(of) = kinds::of_key(&one.kind) else {
                waits = true;
                continue;
            };
            match registry.delete(of, &one.namespace, &one.name, &DeleteOptions::default()) {
                Ok(Deleted::Gone(_)) | Err(Fault::NotFound { .. }) => {}
                Ok(Deleted::Going(_)) | Err(Fault::Conflict { .. }) => waits = true,
                Err(fault) => return Err(fault),
            }
        }
        if waits && inside.len() < BATCH + terminating {
            return Ok(Progress::Waiting);
        }
        if waits && inside.iter().all(|one| kinds::of_key(&one.kind).is_none()) {
            return Ok(Progress::Waiting);
        }
    }
}

/// Treats an object that is gone already as done.
fn ok_if_gone(done: Result<(), Fault>) -> Result<(), Fault> {
    match done {
        Err(Fault::NotFound { .. }) => Ok(()),
        done => done,
    }
}
