//! Selects the next waiting task and checks whether there is room for it. It knows no dialect. Order is priority; runs
//! of equal priority take turns, each with its tasks in order of arrival. The head is never overtaken by its equals,
//! even while it does not fit, so nothing starves. The members of a gang are one entry of the queue: all of them start,
//! or none.

mod gang;
mod queue;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, VecDeque},
    fmt,
};

use octoflow_model::{NodeIx, RunId, task::Resources};

pub use gang::Gang;

use gang::Gangs;
use queue::{Position, Queue};

/// A task by the run and node it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskRef {
    pub run: RunId,
    pub node: NodeIx,
}

/// Capacity of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Maximum number of running tasks.
    pub slots: usize,
    pub cpu_milli: u64,
    pub memory_bytes: u64,
}

#[derive(Debug)]
pub struct Scheduler {
    capacity: Capacity,
    used: Resources,
    queue: Queue,
    gangs: Gangs,
    /// Queue position of each task. An entry found at another position is stale.
    positions: HashMap<TaskRef, Position>,
    /// Members of an admitted gang that have not been returned by `pick` yet.
    chosen: VecDeque<TaskRef>,
    running: HashMap<TaskRef, Resources>,
    /// Tasks that use no resources; they never wait behind one that does.
    weightless: VecDeque<TaskRef>,
}

/// A unit of admission: a single task, or a gang.
#[derive(Debug)]
struct Entry {
    members: Vec<(TaskRef, Resources)>,
    /// The gang and its priority.
    gang: Option<(gang::Key, i32)>,
}

impl Entry {
    fn wanted(&self) -> Resources {
        let mut all = Resources::default();
        for (_, own) in &self.members {
            all.cpu_milli = all.cpu_milli.saturating_add(own.cpu_milli);
            all.memory_bytes = all.memory_bytes.saturating_add(own.memory_bytes);
        }
        all
    }
}

/// Why the head of the queue waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortage {
    Slots { running: usize, slots: usize },
    Cpu { wanted_milli: u64, free_milli: u64 },
    Memory { wanted_bytes: u64, free_bytes: u64 },
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots { running, slots } => write!(f, "{running} of {slots} places are taken"),
            Self::Cpu { wanted_milli, free_milli } => write!(f, "{wanted_milli}m of cpu wanted, {free_milli}m free"),
            Self::Memory { wanted_bytes, free_bytes } => {
                write!(f, "{wanted_bytes} bytes of memory wanted, {free_bytes} free")
            }
        }
    }
}

impl Scheduler {
    pub fn new(capacity: Capacity) -> Self {
        Self {
            capacity,
            used: Resources::default(),
            queue: Queue::default(),
            gangs: Gangs::default(),
            positions: HashMap::new(),
            chosen: VecDeque::new(),
            running: HashMap::new(),
            weightless: VecDeque::new(),
        }
    }

    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Queues a task.
    pub fn enqueue(&mut self, task: TaskRef, priority: i32, resources: Resources) {
        let members = vec![(task, self.fitted(resources))];
        self.arrive(priority, Entry { members, gang: None });
    }

    /// Queues a task that starts with the other members of its gang, or not at all.
    pub fn enqueue_member(&mut self, task: TaskRef, priority: i32, resources: Resources, gang: &Gang) {
        let resources = self.fitted(resources);
        // Queued again: its old position is dropped, and its gang, which was complete, forms anew.
        if let Some(position) = self.positions.get(&task).copied()
            && let Some(entry) = self.queue.remove(position)
        {
            self.dissolve(position, entry, |_| true);
        }
        self.gangs.gather(task, priority, resources, gang);
    }

    fn arrive(&mut self, priority: i32, entry: Entry) {
        // A gang may have members of several runs; it is queued under the run of its first member.
        let Some((first, _)) = entry.members.first() else { return };
        let tasks: Vec<TaskRef> = entry.members.iter().map(|(task, _)| *task).collect();
        let position = self.queue.push(priority, first.run, entry);
        self.positions.extend(tasks.into_iter().map(|task| (task, position)));
    }

    /// Removes an entry that was not admitted. The remaining members of a gang gather again rather than start without
    /// the others.
    fn dissolve(&mut self, position: Position, entry: Entry, mut stays: impl FnMut(TaskRef) -> bool) {
        for (task, resources) in entry.members {
            // A task with a newer position is left alone.
            if self.positions.get(&task) == Some(&position) {
                self.positions.remove(&task);
                if let Some((key, priority)) = &entry.gang {
                    self.gangs.regather(key, task, stays(task).then_some((*priority, resources)));
                }
            }
        }
    }

    /// Queues a task that uses no resources: it is admitted at once, and never counts as running.
    pub fn enqueue_weightless(&mut self, task: TaskRef) {
        self.weightless.push_back(task);
    }

    /// Admits the next task that fits; it counts as running from now on. `still_waiting` drops those that no longer
    /// wait.
    pub fn pick(&mut self, still_waiting: impl FnMut(TaskRef) -> bool) -> Option<TaskRef> {
        self.pick_of(still_waiting, |_| true)
    }

