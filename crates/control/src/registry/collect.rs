//! The collector: brings every deletion to its end. It hears every commit, works on what is marked as going, and takes
//! away what belonged to something that is gone. It keeps nothing of its own, so a restart finds everything again.

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
    namespace::dwellers,
    remove::{FOREGROUND, Found, ORPHAN},
};
use crate::{Error, event_loop::unit};

/// The pause after something that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// Commits of this time are looked at together, unless somebody deletes.
const GATHER: Duration = Duration::from_millis(2);

/// A longer line of owners is not followed.
const MOST_ANCESTORS: usize = 1000;

/// So much of a namespace is looked at at once.
const HANDFUL: usize = 500;

pub(super) struct Collector {
    line: Arc<Line>,
    thread: Mutex<Option<JoinHandle<Result<(), Error>>>>,
}

#[derive(Default)]
struct Line {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    /// Runs have been taken up, or somebody deletes: what was left going may be worked on.
    ready: bool,
    rung: bool,
    closing: bool,
    /// Marked as going since the last look.
    marked: Vec<(Name, Option<RunId>)>,
}

impl Collector {
    pub(super) fn new() -> Self {
        Self { line: Arc::default(), thread: Mutex::new(None) }
    }

    /// Begins to listen. Work begins when somebody says so.
    pub(super) fn start(&self, registry: &Registry) -> Result<(), Error> {
        let line = self.line.clone();
        let (of, since) = (Arc::downgrade(&registry.0), registry.0.feed.latest());
        let ears = Arc::downgrade(&line);
        registry.on_change(move |_| {
            if let Some(line) = ears.upgrade() {
                line.ring(|state| state.rung = true);
            }
        });
        let work = move || {
            Work { of, cursor: since, going: HashSet::new(), runs: HashMap::new(), todo: BTreeSet::new(), all: true }
                .go_on(&line);
            Ok(())
        };
        let thread = registry.0.controller.supervisor().spawn("collector", work).map_err(Error::Thread)?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    pub(super) fn ready(&self) {
        self.line.ring(|state| (state.ready, state.rung) = (true, true));
    }

    fn mark(&self, name: Name, run: Option<RunId>) {
        self.line.ring(|state| {
            state.marked.push((name, run));
            (state.ready, state.rung) = (true, true);
        });
    }

    pub(super) fn finish(&self) {
        self.line.ring(|state| state.closing = true);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.line.ring(|state| state.closing = true);
    }
}

impl Line {
    fn ring(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.bell.notify_one();
    }
}

impl Registry {
    /// What was left going may be worked on.
    pub(super) fn collect(&self) {
        self.0.collector.ready();
    }

    /// This was just marked as going.
    pub(super) fn going(&self, kind: &Kind, namespace: &str, name: &str) {
        let name = Name { kind: kind.key.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() };
        self.0.collector.mark(name, None);
    }

    pub(super) fn going_run(&self, row: &RunRow) {
        let name = Name { kind: row.kind.clone(), namespace: row.namespace.clone(), name: row.name.clone() };
        self.0.collector.mark(name, Some(row.run));
    }
}

struct Work {
    of: Weak<Inner>,
    cursor: Revision,
    /// What is marked as going.
    going: HashSet<Name>,
    /// The runs among it.
    runs: HashMap<RunId, Name>,
    todo: BTreeSet<Name>,
    /// Everything must be looked at, because it is not known what happened.
    all: bool,
}

impl Work {
    fn go_on(mut self, line: &Line) {
        let mut pause = None;
        loop {
            let marked = {
                let mut state = line.state.lock().unwrap_or_else(PoisonError::into_inner);
                while !state.closing && !(state.ready && (state.rung || pause.is_some())) {
                    state = line.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                if let (Some(pause), false, false) = (pause, state.closing, state.rung) {
                    state = line.bell.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
                }
                if state.marked.is_empty() && !state.closing {
                    // Nobody waits for this look: what else is committed meanwhile is seen with it.
                    drop(state);
                    thread::sleep(GATHER);
                    state = line.state.lock().unwrap_or_else(PoisonError::into_inner);
                }
                if state.closing {
                    return;
                }
                state.rung = false;
                std::mem::take(&mut state.marked)
            };
            marked.into_iter().for_each(|(name, run)| self.marked(name, run));
            let Some(inner) = self.of.upgrade() else { return };
            let registry = Registry(inner);
            pause = self.work(&registry).err().map(|_| AFTER_FAILURE);
        }
    }

    /// What failed is tried again later.
    fn work(&mut self, registry: &Registry) -> Result<(), Fault> {
        self.listen(registry)?;
        let mut failed = Ok(());
        while let Some(name) = self.todo.pop_first() {
            let Some(kind) = kinds::of_key(&name.kind) else { continue };
            match progress(registry, kind, &name, self.going.len()) {
                Ok(Progress::Gone) => self.forget(&name),
                Ok(Progress::Waits) => {}
                // Somebody else was faster; what is there now is looked at next time.
                Err(fault) => {
                    self.todo.insert(name);
                    failed = Err(fault);
                    break;
                }
            }
        }
        failed
    }

    /// What happened since, as names to look at.
    fn listen(&mut self, registry: &Registry) -> Result<(), Fault> {
        let heard = registry.0.feed.since(self.cursor, |_| true);
        let Ok((notes, latest)) = heard else {
            self.cursor = registry.0.feed.latest();
            self.all = true;
            return self.look_everywhere(registry);
        };
        if self.all {
            self.cursor = latest;
            return self.look_everywhere(registry);
        }
        for note in notes {
            self.hear(registry, note.what)?;
        }
        self.cursor = latest;
        Ok(())
    }

    fn hear(&mut self, registry: &Registry, what: ChangedItem) -> Result<(), Fault> {
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
            ChangedItem::Deleted(object) => self.lost(registry, &object.uid, &object.namespace),
            ChangedItem::DeletedRun(row) => self.lost(registry, &row.uid, &row.namespace),
        }
    }

