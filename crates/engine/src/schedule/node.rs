//! One node: what it has, what is taken of it and by whom, and which devices are free. It knows neither queues nor order.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_model::{
    Time,
    task::placement::{Assignment, NodeConstraints, Taint},
};

use super::{
    TaskRef,
    amounts::{Amounts, CPU, PODS, ResourceNames, is_device},
    spec::{NodeSpec, ResourceCapacity},
    units::UnitIx,
};

#[derive(Clone, Debug)]
pub(super) struct ScheduledNode {
    pub spec: NodeSpec,
    capacity: Vec<Option<ResourceCapacity>>,
    used: Amounts,
    pub running: BTreeSet<TaskRef>,
    /// Tasks by the time they end at the latest; `Time::MAX` if nobody knows.
    pub ends: BTreeSet<(Time, TaskRef)>,
    free_devices: BTreeMap<usize, BTreeSet<u32>>,
    /// Room kept for units whose victims are ending here.
    nominated: BTreeMap<UnitIx, Amounts>,
    /// What tasks hold that are being ended.
    ending: Amounts,
}

/// Why a task cannot start on a node now.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misfit {
    Cordoned,
    /// Selector or affinity exclude it.
    NotSelected,
    /// A taint, by its key, that is not tolerated.
    Tainted(String),
    /// Not even the empty node has enough of this resource.
    TooLarge(String),
    /// Not enough of this resource is free.
    Full(String),
}

impl ScheduledNode {
    pub(super) fn new(spec: NodeSpec, names: &mut ResourceNames) -> Self {
        let mut node = Self {
            spec,
            capacity: Vec::new(),
            used: Amounts::default(),
            running: BTreeSet::new(),
            ends: BTreeSet::new(),
            free_devices: BTreeMap::new(),
            nominated: BTreeMap::new(),
            ending: Amounts::default(),
        };
        node.measure(names);
        node
    }

    /// Changes the description; what runs here stays.
    pub(super) fn update(&mut self, spec: NodeSpec, held: impl Iterator<Item = Assignment>, names: &mut ResourceNames) {
        self.spec = spec;
        self.measure(names);
        for assignment in held {
            self.take_devices(&assignment, names);
        }
    }

    fn measure(&mut self, names: &mut ResourceNames) {
        self.capacity.clear();
        self.free_devices.clear();
        for (name, capacity) in &self.spec.capacity {
            let index = names.index(name);
            if self.capacity.len() <= index {
                self.capacity.resize(index + 1, None);
            }
            self.capacity[index] = Some(*capacity);
            if is_device(name) {
                let count = u32::try_from(capacity.amount).unwrap_or(u32::MAX).min(MAX_DEVICES);
                self.free_devices.insert(index, (0..count).collect());
            }
        }
    }

    /// Returns how much of a resource there is, and whether somebody declared it; `None`: as much as anybody wants.
    pub(super) fn capacity(&self, index: usize) -> Option<ResourceCapacity> {
        match self.capacity.get(index).copied().flatten() {
            None if self.spec.open_ended => None,
            None => Some(ResourceCapacity { amount: 0, declared: true }),
            known => known,
        }
    }

    /// Returns what a task takes here: a measured amount is never more than there is.
    pub(super) fn fitted(&self, wanted: &Amounts) -> Amounts {
        let mut fitted = wanted.clone();
        for (index, amount) in wanted.iter() {
            match self.capacity(index) {
                None => fitted.set(index, 0),
                Some(ResourceCapacity { amount: most, declared: false }) => fitted.set(index, amount.min(most)),
                Some(ResourceCapacity { declared: true, .. }) => {}
            }
        }
        fitted
    }

