//! Gangs: tasks that start together or not at all. Gathers members until enough are there; room is the queue's business.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use octoflow_model::{RunId, task::Resources};

use super::TaskRef;

/// A gang by its name, and how many of its members must be there before any starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gang {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// Only tasks of this run belong to it; those of every run when nobody says.
    pub own: Option<RunId>,
    pub least: u32,
}

/// The namespace, the name, and the run it is of alone.
pub(super) type Key = (Arc<str>, Arc<str>, Option<RunId>);

/// A gang that is complete: its priority, its name, and its members.
pub(super) type Ripe = (i32, Key, Vec<(TaskRef, Resources)>);

fn key(gang: &Gang) -> Key {
    (gang.namespace.clone(), gang.name.clone(), gang.own)
}

#[derive(Debug, Default)]
pub(super) struct Gangs {
    known: BTreeMap<Key, Known>,
    /// Gangs that somebody joined since they were last looked at.
    touched: BTreeSet<Key>,
}

#[derive(Debug, Default)]
struct Known {
    least: u32,
    gathered: BTreeMap<TaskRef, (i32, Resources)>,
    /// Those that have started, whether they still run or not.
    started: BTreeSet<TaskRef>,
}

impl Known {
    fn there(&self) -> usize {
        self.gathered.len() + self.started.len()
    }
}

impl Gangs {
    pub(super) fn gather(&mut self, task: TaskRef, priority: i32, resources: Resources, gang: &Gang) {
        let key = key(gang);
        let known = self.known.entry(key.clone()).or_default();
        known.least = gang.least;
        known.started.remove(&task);
        known.gathered.insert(task, (priority, resources));
        self.touched.insert(key);
    }

    /// A member of a gang that was complete and is so no longer: it waits for others again, or is gone.
    pub(super) fn regather(&mut self, key: &Key, task: TaskRef, waits: Option<(i32, Resources)>) {
        let Some(known) = self.known.get_mut(key) else { return };
        known.started.remove(&task);
        if let Some(waits) = waits {
            known.gathered.insert(task, waits);
            self.touched.insert(key.clone());
        }
    }

    pub(super) fn join(&mut self, task: TaskRef, gang: &Gang) {
        let known = self.known.entry(key(gang)).or_default();
        known.least = gang.least;
        known.started.insert(task);
    }

    pub(super) fn leave(&mut self, run: RunId) {
        self.known.retain(|_, known| {
            known.gathered.retain(|task, _| task.run != run);
            known.started.retain(|task| task.run != run);
            known.there() > 0
        });
    }

    /// The members of a gang that has enough of them, with the highest priority among them. They have started by this,
    /// as far as the gang is concerned.
    pub(super) fn ripe(&mut self, still_waiting: &mut impl FnMut(TaskRef) -> bool) -> Option<Ripe> {
        while let Some(key) = self.touched.pop_first() {
            let Some(known) = self.known.get_mut(&key) else { continue };
            known.gathered.retain(|task, _| still_waiting(*task));
            if known.gathered.is_empty() || known.there() < known.least as usize {
                continue;
            }
            let members = std::mem::take(&mut known.gathered);
            known.started.extend(members.keys());
            let priority = members.values().map(|(priority, _)| *priority).max().unwrap_or(0);
            return Some((
                priority,
                key,
                members.into_iter().map(|(task, (_, resources))| (task, resources)).collect(),
            ));
        }
        None
    }

    pub(super) fn waits(&self, task: TaskRef) -> Option<(usize, u32)> {
        let known = self.known.values().find(|known| known.gathered.contains_key(&task))?;
        Some((known.there(), known.least))
    }

    pub(super) fn waiting(&self) -> usize {
        self.known.values().map(|known| known.gathered.len()).sum()
    }
}
