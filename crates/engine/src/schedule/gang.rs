//! Gangs: tasks that start together or not at all. Collects members until enough are present, and says which of them start
//! first; the queue finds room for them. Every operation costs as much as its own gang has members.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use octoflow_model::{IdMap, RunId};

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
    all: IdMap<GangIx, GangState>,
    index: IdMap<Key, GangIx>,
    of_task: IdMap<TaskRef, GangIx>,
    /// Every task of a run that ever belonged to a gang of now.
    of_run: IdMap<RunId, BTreeSet<(GangIx, TaskRef)>>,
    last: u32,
}

#[derive(Clone, Debug)]
pub(super) struct GangState {
    key: Key,
    pub least: u32,
    least_of: Arc<BTreeMap<String, u32>>,
    /// Members that wait for the gang to start, by place.
    waiting: BTreeMap<(Rank, TaskRef), Arc<str>>,
    ranks: IdMap<TaskRef, Rank>,
    /// Members that have started, whether they still run or not, and those that wait alone.
    started: BTreeMap<TaskRef, Arc<str>>,
    /// Members that wait alone, because the gang had started when they came.
    alone: BTreeSet<TaskRef>,
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
        state.alone.remove(&task);
        self.of_task.insert(task, at);
        self.of_run.entry(task.run).or_default().insert((at, task));
        if state.formed {
            state.started.insert(task, gang.part.clone());
            state.alone.insert(task);
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
                ranks: IdMap::default(),
                started: BTreeMap::new(),
                alone: BTreeSet::new(),
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
        let tasks: Vec<TaskRef> = members.keys().map(|(_, task)| *task).collect();
        // Those that start now are told to run.
        state.alone.extend(&tasks);
        state.started.extend(members.into_iter().map(|((_, task), part)| (task, part)));
        tasks
    }

    /// Restores a member that has started.
    pub(super) fn join(&mut self, task: TaskRef, gang: &Gang) {
        let at = self.find(gang);
        self.of_task.insert(task, at);
        self.of_run.entry(task.run).or_default().insert((at, task));
        if let Some(state) = self.all.get_mut(&at) {
            state.started.insert(task, gang.part.clone());
            state.formed |= state.is_enough(state.started.values());
        }
    }

    /// Removes a started member that is ended for another. If too few are left, returns the members that wait alone: they
    /// must wait for the gang again.
    pub(super) fn quit(&mut self, task: TaskRef) -> Vec<TaskRef> {
        let Some(state) = self.of_task.get(&task).and_then(|at| self.all.get_mut(at)) else { return Vec::new() };
        state.started.remove(&task);
        if !state.formed || state.is_enough(state.begun()) {
            return Vec::new();
        }
        state.formed = false;
        state.outside()
    }

    /// Returns the members that wait alone of a gang that has to start together again.
    pub(super) fn outside(&self, at: GangIx) -> Vec<TaskRef> {
        self.all.get(&at).filter(|state| !state.formed).map(GangState::outside).unwrap_or_default()
    }

    /// Notes that a member runs, or does not run any more.
    pub(super) fn runs(&mut self, task: TaskRef, runs: bool) {
        if let Some(state) = self.of_task.get(&task).and_then(|at| self.all.get_mut(at)) {
            if runs {
                state.alone.remove(&task);
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
        if state.alone.remove(&task) {
            state.started.remove(&task);
        }
        let rank = state.ranks.remove(&task)?;
        state.waiting.remove(&(rank, task));
        Some(at)
    }

    /// Removes the tasks of a run from all gangs. Returns the gangs, with the tasks that waited in them.
    pub(super) fn leave(&mut self, run: RunId) -> Vec<(GangIx, Vec<TaskRef>)> {
        let mut changed = Vec::new();
        let members = self.of_run.remove(&run).unwrap_or_default();
        for (_, task) in &members {
            self.of_task.remove(task);
        }
        let gangs: BTreeSet<GangIx> = members.into_iter().map(|(gang, _)| gang).collect();
        for at in gangs {
            let Some(state) = self.all.get_mut(&at) else { continue };
            let left: Vec<TaskRef> =
                state.waiting.keys().map(|(_, task)| *task).filter(|task| task.run == run).collect();
            state.waiting.retain(|(_, task), _| task.run != run);
            state.ranks.retain(|task, _| task.run != run);
            state.started.retain(|task, _| task.run != run);
            state.running.retain(|task| task.run != run);
            state.alone.retain(|task| task.run != run);
            if state.waiting.is_empty() && state.started.is_empty() {
                self.index.remove(&state.key);
            } else {
                // Whoever is left needs its least again.
                state.formed &= state.is_enough(state.begun());
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
    fn outside(&self) -> Vec<TaskRef> {
        self.alone.iter().copied().collect()
    }

    /// Iterates over the parts of the members that have really started.
    fn begun(&self) -> impl Iterator<Item = &Arc<str>> {
        self.started.iter().filter(|(task, _)| !self.alone.contains(task)).map(|(_, part)| part)
    }

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
        if self.waiting.is_empty() || !self.is_enough(self.waiting.values().chain(self.begun())) {
            return None;
        }
        let mut owed: HashMap<&str, u32> = self.least_of.iter().map(|(part, least)| (part.as_str(), *least)).collect();
        for part in self.begun() {
            if let Some(owed) = owed.get_mut(&**part) {
                *owed = owed.saturating_sub(1);
            }
        }
        let least = (self.least as usize).saturating_sub(self.begun().count()).max(1);
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

    /// Returns who of these members may be ended alone, in this order: the others are still enough, of all and of each part.
    pub(super) fn spare(&self, members: &[TaskRef]) -> BTreeSet<TaskRef> {
        let part = |task: &TaskRef| self.started.get(task).map_or("", |part| &**part);
        let mut left: HashMap<&str, usize> = HashMap::new();
        members.iter().for_each(|task| *left.entry(part(task)).or_default() += 1);
        let mut more = members.len().saturating_sub(self.least as usize);
        let spare = members.iter().filter(|task| {
            let least = self.least_of.get(part(task)).map_or(0, |least| *least as usize);
            let Some(left) = left.get_mut(part(task)).filter(|left| **left > least && more > 0) else { return false };
            *left -= 1;
            more -= 1;
            true
        });
        spare.copied().collect()
    }

    /// Iterates over the members that wait, in order.
    pub(super) fn members(&self) -> impl Iterator<Item = TaskRef> + '_ {
        self.waiting.keys().map(|(_, task)| *task)
    }
}
