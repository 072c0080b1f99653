//! A naive scheduler beside the real one: after every event it recounts everything from the list of what waits and what
//! runs, without counters, and says whether what was decided was legal and whether something was forgotten.

use std::collections::BTreeSet;

use octoflow_model::task::placement::Assignment;
use proptest::prelude::*;

use super::*;

/// What the oracle knows of a task.
#[derive(Clone, Debug)]
struct Known {
    demand: Demand,
    since: Time,
    started: Option<(Time, Assignment)>,
    ending: bool,
}

#[derive(Clone, Debug)]
enum Event {
    Come {
        run: u64,
        queue: usize,
        tenant: usize,
        priority: i32,
        cpu: u64,
        gpus: u64,
        bound: Option<u64>,
        gang: Option<u32>,
    },
    /// One that runs ends.
    End(prop::sample::Index),
    /// One that waits is given up.
    Withdraw(prop::sample::Index),
    Wait(u64),
    Cordon {
        node: usize,
        cordoned: bool,
    },
    Resize {
        node: usize,
        cpu: u64,
    },
    Queue {
        queue: usize,
        capability: Option<u64>,
        guarantee: Option<u64>,
        deserved: Option<u64>,
        weight: u32,
    },
    Restart,
}

const QUEUES: [(&str, Option<&str>); 4] = [("a", Some("p")), ("b", Some("p")), ("c", None), ("default", None)];

fn event() -> impl Strategy<Value = Event> {
    let cpu = prop::sample::select(vec![0_u64, 500, 500, 1000, 2000, 4000, 7000]);
    let come = (
        1..6_u64,
        0..4_usize,
        0..3_usize,
        0..3_i32,
        cpu,
        0..3_u64,
        prop::option::of(1..200_u64),
        prop::option::weighted(0.2, 2..5_u32),
    );
    prop_oneof![
        12 => come.prop_map(|(run, queue, tenant, priority, cpu, gpus, bound, gang)| Event::Come {
            run, queue, tenant, priority, cpu, gpus, bound, gang,
        }),
        9 => any::<prop::sample::Index>().prop_map(Event::End),
        1 => any::<prop::sample::Index>().prop_map(Event::Withdraw),
        4 => (1..400_u64).prop_map(Event::Wait),
        1 => (0..3_usize, any::<bool>()).prop_map(|(node, cordoned)| Event::Cordon { node, cordoned }),
        1 => (0..3_usize, 1..9_u64).prop_map(|(node, cpu)| Event::Resize { node, cpu: cpu * 1000 }),
        1 => (0..3_usize, prop::option::of(1..9_u64), prop::option::of(0..4_u64), prop::option::of(0..9_u64), 1..4_u32).prop_map(
            |(queue, capability, guarantee, deserved, weight)| Event::Queue {
                queue,
                capability: capability.map(|cores| cores * 1000),
                guarantee: guarantee.map(|cores| cores * 1000),
                deserved: deserved.map(|cores| cores * 1000),
                weight,
            }
        ),
        1 => Just(Event::Restart),
    ]
}

struct World {
    stage: Stage,
    nodes: Vec<NodeSpec>,
    queues: Vec<QueueSpec>,
    tasks: BTreeMap<TaskRef, Known>,
    /// Gangs that have started; from then on their members are tasks like others.
    formed: BTreeSet<String>,
    next: u32,
}

impl World {
    fn new() -> Self {
        let nodes = vec![
            declared("x", &[("cpu", 4000), ("pods", 5), ("gpu", 2)]),
            declared("y", &[("cpu", 8000), ("pods", 8)]),
            declared("z", &[("cpu", 2000), ("pods", 3), ("gpu", 1)]),
        ];
        let mut queues: Vec<QueueSpec> = QUEUES
            .iter()
            .map(|(name, parent)| QueueSpec { parent: parent.map(Into::into), ..QueueSpec::new(*name) })
            .collect();
        queues.push(QueueSpec::new("p"));
        let mut world = Self {
            stage: Stage::declared(&[]),
            nodes,
            queues,
            tasks: BTreeMap::new(),
            formed: BTreeSet::new(),
            next: 0,
        };
        world.restart();
        world
    }

    /// Makes a new scheduler of what is known, as a restart does.
    fn restart(&mut self) {
        let mut scheduler = Scheduler::default();
        self.nodes.iter().for_each(|node| scheduler.put_node(node.clone()));
        self.queues.iter().for_each(|queue| scheduler.put_queue(queue.clone()));
        for (task, known) in &self.tasks {
            if let Some((started, assignment)) = &known.started {
                scheduler.adopt(*task, Arc::new(known.demand.clone()), Some(assignment), *started);
                if let Some(gang) = &known.demand.gang {
                    scheduler.join(*task, gang);
                }
            }
        }
        for (task, known) in &self.tasks {
            if known.started.is_none() {
                scheduler.enqueue(*task, Arc::new(known.demand.clone()), known.since);
            }
        }
        self.stage.scheduler = scheduler;
        self.tasks.values_mut().for_each(|known| known.ending = false);
    }

