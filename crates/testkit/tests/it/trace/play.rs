//! Plays a trace of jobs on a scheduler in virtual time: tasks take as long as the trace says, and nothing else takes time.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    sync::Arc,
    time::Duration,
};

use octoflow_engine::schedule::{
    Decision, Gang, Scheduler, TaskRef,
    spec::{Demand, NodeSpec, QueueSpec, ResourceCapacity},
};
use octoflow_model::{NodeIx, RunId, Time, task::Resources};

const GPU: &str = "nvidia.com/gpu";
const BEGIN: Time = Time(1_700_000_000_000_000);

/// A job: tasks that start together, or one after another.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) arrival: Duration,
    /// How long each task runs.
    pub(super) length: Duration,
    /// Tasks one after another.
    pub(super) stages: u32,
    /// Tasks at once.
    pub(super) members: u32,
    pub(super) cpu_milli: u64,
    pub(super) gpus: u64,
    pub(super) queue: String,
    pub(super) tenant: String,
    pub(super) priority: i32,
    pub(super) bound: Option<Duration>,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            arrival: Duration::ZERO,
            length: Duration::ZERO,
            stages: 1,
            members: 1,
            cpu_milli: 1000,
            gpus: 0,
            queue: "default".to_owned(),
            tenant: "tenant".to_owned(),
            priority: 0,
            bound: None,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) nodes: Vec<NodeSpec>,
    pub(super) queues: Vec<QueueSpec>,
    pub(super) jobs: Vec<Job>,
    pub(super) preemptable: Option<bool>,
    pub(super) longest_wait: Option<Duration>,
}

/// What became of a trace.
#[derive(Debug, Default)]
pub(super) struct Played {
    pub(super) makespan: Duration,
    pub(super) started: usize,
    /// How long each task waited.
    waits: Vec<Duration>,
    /// Thousandths of a core times seconds, by queue.
    used: BTreeMap<String, f64>,
}

impl Played {
    pub(super) fn longest_wait(&self) -> Duration {
        self.waits.iter().copied().max().unwrap_or_default()
    }

    pub(super) fn used(&self, queue: &str) -> f64 {
        self.used.get(queue).copied().unwrap_or(0.0)
    }
}

