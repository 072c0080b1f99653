//! A simulated cluster: nodes, a tree of queues, and tasks of a few shapes. Tasks end when the measurement says so.

use std::{collections::HashMap, sync::Arc, time::Duration};

use octoflow_engine::schedule::{
    Decision, Gang, Scheduler, TaskRef,
    spec::{Demand, NodeSpec, QueueSpec, ResourceCapacity},
};
use octoflow_model::{
    NodeIx, RunId, Time,
    task::{Resources, placement::Assignment},
};

pub(super) const NODES: u32 = 100;
const QUEUES: u32 = 50;
const PARENTS: u32 = 5;
const SHAPES: u32 = 20;
const TENANTS: u32 = 3;
/// Tasks of one run.
const TASKS: u32 = 10;
const CPU: u64 = 32_000;
const MEMORY: u64 = 128 << 30;

/// A task as the measurement remembers it.
#[derive(Clone)]
pub(super) struct Known {
    pub task: TaskRef,
    pub demand: Arc<Demand>,
    pub since: Time,
    /// The number of its node, once it runs.
    pub node: usize,
}

pub(super) struct World {
    scheduler: Scheduler,
    demands: Vec<Arc<Demand>>,
    pub waiting: Vec<Known>,
    pub running: Vec<Known>,
    /// Tasks that were ended for others; there are none where everybody only waits for room.
    pub preempted: Vec<TaskRef>,
    wanted: usize,
    tasks: u32,
    now: Time,
    seed: u64,
}

impl World {
    /// A cluster that is full, with so many tasks waiting.
    pub(super) fn new(waiting: u32) -> Self {
        let mut world = Self::empty(CPU, MEMORY);
        for parent in 0..PARENTS {
            world.scheduler.put_queue(QueueSpec { weight: parent + 1, ..QueueSpec::new(format!("p{parent}")) });
        }
        for queue in 0..QUEUES {
            let parent = Some(format!("p{}", queue % PARENTS).into());
            let spec =
                QueueSpec { parent, weight: queue % 3 + 1, reclaimable: false, ..QueueSpec::new(format!("q{queue}")) };
            world.scheduler.put_queue(spec);
        }
        for at in 0..QUEUES * SHAPES * TENANTS {
            let (queue, shape, tenant) = (at % QUEUES, at / QUEUES % SHAPES, at / QUEUES / SHAPES);
            let resources = Resources {
                cpu_milli: 500 << (shape % 5),
                memory_bytes: (1 << 30) << (shape / 5),
                ..Resources::default()
            };
            let demand = Demand {
                queue: format!("q{queue}").into(),
                bound: (shape % 2 == 0).then_some(Duration::from_secs(600)),
                ..Demand::new(format!("tenant-{tenant}"), resources)
            };
            world.demands.push(Arc::new(demand));
        }
        world.wanted = waiting as usize;
        world.refill();
        world
    }

    fn empty(cpu: u64, memory: u64) -> Self {
        let mut scheduler = Scheduler::default();
        for node in 0..NODES {
            let declared = |amount| ResourceCapacity { amount, declared: true };
            let capacity = [("cpu", declared(cpu)), ("memory", declared(memory)), ("pods", declared(1000))];
            scheduler.put_node(NodeSpec {
                capacity: capacity.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect(),
                open_ended: false,
                ..NodeSpec::measured(format!("n{node}"), 0, 0, 0)
            });
        }
        let now = Time::from_secs(1_000_000);
        let (demands, waiting, running) = (Vec::new(), Vec::new(), Vec::new());
        Self { scheduler, demands, waiting, running, preempted: Vec::new(), wanted: 0, tasks: 0, now, seed: 7 }
    }

    /// A cluster full of small tasks of one queue, which uses twice what it deserves.
    pub(super) fn full(running: u32) -> Self {
        let each = running / NODES;
        let mut world = Self::empty(u64::from(each) * 1000, MEMORY);
        world.scheduler.put_queue(QueueSpec::new("rich"));
        world.scheduler.put_queue(QueueSpec::new("poor"));
        let small = Resources { cpu_milli: 1000, ..Resources::default() };
        let demand = Arc::new(Demand { queue: "rich".into(), ..Demand::new("tenant", small) });
        for at in 0..each * NODES {
            let task = TaskRef { run: RunId(u64::from(at / TASKS)), node: NodeIx(at) };
            let assignment = Assignment { node: format!("n{}", at % NODES), ..Assignment::default() };
            // Those of one node have not started one after another.
            let started = Time::from_secs(900_000 + (world.draw() % 90_000) as i64);
            world.scheduler.adopt(task, demand.clone(), Some(&assignment), started);
        }
        while world.scheduler.next(world.now, |_| true, |_| true).is_some() {}
        world
    }

