//! Watching: what happened to objects of one kind since a revision, as events in order. Whoever reads slowly gets fewer
//! events, each with the latest state; nobody is made to wait for it.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use octoflow_model::{Revision, RunId, Time};
use octoflow_store::{Note, RunRow, What};
use serde_json::{Value, json};

use super::{
    Fault, Kind, ListOptions, Registry, Selection,
    homes::Homes,
    kept::place,
    list::as_fields,
    stored::dress,
    view::{Told, may_want},
};
use crate::clock;

/// So many open runs are looked at when somebody watches views from a revision on; others are told when they change.
const RECALLED: usize = 200;

/// Whoever watches from a revision on has listed not longer ago than this, or hears nothing of pods that went since.
const SINCE_LISTED: Duration = Duration::from_secs(30);

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

/// So many names of things that are to be told are held at a time.
const SOME: usize = 200;

/// Something that was there when the watch began. What it looks like is looked up when it is told.
enum Initial {
    Run(RunId),
    /// Of a kept object, its namespace and name.
    Kept(String, String),
    /// A run whose views are wanted.
    Viewed(RunId),
}

/// One watch. It is asked for what is new; a bell (see [`Registry::on_change`]) tells when asking is worth it.
pub struct Watch {
    registry: Registry,
    kind: &'static Kind,
    namespace: Option<String>,
    selection: Selection,
    cursor: Revision,
    /// The uids that were told and match the selection, when there is one: leaving it is told as an end.
    seen: HashSet<String>,
    /// Made and not yet told: never more than comes of one run or one change.
    backlog: VecDeque<Event>,
    /// What was there when the watch began and has not been told yet.
    initial: VecDeque<Initial>,
    /// Where the rest of it begins, while there is more: after a cursor of runs, or after a namespace and a name.
    rest: Option<Option<String>>,
    /// What happened and has not been told yet: whole commits.
    notes: VecDeque<Note>,
    /// Everything up to here is told once the notes are.
    noted: Revision,
    /// What was told of kinds nobody keeps.
    told: Told,
    /// The namespaces that were told.
    homes: Option<Homes>,
}

impl Registry {
    /// Rings after every commit with its revision, on the writer's thread: it must only pass the word on.
    pub fn on_change(&self, bell: impl Fn(Revision) + Send + Sync + 'static) {
        self.0.feed.ring(Box::new(bell));
    }

    /// The runs that changed after a revision, and up to where. None when that is too long ago to be known: any may have.
    pub fn runs_changed(&self, since: Revision) -> (Option<Vec<RunId>>, Revision) {
        let run = |what: &What| match what {
            What::NewRun { run, .. } | What::Run(run) => Some(*run),
            What::DeletedRun(row) => Some(row.run),
            What::Put { .. } | What::Deleted(_) => None,
        };
        match self.0.feed.since(since, |what| run(what).is_some()) {
            Ok((notes, latest)) => (Some(notes.iter().filter_map(|note| run(&note.what)).collect()), latest),
            Err(_) => (None, self.0.feed.latest()),
        }
    }

