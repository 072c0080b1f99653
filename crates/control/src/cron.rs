//! The timekeeper: knows every CronWorkflow, starts what is due, and keeps their status and their history.
//! What is due is decided by the engine; the time is handed in, so that tests have a clock of their own.

use std::collections::{BTreeMap, HashSet};

use octoflow_engine::{
    argo::{CRON_WORKFLOW, admit::examine_cron},
    cron::{Act, CronState, Timetable, decide, wake_at},
};
use octoflow_model::{Revision, RunId, Time};
use octoflow_store::{Batch, Change, ChangedItem, Object};
use serde_json::Value;

use crate::{
    Error,
    registry::{Fault, Kind, Registry},
};

mod books;
mod children;
mod start;
mod status;

use books::Books;
use status::Status;

const KIND: &str = "CronWorkflow";

/// Keeps all schedules of a controller.
pub struct Timekeeper {
    registry: Registry,
    kind: &'static Kind,
    /// By uid.
    crons: BTreeMap<String, Entry>,
    /// Everything up to here has been looked at; nothing before the first look.
    cursor: Option<Revision>,
    /// What could not be done, by schedule; it is tried again.
    troubles: BTreeMap<String, String>,
}

/// One CronWorkflow as it was read last.
struct Entry {
    uid: String,
    namespace: String,
    name: String,
    object: Value,
    timetable: Result<Timetable, Vec<String>>,
    /// When it was looked at last, while somebody was awake.
    looked: Option<Time>,
    /// Its runs that are not over.
    active: Vec<RunId>,
    /// Something happened to it or to its runs.
    dirty: bool,
    /// When its next time comes, as far as was known when it was looked at last.
    wake: Option<Time>,
}

impl Timekeeper {
    pub fn new(registry: &Registry) -> Self {
        let kind = &CRON_WORKFLOW;
        Self { registry: registry.clone(), kind, crons: BTreeMap::new(), cursor: None, troubles: BTreeMap::new() }
    }

    /// Does everything that is due, and says when to look again at the latest.
    pub fn look(&mut self, now: Time) -> Result<Option<Time>, Error> {
        self.hear(now).map_err(failed)?;
        let uids: Vec<String> = self.crons.keys().cloned().collect();
        let mut wake: Option<Time> = None;
        for uid in uids {
            let Some(mut entry) = self.crons.remove(&uid) else { continue };
            let next = self.tend(&mut entry, now);
            let name = format!("{}/{}", entry.namespace, entry.name);
            match next {
                Ok(next) => {
                    self.troubles.remove(&name);
                    wake = [wake, next].into_iter().flatten().min();
                }
                // One that cannot be kept must not keep the others.
                Err(fault) => {
                    entry.dirty = true;
                    self.troubles.insert(name, fault.to_string());
                }
            }
            self.crons.insert(uid, entry);
        }
        Ok(wake)
    }

    /// Whether there is any schedule whose time may come.
    pub fn is_needed(&self) -> bool {
        !self.crons.is_empty()
    }

    /// What could not be done and is tried again, by schedule.
    pub fn troubles(&self) -> &BTreeMap<String, String> {
        &self.troubles
    }

