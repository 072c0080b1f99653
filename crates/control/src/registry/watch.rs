//! Watches: the changes to objects of one kind since a revision, as ordered events. A slow reader gets fewer events,
//! each with the latest state. A watch never blocks writers.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use octoflow_engine::kinds::scheduling::QUEUE;
use octoflow_model::{Revision, RunId, Time};
use octoflow_store::{ChangeEvent, ChangedItem, RunRow};
use serde_json::{Value, json};

use super::{
    Fault, Kind, ListOptions, Registry, Selection,
    kept::place,
    list::as_fields,
    namespace_tracker::NamespaceTracker,
    stored::with_identity,
    view::{ViewTracker, may_want},
};
use crate::clock;

/// Maximum number of open runs to seed when a watch of views resumes from a revision. Others are reported when they
/// change.
const MAX_SEEDED_RUNS: usize = 200;

/// Maximum assumed age of the list that a resumed watch is based on. Pods that disappeared earlier are not reported.
const MAX_LIST_AGE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Event {
    pub change: Change,
    pub object: Value,
}

/// Maximum number of pending initial objects or notes held in memory at a time.
const BATCH: usize = 200;

/// Object that existed when the watch began. It is rendered when its event is emitted.
enum Initial {
    Run(RunId),
    /// Namespace and name of a stored object.
    Stored(String, String),
    /// Run whose views (pods, events) are watched.
    Views(RunId),
}

/// One watch. Callers poll it for new events; the callback of [`Registry::on_change`] says when polling is worth it.
pub struct Watch {
    registry: Registry,
    kind: &'static Kind,
    namespace: Option<String>,
    selection: Selection,
    cursor: Revision,
    /// Uids that were reported and match the selection, if there is one. An object that leaves the selection is
    /// reported as deleted.
    seen: HashSet<String>,
    /// Events not yet handed out. Bounded by what one run or one change produces.
    backlog: VecDeque<Event>,
    /// Objects that existed when the watch began and are not yet reported.
    initial: VecDeque<Initial>,
    /// Where the rest of it begins, while there is more: after a cursor of runs, or after a namespace and a name.
    rest: Option<Option<String>>,
    /// Changes not yet reported; always whole commits.
    notes: VecDeque<ChangeEvent>,
    /// Revision that the watch has reached once all `notes` are reported.
    noted: Revision,
    /// Set while the next change is one of a large run that was rendered a moment ago: it and what follows waits.
    rests_until: Option<Instant>,
    /// Views already reported; they are not stored, so changes are found by comparison.
    tracker: ViewTracker,
    /// Namespaces already reported, in a watch of namespaces.
    namespaces: Option<NamespaceTracker>,
}

impl Registry {
    /// Subscribes to commits: the callback gets the revision of each. It runs on the store's writer thread, so it must
    /// only forward the notification.
    pub fn on_change(&self, callback: impl Fn(Revision) + Send + Sync + 'static) {
        self.0.feed.subscribe(Box::new(callback));
    }

    /// Returns the runs that changed after a revision and the revision reached. `None` if the feed no longer covers
    /// that revision: any run may have changed.
    pub fn runs_changed(&self, since: Revision) -> (Option<Vec<RunId>>, Revision) {
        let run = |what: &ChangedItem| match what {
            ChangedItem::NewRun { run, .. } | ChangedItem::Run(run) => Some(*run),
            ChangedItem::DeletedRun(row) => Some(row.run),
            ChangedItem::Put { .. } | ChangedItem::Deleted(_) => None,
        };
        match self.0.feed.since(since, |what| run(what).is_some()) {
            Ok((notes, latest)) => (Some(notes.iter().filter_map(|note| run(&note.what)).collect()), latest),
            Err(_) => (None, self.0.feed.latest()),
        }
    }