    fn touched(&mut self, registry: &Registry, name: Name, new: bool) -> Result<(), Fault> {
        // What is new may belong to something that is gone already.
        if self.going.contains(&name) || new && registry.read(|reader| Ok(reader.has_owner(&name)?))? {
            self.todo.insert(name);
        }
        Ok(())
    }

    /// Something is gone: who belonged to it, and who waited for that, is looked at.
    fn lost(&mut self, registry: &Registry, uid: &str, namespace: &str) -> Result<(), Fault> {
        self.todo.extend(registry.read(|reader| Ok(reader.owned_by(uid)?))?);
        // A namespace waits for everything in it, an owner perhaps for this one.
        let waits = |name: &&Name| name.kind != "Namespace" || name.name == namespace;
        self.todo.extend(self.going.iter().filter(waits).cloned());
        Ok(())
    }

    fn marked(&mut self, name: Name, run: Option<RunId>) {
        self.runs.extend(run.map(|run| (run, name.clone())));
        self.going.insert(name.clone());
        self.todo.insert(name);
    }

    fn forget(&mut self, name: &Name) {
        if self.going.remove(name) {
            self.runs.retain(|_, known| known != name);
        }
    }

    fn look_everywhere(&mut self, registry: &Registry) -> Result<(), Fault> {
        let (going, owned) = registry.read(|reader| Ok((reader.being_deleted()?, reader.all_owned()?)))?;
        for name in going {
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
    Waits,
}

/// Does what can be done now about one thing that is going, or that belongs to others.
fn progress(registry: &Registry, kind: &'static Kind, name: &Name, going: usize) -> Result<Progress, Fault> {
    let Some(found) = registry.find(kind, &name.namespace, &name.name)? else { return Ok(Progress::Gone) };
    let metadata = &found.object()["metadata"];
    let ties = Ownership::of(metadata);
    if ties.deleted.is_none() {
        return orphaned(registry, kind, name, found.object(), &ties);
    }
    if kind.name == "Namespace" {
        return empty(registry, kind, name, &found, going);
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
        return Ok(Progress::Waits);
    }
    if let Found::Run { row, .. } = &found
        && !row.archived
    {
        if registry.handle().size_at_work(row.run)?.is_some() {
            registry.end(row)?;
            return Ok(Progress::Waits);
        }
        // It may have ended between the two looks; else nobody works on it, and nobody will.
        if registry.row(kind, &name.namespace, &name.name)?.is_some_and(|now| now.archived) {
            return progress(registry, kind, name, going);
        }
    }
    registry.erase(kind, &found)?;
    Ok(Progress::Gone)
}

/// What belongs to others goes when the last of them is gone.
fn orphaned(
    registry: &Registry,
    kind: &'static Kind,
    name: &Name,
    object: &Value,
    ties: &Ownership,
) -> Result<Progress, Fault> {
    let mut gone = HashSet::new();
    for owner in &ties.owners {
        if !is_there(registry, &name.namespace, owner)? {
            gone.extend(owner["uid"].as_str().map(str::to_owned));
        }
    }
    if gone.is_empty() {
        return Ok(Progress::Waits);
    }
    if gone.len() < ties.owner_uids().len() {
        disown(registry, name, &gone)?;
        return Ok(Progress::Waits);
    }
    let options = DeleteOptions {
        uid: object["metadata"]["uid"].as_str().map(str::to_owned),
        propagation: Propagation::Background,
        ..DeleteOptions::default()
    };
    gone_or(registry.delete(kind, &name.namespace, &name.name, &options).map(drop))?;
    Ok(Progress::Waits)
}

/// Whether an owner exists. Of what is not kept here nobody can say that it does not.
fn is_there(registry: &Registry, namespace: &str, owner: &Value) -> Result<bool, Fault> {
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

/// Removes references to owners that are not to be.
fn disown(registry: &Registry, name: &Name, uids: &HashSet<String>) -> Result<(), Fault> {
    let Some(kind) = kinds::of_key(&name.kind) else { return Ok(()) };
    let changed = registry.update(kind, &name.namespace, &name.name, &Default::default(), |before| {
        let mut after = before.clone();
        if let Some(owners) = after["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|owner| !owner["uid"].as_str().is_some_and(|uid| uids.contains(uid)));
        }
        Ok(after)
    });
    gone_or(changed.map(drop))
}

/// One that held it back no longer does.
fn release(registry: &Registry, kind: &'static Kind, name: &Name, finalizer: &str) -> Result<Progress, Fault> {
    let changed = registry.update(kind, &name.namespace, &name.name, &Default::default(), |before| {
        let mut after = before.clone();
        if let Some(names) = after["metadata"]["finalizers"].as_array_mut() {
            names.retain(|name| name != finalizer);
        }
        Ok(after)
    });
    gone_or(changed.map(drop))?;
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
        // Whoever belongs to each other in a circle would wait for ever.
        let above = found.object()["metadata"]["uid"].as_str().is_some_and(|uid| ancestors.contains(uid));
        blocked |= !above && reference.is_some_and(|owner| owner["blockOwnerDeletion"] == true);
        let others = ties.owners.iter().filter(|owner| owner["uid"] != uid);
        let mut kept = false;
        for other in others {
            kept |= is_there(registry, &dependent.namespace, other)?;
        }
        if kept {
            // Somebody else still has it.
            disown(registry, &dependent, &HashSet::from([uid.to_owned()]))?;
        } else if let Some(set) = set.as_ref().filter(|_| is_unit(&found)) {
            // It goes with the attempt it stands for, after that one's pods.
            registry.end(set)?;
        } else if ties.deleted.is_none() {
            let options = DeleteOptions { propagation: Propagation::Foreground, ..DeleteOptions::default() };
            gone_or(registry.delete(of, &dependent.namespace, &dependent.name, &options).map(drop))?;
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
            return Ok(Progress::Waits);
        }
    }
    release(registry, kind, name, FOREGROUND)
}

/// It stands for an attempt of a run.
fn is_unit(found: &Found) -> bool {
    kinds::of_manifest(found.object()).is_ok_and(|kind| kind == unit::KIND) && unit::owner(found.object()).is_some()
}

/// The uids of those it belongs to, and of those they belong to.
fn ancestors(registry: &Registry, name: &Name) -> Result<HashSet<String>, Fault> {
    let mut known = HashSet::new();
    let mut open = vec![name.clone()];
    while let Some(name) = open.pop().filter(|_| known.len() < MOST_ANCESTORS) {
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

/// A namespace goes when nothing is left in it.
fn empty(
    registry: &Registry,
    kind: &'static Kind,
    name: &Name,
    found: &Found,
    going: usize,
) -> Result<Progress, Fault> {
    loop {
        // What is held back stays in front, so more than that must be looked at.
        let inside = registry.read(|reader| Ok(reader.contents(&name.name, &dwellers(), HANDFUL + going)?))?;
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
        if waits && inside.len() < HANDFUL + going {
            return Ok(Progress::Waits);
        }
        if waits && inside.iter().all(|one| kinds::of_key(&one.kind).is_none()) {
            return Ok(Progress::Waits);
        }
    }
}

/// What is gone already needs no more.
fn gone_or(done: Result<(), Fault>) -> Result<(), Fault> {
    match done {
        Err(Fault::NotFound { .. }) => Ok(()),
        done => done,
    }
}