    /// Takes in what changed since the last look.
    fn hear(&mut self, now: Time) -> Result<(), Fault> {
        let Some(cursor) = self.cursor else { return self.read_all() };
        let mine = |what: &ChangedItem| match what {
            ChangedItem::Put { kind, .. } => kind == KIND,
            ChangedItem::Deleted(object) => object.kind == KIND,
            ChangedItem::Run(_) | ChangedItem::DeletedRun(_) => true,
            ChangedItem::NewRun { .. } => false,
        };
        let Ok((notes, latest)) = self.registry.feed().since(cursor, mine) else { return self.read_all() };
        let mut ended = HashSet::new();
        for note in notes {
            match note.what {
                ChangedItem::Put { namespace, name, .. } => {
                    let found = self.registry.read(|reader| Ok(reader.object(KIND, &namespace, &name)?))?;
                    if let Some(object) = found {
                        self.take(&object, Some(now));
                    }
                }
                ChangedItem::Deleted(object) => self.drop_cron(&object.uid)?,
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
        let objects = self.registry.read(|reader| Ok(reader.objects(KIND, None)?))?;
        let present: HashSet<&str> = objects.iter().map(|object| object.uid.as_str()).collect();
        self.crons.retain(|uid, _| present.contains(uid.as_str()));
        for owner in self.registry.read(|reader| Ok(reader.tick_owners()?))? {
            if !present.contains(owner.as_str()) {
                self.drop_cron(&owner)?;
            }
        }
        for object in &objects {
            self.take(object, None);
        }
        Ok(())
    }

    /// A schedule that is not what it was begins anew at `now`: times before that were somebody else's.
    fn take(&mut self, object: &Object, now: Option<Time>) {
        let Ok(mut body) = serde_json::from_slice::<Value>(&object.body) else { return };
        body["metadata"]["uid"] = object.uid.clone().into();
        body["metadata"]["namespace"] = object.namespace.clone().into();
        let before = self.crons.remove(&object.uid);
        // What the timekeeper wrote itself is no news.
        let known = |before: &Entry| before.object["spec"] == body["spec"] && before.object["status"] == body["status"];
        let dirty = before.as_ref().is_none_or(|before| before.dirty || !known(before));
        let looked = match &before {
            Some(before) if before.object["spec"] == body["spec"] => before.looked,
            Some(_) => now,
            None => None,
        };
        let entry = Entry {
            uid: object.uid.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            timetable: Timetable::read(&body),
            object: body,
            looked,
            // Of a schedule that changed it is found out anew, because that is looked at in any case.
            wake: before.as_ref().and_then(|before| before.wake),
            active: before.map(|before| before.active).unwrap_or_default(),
            dirty: dirty || looked.is_none(),
        };
        // The same name under another uid is another schedule.
        let (namespace, name) = (&entry.namespace, &entry.name);
        self.crons.retain(|_, other| (&other.namespace, &other.name) != (namespace, name));
        self.crons.insert(object.uid.clone(), entry);
    }

    fn drop_cron(&mut self, uid: &str) -> Result<(), Fault> {
        if let Some(entry) = self.crons.remove(uid) {
            self.troubles.remove(&format!("{}/{}", entry.namespace, entry.name));
        }
        self.registry.controller().store().commit_wait(Batch::from(Change::DropTicks { uid: uid.to_owned() }))?;
        Ok(())
    }

    /// Looks at one schedule.
    fn tend(&self, entry: &mut Entry, now: Time) -> Result<Option<Time>, Fault> {
        let early = entry.wake.is_none_or(|wake| now < wake);
        if !entry.dirty && early && entry.looked.is_some_and(|looked| looked <= now) {
            return Ok(entry.wake);
        }
        let mut status = Status::read(&entry.object);
        let was_dirty = std::mem::take(&mut entry.dirty);
        if was_dirty {
            self.count_children(entry, &mut status)?;
            status.spec_error(self.wrong(entry)?);
        }
        let wake = match &entry.timetable {
            Ok(timetable) => {
                let timetable = timetable.clone();
                self.act(entry, &timetable, &mut status, now)?
            }
            Err(_) => None,
        };
        (entry.looked, entry.wake) = (Some(now), wake);
        self.write(entry, &status)?;
        if was_dirty && let Ok(timetable) = &entry.timetable {
            self.trim(entry, timetable)?;
        }
        Ok(wake)
    }

    fn act(
        &self,
        entry: &mut Entry,
        timetable: &Timetable,
        status: &mut Status,
        now: Time,
    ) -> Result<Option<Time>, Fault> {
        let (acts, wake) = self.registry.read(|reader| {
            let books = Books::new(reader, &entry.uid);
            let state = CronState {
                now,
                looked: entry.looked,
                ledger: &books,
                active: &entry.active,
                succeeded: status.succeeded,
                failed: status.failed,
                last: status.last,
                stopped: status.stopped,
            };
            let decided = (decide(timetable, &entry.object, &state), wake_at(timetable, &state));
            books.trouble()?;
            Ok(decided)
        })?;
        for act in acts {
            match act {
                Act::Stop => status.stopped = true,
                Act::Trouble(why) => status.spec_error(Some(why)),
                Act::Skip { nominal, why } => self.pass(entry, nominal, now, &why.to_string())?,
                Act::Start { nominal, replaces } => {
                    // What it refers to may have changed since it was looked at.
                    if let Some(why) = self.wrong(entry)? {
                        status.spec_error(Some(why));
                        continue;
                    }
                    status.spec_error(None);
                    self.start(entry, status, nominal, &replaces, now)?;
                }
            }
        }
        Ok(if status.stopped { None } else { wake })
    }

    /// What is wrong with it, in one text.
    fn wrong(&self, entry: &Entry) -> Result<Option<String>, Fault> {
        if let Err(wrong) = &entry.timetable {
            return Ok(Some(wrong.join("; ")));
        }
        let catalog = self.registry.controller().catalog()?;
        let (problems, _) = examine_cron(&entry.object, &catalog);
        let told = |problem: &octoflow_engine::Problem| match &problem.path {
            Some(path) => format!("{path}: {}", problem.message),
            None => problem.message.clone(),
        };
        Ok((!problems.is_empty()).then(|| problems.iter().map(told).collect::<Vec<_>>().join("; ")))
    }
}

fn failed(fault: Fault) -> Error {
    match fault {
        Fault::Controller(error) => error,
        fault => Error::Object { what: "the list of schedules".to_owned(), why: fault.to_string() },
    }
}