    /// Watches from a revision on. Without a revision, the current state is reported first, as additions.
    pub fn watch(&self, kind: &'static Kind, options: ListOptions, since: Option<Revision>) -> Result<Watch, Fault> {
        let ListOptions { namespace, selection, .. } = options;
        let mut watch = Watch {
            registry: self.clone(),
            kind,
            namespace,
            selection,
            cursor: Revision(0),
            seen: HashSet::new(),
            backlog: VecDeque::new(),
            initial: VecDeque::new(),
            rest: None,
            notes: VecDeque::new(),
            noted: Revision(0),
            rests_until: None,
            tracker: ViewTracker::default(),
            namespaces: None,
        };
        match since {
            Some(since) => {
                let since = self.0.feed.resume_from(since, self.revision()?).map_err(|_| Fault::Expired)?;
                watch.cursor = since;
                watch.seed_tracker(since)?;
                if kind.name == "Namespace" {
                    watch.namespaces = Some(NamespaceTracker::since(self, kind, since)?);
                }
            }
            None if kind.is_view() => {
                watch.cursor = self.0.feed.latest();
                watch.emit_all_views()?;
            }
            None if kind.name == "Namespace" => {
                watch.cursor = self.0.feed.latest();
                let (namespaces, all) = NamespaceTracker::current(self, kind)?;
                watch.namespaces = Some(namespaces);
                all.into_iter().for_each(|object| watch.emit(Change::Added, object));
            }
            None => {
                // A change between the two reads is reported twice rather than not at all.
                watch.cursor = self.0.feed.latest();
                watch.rest = Some(None);
                if *kind == QUEUE {
                    self.unstored_queues()?.into_iter().for_each(|queue| watch.emit(Change::Added, queue));
                }
            }
        }
        watch.noted = watch.cursor;
        Ok(watch)
    }
}

impl Event {
    fn stamp(&mut self, revision: Revision) {
        self.object["metadata"]["resourceVersion"] = json!(revision.to_string());
    }
}

impl Watch {
    /// Returns the revision up to which everything has been reported.
    pub fn revision(&self) -> Revision {
        self.cursor
    }

    /// Returns all new events in order; empty if there are none. Holds all of them in memory.
    pub fn poll(&mut self) -> Result<Vec<Event>, Fault> {
        let mut all = Vec::new();
        while let Some(event) = self.next_event()? {
            all.push(event);
        }
        Ok(all)
    }

    /// Returns the next event, or `None` if there is none for now. Holds only the events of one run or one change in
    /// memory.
    pub fn next_event(&mut self) -> Result<Option<Event>, Fault> {
        loop {
            if let Some(event) = self.backlog.pop_front() {
                return Ok(Some(event));
            }
            if !self.advance()? {
                return Ok(None);
            }
        }
    }

    /// Loads the next initial object or change into the backlog. Returns `false` if there is none.
    fn advance(&mut self) -> Result<bool, Fault> {
        if let Some(initial) = self.initial.pop_front() {
            self.emit_initial(initial)?;
            return Ok(true);
        }
        if let Some(after) = self.rest.take() {
            self.fetch_initial(after)?;
            return Ok(true);
        }
        self.rests_until = self.rest().map(|rest| Instant::now() + rest);
        if self.rests_until.is_some() {
            return Ok(false);
        }
        if let Some(note) = self.notes.pop_front() {
            self.apply(note.what, note.revision)?;
            // The object may be newer than the note. Its stamped revision says up to where everything was reported, so
            // that a watch resumed from there misses nothing. Of several views of one run only the last advances the
            // watcher to the run's revision.
            let (revision, last) = (note.revision, self.backlog.len().saturating_sub(1));
            for (at, event) in self.backlog.iter_mut().enumerate() {
                event.stamp(if at == last { revision } else { Revision(revision.0 - 1) });
            }
            self.cursor = if self.notes.is_empty() { self.noted } else { note.revision };
            return Ok(true);
        }
        let feed = self.registry.0.feed.clone();
        let (notes, latest) = feed.since(self.cursor, |what| concerns(self.kind, what)).map_err(|_| Fault::Expired)?;
        self.notes = notes.into();
        self.noted = latest;
        if let Some(last) = self.notes.get(BATCH).map(|note| note.revision) {
            // The rest is fetched once these are reported. Commits stay whole, so that a watch can resume between them.
            self.notes.retain(|note| note.revision <= last);
            self.noted = last;
        }
        if !self.notes.is_empty() {
            return Ok(true);
        }
        self.cursor = latest;
        let now = clock::now();
        let Some(run) = self.tracker.due(now) else { return Ok(false) };
        self.emit_views_of(run, now)?;
        self.backlog.iter_mut().for_each(|event| event.stamp(latest));
        Ok(true)
    }