    /// From a revision on; without one the current state comes first, as additions.
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
            told: Told::default(),
            homes: None,
        };
        match since {
            Some(since) => {
                let since = self.0.feed.begin(since, self.revision()?).map_err(|_| Fault::Expired)?;
                watch.cursor = since;
                watch.recall(since)?;
                if kind.name == "Namespace" {
                    watch.homes = Some(Homes::since(self, kind, since)?);
                }
            }
            None if kind.is_view() => {
                watch.cursor = self.0.feed.latest();
                watch.look_around()?;
            }
            None if kind.name == "Namespace" => {
                watch.cursor = self.0.feed.latest();
                let (homes, all) = Homes::now(self, kind)?;
                watch.homes = Some(homes);
                all.into_iter().for_each(|object| watch.tell(Change::Added, object));
            }
            None => {
                // What happens between the two is told twice rather than not at all.
                watch.cursor = self.0.feed.latest();
                watch.rest = Some(None);
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
    /// Everything up to here has been told.
    pub fn revision(&self) -> Revision {
        self.cursor
    }

    /// What is new, in order; empty when nothing is. All of it is held in memory.
    pub fn poll(&mut self) -> Result<Vec<Event>, Fault> {
        let mut all = Vec::new();
        while let Some(event) = self.next_event()? {
            all.push(event);
        }
        Ok(all)
    }

    /// The next of what is new; `None` when nothing is, for now. However much there is, only what comes of one run or one
    /// change is held in memory.
    pub fn next_event(&mut self) -> Result<Option<Event>, Fault> {
        loop {
            if let Some(event) = self.backlog.pop_front() {
                return Ok(Some(event));
            }
            if !self.go_on()? {
                return Ok(None);
            }
        }
    }

    /// Takes the next thing that may be told into the backlog; `false` when there is none.
    fn go_on(&mut self) -> Result<bool, Fault> {
        if let Some(initial) = self.initial.pop_front() {
            self.tell_initial(initial)?;
            return Ok(true);
        }
        if let Some(after) = self.rest.take() {
            self.fetch_initial(after)?;
            return Ok(true);
        }
        if let Some(note) = self.notes.pop_front() {
            self.take(note.what, note.revision)?;
            // The object may be newer than the note. It says up to where everything was told, so that whoever goes on
            // from there misses nothing. Of several views of one run only the last brings a watcher to its revision.
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
        if let Some(last) = self.notes.get(SOME).map(|note| note.revision) {
            // The rest is fetched when these are told. A commit is taken as a whole, so that going on works.
            self.notes.retain(|note| note.revision <= last);
            self.noted = last;
        }
        if !self.notes.is_empty() {
            return Ok(true);
        }
        self.cursor = latest;
        let now = clock::now();
        let Some(run) = self.told.due(now) else { return Ok(false) };
        self.look_at(run, now)?;
        self.backlog.iter_mut().for_each(|event| event.stamp(latest));
        Ok(true)
    }

    /// Some more of what was there when the watch began.
    fn fetch_initial(&mut self, after: Option<String>) -> Result<(), Fault> {
        if self.kind.is_kept() {
            let begin = after.as_deref().map(place).unwrap_or_default();
            let (kind, within) = (self.kind.key, self.namespace.as_deref());
            let names = self
                .registry
                .read(|reader| Ok(reader.object_names_after(kind, within, Some((&begin.0, &begin.1)), SOME)?))?;
            self.rest = names.last().map(|(namespace, name)| Some(format!("{namespace}/{name}")));
            self.initial.extend(names.into_iter().map(|(namespace, name)| Initial::Kept(namespace, name)));
            return Ok(());
        }
        let (namespace, selection) = (self.namespace.clone(), self.selection.clone());
        let options = ListOptions { namespace, selection, limit: Some(SOME), after };
        let page = self.registry.list_rows(self.kind, &options)?;
        self.initial.extend(page.items.into_iter().map(|row| Initial::Run(row.run)));
        self.rest = page.next.map(Some);
        Ok(())
    }

    fn tell_initial(&mut self, initial: Initial) -> Result<(), Fault> {
        match initial {
            Initial::Run(run) => {
                if let Some(object) = self.registry.rendered(run, self.cursor)? {
                    self.tell(Change::Added, Arc::unwrap_or_clone(object));
                }
            }
            Initial::Kept(namespace, name) => {
                if let Some(kept) = self.registry.stored_object(self.kind, &namespace, &name)? {
                    self.tell(Change::Added, kept.object);
                }
            }
            Initial::Viewed(run) => self.look_at(run, clock::now())?,
        }
        // Those that changed since the watch began are told again; until then nobody may go on after them.
        let cursor = self.cursor;
        for event in &mut self.backlog {
            let own = event.object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
            event.stamp(own.map_or(cursor, |own| cursor.min(Revision(own))));
        }
        Ok(())
    }

    /// After this time there is something to tell even if nothing happens until then.
    pub fn due_in(&self) -> Option<Duration> {
        self.told.next_due().map(|due| due.since(clock::now()))
    }

    /// Nothing that this watch is about has happened. It costs no look at the disk.
    pub fn is_quiet(&mut self) -> bool {
        let untold =
            self.rest.is_some() || !self.initial.is_empty() || !self.backlog.is_empty() || !self.notes.is_empty();
        if untold || self.told.due(clock::now()).is_some() {
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

    fn take(&mut self, what: What, revision: Revision) -> Result<(), Fault> {
        if let Some(homes) = &mut self.homes {
            let event = homes.hear(&self.registry, self.kind, &what, revision)?;
            event.into_iter().for_each(|event| self.tell(event.change, event.object));
            return Ok(());
        }
        match what {
            What::Put { namespace, name, new, .. } => {
                let change = if new { Change::Added } else { Change::Modified };
                if self.in_scope(&namespace)
                    && let Some(kept) = self.registry.stored_object(self.kind, &namespace, &name)?
                {
                    self.tell(change, kept.object);
                }
            }
            What::Deleted(object) if self.in_scope(&object.namespace) => {
                let mut last = dress(self.kind, &object)?.object;
                last["metadata"]["resourceVersion"] = json!(revision.to_string());
                self.tell(Change::Deleted, last);
            }
            What::NewRun { run, .. } | What::Run(run) if self.kind.is_view() => {
                self.look_at(run, clock::now())?;
            }
            What::NewRun { run, .. } => self.run(run, Change::Added, revision)?,
            What::Run(run) => self.run(run, Change::Modified, revision)?,
            What::DeletedRun(row) if self.kind.is_view() => {
                let gone = self.told.gone(row.run, self.kind.name, &row.namespace);
                gone.into_iter().for_each(|event| self.tell(event.change, event.object));
            }
            What::DeletedRun(row) if self.in_scope(&row.namespace) => {
                let last = remains(self.kind, &row, revision);
                self.tell(Change::Deleted, last);
            }
            What::Deleted(_) | What::DeletedRun(_) => {}
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
            self.tell(change, Arc::unwrap_or_clone(object));
        }
        Ok(())
    }

    /// Tells what changed in how a run looks.
    fn look_at(&mut self, run: RunId, now: Time) -> Result<(), Fault> {
        let Some(row) = self.registry.read(|reader| Ok(reader.run(run)?))? else {
            // Its deletion is told by the note about it; until then nothing of it is due.
            self.told.rest(run);
            return Ok(());
        };
        if self.in_scope(&row.namespace) && may_want(self.kind, &self.selection, &row) {
            let sight = self.registry.sight_of(self.kind, &row, now)?;
            let events = self.told.changes(run, sight, self.kind.name, &row.namespace);
            events.into_iter().for_each(|event| self.tell(event.change, event.object));
        }
        Ok(())
    }

    /// Tells everything there is, run by run, so that later only changes are told.
    fn look_around(&mut self) -> Result<(), Fault> {
        if self.kind.name == "Node" {
            let node = self.registry.view_all(self.kind)?;
            node.into_iter().for_each(|node| self.tell(Change::Added, node));
            return Ok(());
        }
        let options = ListOptions {
            namespace: self.namespace.clone(),
            selection: self.selection.clone(),
            ..ListOptions::default()
        };
        let rows = self.registry.runs_in_view(self.kind, &options)?;
        self.initial = rows.into_iter().map(|row| Initial::Viewed(row.run)).collect();
        Ok(())
    }

    /// Whoever has listed before knows how open runs look that were not touched since; they are not told again. Runs that
    /// are over count too while they have pods that will go.
    fn recall(&mut self, since: Revision) -> Result<(), Fault> {
        if !self.kind.is_view() || self.kind.name == "Node" {
            return Ok(());
        }
        let open = self.registry.read(|reader| Ok(reader.unfinished()?))?;
        let open = open.into_iter().rev().filter(|row| {
            self.namespace.as_deref().is_none_or(|wanted| wanted == row.namespace)
                && may_want(self.kind, &self.selection, row)
        });
        let mut rows: Vec<RunRow> = open.take(RECALLED).collect();
        if self.kind.name == "Pod" {
            let (namespace, selection) = (self.namespace.clone(), self.selection.clone());
            let options = ListOptions { namespace, selection, ..ListOptions::default() };
            let all = self.registry.runs_in_view(self.kind, &options)?.into_iter();
            let over = all.filter(|row| row.archived && may_want(self.kind, &self.selection, row));
            rows.extend(over.take(RECALLED));
        }
        let then = Time(clock::now().0.saturating_sub_unsigned(SINCE_LISTED.as_micros() as u64));
        for row in rows {
            if self.registry.run_revision(&row)? <= since {
                let sight = self.registry.sight_of(self.kind, &row, then)?;
                if row.archived && sight.until.is_none() {
                    continue;
                }
                for (_, item) in &sight.items {
                    if self.selection.matches(item) {
                        self.seen.insert(item["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
                    }
                }
                drop(self.told.changes(row.run, sight, self.kind.name, &row.namespace));
            }
        }
        Ok(())
    }

    fn in_scope(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|wanted| wanted == namespace)
    }

    fn tell(&mut self, change: Change, object: Value) {
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

fn concerns(kind: &Kind, what: &What) -> bool {
    if kind.name == "Namespace" {
        return !matches!(what, What::Run(_));
    }
    if kind.is_view() {
        return kind.name != "Node" && matches!(what, What::NewRun { .. } | What::Run(_) | What::DeletedRun(_));
    }
    match what {
        What::Put { kind: other, .. } | What::NewRun { kind: other, .. } => other == kind.key,
        What::Deleted(object) => object.kind == kind.key,
        What::DeletedRun(row) => row.kind == kind.key,
        What::Run(_) => kind.runs(),
    }
}

/// What is known of a run that is gone.
fn remains(kind: &Kind, row: &RunRow, revision: Revision) -> Value {
    json!({
        "apiVersion": kind.api_version(), "kind": kind.name,
        "metadata": {
            "name": row.name, "namespace": row.namespace, "uid": row.uid, "labels": row.labels,
            "creationTimestamp": row.created.to_string(), "resourceVersion": revision.to_string(),
        },
        "spec": {},
        "status": as_fields(row)["status"],
    })
}
