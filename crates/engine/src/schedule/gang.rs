//! Gangs: tasks that start together or not at all. Collects members until enough are present; the queue checks for
//! room.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use octoflow_model::{RunId, task::Resources};

use super::TaskRef;

/// A gang by name, and the number of members that must be present before any starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gang {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// If set, only tasks of this run belong to it; otherwise tasks of every run.
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
    known: BTreeMap<Key, GangState>,
    /// Gangs that were joined since the last check.
    touched: BTreeSet<Key>,
}

#[derive(Debug, Default)]
struct GangState {
    least: u32,
    gathered: BTreeMap<TaskRef, (i32, Resources)>,
    /// Members that have started, whether they still run or not.
    started: BTreeSet<TaskRef>,
}

impl GangState {
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

    /// Returns a member of a gang that is no longer complete: it waits for others again, or is removed.
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

    /// Returns the members of a complete gang with the highest priority among them. They count as started from now on.
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