    /// Returns how long the next change has to wait.
    fn rest(&self) -> Option<Duration> {
        match self.notes.front()? {
            ChangeEvent { what: ChangedItem::Run(run), revision, .. } if self.kind.runs() => {
                self.registry.rest(*run, *revision)
            }
            _ => None,
        }
    }

    /// Some more of what was there when the watch began.
    fn fetch_initial(&mut self, after: Option<String>) -> Result<(), Fault> {
        if self.kind.is_kept() {
            let begin = after.as_deref().map(place).unwrap_or_default();
            let (kind, within) = (self.kind.key, self.namespace.as_deref());
            let names = self
                .registry
                .read(|reader| Ok(reader.object_names_after(kind, within, Some((&begin.0, &begin.1)), BATCH)?))?;
            self.rest = names.last().map(|(namespace, name)| Some(format!("{namespace}/{name}")));
            self.initial.extend(names.into_iter().map(|(namespace, name)| Initial::Stored(namespace, name)));
            return Ok(());
        }
        let (namespace, selection) = (self.namespace.clone(), self.selection.clone());
        let options = ListOptions { namespace, selection, limit: Some(BATCH), after };
        let page = self.registry.list_rows(self.kind, &options)?;
        self.initial.extend(page.items.into_iter().map(|row| Initial::Run(row.run)));
        self.rest = page.next.map(Some);
        Ok(())
    }

    fn emit_initial(&mut self, initial: Initial) -> Result<(), Fault> {
        match initial {
            Initial::Run(run) => {
                if let Some(object) = self.registry.rendered(run, self.cursor)? {
                    self.emit(Change::Added, Arc::unwrap_or_clone(object));
                }
            }
            Initial::Stored(namespace, name) => {
                if let Some(object) = self.registry.shown_object(self.kind, &namespace, &name)? {
                    self.emit(Change::Added, object);
                }
            }
            Initial::Views(run) => self.emit_views_of(run, clock::now())?,
        }
        // Objects that changed since the watch began are reported again; until then no watcher may resume after those
        // changes.
        let cursor = self.cursor;
        for event in &mut self.backlog {
            let own = event.object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
            event.stamp(own.map_or(cursor, |own| cursor.min(Revision(own))));
        }
        Ok(())
    }

    /// Returns the time until the next event that comes by time alone, without a further commit.
    pub fn due_in(&self) -> Option<Duration> {
        let due = self.tracker.next_due().map(|due| due.since(clock::now()));
        let rest = self.rests_until.map(|until| until.saturating_duration_since(Instant::now()));
        due.into_iter().chain(rest).min()
    }

    /// Returns true if nothing relevant to this watch has happened. Does not read from disk.
    pub fn is_quiet(&mut self) -> bool {
        if self.rests_until.is_some_and(|until| until > Instant::now()) {
            return true;
        }
        let untold =
            self.rest.is_some() || !self.initial.is_empty() || !self.backlog.is_empty() || !self.notes.is_empty();
        if untold || self.tracker.due(clock::now()).is_some() {
            return false;
        }
        match self.registry.0.feed.since(self.cursor, |what| concerns(self.kind, what)) {
            Ok((notes, latest)) if notes.is_empty() => {
                self.cursor = latest;
                true
            }
            Ok(_) | Err(_) => false,
        }
    }

