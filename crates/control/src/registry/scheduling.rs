//! Queues, PodGroups and PriorityClasses in the registry: what may be changed about them, the queues that always exist, and
//! numbers as they are now. The tree of queues is checked and changed by one writer at a time.

use std::{
    collections::BTreeMap,
    sync::{MutexGuard, PoisonError},
};

use octoflow_engine::{
    admit::check_references,
    kinds::scheduling::{
        INCUBATOR_POD_GROUP, POD_GROUP, PRIORITY_CLASS, QUEUE, is_closed, is_default_class, second_default,
    },
    schedule::{
        GangReport, NodeReport, QueueReport, Scheduler,
        spec::{DEFAULT, Quantities, ROOT},
    },
};
use octoflow_store::{Filter, LabelTest, Page};
use serde_json::{Value, json};

use super::{
    Cause, Fault, Kind, ListOptions, Listing, Registry, WriteOptions,
    list::page,
    stored::{self, with_identity},
    view::{rendered, uid},
};
use crate::Error;

/// The queues that exist although nobody has stored them.
const ALWAYS: [&str; 2] = [DEFAULT, ROOT];

/// Limit on the runs that are listed in the status of their template.
const MAX_MADE_RUNS: usize = 10_000;

impl Registry {
    /// Checks an object to be stored, and a queue or class against the others: nobody else changes one until the guard is
    /// dropped.
    pub(super) fn declare(&self, kind: &'static Kind, object: &Value) -> Result<Option<MutexGuard<'_, ()>>, Fault> {
        let own = stored::check(kind, object);
        if *kind == POD_GROUP || *kind == INCUBATOR_POD_GROUP {
            own?;
            let causes: Vec<Cause> =
                check_references(object, &self.handle().catalog()?).iter().map(Cause::of).collect();
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            return if causes.is_empty() { Ok(None) } else { Err(Fault::Invalid { kind, name, causes }) };
        }
        if *kind != QUEUE && *kind != PRIORITY_CLASS {
            return own.map(|()| None);
        }
        let mut causes = match own {
            Ok(()) => Vec::new(),
            Err(Fault::Invalid { causes, .. }) => causes,
            Err(fault) => return Err(fault),
        };
        let turn = self.handle().declaring.lock().unwrap_or_else(PoisonError::into_inner);
        causes.extend(self.handle().check_declared(kind, object)?.iter().map(Cause::of));
        if causes.is_empty() {
            return Ok(Some(turn));
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Err(Fault::Invalid { kind, name, causes })
    }

    /// Checks that a queue may be deleted, as above.
    pub(super) fn undeclare(&self, kind: &'static Kind, name: &str) -> Result<Option<MutexGuard<'_, ()>>, Fault> {
        if *kind != QUEUE {
            return Ok(None);
        }
        let turn = self.handle().declaring.lock().unwrap_or_else(PoisonError::into_inner);
        match self.handle().check_queue_deletion(name)? {
            Ok(()) => Ok(Some(turn)),
            Err(why) => Err(Fault::Conflict { kind, name: name.to_owned(), why }),
        }
    }

    /// Returns the queue as clients see it.
    pub(super) fn queue(&self, name: &str) -> Result<Option<Value>, Fault> {
        let object = match self.stored_object(&QUEUE, "", name)? {
            Some(kept) => kept.object,
            None if ALWAYS.contains(&name) => self.unstored_queue(name),
            None => return Ok(None),
        };
        Ok(Some(self.with_status(&QUEUE, object)?))
    }

    /// Stores a queue that exists although nobody has, so that it can be changed.
    pub(super) fn keep_queue(&self, name: &str) -> Result<(), Fault> {
        if !ALWAYS.contains(&name) || self.stored_object(&QUEUE, "", name)?.is_some() {
            return Ok(());
        }
        let object = json!({"metadata": {"name": name}, "spec": self.unstored_queue(name)["spec"]});
        match self.create(&QUEUE, "", object, &WriteOptions::default()) {
            Ok(_) | Err(Fault::Exists { .. }) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    pub(super) fn list_queues(&self, options: &ListOptions) -> Result<Listing, Fault> {
        let (revision, kept) = self.read(|reader| {
            reader.snapshot(|reader| Ok::<_, Fault>((reader.revision()?, reader.objects(QUEUE.key, None)?)))
        })?;
        let mut all: BTreeMap<String, Value> = ALWAYS.map(|name| (name.to_owned(), self.unstored_queue(name))).into();
        for object in &kept {
            all.insert(object.name.clone(), with_identity(&QUEUE, object)?.object);
        }
        let reports = self.handle().look_at_scheduler(|scheduler| scheduler.queues())?.unwrap_or_default();
        let reports: BTreeMap<&str, &QueueReport> =
            reports.iter().map(|report| (report.spec.name.as_ref(), report)).collect();
        let mut items = Vec::new();
        for (name, mut object) in all {
            let closed = self.is_queue_closed(&name)?;
            object["status"] = queue_status(reports.get(name.as_str()).copied(), closed);
            if options.selection.matches(&object) {
                items.push((name, object));
            }
        }
        Ok(page(items, revision, options))
    }

    fn unstored_queue(&self, name: &str) -> Value {
        let spec = if name == ROOT { json!({"weight": 1}) } else { json!({"parent": ROOT, "weight": 1}) };
        json!({
            "apiVersion": QUEUE.api_version(), "kind": QUEUE.name,
            "metadata": {
                "name": name, "uid": uid(&["queue", name]), "resourceVersion": "1",
                "creationTimestamp": self.controller().opened().to_string(),
            },
            "spec": spec,
        })
    }

    /// Returns the queues that exist although nobody has stored them.
    pub(super) fn unstored_queues(&self) -> Result<Vec<Value>, Fault> {
        let mut found = Vec::new();
        for name in ALWAYS {
            if self.stored_object(&QUEUE, "", name)?.is_none() {
                found.push(self.with_status(&QUEUE, self.unstored_queue(name))?);
            }
        }
        Ok(found)
    }

    /// Returns the object with numbers as they are now, if its kind has some.
    pub(super) fn with_status(&self, kind: &Kind, mut object: Value) -> Result<Value, Fault> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        if *kind == QUEUE {
            let closed = self.is_queue_closed(&name)?;
            let report = self.handle().look_at_scheduler(move |scheduler| scheduler.queue(&name))?;
            object["status"] = queue_status(report.flatten().as_ref(), closed);
        } else if *kind == POD_GROUP || *kind == INCUBATOR_POD_GROUP {
            let gang = self.handle().look_at_scheduler(move |scheduler| scheduler.gang(&namespace, &name))?;
            object["status"] = group_status(gang.flatten());
        } else if let Some(made) = &kind.made_runs {
            let label = LabelTest::Equals { key: made.label.to_owned(), value: (made.value)(&namespace, &name) };
            let filter = Filter {
                kind: Some(made.kind.to_owned()),
                namespace: Some(namespace),
                labels: vec![label],
                ..Filter::default()
            };
            let rows = self.read(|reader| Ok(reader.list(&filter, Page { limit: MAX_MADE_RUNS, after: None })?.0))?;
            let mut names: Vec<String> = rows.into_iter().map(|row| row.name).collect();
            names.sort();
            object["status"] = (made.status)(names);
        }
        Ok(object)
    }

    fn is_queue_closed(&self, name: &str) -> Result<bool, Fault> {
        self.read(|reader| Ok(self.handle().declared.read(reader, |declared| declared.is_closed(name))?))
    }

    /// Opens or closes a queue. A closed one takes nothing new, and what is there goes on.
    pub fn set_queue_closed(&self, name: &str, closed: bool) -> Result<Value, Fault> {
        let not_found = || Fault::NotFound { kind: &QUEUE, name: name.to_owned() };
        if name == ROOT && closed {
            let why = "every queue is below it; close those that are to be closed".to_owned();
            return Err(Fault::Forbidden { kind: &QUEUE, name: name.to_owned(), why });
        }
        self.keep_queue(name)?;
        let _turn = self.handle().declaring.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = self.stored_object(&QUEUE, "", name)?.ok_or_else(not_found)?;
        self.note_status(&QUEUE, "", name, &kept.uid, |object| {
            if is_closed(object) != closed {
                object["status"] = json!({"state": if closed { "Closed" } else { "Open" }});
            }
        })?;
        self.queue(name)?.ok_or_else(not_found)
    }
}

/// Renders the status of a queue; without a report only its state is known.
fn queue_status(report: Option<&QueueReport>, closed: bool) -> Value {
    let works = report.is_some_and(|report| report.running + report.pending > 0);
    let state = match (closed, works) {
        (false, _) => "Open",
        (true, true) => "Closing",
        (true, false) => "Closed",
    };
    let Some(report) = report else { return json!({"state": state}) };
    json!({
        "state": state, "running": report.running, "pending": report.pending,
        "allocated": rendered(&report.allocated), "deserved": rendered(&report.deserved),
        "share": (report.share * 1000.0).round() / 1000.0,
    })
}

fn group_status(gang: Option<GangReport>) -> Value {
    let gang = gang.unwrap_or_default();
    let phase = match gang {
        GangReport { formed: true, running: 1.., .. } => "Running",
        GangReport { running: 1.., .. } => "Unknown",
        GangReport { complete: true, .. } => "Inqueue",
        _ => "Pending",
    };
    json!({"phase": phase, "running": gang.running, "pending": gang.waiting})
}

/// Sums what nodes have of each resource that all of them declare.
fn declared_totals(nodes: &[NodeReport]) -> Quantities {
    let mut totals = Quantities::new();
    let of_first = nodes.first().into_iter().flat_map(|node| node.spec.capacity.keys());
    for resource in of_first {
        let has = nodes.iter().map(|node| node.spec.capacity.get(resource).filter(|has| has.declared));
        if let Some(has) = has.collect::<Option<Vec<_>>>() {
            totals.insert(resource.clone(), has.iter().map(|has| has.amount).fold(0, u64::saturating_add));
        }
    }
    totals
}

impl crate::controller::Handle {
    /// Returns everything that is wrong with a queue or class beside the others.
    pub(crate) fn check_declared(&self, kind: &Kind, object: &Value) -> Result<Vec<octoflow_engine::Problem>, Error> {
        let reader = self.store.reader()?;
        if *kind == PRIORITY_CLASS {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let other = self.declared.read(&reader, |declared| declared.other_default(name).map(str::to_owned))?;
            return Ok(other
                .filter(|_| is_default_class(object))
                .map(|other| second_default(&other))
                .into_iter()
                .collect());
        }
        if *kind != QUEUE {
            return Ok(Vec::new());
        }
        let parent = object["spec"]["parent"].as_str().unwrap_or_default().to_owned();
        let looked = move |scheduler: &Scheduler| (scheduler.has_work(&parent), declared_totals(&scheduler.nodes()));
        let (busy, totals) = self.look_at_scheduler(looked)?.unwrap_or_default();
        self.declared.read(&reader, |declared| {
            let mut problems = declared.check_queue(object, |_| busy);
            problems.extend(declared.check_guarantees(object, &totals));
            problems
        })
    }

    /// Returns why a queue cannot be deleted.
    pub(crate) fn check_queue_deletion(&self, name: &str) -> Result<Result<(), String>, Error> {
        let queue = name.to_owned();
        let busy = self.look_at_scheduler(move |scheduler| scheduler.has_work(&queue))?.unwrap_or_default();
        let reader = self.store.reader()?;
        self.declared.read(&reader, |declared| declared.check_delete_queue(name, |_| busy))
    }
}