pub(super) fn node(name: &str, amounts: &[(&str, u64)]) -> NodeSpec {
    let capacity =
        amounts.iter().map(|(name, amount)| ((*name).to_owned(), ResourceCapacity { amount: *amount, declared: true }));
    NodeSpec { capacity: capacity.collect(), open_ended: false, ..NodeSpec::measured(name, 0, 0, 0) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    End(TaskRef),
    Arrive(usize),
    Wake,
}

impl Job {
    fn amounts(&self) -> [(&'static str, u64); 2] {
        [("cpu", self.cpu_milli), (GPU, self.gpus)]
    }

    fn demand(&self, id: usize, trace: &Trace) -> Demand {
        let others = if self.gpus > 0 { BTreeMap::from([(GPU.to_owned(), self.gpus)]) } else { BTreeMap::new() };
        let gang = (self.members > 1).then(|| Gang {
            namespace: "n".into(),
            name: format!("g{id}").into(),
            own: Some(RunId(id as u64)),
            least: self.members,
            part: "".into(),
            least_of: Arc::default(),
        });
        Demand {
            queue: self.queue.as_str().into(),
            priority: self.priority,
            gang,
            preemptable: trace.preemptable,
            bound: self.bound,
            longest_wait: trace.longest_wait,
            ..Demand::new(self.tenant.as_str(), Resources { cpu_milli: self.cpu_milli, others, ..Resources::default() })
        }
    }
}

impl Trace {
    pub(super) fn tasks(&self) -> usize {
        self.jobs.iter().map(|job| (job.members * job.stages) as usize).sum()
    }

    /// No scheduler is faster: from any time on, what comes then has to be done with everything that there is, and a chain
    /// takes as long as its tasks.
    pub(super) fn lower_bound(&self) -> Duration {
        let chain = self.jobs.iter().map(|job| job.arrival + job.length * job.stages).max().unwrap_or_default();
        let mut longest = chain;
        for resource in ["cpu", GPU] {
            let has: u64 = self.nodes.iter().filter_map(|node| node.capacity.get(resource)).map(|has| has.amount).sum();
            let mut jobs: Vec<&Job> = self.jobs.iter().collect();
            jobs.sort_by_key(|job| Reverse(job.arrival));
            let mut work = 0.0;
            for job in jobs {
                let amount = job.amounts().iter().find(|(name, _)| *name == resource).map_or(0, |(_, amount)| *amount);
                work += (amount * u64::from(job.members * job.stages)) as f64 * job.length.as_secs_f64();
                longest = longest.max(job.arrival + Duration::from_secs_f64(work / has as f64));
            }
        }
        longest
    }

    pub(super) fn play(&self) -> Played {
        self.play_until(Duration::MAX)
    }

    /// Plays until everything has run, or until this time.
    pub(super) fn play_until(&self, until: Duration) -> Played {
        let mut scheduler = Scheduler::default();
        self.nodes.iter().for_each(|node| scheduler.put_node(node.clone()));
        self.queues.iter().for_each(|queue| scheduler.put_queue(queue.clone()));
        let mut events: BinaryHeap<Reverse<(Duration, Event)>> = BinaryHeap::new();
        for (id, job) in self.jobs.iter().enumerate() {
            events.push(Reverse((job.arrival, Event::Arrive(id))));
        }
        let mut played = Played::default();
        let mut since: BTreeMap<TaskRef, Duration> = BTreeMap::new();
        let demands: Vec<Arc<Demand>> =
            self.jobs.iter().enumerate().map(|(id, job)| Arc::new(job.demand(id, self))).collect();
        let mut woken = None;
        while let Some(Reverse((at, event))) = events.pop() {
            if at > until {
                break;
            }
            let now = BEGIN.saturating_add(at);
            let mut come = |scheduler: &mut Scheduler, task: TaskRef| {
                since.insert(task, at);
                scheduler.enqueue(task, demands[task.run.0 as usize].clone(), now);
            };
            match event {
                Event::Arrive(id) => {
                    for member in 0..self.jobs[id].members {
                        come(&mut scheduler, TaskRef { run: RunId(id as u64), node: NodeIx(member) });
                    }
                }
                Event::End(task) => {
                    scheduler.release(task, now);
                    let job = &self.jobs[task.run.0 as usize];
                    let stage = task.node.0 / job.members + 1;
                    if stage < job.stages {
                        come(&mut scheduler, TaskRef { node: NodeIx(task.node.0 + job.members), ..task });
                    } else if job.members > 1 && task.node.0 == 0 {
                        scheduler.leave(task.run);
                    }
                    played.makespan = at;
                }
                Event::Wake => woken = None,
            }
            // What happens at one moment is decided at once.
            if events.peek().is_some_and(|Reverse((next, _))| *next == at) {
                continue;
            }
            while let Some(decision) = scheduler.next(now, |_| true, |_| true) {
                let Decision::Start { task, .. } = decision else { panic!("nobody may be ended: {decision:?}") };
                let job = &self.jobs[task.run.0 as usize];
                played.started += 1;
                played.waits.push(at - since[&task]);
                let end = at + job.length;
                let counted = end.min(until).saturating_sub(at).as_secs_f64();
                *played.used.entry(job.queue.clone()).or_default() += job.cpu_milli as f64 * counted;
                events.push(Reverse((end, Event::End(task))));
            }
            let wake = scheduler.wake_at().map(|wake| wake.since(BEGIN).max(at));
            if let Some(wake) = wake.filter(|wake| woken.is_none_or(|woken| *wake < woken)) {
                woken = Some(wake);
                events.push(Reverse((wake, Event::Wake)));
            }
        }
        played
    }
}