    fn apply(&mut self, what: ChangedItem, revision: Revision) -> Result<(), Fault> {
        if let Some(namespaces) = &mut self.namespaces {
            let event = namespaces.on_change(&self.registry, self.kind, &what, revision)?;
            event.into_iter().for_each(|event| self.emit(event.change, event.object));
            return Ok(());
        }
        match what {
            ChangedItem::Put { namespace, name, new, .. } => {
                // A view is there before somebody changes it for the first time.
                let change = if new && !self.kind.is_view() { Change::Added } else { Change::Modified };
                if self.in_scope(&namespace)
                    && let Some(object) = self.changed_object(&namespace, &name)?
                {
                    self.emit(change, object);
                }
            }
            ChangedItem::Deleted(object) if self.in_scope(&object.namespace) => {
                let mut last = with_identity(self.kind, &object)?.object;
                last["metadata"]["resourceVersion"] = json!(revision.to_string());
                self.emit(Change::Deleted, last);
            }
            ChangedItem::NewRun { run, .. } | ChangedItem::Run(run) if self.kind.is_view() => {
                self.emit_views_of(run, clock::now())?;
            }
            ChangedItem::NewRun { run, .. } => self.run(run, Change::Added, revision)?,
            ChangedItem::Run(run) => self.run(run, Change::Modified, revision)?,
            ChangedItem::DeletedRun(row) if self.kind.is_view() => {
                let gone = self.tracker.gone(row.run, self.kind.name, &row.namespace);
                gone.into_iter().for_each(|event| self.emit(event.change, event.object));
            }
            ChangedItem::DeletedRun(row) if self.in_scope(&row.namespace) => {
                let last = tombstone(self.kind, &row, revision);
                self.emit(Change::Deleted, last);
            }
            ChangedItem::Deleted(_) | ChangedItem::DeletedRun(_) => {}
        }
        Ok(())
    }

    fn run(&mut self, run: RunId, change: Change, revision: Revision) -> Result<(), Fault> {
        let Some(row) = self.registry.identity(run)? else { return Ok(()) };
        let named = self.selection.fields.name().is_none_or(|name| name == row.name);
        if row.kind != self.kind.key || !self.in_scope(&row.namespace) || !named {
            return Ok(());
        }
        if let Some(object) = self.registry.rendered(run, revision)? {
            self.emit(change, Arc::unwrap_or_clone(object));
        }
        Ok(())
    }

    /// Reports the changes to a run's views.
    fn emit_views_of(&mut self, run: RunId, now: Time) -> Result<(), Fault> {
        let Some(row) = self.registry.read(|reader| Ok(reader.run(run)?))? else {
            // The note about the deletion reports it; until then no timer of the run is due.
            self.tracker.cancel_timer(run);
            return Ok(());
        };
        if self.in_scope(&row.namespace) && may_want(self.kind, &self.selection, &row) {
            let views = self.registry.render_views(self.kind, &row, now)?;
            let events = self.tracker.changes(run, views, self.kind.name, &row.namespace);
            events.into_iter().for_each(|event| self.emit(event.change, event.object));
        }
        Ok(())
    }

    /// Reports all existing views, run by run, so that later only changes are reported.
    fn emit_all_views(&mut self) -> Result<(), Fault> {
        if self.kind.name == "Node" {
            let node = self.registry.view_all(self.kind)?;
            node.into_iter().for_each(|node| self.emit(Change::Added, node));
            return Ok(());
        }
        let options = ListOptions {
            namespace: self.namespace.clone(),
            selection: self.selection.clone(),
            ..ListOptions::default()
        };
        let rows = self.registry.runs_in_view(self.kind, &options)?;
        self.initial = rows.into_iter().map(|row| Initial::Views(row.run)).collect();
        Ok(())
    }