    /// Somebody of the other queue wants a large part of one node, or several of many.
    pub(super) fn want_room(&mut self, gang: bool) {
        let large = Resources { cpu_milli: 8_000, ..Resources::default() };
        let members = if gang { 50 } else { 1 };
        for at in 0..members {
            let group = Gang {
                namespace: "default".into(),
                name: "gang".into(),
                own: None,
                least: members,
                part: "".into(),
                least_of: Arc::default(),
            };
            let gang = gang.then_some(group);
            let demand = Demand { queue: "poor".into(), gang, ..Demand::new("other", large.clone()) };
            let task = TaskRef { run: RunId(u64::MAX), node: NodeIx(at) };
            self.scheduler.enqueue(task, Arc::new(demand), self.now);
        }
    }

    /// Whether the first decision is to end somebody.
    pub(super) fn first_victim(&mut self) -> bool {
        matches!(self.scheduler.next(self.now, |_| true, |_| true), Some(Decision::Preempt(_)))
    }

    /// A number of a simple generator; the same in every run.
    fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.seed >> 33
    }

    /// Queues tasks until as many wait as should, and starts those that have room.
    pub(super) fn refill(&mut self) {
        while self.waiting.len() < self.wanted {
            while self.waiting.len() < self.wanted {
                self.tasks += 1;
                let task = TaskRef { run: RunId(u64::from(self.tasks / TASKS)), node: NodeIx(self.tasks) };
                // All tasks of a run are in one queue and of one tenant; their shapes differ.
                let place = (self.tasks / TASKS).wrapping_mul(2_654_435_761);
                let (queue, tenant) = (place % QUEUES, place / QUEUES % TENANTS);
                let shape = self.draw() as u32 % SHAPES;
                let demand = self.demands[((tenant * SHAPES + shape) * QUEUES + queue) as usize].clone();
                self.scheduler.enqueue(task, demand.clone(), self.now);
                self.waiting.push(Known { task, demand, since: self.now, node: 0 });
            }
            self.start();
        }
    }

    fn start(&mut self) {
        let mut started = Vec::new();
        self.decide(&mut started);
        self.note(&started);
    }

    fn decide(&mut self, started: &mut Vec<(TaskRef, Assignment)>) {
        while let Some(decision) = self.scheduler.next(self.now, |_| true, |_| true) {
            match decision {
                Decision::Start { task, assignment } => started.push((task, assignment)),
                Decision::Preempt(preemption) => self.preempted.push(preemption.victim),
            }
        }
    }

    /// Draws running tasks that end next.
    pub(super) fn draw_ends(&mut self, count: usize) -> Vec<TaskRef> {
        let mut drawn = Vec::with_capacity(count);
        for _ in 0..count.min(self.running.len()) {
            let place = self.draw() as usize % self.running.len();
            drawn.push(self.running.swap_remove(place).task);
        }
        drawn
    }

    /// Ends a task, and adds those who start in its place.
    pub(super) fn end(&mut self, task: TaskRef, started: &mut Vec<(TaskRef, Assignment)>) {
        self.now = self.now.saturating_add(Duration::from_millis(10));
        self.scheduler.release(task, self.now);
        self.decide(started);
    }

    /// Moves tasks that were started from one list to the other.
    pub(super) fn note(&mut self, started: &[(TaskRef, Assignment)]) {
        let nodes: HashMap<TaskRef, &str> =
            started.iter().map(|(task, assignment)| (*task, assignment.node.as_str())).collect();
        let (began, waiting): (Vec<Known>, Vec<Known>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|one| nodes.contains_key(&one.task));
        self.waiting = waiting;
        for mut known in began {
            known.node = nodes[&known.task].trim_start_matches('n').parse().unwrap_or_default();
            self.running.push(known);
        }
    }

    /// What each queue has to share by: the number of its parent and of itself.
    pub(super) fn queue_of(demand: &Demand) -> (usize, usize) {
        let queue: usize = demand.queue.trim_start_matches('q').parse().unwrap_or_default();
        (queue % PARENTS as usize, queue)
    }

    pub(super) const fn sizes() -> (usize, usize) {
        (PARENTS as usize, QUEUES as usize)
    }

    pub(super) const fn node_amounts() -> [u64; 2] {
        [CPU, MEMORY]
    }
}