    /// Returns why a task may never start here, whatever else runs.
    pub(super) fn excludes(
        &self,
        wanted: &Amounts,
        constraints: &NodeConstraints,
        names: &ResourceNames,
    ) -> Option<Misfit> {
        if self.spec.labels_declared && !constraints.selects(&self.spec.name, &self.spec.labels) {
            return Some(Misfit::NotSelected);
        }
        if let Some(taint) = self.spec.taints.iter().find(|taint| !constraints.tolerates(taint)) {
            return Some(Misfit::Tainted(taint.key.clone()));
        }
        let lacking = wanted.iter().find(|(index, amount)| {
            self.capacity(*index).is_some_and(|has| has.declared && has.amount < *amount || has.amount == 0)
        })?;
        Some(Misfit::TooLarge(names.name(lacking.0).to_string()))
    }

    /// Returns when a running task has to leave because of a taint, and which; `None` if it may stay.
    pub(super) fn leaves_at(&self, constraints: &NodeConstraints) -> Option<(Time, &Taint)> {
        let concerned = self.spec.taints.iter().filter_map(|taint| Some((constraints.stays_until(taint)?, taint)));
        concerned.min_by_key(|(at, _)| *at)
    }

    /// Returns the first resource of which not enough is free. Room that is kept for other units is not.
    pub(super) fn shortage(&self, wanted: &Amounts, unit: Option<UnitIx>) -> Option<usize> {
        wanted
            .iter()
            .find(|(index, amount)| {
                self.capacity(*index).is_some_and(|has| {
                    let amount = if has.declared { *amount } else { (*amount).min(has.amount) };
                    self.used.get(*index).saturating_add(self.kept(*index, unit)).saturating_add(amount) > has.amount
                })
            })
            .map(|(index, _)| index)
    }

    /// Reports whether a task fits beside what is left once so much is freed. Room that is kept for others is not counted.
    pub(super) fn holds_without(&self, wanted: &Amounts, freed: &Amounts) -> bool {
        wanted.iter().all(|(index, amount)| {
            self.capacity(index).is_none_or(|has| {
                let amount = if has.declared { amount } else { amount.min(has.amount) };
                self.used.get(index).saturating_sub(freed.get(index)).saturating_add(amount) <= has.amount
            })
        })
    }

    /// Returns how many tasks of these amounts fit if so much were freed, of tasks that are being ended too.
    pub(super) fn slots(&self, wanted: &Amounts, unit: Option<UnitIx>, freed: Option<&Amounts>) -> u64 {
        self.slots_beside(wanted, unit, freed, None)
    }

    /// Returns how many tasks of these amounts fit if so much were freed, of tasks that are being ended too, and so much were
    /// taken.
    pub(super) fn slots_beside(
        &self,
        wanted: &Amounts,
        unit: Option<UnitIx>,
        freed: Option<&Amounts>,
        taken: Option<&Amounts>,
    ) -> u64 {
        let of = |of: Option<&Amounts>, index| of.map_or(0, |amounts| amounts.get(index));
        let slots = wanted.iter().filter_map(|(index, amount)| {
            let has = self.capacity(index)?;
            let amount = if has.declared { amount } else { amount.min(has.amount) };
            let promised = self.promised(index, unit);
            let used = self.used.get(index).saturating_add(promised).saturating_add(of(taken, index));
            let free = has.amount.saturating_add(of(freed, index)).saturating_sub(used);
            free.checked_div(amount)
        });
        slots.min().unwrap_or(u64::MAX)
    }

    /// Returns how much of what is free is kept for other units: what they get from tasks that are being ended is not.
    fn kept(&self, index: usize, unit: Option<UnitIx>) -> u64 {
        self.promised(index, unit).saturating_sub(self.ending.get(index))
    }

    /// Returns how much other units were promised.
    fn promised(&self, index: usize, unit: Option<UnitIx>) -> u64 {
        if self.nominated.is_empty() {
            return 0;
        }
        self.nominated.iter().filter(|(whose, _)| Some(**whose) != unit).map(|(_, amounts)| amounts.get(index)).sum()
    }

    pub(super) fn free(&self, index: usize) -> u64 {
        self.capacity(index).map_or(u64::MAX, |has| {
            has.amount.saturating_sub(self.used.get(index)).saturating_sub(self.kept(index, None))
        })
    }

