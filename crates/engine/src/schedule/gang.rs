//! Gangs: tasks that start together or not at all. Collects members until enough are present, and says which of them start
//! first; the queue finds room for them. Every operation costs as much as its own gang has members.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use octoflow_model::RunId;

use super::{
    TaskRef,
    spec::Gang,
    units::{Rank, UnitIx},
};

/// A gang by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct GangIx(u32);

/// The namespace, the name, and the run it is of alone.
type Key = (Arc<str>, Arc<str>, Option<RunId>);

#[derive(Clone, Debug, Default)]
pub(super) struct Gangs {
    all: HashMap<GangIx, GangState>,
    index: HashMap<Key, GangIx>,
    of_task: HashMap<TaskRef, GangIx>,
    of_run: HashMap<RunId, HashSet<GangIx>>,
    last: u32,
}

#[derive(Clone, Debug)]
pub(super) struct GangState {
    key: Key,
    pub least: u32,
    least_of: Arc<BTreeMap<String, u32>>,
    /// Members that wait for the gang to start, by place.
    waiting: BTreeMap<(Rank, TaskRef), Arc<str>>,
    ranks: HashMap<TaskRef, Rank>,
    /// Members that have started, whether they still run or not.
    started: BTreeMap<TaskRef, Arc<str>>,
    /// Members that run now.
    pub running: BTreeSet<TaskRef>,
    /// True once the least has started: later members are tasks like others.
    pub formed: bool,
    /// The unit of its first members, once enough are present.
    pub unit: Option<UnitIx>,
}

impl Gangs {
    /// Adds a waiting member. Returns its gang, or `None` if the gang has formed: the task waits on its own.
    pub(super) fn gather(&mut self, task: TaskRef, rank: Rank, gang: &Gang) -> Option<GangIx> {
        let at = self.find(gang);
        let state = self.all.get_mut(&at)?;
        state.least = gang.least;
        state.least_of = gang.least_of.clone();
        state.started.remove(&task);
        self.of_task.insert(task, at);
        self.of_run.entry(task.run).or_default().insert(at);
        if state.formed {
            state.started.insert(task, gang.part.clone());
            return None;
        }
        state.waiting.insert((rank, task), gang.part.clone());
        state.ranks.insert(task, rank);
        Some(at)
    }

    fn find(&mut self, gang: &Gang) -> GangIx {
        let key = (gang.namespace.clone(), gang.name.clone(), gang.own);
        if let Some(at) = self.index.get(&key) {
            return *at;
        }
        self.last += 1;
        let at = GangIx(self.last);
        self.index.insert(key.clone(), at);
        self.all.insert(
            at,
            GangState {
                key,
                least: gang.least,
                least_of: gang.least_of.clone(),
                waiting: BTreeMap::new(),
                ranks: HashMap::new(),
                started: BTreeMap::new(),
                running: BTreeSet::new(),
                formed: false,
                unit: None,
            },
        );
        at
    }

    pub(super) fn get(&self, at: GangIx) -> Option<&GangState> {
        self.all.get(&at)
    }

    pub(super) fn set_unit(&mut self, at: GangIx, unit: Option<UnitIx>) {
        if let Some(state) = self.all.get_mut(&at) {
            state.unit = unit;
        }
    }

    pub(super) fn of(&self, task: TaskRef) -> Option<GangIx> {
        self.of_task.get(&task).copied()
    }

    /// Notes that the gang has started with these members. Returns the others that wait; they are tasks like others now.
    pub(super) fn form(&mut self, at: GangIx) -> Vec<TaskRef> {
        let Some(state) = self.all.get_mut(&at) else { return Vec::new() };
        state.formed = true;
        state.unit = None;
        state.ranks.clear();
        let members = std::mem::take(&mut state.waiting);
        let tasks = members.keys().map(|(_, task)| *task).collect();
        state.started.extend(members.into_iter().map(|((_, task), part)| (task, part)));
        tasks
    }

    /// Restores a member that has started.
    pub(super) fn join(&mut self, task: TaskRef, gang: &Gang) {
        let at = self.find(gang);
        self.of_task.insert(task, at);
        self.of_run.entry(task.run).or_default().insert(at);
        if let Some(state) = self.all.get_mut(&at) {
            state.started.insert(task, gang.part.clone());
            state.formed |= state.is_enough(state.started.values());
        }
    }

    /// Removes a started member that is ended for another. If too few are left, returns the members that do not run: those
    /// that wait must wait for the gang again.
    pub(super) fn quit(&mut self, task: TaskRef) -> Vec<TaskRef> {
        let Some(state) = self.of_task.get(&task).and_then(|at| self.all.get_mut(at)) else { return Vec::new() };
        state.started.remove(&task);
        if !state.formed || state.is_enough(state.started.values()) {
            return Vec::new();
        }
        state.formed = false;
        state.started.keys().copied().filter(|member| !state.running.contains(member)).collect()
    }

    /// Notes that a member runs, or does not run any more.
    pub(super) fn runs(&mut self, task: TaskRef, runs: bool) {
        if let Some(state) = self.of_task.get(&task).and_then(|at| self.all.get_mut(at)) {
            if runs {
                state.running.insert(task);
            } else {
                state.running.remove(&task);
            }
        }
    }