    fn running(&self) -> Vec<TaskRef> {
        self.tasks.iter().filter(|(_, known)| known.started.is_some()).map(|(task, _)| *task).collect()
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Come { run, queue, tenant, priority, cpu: milli, gpus, bound, gang } => {
                self.next += 1;
                let others = if *gpus > 0 { quantities(&[("gpu", *gpus)]) } else { Quantities::new() };
                let gang = gang.map(|least| Gang {
                    namespace: "n".into(),
                    name: format!("{run}-{least}").into(),
                    own: None,
                    least,
                    part: "".into(),
                    least_of: Arc::default(),
                });
                let demand = Demand {
                    queue: QUEUES[if gang.is_some() { 0 } else { *queue }].0.into(),
                    priority: *priority,
                    gang,
                    bound: bound.map(Duration::from_secs),
                    ..Demand::new(["t", "u", "v"][*tenant], Resources { others, ..cpu(*milli) })
                };
                let at = task(*run, self.next);
                self.stage.enqueue(at, demand.clone());
                self.tasks.insert(at, Known { demand, since: self.stage.now, started: None, ending: false });
            }
            Event::End(which) => {
                let running = self.running();
                if !running.is_empty() {
                    self.over(*which.get(&running));
                }
            }
            Event::Withdraw(which) => {
                let waiting: Vec<TaskRef> =
                    self.tasks.iter().filter(|(_, known)| known.started.is_none()).map(|(task, _)| *task).collect();
                if !waiting.is_empty() {
                    self.over(*which.get(&waiting));
                }
            }
            Event::Wait(seconds) => self.stage.wait(*seconds),
            Event::Cordon { node, cordoned } => {
                self.nodes[*node].cordoned = *cordoned;
                self.stage.scheduler.put_node(self.nodes[*node].clone());
            }
            Event::Resize { node, cpu } => {
                self.nodes[*node].capacity.insert("cpu".to_owned(), Capacity { amount: *cpu, declared: true });
                self.stage.scheduler.put_node(self.nodes[*node].clone());
            }
            Event::Queue { queue, capability, guarantee, deserved, weight } => {
                let stated =
                    |amount: &Option<u64>| amount.map_or_else(Quantities::new, |amount| quantities(&[("cpu", amount)]));
                let spec = &mut self.queues[*queue];
                (spec.capability, spec.guarantee, spec.deserved) =
                    (stated(capability), stated(guarantee), stated(deserved));
                spec.weight = *weight;
                self.stage.scheduler.put_queue(spec.clone());
            }
            Event::Restart => self.restart(),
        }
    }

    fn over(&mut self, task: TaskRef) {
        self.stage.scheduler.release(task, self.stage.now);
        self.tasks.remove(&task);
    }

    /// Returns what tasks of a queue and below use of a resource, recounted.
    fn used_by(&self, queue: &str, resource: &str) -> u64 {
        let below = |name: &str| {
            name == queue || self.queues.iter().any(|one| &*one.name == name && one.parent.as_deref() == Some(queue))
        };
        let running = self.tasks.values().filter(|known| known.started.is_some() && below(&known.demand.queue));
        running.map(|known| wants(&known.demand, resource)).sum()
    }

    fn used_on(&self, node: &str, resource: &str) -> u64 {
        let here = |known: &&Known| known.started.as_ref().is_some_and(|(_, on)| on.node == node);
        self.tasks.values().filter(here).map(|known| wants(&known.demand, resource)).sum()
    }

    /// Reports whether quotas of its queue and those above leave room for so many of a task.
    fn within_quota(&self, demand: &Demand, count: u64) -> bool {
        let leaf = self.queues.iter().find(|queue| queue.name == demand.queue);
        let path = leaf
            .into_iter()
            .chain(self.queues.iter().filter(|one| leaf.is_some_and(|leaf| leaf.parent.as_ref() == Some(&one.name))));
        let mut capable = true;
        for queue in path {
            for (resource, most) in &queue.capability {
                let more = wants(demand, resource) * count;
                capable &= more == 0 || self.used_by(&queue.name, resource) + more <= *most;
            }
        }
        capable
    }

    fn fits(&self, demand: &Demand, node: &NodeSpec) -> bool {
        !node.cordoned
            && ["cpu", "pods", "gpu"].iter().all(|resource| {
                let more = wants(demand, resource);
                let has = node.capacity.get(*resource).map_or(0, |has| has.amount);
                more == 0 || self.used_on(&node.name, resource) + more <= has
            })
    }

    fn check_sums(&self) {
        let scheduler = &self.stage.scheduler;
        for node in &self.nodes {
            let kept = scheduler.room.find(&node.name).and_then(|at| scheduler.room.get(at)).unwrap();
            for resource in ["cpu", "pods", "gpu"] {
                let index = scheduler.names.find(resource).unwrap_or(usize::MAX);
                assert_eq!(kept.used().get(index), self.used_on(&node.name, resource), "{resource} of {}", node.name);
            }
        }
        for queue in &self.queues {
            let kept = scheduler.tree.get(scheduler.tree.find(&queue.name).unwrap());
            for resource in ["cpu", "pods", "gpu"] {
                let index = scheduler.names.find(resource).unwrap_or(usize::MAX);
                assert_eq!(
                    kept.allocated().get(index),
                    self.used_by(&queue.name, resource),
                    "{resource} of {}",
                    queue.name
                );
            }
        }
        let mut devices = BTreeSet::new();
        for (_, on) in self.tasks.values().filter_map(|known| known.started.as_ref()) {
            for device in on.devices.values().flatten() {
                assert!(devices.insert((on.node.clone(), *device)), "a device was handed out twice");
            }
        }
        let waiting = self.tasks.values().filter(|known| known.started.is_none()).count();
        assert_eq!(scheduler.waiting(), waiting);
        assert_eq!(scheduler.running(), self.tasks.len() - waiting);
    }

    fn decide(&mut self) {
        let mut started: BTreeMap<String, u32> = BTreeMap::new();
        while let Some(decision) = self.stage.scheduler.next(self.stage.now, |_| true, |_| true) {
            match decision {
                Decision::Start { task, assignment } => {
                    let known = self.tasks.get(&task).unwrap_or_else(|| panic!("{task:?} is unknown")).clone();
                    assert!(known.started.is_none(), "{task:?} started twice");
                    let node = self.nodes.iter().find(|node| *node.name == assignment.node).expect("a node of ours");
                    assert!(self.fits(&known.demand, node), "{task:?} does not fit on {}", node.name);
                    assert!(self.within_quota(&known.demand, 1), "{task:?} is beyond the quota of its queue");
                    let gpus = assignment.devices.get("gpu").map_or(0, Vec::len) as u64;
                    assert_eq!(gpus, wants(&known.demand, "gpu"));
                    if let Some(gang) = &known.demand.gang {
                        started.insert(gang.name.to_string(), gang.least);
                    }
                    self.tasks.get_mut(&task).unwrap().started = Some((self.stage.now, assignment));
                }
                Decision::Preempt(preemption) => {
                    let victim = self.tasks.get_mut(&preemption.victim).expect("a victim is known");
                    assert!(
                        victim.started.is_some() && !victim.ending,
                        "{preemption:?}: it does not run, or ends already"
                    );
                    assert_ne!(victim.demand.preemptable, Some(false));
                    victim.ending = true;
                    assert!(self.tasks[&preemption.by].started.is_none());
                    let queues =
                        (&self.tasks[&preemption.by].demand.queue, &self.tasks[&preemption.victim].demand.queue);
                    assert_ne!(queues.0, queues.1, "there are no classes here, so nobody is ended in its own queue");
                }
            }
        }
        for (name, least) in started {
            if self.formed.insert(name.clone()) {
                let of_gang = |known: &&Known| known.demand.gang.as_ref().is_some_and(|gang| *gang.name == *name);
                let running = self.tasks.values().filter(of_gang).filter(|known| known.started.is_some()).count();
                assert!(running >= least as usize, "{running} of gang {name} started, and {least} have to");
            }
        }
    }

    /// Checks that nobody who could start was forgotten: the first of each queue starts if anything allows it.
    fn check_nothing_due(&self) {
        let scheduler = &self.stage.scheduler;
        if !scheduler.nominees.is_empty() || self.queues.iter().any(|queue| !queue.guarantee.is_empty()) {
            return;
        }
        for queue in QUEUES.iter().map(|(name, _)| *name) {
            let leaf = scheduler.tree.find(queue).unwrap();
            let first = scheduler.tree.get(leaf).leaf.all(self.stage.now).first().copied();
            let Some(unit) = first.and_then(|at| scheduler.units.get(at)) else { continue };
            let demand = &self.tasks[&unit.task].demand;
            if unit.gang.is_none() && self.within_quota(demand, 1) {
                let free = self.nodes.iter().find(|node| self.fits(demand, node));
                assert!(
                    free.is_none(),
                    "{:?} is the first of {queue} and fits on {:?}",
                    unit.task,
                    free.map(|node| &node.name)
                );
            }
        }
    }
}

fn wants(demand: &Demand, resource: &str) -> u64 {
    match resource {
        "pods" => 1,
        "cpu" => demand.resources.cpu_milli,
        other => demand.resources.others.get(other).copied().unwrap_or(0),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_start_is_legal_sums_are_true_and_nobody_is_forgotten(events in prop::collection::vec(event(), 1..120)) {
        let mut world = World::new();
        for event in &events {
            world.apply(event);
            world.decide();
            world.check_sums();
            world.check_nothing_due();
            // Victims end within their grace.
            let ending: Vec<TaskRef> =
                world.tasks.iter().filter(|(_, known)| known.ending).map(|(task, _)| *task).collect();
            for victim in ending {
                let known = world.tasks[&victim].clone();
                world.over(victim);
                world.stage.scheduler.enqueue(victim, Arc::new(known.demand.clone()), known.since);
                world.tasks.insert(victim, Known { started: None, ending: false, ..known });
                world.decide();
                world.check_sums();
            }
        }
    }
}
