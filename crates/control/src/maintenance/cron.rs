//! The cron scheduler: tracks every schedule of any kind, starts due runs, and maintains status and history. The engine decides
//! what is due. The time is a parameter, so that tests control the clock.

use std::collections::{BTreeMap, HashSet};

use octoflow_engine::{
    cron::{Act, CronRow, CronState, CronStatus, Timetable, decide, wake_at},
    kinds,
};
use octoflow_model::{Revision, RunId, Time};
use octoflow_store::{Batch, Change, ChangedItem, Object};
use serde_json::Value;

use crate::{
    Error,
    registry::{Fault, Kind, Registry},
};

mod children;
mod ledger;
mod start;

use ledger::StoredLedger;

/// All schedules of a controller.
pub struct CronScheduler {
    registry: Registry,
    /// By uid.
    crons: BTreeMap<String, Entry>,
    /// Changes up to this revision are applied; `None` before the first pass.
    cursor: Option<Revision>,
    /// Errors by schedule; each is retried.
    failures: BTreeMap<String, String>,
}

/// Last known state of one schedule.
struct Entry {
    kind: &'static Kind,
    row: &'static CronRow,
    uid: String,
    namespace: String,
    name: String,
    object: Value,
    timetable: Result<Timetable, Vec<String>>,
    /// Time of the last check.
    checked: Option<Time>,
    /// Its open runs.
    active: Vec<RunId>,
    /// True if it or one of its runs changed since the last check.
    dirty: bool,
    /// Next due time, as of the last check.
    wake: Option<Time>,
}

impl CronScheduler {
    pub fn new(registry: &Registry) -> Self {
        Self { registry: registry.clone(), crons: BTreeMap::new(), cursor: None, failures: BTreeMap::new() }
    }

    /// Does everything that is due. Returns the latest time for the next call.
    pub fn run_due(&mut self, now: Time) -> Result<Option<Time>, Error> {
        self.apply_changes(now).map_err(failed)?;
        let uids: Vec<String> = self.crons.keys().cloned().collect();
        let mut wake: Option<Time> = None;
        for uid in uids {
            let Some(mut entry) = self.crons.remove(&uid) else { continue };
            let next = self.reconcile(&mut entry, now);
            let name = named(&entry);
            match next {
                Ok(next) => {
                    self.failures.remove(&name);
                    wake = [wake, next].into_iter().flatten().min();
                }
                // An error in one schedule must not affect the others.
                Err(fault) => {
                    entry.dirty = true;
                    self.failures.insert(name, fault.to_string());
                }
            }
            self.crons.insert(uid, entry);
        }
        Ok(wake)
    }

    /// Returns whether there are any schedules.
    pub fn is_needed(&self) -> bool {
        !self.crons.is_empty()
    }

    /// Returns errors by schedule; each is retried.
    pub fn failures(&self) -> &BTreeMap<String, String> {
        &self.failures
    }

    /// Applies what changed since the last pass.
    fn apply_changes(&mut self, now: Time) -> Result<(), Fault> {
        let Some(cursor) = self.cursor else { return self.read_all() };
        let mine = |what: &ChangedItem| match what {
            ChangedItem::Put { kind, .. } => of_key(kind).is_some(),
            ChangedItem::Deleted(object) => of_key(&object.kind).is_some(),
            ChangedItem::Run(_) | ChangedItem::DeletedRun(_) => true,
            ChangedItem::NewRun { .. } => false,
        };
        let Ok((notes, latest)) = self.registry.feed().since(cursor, mine) else { return self.read_all() };
        let mut ended = HashSet::new();
        for note in notes {
            match note.what {
                ChangedItem::Put { kind, namespace, name, .. } => {
                    let found = self.registry.read(|reader| Ok(reader.object(&kind, &namespace, &name)?))?;
                    if let Some(object) = found {
                        self.upsert(&object, Some(now));
                    }
                }
                ChangedItem::Deleted(object) => self.remove(&object.uid)?,
                ChangedItem::Run(run) => drop(ended.insert(run)),
                ChangedItem::DeletedRun(row) => drop(ended.insert(row.run)),
                ChangedItem::NewRun { .. } => {}
            }
        }
        for entry in self.crons.values_mut() {
            entry.dirty |= entry.active.iter().any(|run| ended.contains(run));
        }
        self.cursor = Some(latest);
        Ok(())
    }

    fn read_all(&mut self) -> Result<(), Fault> {
        self.cursor = Some(self.registry.feed().latest());
        let mut objects = Vec::new();
        for (kind, _) in kinds::of_schedules() {
            objects.extend(self.registry.read(|reader| Ok(reader.objects(kind.key, None)?))?);
        }
        let present: HashSet<&str> = objects.iter().map(|object| object.uid.as_str()).collect();
        self.crons.retain(|uid, _| present.contains(uid.as_str()));
        for owner in self.registry.read(|reader| Ok(reader.tick_owners()?))? {
            if !present.contains(owner.as_str()) {
                self.remove(&owner)?;
            }
        }
        for object in &objects {
            self.upsert(object, None);
        }
        Ok(())
    }