    /// Removes a member that does not wait any more; returns its gang, if it waited in one.
    pub(super) fn withdraw(&mut self, task: TaskRef) -> Option<GangIx> {
        let at = self.of(task)?;
        let state = self.all.get_mut(&at)?;
        let rank = state.ranks.remove(&task)?;
        state.waiting.remove(&(rank, task));
        Some(at)
    }

    /// Removes the tasks of a run from all gangs. Returns the gangs, with the tasks that waited in them.
    pub(super) fn leave(&mut self, run: RunId) -> Vec<(GangIx, Vec<TaskRef>)> {
        let mut changed = Vec::new();
        for at in self.of_run.remove(&run).into_iter().flatten() {
            let Some(state) = self.all.get_mut(&at) else { continue };
            let left: Vec<TaskRef> =
                state.waiting.keys().map(|(_, task)| *task).filter(|task| task.run == run).collect();
            state.waiting.retain(|(_, task), _| task.run != run);
            state.ranks.retain(|task, _| task.run != run);
            state.started.retain(|task, _| task.run != run);
            state.running.retain(|task| task.run != run);
            self.of_task.retain(|task, of| task.run != run || *of != at);
            if state.waiting.is_empty() && state.started.is_empty() {
                self.index.remove(&state.key);
            } else {
                // Whoever is left needs its least again.
                state.formed &= state.is_enough(state.started.values());
            }
            changed.push((at, left));
        }
        changed
    }

    /// Drops a gang that has nobody left. Its unit must have been removed before.
    pub(super) fn drop_empty(&mut self, at: GangIx) {
        if self.all.get(&at).is_some_and(|state| state.waiting.is_empty() && state.started.is_empty()) {
            self.all.remove(&at);
        }
    }

    /// Returns how many members are present and how many must be; `None` if the task waits for no gang.
    pub(super) fn presence(&self, task: TaskRef) -> Option<(usize, u32)> {
        let state = self.all.get(&self.of(task)?)?;
        state.ranks.contains_key(&task).then(|| (state.waiting.len() + state.started.len(), state.least))
    }

    /// Returns how many members are missing until the gang of a task can start: of all, or of its parts.
    pub(super) fn missing(&self, task: TaskRef) -> usize {
        let Some(state) = self.of(task).and_then(|at| self.all.get(&at)) else { return 0 };
        let present = state.waiting.len() + state.started.len();
        (state.least as usize).saturating_sub(present).max(self.missing_parts(task).len())
    }

    /// Returns the parts of which members are missing, each as often as it lacks one.
    pub(super) fn missing_parts(&self, task: TaskRef) -> Vec<Arc<str>> {
        let Some(state) = self.of(task).and_then(|at| self.all.get(&at)) else { return Vec::new() };
        let mut missing = Vec::new();
        for (part, least) in state.least_of.iter() {
            let present = state.waiting.values().chain(state.started.values()).filter(|of| ***of == **part).count();
            missing.extend(std::iter::repeat_n(Arc::from(part.as_str()), (*least as usize).saturating_sub(present)));
        }
        missing
    }

    /// Returns the gang of this name that several runs may belong to.
    pub(super) fn shared(&self, namespace: &str, name: &str) -> Option<&GangState> {
        self.all.get(self.index.get(&(namespace.into(), name.into(), None))?)
    }
}

impl GangState {
    fn is_enough<'p>(&self, parts: impl Iterator<Item = &'p Arc<str>>) -> bool {
        let mut counts: HashMap<&str, u32> = HashMap::new();
        let mut all = 0;
        for part in parts {
            all += 1;
            *counts.entry(part).or_default() += 1;
        }
        all >= self.least
            && self.least_of.iter().all(|(part, least)| counts.get(part.as_str()).copied().unwrap_or(0) >= *least)
    }

    /// Returns the members that start first, in order: the least of each part, then whoever is next. `None` if too few are
    /// present.
    pub(super) fn first(&self) -> Option<Vec<TaskRef>> {
        if self.waiting.is_empty() || !self.is_enough(self.waiting.values().chain(self.started.values())) {
            return None;
        }
        let mut owed: HashMap<&str, u32> = self.least_of.iter().map(|(part, least)| (part.as_str(), *least)).collect();
        for part in self.started.values() {
            if let Some(owed) = owed.get_mut(&**part) {
                *owed = owed.saturating_sub(1);
            }
        }
        let least = (self.least as usize).saturating_sub(self.started.len()).max(1);
        let mut first: BTreeSet<(Rank, TaskRef)> = BTreeSet::new();
        for (place, part) in &self.waiting {
            if let Some(owed) = owed.get_mut(&**part).filter(|owed| **owed > 0) {
                *owed -= 1;
                first.insert(*place);
            }
        }
        for place in self.waiting.keys() {
            if first.len() >= least {
                break;
            }
            first.insert(*place);
        }
        Some(first.into_iter().map(|(_, task)| task).collect())
    }

    /// Iterates over the members that wait, in order.
    pub(super) fn members(&self) -> impl Iterator<Item = TaskRef> + '_ {
        self.waiting.keys().map(|(_, task)| *task)
    }
}
