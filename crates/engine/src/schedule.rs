//! The scheduler's first form: which waiting task goes next, and whether there is room for it.
//! It knows no dialect. Order is priority, then first come; the head is never overtaken, so nothing starves.

use std::collections::{BTreeMap, HashMap, VecDeque};

use octoflow_model::{NodeIx, RunId, task::Resources};

/// A task by the run and node it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskRef {
    pub run: RunId,
    pub node: NodeIx,
}

/// What this machine offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Tasks at a time.
    pub slots: usize,
    pub cpu_milli: u64,
    pub memory_bytes: u64,
}

#[derive(Debug)]
pub struct Scheduler {
    capacity: Capacity,
    used: Resources,
    waiting: BTreeMap<Rank, (TaskRef, Resources)>,
    running: HashMap<TaskRef, Resources>,
    /// Tasks that need nothing of the machine; they never wait behind one that does.
    weightless: VecDeque<TaskRef>,
    arrivals: u64,
}

/// Higher priority first, then earlier arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(i64, u64);

/// Why the head of the queue waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortage {
    Slots { running: usize, slots: usize },
    Cpu { wanted_milli: u64, free_milli: u64 },
    Memory { wanted_bytes: u64, free_bytes: u64 },
}

impl Scheduler {
    pub fn new(capacity: Capacity) -> Self {
        Self {
            capacity,
            used: Resources::default(),
            waiting: BTreeMap::new(),
            running: HashMap::new(),
            weightless: VecDeque::new(),
            arrivals: 0,
        }
    }

    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// A task waits for its turn.
    pub fn enqueue(&mut self, task: TaskRef, priority: i32, resources: Resources) {
        self.arrivals += 1;
        self.waiting.insert(Rank(-i64::from(priority), self.arrivals), (task, self.fitted(resources)));
    }

    /// A task that needs nothing of the machine goes as soon as it is asked for, and never counts as running.
    pub fn enqueue_weightless(&mut self, task: TaskRef) {
        self.weightless.push_back(task);
    }

    /// The next task that can go now; it counts as running from here on. `still_waiting` drops those that no longer do.
    pub fn pick(&mut self, mut still_waiting: impl FnMut(TaskRef) -> bool) -> Option<TaskRef> {
        while let Some(task) = self.weightless.pop_front() {
            if still_waiting(task) {
                return Some(task);
            }
        }
        while let Some(entry) = self.waiting.first_entry() {
            let (task, resources) = *entry.get();
            if !still_waiting(task) {
                entry.remove();
                continue;
            }
            if shortage(&self.capacity, &self.used, self.running.len(), resources).is_some() {
                return None;
            }
            entry.remove();
            self.occupy(task, resources);
            return Some(task);
        }
        None
    }

    /// A task that runs already, found again after a restart.
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

    pub fn running(&self) -> usize {
        self.running.len()
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len() + self.weightless.len()
    }

    /// Why the head of the queue waits, and which task that is.
    pub fn head(&self) -> Option<(TaskRef, Option<Shortage>)> {
        let (task, resources) = self.waiting.values().next()?;
        Some((*task, shortage(&self.capacity, &self.used, self.running.len(), *resources)))
    }

    fn occupy(&mut self, task: TaskRef, resources: Resources) {
        if self.running.insert(task, resources).is_none() {
            self.used.cpu_milli += resources.cpu_milli;
            self.used.memory_bytes += resources.memory_bytes;
        }
    }

    /// A task that asks for more than the machine has gets the whole machine rather than waiting for ever.
    fn fitted(&self, wanted: Resources) -> Resources {
        Resources {
            cpu_milli: wanted.cpu_milli.min(self.capacity.cpu_milli),
            memory_bytes: wanted.memory_bytes.min(self.capacity.memory_bytes),
        }
    }
}

fn shortage(capacity: &Capacity, used: &Resources, running: usize, wanted: Resources) -> Option<Shortage> {
    let free_milli = capacity.cpu_milli.saturating_sub(used.cpu_milli);
    let free_bytes = capacity.memory_bytes.saturating_sub(used.memory_bytes);
    if running >= capacity.slots {
        Some(Shortage::Slots { running, slots: capacity.slots })
    } else if wanted.cpu_milli > free_milli {
        Some(Shortage::Cpu { wanted_milli: wanted.cpu_milli, free_milli })
    } else if wanted.memory_bytes > free_bytes {
        Some(Shortage::Memory { wanted_bytes: wanted.memory_bytes, free_bytes })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: Capacity = Capacity { slots: 2, cpu_milli: 2000, memory_bytes: 1000 };

    fn task(node: u32) -> TaskRef {
        TaskRef { run: RunId(1), node: NodeIx(node) }
    }

    fn cpu(cpu_milli: u64) -> Resources {
        Resources { cpu_milli, memory_bytes: 0 }
    }

    #[test]
    fn priority_goes_first_and_equals_go_in_order() {
        let mut scheduler = Scheduler::new(Capacity { slots: 9, ..CAPACITY });
        for (node, priority) in [(1, 0), (2, 5), (3, 0), (4, 5)] {
            scheduler.enqueue(task(node), priority, cpu(0));
        }
        let order: Vec<u32> = std::iter::from_fn(|| scheduler.pick(|_| true)).map(|task| task.node.0).collect();
        assert_eq!(order, [2, 4, 1, 3]);
    }

    #[test]
    fn slots_are_never_exceeded_and_come_back() {
        let mut scheduler = Scheduler::new(CAPACITY);
        (1..=3).for_each(|node| scheduler.enqueue(task(node), 0, cpu(0)));
        assert!(scheduler.pick(|_| true).is_some() && scheduler.pick(|_| true).is_some());
        assert_eq!(scheduler.pick(|_| true), None);
        assert_eq!(scheduler.head(), Some((task(3), Some(Shortage::Slots { running: 2, slots: 2 }))));
        scheduler.release(task(1));
        assert_eq!(scheduler.pick(|_| true), Some(task(3)));
    }

    #[test]
    fn a_task_bigger_than_the_machine_gets_the_whole_of_it() {
        let mut scheduler = Scheduler::new(CAPACITY);
        scheduler.enqueue(task(1), 0, cpu(64_000));
        scheduler.enqueue(task(2), 0, cpu(1));
        assert_eq!(scheduler.pick(|_| true), Some(task(1)));
        assert_eq!(scheduler.pick(|_| true), None);
        assert_eq!(scheduler.head(), Some((task(2), Some(Shortage::Cpu { wanted_milli: 1, free_milli: 0 }))));
        scheduler.release(task(1));
        assert_eq!(scheduler.pick(|_| true), Some(task(2)));
    }

    #[test]
    fn tasks_that_no_longer_wait_are_dropped() {
        let mut scheduler = Scheduler::new(CAPACITY);
        scheduler.enqueue(task(1), 0, cpu(0));
        scheduler.enqueue(task(2), 0, cpu(0));
        assert_eq!(scheduler.pick(|waiting| waiting != task(1)), Some(task(2)));
    }
}