    /// Admits the next task among runs that are `ready`. Others keep their turns and block nobody.
    pub fn pick_of(
        &mut self,
        mut still_waiting: impl FnMut(TaskRef) -> bool,
        ready: impl Fn(RunId) -> bool,
    ) -> Option<TaskRef> {
        while let Some(task) = self.weightless.pop_front() {
            if still_waiting(task) {
                return Some(task);
            }
        }
        while let Some(task) = self.chosen.pop_front() {
            // A member started before it may have ended its run.
            if still_waiting(task) {
                return Some(task);
            }
            self.release(task);
        }
        loop {
            while let Some((priority, key, members)) = self.gangs.ripe(&mut still_waiting) {
                self.arrive(priority, Entry { members, gang: Some((key, priority)) });
            }
            let ready = |entry: &Entry| entry.members.iter().all(|(task, _)| ready(task.run));
            let (position, entry) = self.queue.heads().find(|(_, entry)| ready(entry))?;
            let mut waits = |task| still_waiting(task) && self.positions.get(&task) == Some(&position);
            if !entry.members.iter().all(|(task, _)| waits(*task)) {
                let lost = self.queue.remove(position)?;
                self.dissolve(position, lost, &mut still_waiting);
                continue;
            }
            if shortage(&self.capacity, &self.used, self.running.len(), entry).is_some() {
                return None;
            }
            for (task, resources) in self.queue.take(position)?.members {
                self.occupy(task, resources);
                self.positions.remove(&task);
                self.chosen.push_back(task);
            }
            return self.chosen.pop_front();
        }
    }

    /// Returns the present and the required number of members of a task's gang; `None` if it waits for no gang.
    pub fn gathering(&self, task: TaskRef) -> Option<(usize, u32)> {
        self.gangs.waits(task)
    }

    /// Restores the gang membership of a started task.
    pub fn join(&mut self, task: TaskRef, gang: &Gang) {
        self.gangs.join(task, gang);
    }

    /// Removes the tasks of a run from all gangs, when it is over or begins a new attempt.
    pub fn leave(&mut self, run: RunId) {
        self.gangs.leave(run);
    }

    /// Restores a running task.
    pub fn adopt(&mut self, task: TaskRef, resources: Resources) {
        let resources = self.fitted(resources);
        self.occupy(task, resources);
    }

    pub fn release(&mut self, task: TaskRef) {
        if let Some(resources) = self.running.remove(&task) {
            self.used.cpu_milli -= resources.cpu_milli;
            self.used.memory_bytes -= resources.memory_bytes;
        }
    }

    /// Returns the resources of all running tasks.
    pub fn used(&self) -> Resources {
        self.used
    }

    pub fn running(&self) -> usize {
        self.running.len()
    }

    pub fn waiting(&self) -> usize {
        self.positions.len() + self.gangs.waiting() + self.chosen.len() + self.weightless.len()
    }

    /// Returns the head of the queue and why it waits.
    pub fn head(&self) -> Option<(TaskRef, Option<Shortage>)> {
        let (_, entry) = self.queue.heads().next()?;
        let (task, _) = entry.members.first()?;
        Some((*task, shortage(&self.capacity, &self.used, self.running.len(), entry)))
    }

    fn occupy(&mut self, task: TaskRef, resources: Resources) {
        if self.running.insert(task, resources).is_none() {
            self.used.cpu_milli = self.used.cpu_milli.saturating_add(resources.cpu_milli);
            self.used.memory_bytes = self.used.memory_bytes.saturating_add(resources.memory_bytes);
        }
    }

    /// Caps a request at the capacity of the machine: a larger task gets the whole machine rather than waiting for
    /// ever.
    fn fitted(&self, wanted: Resources) -> Resources {
        Resources {
            cpu_milli: wanted.cpu_milli.min(self.capacity.cpu_milli),
            memory_bytes: wanted.memory_bytes.min(self.capacity.memory_bytes),
        }
    }
}

/// Returns what the entry lacks. One that is larger than the machine gets all of it, once it is idle.
fn shortage(capacity: &Capacity, used: &Resources, running: usize, entry: &Entry) -> Option<Shortage> {
    let (wanted, count) = (entry.wanted(), entry.members.len());
    let free_milli = capacity.cpu_milli.saturating_sub(used.cpu_milli);
    let free_bytes = capacity.memory_bytes.saturating_sub(used.memory_bytes);
    if running == 0 && capacity.slots > 0 {
        None
    } else if running + count > capacity.slots {
        Some(Shortage::Slots { running, slots: capacity.slots })
    } else if wanted.cpu_milli > free_milli {
        Some(Shortage::Cpu { wanted_milli: wanted.cpu_milli, free_milli })
    } else if wanted.memory_bytes > free_bytes {
        Some(Shortage::Memory { wanted_bytes: wanted.memory_bytes, free_bytes })
    } else {
        None
    }
}