    /// Adds or updates a schedule. One whose spec changed restarts at `now`: earlier times belonged to the old spec.
    fn upsert(&mut self, object: &Object, now: Option<Time>) {
        let Some((kind, row)) = of_key(&object.kind) else { return };
        let Ok(mut body) = serde_json::from_slice::<Value>(&object.body) else { return };
        body["metadata"]["uid"] = object.uid.clone().into();
        body["metadata"]["namespace"] = object.namespace.clone().into();
        let before = self.crons.remove(&object.uid);
        // The scheduler's own writes are not changes.
        let known = |before: &Entry| before.object["spec"] == body["spec"] && before.object["status"] == body["status"];
        let dirty = before.as_ref().is_none_or(|before| before.dirty || !known(before));
        let checked = match &before {
            Some(before) if before.object["spec"] == body["spec"] => before.checked,
            Some(_) => now,
            None => None,
        };
        let entry = Entry {
            kind,
            row,
            uid: object.uid.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            timetable: (row.timetable)(&body),
            object: body,
            checked,
            // Recomputed if the schedule changed, because the entry is dirty then.
            wake: before.as_ref().and_then(|before| before.wake),
            active: before.map(|before| before.active).unwrap_or_default(),
            dirty: dirty || checked.is_none(),
        };
        // The same name with another uid is another schedule.
        let place = |entry: &Entry| (entry.kind.key, entry.namespace.clone(), entry.name.clone());
        let own = place(&entry);
        self.crons.retain(|_, other| place(other) != own);
        self.crons.insert(object.uid.clone(), entry);
    }

    fn remove(&mut self, uid: &str) -> Result<(), Fault> {
        if let Some(entry) = self.crons.remove(uid) {
            self.failures.remove(&named(&entry));
        }
        self.registry.controller().store().commit_wait(Batch::from(Change::DropTicks { uid: uid.to_owned() }))?;
        Ok(())
    }

    /// Checks one schedule.
    fn reconcile(&self, entry: &mut Entry, now: Time) -> Result<Option<Time>, Fault> {
        let early = entry.wake.is_none_or(|wake| now < wake);
        if !entry.dirty && early && entry.checked.is_some_and(|checked| checked <= now) {
            return Ok(entry.wake);
        }
        let mut status = (entry.row.read)(&entry.object);
        let was_dirty = std::mem::take(&mut entry.dirty);
        if was_dirty {
            self.count_children(entry, &mut status)?;
            status.spec_error = self.wrong(entry)?;
        }
        let wake = match &entry.timetable {
            Ok(timetable) => {
                let timetable = timetable.clone();
                self.act(entry, &timetable, &mut status, now)?
            }
            Err(_) => None,
        };
        (entry.checked, entry.wake) = (Some(now), wake);
        self.write(entry, &status)?;
        if was_dirty && let Ok(timetable) = &entry.timetable {
            self.prune(entry, timetable)?;
        }
        Ok(wake)
    }

    fn act(
        &self,
        entry: &mut Entry,
        timetable: &Timetable,
        status: &mut CronStatus,
        now: Time,
    ) -> Result<Option<Time>, Fault> {
        let (acts, wake) = self.registry.read(|reader| {
            let ledger = StoredLedger::new(reader, &entry.uid);
            let circumstances = CronState {
                now,
                looked: entry.checked,
                ledger: &ledger,
                active: &entry.active,
                succeeded: status.succeeded,
                failed: status.failed,
                last: status.last,
                stopped: status.stopped,
            };
            let decided = (decide(timetable, &entry.object, &circumstances), wake_at(timetable, &circumstances));
            ledger.error()?;
            Ok(decided)
        })?;
        for act in acts {
            match act {
                Act::Stop => status.stopped = true,
                Act::Trouble(why) => status.spec_error = Some(why),
                Act::Skip { nominal, why } => self.skip(entry, nominal, now, &why.to_string())?,
                Act::Start { nominal, replaces } => {
                    // Referenced templates may have changed since the last check.
                    if let Some(why) = self.wrong(entry)? {
                        status.spec_error = Some(why);
                        continue;
                    }
                    status.spec_error = None;
                    self.start(entry, status, nominal, &replaces, now)?;
                }
            }
        }
        Ok(if status.stopped { None } else { wake })
    }

    /// Returns all problems of the schedule in one text.
    fn wrong(&self, entry: &Entry) -> Result<Option<String>, Fault> {
        if let Err(wrong) = &entry.timetable {
            return Ok(Some(wrong.join("; ")));
        }
        let catalog = self.registry.controller().catalog()?;
        let (problems, _) = entry.kind.examine.map(|examine| examine(&entry.object, &catalog)).unwrap_or_default();
        let told = |problem: &octoflow_engine::Problem| match &problem.path {
            Some(path) => format!("{path}: {}", problem.message),
            None => problem.message.clone(),
        };
        Ok((!problems.is_empty()).then(|| problems.iter().map(told).collect::<Vec<_>>().join("; ")))
    }
}

/// Returns the name of a schedule in the list of errors.
fn named(entry: &Entry) -> String {
    format!("{} {}/{}", entry.kind.name, entry.namespace, entry.name)
}

/// Returns the kind of a schedule by its key.
fn of_key(key: &str) -> Option<(&'static Kind, &'static CronRow)> {
    kinds::of_schedules().find(|(kind, _)| kind.key == key)
}

fn failed(fault: Fault) -> Error {
    if let Fault::Controller(error) = fault {
        return error;
    }
    Error::Object { what: "the list of schedules".to_owned(), why: fault.to_string() }
}