    /// Seeds the reported views of open runs that did not change since the client's list, so that they are not reported
    /// again. Finished runs count too while they have pods that will be deleted.
    fn seed_tracker(&mut self, since: Revision) -> Result<(), Fault> {
        if !self.kind.is_view() || self.kind.name == "Node" {
            return Ok(());
        }
        let open = self.registry.read(|reader| Ok(reader.unfinished()?))?;
        let open = open.into_iter().rev().filter(|row| {
            self.namespace.as_deref().is_none_or(|wanted| wanted == row.namespace)
                && may_want(self.kind, &self.selection, row)
        });
        let mut rows: Vec<RunRow> = open.take(MAX_SEEDED_RUNS).collect();
        if self.kind.name == "Pod" {
            let (namespace, selection) = (self.namespace.clone(), self.selection.clone());
            let options = ListOptions { namespace, selection, ..ListOptions::default() };
            let all = self.registry.runs_in_view(self.kind, &options)?.into_iter();
            let over = all.filter(|row| row.archived && may_want(self.kind, &self.selection, row));
            rows.extend(over.take(MAX_SEEDED_RUNS));
        }
        let then = Time(clock::now().0.saturating_sub_unsigned(MAX_LIST_AGE.as_micros() as u64));
        for row in rows {
            if self.registry.run_revision(&row)? <= since {
                let views = self.registry.render_views(self.kind, &row, then)?;
                if row.archived && views.until.is_none() {
                    continue;
                }
                for (_, item) in &views.items {
                    if self.selection.matches(item) {
                        self.seen.insert(item["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
                    }
                }
                drop(self.tracker.changes(row.run, views, self.kind.name, &row.namespace));
            }
        }
        Ok(())
    }

    fn changed_object(&self, namespace: &str, name: &str) -> Result<Option<Value>, Fault> {
        match self.kind.is_view() {
            true => self.registry.view(self.kind, namespace, name),
            false => self.registry.shown_object(self.kind, namespace, name),
        }
    }

    fn in_scope(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|wanted| wanted == namespace)
    }

    fn emit(&mut self, change: Change, object: Value) {
        if self.selection.is_empty() {
            return self.backlog.push_back(Event { change, object });
        }
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let change = match (change, self.selection.matches(&object)) {
            (Change::Deleted, matches) => {
                if !self.seen.remove(&uid) && !matches {
                    return;
                }
                Change::Deleted
            }
            (Change::Added | Change::Modified, true) => {
                if self.seen.insert(uid) {
                    change
                } else {
                    Change::Modified
                }
            }
            (Change::Added | Change::Modified, false) => {
                if !self.seen.remove(&uid) {
                    return;
                }
                Change::Deleted
            }
        };
        self.backlog.push_back(Event { change, object });
    }
}

fn concerns(kind: &Kind, what: &ChangedItem) -> bool {
    if kind.name == "Namespace" {
        return !matches!(what, ChangedItem::Run(_));
    }
    if kind.name == "Node" {
        return matches!(what, ChangedItem::Put { kind: other, .. } if other == kind.key);
    }
    if kind.is_view() {
        return matches!(what, ChangedItem::NewRun { .. } | ChangedItem::Run(_) | ChangedItem::DeletedRun(_));
    }
    match what {
        ChangedItem::Put { kind: other, .. } | ChangedItem::NewRun { kind: other, .. } => other == kind.key,
        ChangedItem::Deleted(object) => object.kind == kind.key,
        ChangedItem::DeletedRun(row) => row.kind == kind.key,
        ChangedItem::Run(_) => kind.runs(),
    }
}

/// Last known object of a deleted run, for its DELETED event.
fn tombstone(kind: &Kind, row: &RunRow, revision: Revision) -> Value {
    json!({
        "apiVersion": kind.api_version(), "kind": kind.name,
        "metadata": {
            "name": row.name, "namespace": row.namespace, "uid": row.uid, "labels": crate::read::without_terms(&row.labels),
            "creationTimestamp": row.created.to_string(), "resourceVersion": revision.to_string(),
        },
        "spec": {},
        "status": as_fields(row)["status"],
    })
}