    /// Returns the place of the node among those to try: the fullest first. `None`: nothing can start here.
    pub(super) fn free_key(&self) -> Option<(u64, u64)> {
        let pods = self.free(PODS);
        (!self.spec.cordoned && pods > 0).then(|| (self.free(CPU), pods))
    }

    /// Forgets everything that runs here. For trials.
    pub(super) fn empty(&mut self) {
        (self.used, self.ending) = (Amounts::default(), Amounts::default());
        self.nominated.clear();
        self.running.clear();
        self.ends.clear();
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.nominated.is_empty()
    }

    pub(super) fn used(&self) -> &Amounts {
        &self.used
    }

    /// Counts what a task holds as ending, or not any more.
    pub(super) fn count_ending(&mut self, amounts: &Amounts, ending: bool) {
        if ending {
            self.ending.add(amounts);
        } else {
            self.ending.sub(amounts);
        }
    }

    pub(super) fn nominate(&mut self, unit: UnitIx, amounts: Amounts) {
        self.nominated.insert(unit, amounts);
    }

    /// Iterates over the units that room is kept for.
    pub(super) fn nominees(&self) -> impl Iterator<Item = UnitIx> + '_ {
        self.nominated.keys().copied()
    }

    /// Gives up the room kept for a unit and returns how much that was.
    pub(super) fn withdraw(&mut self, unit: UnitIx) -> Option<Amounts> {
        self.nominated.remove(&unit)
    }

    /// Takes the amounts, without devices. For trials; [`ScheduledNode::occupy`] is for tasks.
    pub(super) fn take(&mut self, amounts: &Amounts) {
        self.used.add(amounts);
    }

    pub(super) fn give_back(&mut self, amounts: &Amounts) {
        self.used.sub(amounts);
    }

    /// Takes the room of a task and the lowest free devices.
    pub(super) fn occupy(&mut self, task: TaskRef, amounts: &Amounts, end: Time, names: &ResourceNames) -> Assignment {
        self.take(amounts);
        self.running.insert(task);
        self.ends.insert((end, task));
        let mut assignment = Assignment { node: self.spec.name.to_string(), ..Assignment::default() };
        for (index, free) in &mut self.free_devices {
            let count = usize::try_from(amounts.get(*index)).unwrap_or(usize::MAX);
            let got: Vec<u32> = free.iter().take(count).copied().collect();
            if !got.is_empty() {
                got.iter().for_each(|device| {
                    free.remove(device);
                });
                assignment.devices.insert(names.name(*index).to_string(), got);
            }
        }
        assignment
    }

    /// Takes the room of a task that already runs here, with the devices it has.
    pub(super) fn adopt(
        &mut self,
        task: TaskRef,
        amounts: &Amounts,
        end: Time,
        assignment: &Assignment,
        names: &mut ResourceNames,
    ) {
        self.take(amounts);
        self.running.insert(task);
        self.ends.insert((end, task));
        self.take_devices(assignment, names);
    }

    fn take_devices(&mut self, assignment: &Assignment, names: &mut ResourceNames) {
        for (name, devices) in &assignment.devices {
            if let Some(free) = self.free_devices.get_mut(&names.index(name)) {
                devices.iter().for_each(|device| {
                    free.remove(device);
                });
            }
        }
    }

    pub(super) fn release(
        &mut self,
        task: TaskRef,
        amounts: &Amounts,
        end: Time,
        assignment: &Assignment,
        names: &mut ResourceNames,
    ) {
        if !self.running.remove(&task) {
            return;
        }
        self.give_back(amounts);
        self.ends.remove(&(end, task));
        for (name, devices) in &assignment.devices {
            let index = names.index(name);
            let has = self.capacity(index).map_or(0, |has| has.amount);
            if let Some(free) = self.free_devices.get_mut(&index) {
                free.extend(devices.iter().filter(|device| u64::from(**device) < has));
            }
        }
    }
}

/// More devices of one kind than any machine has; a typing error must not fill the memory.
const MAX_DEVICES: u32 = 4096;
