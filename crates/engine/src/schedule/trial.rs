//! Tries things out in a copy of the scheduler: what a change would let start, and about when something starts if nothing
//! else happens. The scheduler itself is never changed.

use std::collections::BTreeSet;

use octoflow_model::{NodeIx as TaskIx, RunId, Time};

use super::{
    Decision, Scheduler, TaskRef,
    remedy::Remedy,
    reserve::UNKNOWN,
    spec::{NodeSpec, QueueSpec, ResourceCapacity},
    tree::QueueIx,
};

/// With more tasks than this nothing is tried out: a copy would take too long for something that somebody waits for.
const MAX_TASKS: usize = 4_000;
/// Ends of tasks that are looked ahead for an estimate.
const MAX_ENDS: usize = 1_000;
/// Decisions of one trial.
const MAX_DECISIONS: usize = 10_000;

/// The run of tasks that exist in a trial only.
const TRIAL_RUN: RunId = RunId(u64::MAX);
/// When something starts if nothing else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimate {
    Now,
    By(Time),
    /// Somebody before it takes nobody knows how long, or there is too much to look through.
    Unknown,
}

impl Scheduler {
    /// Reports whether a copy is small enough to try something out in it.
    pub(super) fn may_try(&self) -> bool {
        self.waiting.len() + self.running.len() <= MAX_TASKS
    }

    /// Returns a copy with the change made that was proposed for a waiting task.
    pub fn with_change(&self, task: TaskRef, change: &Remedy) -> Self {
        let mut copy = self.clone();
        copy.make(task, change);
        copy
    }

    fn make(&mut self, task: TaskRef, change: &Remedy) {
        match change {
            Remedy::CreateQueue { queue } => self.put_queue(QueueSpec::new(queue.as_str())),
            Remedy::AddMembers { missing } => self.add_members(task, *missing),
            Remedy::RaiseCapability { queue, to } => self.edit_queue(queue, |spec| spec.capability.extend(to.clone())),
            Remedy::LowerGuarantee { queue, to } => self.edit_queue(queue, |spec| spec.guarantee.extend(to.clone())),
            Remedy::FreeQuota { ends, .. } | Remedy::FreeRoom { ends, .. } => {
                ends.iter().for_each(|task| self.release(*task, self.clock));
            }
            Remedy::Uncordon { node } => self.edit_node(node, |spec| spec.cordoned = false),
            Remedy::RemoveTaint { node, key } => {
                self.edit_node(node, |spec| spec.taints.retain(|taint| taint.key != *key));
            }
            Remedy::LabelNode { node, labels } => self.edit_node(node, |spec| spec.labels.extend(labels.clone())),
            Remedy::RaiseCapacity { node, to } => self.edit_node(node, |spec| {
                let declared = |(name, amount): (&String, &u64)| {
                    (name.clone(), ResourceCapacity { amount: *amount, declared: true })
                };
                spec.capacity.extend(to.iter().map(declared));
            }),
            Remedy::AddNode { capacity, labels } => {
                let declared = |(name, amount): (&String, &u64)| {
                    (name.clone(), ResourceCapacity { amount: *amount, declared: true })
                };
                let name = new_node_name(self.room.all().count());
                let labels_declared = self.room.all().any(|(_, node)| node.spec.labels_declared);
                self.put_node(NodeSpec {
                    capacity: capacity.iter().map(declared).collect(),
                    labels: labels.clone(),
                    labels_declared,
                    open_ended: false,
                    ..NodeSpec::measured(name, 0, 0, 0)
                });
            }
        }
    }

    fn edit_queue(&mut self, name: &str, edit: impl FnOnce(&mut QueueSpec)) {
        if let Some(at) = self.tree.find(name) {
            let mut spec = self.tree.get(at).spec.clone();
            edit(&mut spec);
            self.put_queue(spec);
        }
    }

    fn edit_node(&mut self, name: &str, edit: impl FnOnce(&mut NodeSpec)) {
        if let Some(mut spec) = self.room.find(name).and_then(|at| self.room.get(at)).map(|node| node.spec.clone()) {
            edit(&mut spec);
            self.put_node(spec);
        }
    }

    /// Adds members to the gang of a task: of the parts that lack some first, else like the task.
    fn add_members(&mut self, task: TaskRef, missing: usize) {
        let Some(waiting) = self.waiting.get(&task) else { return };
        let (demand, since) = (waiting.demand.clone(), waiting.since);
        let parts = self.gangs.missing_parts(task);
        for (at, part) in parts.into_iter().map(Some).chain(std::iter::repeat(None)).take(missing).enumerate() {
            let mut demand = (*demand).clone();
            if let (Some(gang), Some(part)) = (&mut demand.gang, part) {
                gang.part = part;
            }
            self.enqueue(trial_task(at), demand.into(), since);
        }
    }

    /// Reports whether a running task is in a queue or one below it.
    pub(super) fn is_of_queue(&self, task: TaskRef, queue: QueueIx) -> bool {
        self.tree.path(self.running[&task].leaf).any(|at| at == queue)
    }

    /// Lets everything start that may, in a copy: who is ended for another is gone at once. Returns who started.
    pub fn start_all(&mut self) -> BTreeSet<TaskRef> {
        let mut started = BTreeSet::new();
        for _ in 0..MAX_DECISIONS {
            match self.next(self.clock, |_| true, |_| true) {
                Some(Decision::Start { task, .. }) => {
                    started.insert(task);
                }
                Some(Decision::Preempt(preemption)) => self.release(preemption.victim, self.clock),
                None => break,
            }
        }
        started
    }

    /// Estimates when a waiting task starts.
    pub fn estimate(&self, task: TaskRef) -> Estimate {
        if !self.may_try() || !self.waiting.contains_key(&task) {
            return Estimate::Unknown;
        }
        self.clone().look_ahead(task)
    }

    /// Estimates when tasks with these demands would all have started if they came now.
    pub fn estimate_new<'d>(&self, demands: impl Iterator<Item = (&'d super::Demand, u32)>, now: Time) -> Estimate {
        if !self.may_try() {
            return Estimate::Unknown;
        }
        let mut copy = self.clone();
        copy.clock = copy.clock.max(now);
        let mut last = None;
        for (demand, count) in demands {
            let demand = std::sync::Arc::new(demand.clone());
            for _ in 0..count {
                let task = trial_task(last.map_or(0, |last: TaskRef| last.node.0 as usize + 1));
                copy.enqueue(task, demand.clone(), now);
                last = Some(task);
            }
        }
        let Some(last) = last else { return Estimate::Now };
        copy.look_ahead(last)
    }

    /// Lets time pass: running tasks end when they have to, and others start, until the task does.
    fn look_ahead(mut self, task: TaskRef) -> Estimate {
        let begin = self.clock;
        for _ in 0..MAX_ENDS {
            if self.start_all().contains(&task) {
                return if self.clock <= begin { Estimate::Now } else { Estimate::By(self.clock) };
            }
            let next = self.running.iter().map(|(task, running)| (running.end, *task)).min();
            let Some((end, first)) = next.filter(|(end, _)| *end != UNKNOWN) else { return Estimate::Unknown };
            // Whatever is late ends now.
            self.clock = self.clock.max(end);
            self.release(first, self.clock);
        }
        Estimate::Unknown
    }
}

/// Returns the name of a node that exists in a trial only: no other has spaces.
pub(super) fn new_node_name(at: usize) -> String {
    format!("new node {at}")
}

fn trial_task(at: usize) -> TaskRef {
    TaskRef { run: TRIAL_RUN, node: TaskIx(u32::try_from(at).unwrap_or(u32::MAX)) }
}
