//! One scheduler in a random world, driven as the engine drives it, and what must be true of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use octoflow_engine::schedule::{
    Decision, Gang, Preemption, PreemptionReason, Scheduler, TaskRef,
    spec::{ClassSpec, Demand, NodeSpec, Quantities, QueueSpec, ResourceCapacity},
};
use octoflow_model::{
    NodeIx, RunId, Time,
    task::{
        Resources,
        placement::{NodeConstraints, Taint, TaintEffect, Toleration},
    },
};
use octoflow_testkit::recount::{
    Holder, Recount,
    gang::{Key, StartedGangs, key},
};

const QUEUES: [(&str, Option<&str>); 5] =
    [("a", Some("p")), ("b", Some("p")), ("c", None), ("p", None), ("default", None)];
/// Queues that take tasks.
const LEAVES: [&str; 5] = ["a", "b", "c", "default", "unknown"];
const CLASSES: [(&str, i32, bool); 2] = [("low", 10, false), ("high", 1000, true)];
const NODES: [&str; 5] = ["v", "w", "x", "y", "z"];
const ZONES: [&str; 2] = ["east", "west"];
const GPU: &str = "nvidia.com/gpu";
/// After so many seconds in which nothing happens, nothing is decided any more.
const ROUNDS_OF_REST: usize = 20;

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) run: u64,
    pub(super) queue: usize,
    pub(super) tenant: usize,
    pub(super) priority: i32,
    pub(super) cpu: u64,
    pub(super) gpus: u64,
    pub(super) bound: Option<u64>,
    pub(super) gang: bool,
    pub(super) class: Option<usize>,
    pub(super) preemptable: Option<bool>,
    pub(super) zone: Option<usize>,
    pub(super) tolerates: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: usize,
    pub(super) cpu: u64,
    pub(super) pods: u64,
    pub(super) gpus: u64,
    pub(super) zone: usize,
    pub(super) cordoned: bool,
    pub(super) tainted: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Event {
    Come(Task),
    /// One that runs ends.
    End(usize),
    /// One that waits is given up.
    Withdraw(usize),
    Wait(u64),
    /// A node joins or changes.
    Node(Node),
    /// A node is gone; its tasks are lost a little later.
    Vanish(usize),
    Drain(usize),
    Queue {
        queue: usize,
        capability: Option<u64>,
        guarantee: Option<u64>,
        deserved: Option<u64>,
        weight: u32,
        reclaimable: bool,
        strict: bool,
        priority: i32,
    },
    DeleteQueue(usize),
    Restart,
    /// A run has, or no longer has, more to decide than one input may.
    Ready {
        run: u64,
        ready: bool,
    },
}

/// A unit whose victims are ending.
pub(super) struct Nominee {
    by: TaskRef,
    demands: Vec<Arc<Demand>>,
    /// Tasks that were being ended when it was promised their room.
    victims: BTreeSet<TaskRef>,
    /// True if something has changed since that may keep it from starting.
    disturbed: bool,
}

/// How often something happened that is judged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) starts: usize,
    pub(super) gangs: usize,
    pub(super) reclaimed: usize,
    pub(super) lower_class: usize,
    pub(super) gangs_ended: usize,
    pub(super) proposals: usize,
}

impl Seen {
    pub(super) fn add(&mut self, other: &Self) {
        self.starts += other.starts;
        self.gangs += other.gangs;
        self.reclaimed += other.reclaimed;
        self.lower_class += other.lower_class;
        self.gangs_ended += other.gangs_ended;
        self.proposals += other.proposals;
    }
}

pub(super) struct World {
    pub(super) scheduler: Scheduler,
    pub(super) count: Recount,
    pub(super) waiting: BTreeMap<TaskRef, (Arc<Demand>, Time)>,
    /// Since when tasks that run had waited; they keep their place if they are preempted.
    since: BTreeMap<TaskRef, Time>,
    pub(super) gangs: StartedGangs,
    pub(super) nominees: Vec<Nominee>,
    /// Who was ended for whom since something happened.
    ended_for: BTreeSet<(TaskRef, TaskRef)>,
    pub(super) busy: BTreeSet<RunId>,
    pub(super) now: Time,
    /// True if time has passed since something else happened or was decided: victims are looked for once in a second.
    pub(super) rested: bool,
    /// When the scheduler last decided: its order is that of then.
    looked: Time,
    next: u32,
    pub(super) seen: Seen,
}

fn node_spec(node: &Node) -> NodeSpec {
    let declared = |amount| ResourceCapacity { amount, declared: true };
    let capacity = [("cpu", node.cpu * 1000), ("pods", node.pods), (GPU, node.gpus)];
    let taint = Taint { key: "spot".to_owned(), value: String::new(), effect: TaintEffect::NoSchedule, added: None };
    NodeSpec {
        capacity: capacity.into_iter().map(|(name, amount)| (name.to_owned(), declared(amount))).collect(),
        open_ended: false,
        labels: BTreeMap::from([("zone".to_owned(), ZONES[node.zone].to_owned())]),
        labels_declared: true,
        taints: if node.tainted { vec![taint] } else { Vec::new() },
        cordoned: node.cordoned,
        ..NodeSpec::measured(NODES[node.name], 0, 0, 0)
    }
}

impl World {
    pub(super) fn new() -> Self {
        let mut count = Recount::default();
        for (name, cpu, pods, gpus) in [(2, 4, 5, 2), (3, 8, 8, 0), (4, 2, 3, 1)] {
            let node = Node { name, cpu, pods, gpus, zone: name % 2, cordoned: false, tainted: false };
            count.declared.nodes.insert(NODES[name].to_owned(), node_spec(&node));
        }
        for (name, parent) in QUEUES {
            let spec = QueueSpec { parent: parent.map(Into::into), ..QueueSpec::new(name) };
            count.declared.queues.insert(name.to_owned(), spec);
        }
        for (name, value, preempts) in CLASSES {
            count.declared.classes.insert(name.to_owned(), ClassSpec { value, preempts });
        }
        let mut world = Self {
            scheduler: Scheduler::default(),
            count,
            waiting: BTreeMap::new(),
            since: BTreeMap::new(),
            gangs: StartedGangs::default(),
            nominees: Vec::new(),
            ended_for: BTreeSet::new(),
            busy: BTreeSet::new(),
            now: Time::from_secs(1000),
            rested: false,
            looked: Time(0),
            next: 0,
            seen: Seen::default(),
        };
        world.restart();
        world
    }

    /// Makes a new scheduler of what is known, as a restart does.
    fn restart(&mut self) {
        let mut scheduler = Scheduler::default();
        let declared = &self.count.declared;
        declared.nodes.values().for_each(|node| scheduler.put_node(node.clone()));
        declared.queues.values().for_each(|queue| scheduler.put_queue(queue.clone()));
        declared.classes.iter().for_each(|(name, class)| scheduler.put_class(name, Some(*class), false));
        for (task, holder) in &self.count.holders {
            scheduler.adopt(*task, holder.demand.clone(), Some(&holder.assignment), holder.started);
            if holder.ending {
                scheduler.set_ending(*task);
            }
        }
        for (task, gang) in self.gangs.all() {
            scheduler.join(task, gang);
        }
        for (task, (demand, since)) in &self.waiting {
            scheduler.enqueue(*task, demand.clone(), *since);
        }
        self.scheduler = scheduler;
        self.nominees.clear();
    }

    pub(super) fn apply(&mut self, event: &Event) {
        self.ended_for.clear();
        self.rested = matches!(event, Event::Wait(_));
        match event {
            Event::Come(task) => self.come(task),
            Event::End(which) => {
                let running: Vec<TaskRef> = self.count.holders.keys().copied().collect();
                if !running.is_empty() {
                    let task = running[which % running.len()];
                    if self.count.holders[&task].ending { self.end_victim(task) } else { self.over(task) }
                }
            }
            Event::Withdraw(which) => {
                let waiting: Vec<TaskRef> = self.waiting.keys().copied().collect();
                if !waiting.is_empty() {
                    let task = waiting[which % waiting.len()];
                    self.over(task);
                    self.disturb();
                }
            }
            Event::Wait(seconds) => self.now = self.now.saturating_add(Duration::from_secs(*seconds)),
            Event::Node(node) => {
                let spec = node_spec(node);
                // Whatever ran on a node of this name when it was lost may still run there.
                self.count.declared.nodes.insert(NODES[node.name].to_owned(), spec.clone());
                self.scheduler.put_node(spec);
                self.disturb();
            }
            Event::Vanish(node) => self.vanish(NODES[*node]),
            Event::Drain(node) => self.drain(NODES[*node]),
            Event::Queue { queue, capability, guarantee, deserved, weight, reclaimable, strict, priority } => {
                let stated = |cores: &Option<u64>| {
                    cores.iter().map(|cores| ("cpu".to_owned(), cores * 1000)).collect::<Quantities>()
                };
                let (name, parent) = QUEUES[*queue];
                let spec = QueueSpec {
                    parent: parent.map(Into::into),
                    capability: stated(capability),
                    guarantee: stated(guarantee),
                    deserved: stated(deserved),
                    weight: *weight,
                    reclaimable: *reclaimable,
                    strict: *strict,
                    priority: *priority,
                    ..QueueSpec::new(name)
                };
                // A queue is created below one that exists.
                if parent.is_none_or(|parent| self.count.declared.queues.contains_key(parent)) {
                    self.count.declared.queues.insert(name.to_owned(), spec.clone());
                    self.scheduler.put_queue(spec);
                    self.disturb();
                }
            }
            Event::DeleteQueue(queue) => {
                let name = QUEUES[*queue].0;
                let used = |queue: &str| queue == name;
                let works = self.count.holders.values().any(|holder| used(&holder.demand.queue))
                    || self.waiting.values().any(|(demand, _)| used(&demand.queue));
                if !works
                    && self.count.declared.children(name).is_empty()
                    && self.count.declared.queues.remove(name).is_some()
                {
                    assert!(!self.scheduler.has_work(name), "{name} has no work");
                    self.scheduler.remove_queue(name);
                    self.disturb();
                }
            }
            Event::Restart => self.restart(),
            Event::Ready { run, ready } => {
                if *ready {
                    self.busy.remove(&RunId(*run));
                } else {
                    self.busy.insert(RunId(*run));
                }
                self.disturb();
            }
        }
    }

    /// Notes that what was promised to nominees may not hold any more.
    fn disturb(&mut self) {
        self.nominees.iter_mut().for_each(|nominee| nominee.disturbed = true);
    }

    fn come(&mut self, task: &Task) {
        self.next += 1;
        let others = if task.gpus > 0 { BTreeMap::from([(GPU.to_owned(), task.gpus)]) } else { BTreeMap::new() };
        let least = 2 + (task.run % 3) as u32;
        let gang = task.gang.then(|| Gang {
            namespace: "n".into(),
            name: format!("g{}", task.run).into(),
            own: task.run.is_multiple_of(2).then_some(RunId(task.run)),
            least,
            part: ["one", "two"][task.tenant % 2].into(),
            least_of: Arc::new(if least == 4 { BTreeMap::from([("two".to_owned(), 1)]) } else { BTreeMap::new() }),
        });
        let selector = task.zone.map(|zone| ("zone".to_owned(), ZONES[zone].to_owned())).into_iter().collect();
        let toleration = Toleration { key: "spot".to_owned(), exists: true, ..Toleration::default() };
        let tolerations = if task.tolerates { vec![toleration] } else { Vec::new() };
        let demand = Demand {
            // All members of a gang wait in one queue.
            queue: LEAVES[if task.gang { task.run as usize % 3 } else { task.queue }].into(),
            priority: task.priority,
            class: task.class.map(|class| CLASSES[class].0.into()),
            gang,
            constraints: Arc::new(NodeConstraints { selector, tolerations, ..NodeConstraints::default() }),
            preemptable: task.preemptable,
            bound: task.bound.map(Duration::from_secs),
            ..Demand::new(
                ["t", "u", "v"][task.tenant],
                Resources { cpu_milli: task.cpu, others, ..Resources::default() },
            )
        };
        let at = TaskRef { run: RunId(task.run), node: NodeIx(self.next) };
        let demand = Arc::new(demand);
        self.scheduler.enqueue(at, demand.clone(), self.now);
        self.waiting.insert(at, (demand, self.now));
    }

    /// A task is over, or is given up.
    fn over(&mut self, task: TaskRef) {
        self.scheduler.release(task, self.now);
        self.count.holders.remove(&task);
        self.waiting.remove(&task);
        for nominee in &mut self.nominees {
            nominee.victims.remove(&task);
        }
        self.nominees.retain(|nominee| nominee.by != task);
    }

    /// A task that was ended for another is over and waits again, where it waited before.
    fn end_victim(&mut self, task: TaskRef) {
        let Some(holder) = self.count.holders.get(&task).cloned() else { return };
        self.over(task);
        let since = self.since[&task];
        self.scheduler.enqueue(task, holder.demand.clone(), since);
        self.waiting.insert(task, (holder.demand, since));
    }

    fn vanish(&mut self, name: &str) {
        if self.count.declared.nodes.remove(name).is_none() {
            return;
        }
        self.scheduler.remove_node(name);
        self.disturb();
    }

    fn drain(&mut self, name: &str) {
        let Some(spec) = self.count.declared.nodes.get_mut(name) else { return };
        spec.cordoned = true;
        self.scheduler.put_node(spec.clone());
        let on_node = self.scheduler.tasks_on_node(name);
        let counted = self.count.holders.iter().filter(|(_, holder)| holder.assignment.node == name);
        let counted: BTreeSet<TaskRef> = counted.map(|(task, _)| *task).collect();
        assert_eq!(on_node.iter().copied().collect::<BTreeSet<_>>(), counted, "tasks on {name}");
        for task in on_node {
            if let Some(holder) = self.count.holders.get_mut(&task).filter(|holder| !holder.ending) {
                holder.ending = true;
                self.quit(task);
            }
        }
        self.disturb();
    }

    fn quit(&mut self, task: TaskRef) {
        self.scheduler.set_ending(task);
        self.scheduler.quit_gang(task);
        self.gangs.quit(task);
    }

    pub(super) fn decide(&mut self) {
        let mut batch: Vec<Preemption> = Vec::new();
        let mut before = (self.count.clone(), self.gangs.clone());
        loop {
            let busy = &self.busy;
            let promised: BTreeSet<TaskRef> = self.scheduler.promised().collect();
            let settled =
                self.looked == self.now && promised.is_empty() && !self.count.holders.values().any(|one| one.ending);
            let heads = if settled { self.heads() } else { BTreeMap::new() };
            self.looked = self.now;
            let decision = self.scheduler.next(self.now, |_| true, |run| !busy.contains(&run));
            // Whoever waits looks for victims once in a second, so those that come of a decision are looked for later.
            self.rested &= decision.is_none();
            if let Some(Decision::Preempt(preemption)) = &decision
                && batch.first().is_none_or(|first| first.by == preemption.by)
            {
                batch.push(preemption.clone());
                self.ending(preemption);
                continue;
            }
            if !batch.is_empty() {
                self.judge(&before.0, &before.1, &std::mem::take(&mut batch));
            }
            match decision {
                None => break,
                Some(Decision::Preempt(preemption)) => {
                    before = (self.count.clone(), self.gangs.clone());
                    self.ending(&preemption);
                    batch.push(preemption);
                }
                Some(Decision::Start { task, assignment }) => {
                    let (demand, since) =
                        self.waiting.remove(&task).unwrap_or_else(|| panic!("{task:?} does not wait"));
                    if let Some(why) = self.count.start_problem(&demand, &assignment) {
                        panic!("{task:?} starts: {why}");
                    }
                    assert!(!self.busy.contains(&task.run), "{task:?} starts, whose run is not ready");
                    if !promised.contains(&task) {
                        self.check_order(task, &demand, since);
                    }
                    if let Some(gang) = &demand.gang {
                        self.seen.gangs += usize::from(!self.gangs.is_formed(gang));
                        self.gangs.start(task, gang);
                    }
                    self.seen.starts += 1;
                    self.since.insert(task, since);
                    self.start_nominee(task);
                    let holder = Holder { demand, assignment, started: self.now, ending: false };
                    let (demand, on) = (holder.demand.clone(), holder.assignment.clone());
                    self.check_queues(&heads, &self.count, task, &demand, &on);
                    let without = self.count.clone();
                    self.count.holders.insert(task, holder);
                    self.check_reserved(&heads, &without, task, &demand);
                    before = (self.count.clone(), self.gangs.clone());
                }
            }
        }
        self.check_half_started();
    }

    fn check_half_started(&mut self) {
        if let Some(why) = self.gangs.half_started() {
            panic!("{why}");
        }
    }

    fn ending(&mut self, preemption: &Preemption) {
        // Whatever has started before is complete.
        self.check_half_started();
        let victim =
            self.count.holders.get_mut(&preemption.victim).unwrap_or_else(|| panic!("{preemption:?}: it does not run"));
        assert!(!victim.ending, "{preemption:?}: it is being ended already");
        victim.ending = true;
        match preemption.reason {
            PreemptionReason::Reclaimed => self.seen.reclaimed += 1,
            PreemptionReason::LowerClass => self.seen.lower_class += 1,
        }
        // Whoever was ended itself may need the same room again; that this comes to an end is another check.
        self.ended_for.retain(|(by, _)| *by != preemption.victim);
        self.quit(preemption.victim);
    }

    /// Ends the nomination of a task that starts. If it took the room of another's victims, its own are that one's now.
    fn start_nominee(&mut self, task: TaskRef) {
        // After a change of nodes or queues it may have been nominated again.
        let (started, others): (Vec<Nominee>, Vec<Nominee>) =
            std::mem::take(&mut self.nominees).into_iter().partition(|nominee| nominee.by == task);
        self.nominees = others;
        for nominee in &mut self.nominees {
            nominee.victims.extend(started.iter().flat_map(|one| &one.victims));
        }
    }

    /// Judges who was ended for one unit.
    fn judge(&mut self, before: &Recount, gangs: &StartedGangs, batch: &[Preemption]) {
        let by = batch[0].by;
        let (demand, _) =
            self.waiting.get(&by).unwrap_or_else(|| panic!("{by:?} does not wait, and others end for it"));
        let demand = demand.clone();
        let demands = vec![demand.clone()];
        let victims: Vec<(TaskRef, PreemptionReason)> = batch.iter().map(|one| (one.victim, one.reason)).collect();
        let wanted: Vec<&Demand> = demands.iter().map(|demand| &**demand).collect();
        let beside: Vec<&Demand> = self
            .nominees
            .iter()
            // What was promised before nodes or queues changed may have been given up.
            .filter(|other| other.by != by && !other.disturbed)
            .flat_map(|other| other.demands.iter().map(|one| &**one))
            .collect();
        // Of a gang that is yet to start nobody but the scheduler knows who is among the first.
        let whole = demand.gang.as_ref().is_none_or(|gang| self.gangs.is_formed(gang));
        if whole && let Some(why) = before.victims_problem(&wanted, &beside, &victims) {
            panic!("{by:?} of queue {} ends {victims:?}: {why}", demand.queue);
        }
        self.judge_gangs(before, gangs, &victims);
        // Room may be kept for one whose run is not ready yet, and for one that waits for tasks which people end.
        let promised = self.scheduler.promised().any(|other| other != by);
        if demand.gang.is_none() && !promised && self.nominees.is_empty() && self.busy.is_empty() {
            let gang = |task: TaskRef| before.holders.get(&task).and_then(|holder| holder.demand.gang.as_ref());
            let together = |one: TaskRef, other: TaskRef| {
                one == other || gang(one).zip(gang(other)).is_some_and(|(one, other)| one.name == other.name)
            };
            if let Some(spared) = before.needless_victim(&demand, &victims, together) {
                panic!("{by:?} would have started without the end of {spared:?}");
            }
        }
        for (victim, _) in &victims {
            assert!(self.ended_for.insert((by, *victim)), "{by:?} ends {victim:?} again and again");
        }
        // It may count on the room of others that are being ended anyway.
        let victims = self.count.holders.iter().filter(|(_, holder)| holder.ending).map(|(task, _)| *task).collect();
        self.nominees.push(Nominee { by, demands, victims, disturbed: false });
    }

    /// Of a gang, members above its least are ended, or all that run.
    fn judge_gangs(&mut self, before: &Recount, formed: &StartedGangs, victims: &[(TaskRef, PreemptionReason)]) {
        let ended = |task: &TaskRef| victims.iter().any(|(victim, _)| victim == task);
        let gangs: BTreeMap<_, Gang> = victims
            .iter()
            .filter_map(|(task, _)| before.holders[task].demand.gang.clone())
            // One that people have broken up is not whole any more.
            .filter(|gang| formed.is_formed(gang))
            .map(|gang| ((gang.name.clone(), gang.own), gang))
            .collect();
        for gang in gangs.values() {
            let member = |holder: &Holder| {
                holder.demand.gang.as_ref().is_some_and(|other| (&other.name, other.own) == (&gang.name, gang.own))
            };
            let running = before.holders.iter().filter(|(_, holder)| member(holder) && !holder.ending);
            let (gone, left): (Vec<_>, Vec<_>) = running.map(|(task, _)| *task).partition(|task| ended(task));
            let whole = left.is_empty();
            for (part, least) in gang.least_of.iter() {
                let of_part = |task: &&TaskRef| {
                    let gang = before.holders.get(*task).and_then(|holder| holder.demand.gang.as_ref());
                    gang.is_some_and(|gang| *gang.part == **part)
                };
                let count = left.iter().filter(of_part).count();
                assert!(whole || count >= *least as usize, "{count} of part {part} go on, and {least} have to");
            }
            self.seen.gangs_ended += usize::from(whole && gone.len() > 1);
            assert!(
                whole || left.len() >= gang.least as usize,
                "{} of gang {} are ended, {} go on and {} have to",
                gone.len(),
                gang.name,
                left.len(),
                gang.least
            );
        }
    }

    /// All that are being ended are over. Whoever they were ended for starts, if nothing else has changed since.
    pub(super) fn end_victims(&mut self) {
        for _ in 0..20 {
            let ending: Vec<TaskRef> =
                self.count.holders.iter().filter(|(_, holder)| holder.ending).map(|(task, _)| *task).collect();
            if ending.is_empty() {
                return;
            }
            for victim in ending {
                self.end_victim(victim);
                self.decide();
                self.check();
            }
        }
        panic!("tasks end for each other without end");
    }

    /// Lets time pass until nothing is decided any more. Only ends and starts of others give reasons for more, so that comes.
    pub(super) fn rest(&mut self) {
        for _ in 0..ROUNDS_OF_REST {
            self.apply(&Event::Wait(1));
            self.decide();
            self.check();
            self.end_victims();
            if self.rested {
                return;
            }
        }
        panic!("tasks start and end for each other without end");
    }

    pub(super) fn check(&mut self) {
        if let Some(why) = self.count.sums_problem(&self.scheduler) {
            panic!("{why}");
        }
        assert_eq!(self.scheduler.waiting(), self.waiting.len(), "tasks wait");
        let owed = |nominee: &&Nominee| nominee.victims.is_empty() && !nominee.disturbed;
        if let Some(nominee) = self.nominees.iter().find(owed) {
            panic!("others were ended for {:?}, and it does not start", nominee.by);
        }
        self.nominees.retain(|nominee| !nominee.victims.is_empty());
        self.check_nothing_due();
    }

    /// Nobody who could start was forgotten.
    fn check_nothing_due(&mut self) {
        // Room is kept, or runs are busy.
        if !self.nominees.is_empty() || self.count.holders.values().any(|holder| holder.ending) || !self.busy.is_empty()
        {
            return;
        }
        let alone = |demand: &Demand| demand.gang.as_ref().is_none_or(|gang| self.gangs.is_formed(gang));
        for (task, (demand, _)) in &self.waiting {
            let Some(why) = self.scheduler.why(*task) else {
                panic!("{task:?} waits, and the scheduler does not know it")
            };
            if alone(demand)
                && !why.preempting
                && why.position == 0
                && let Some(node) = self.count.could_start(demand)
            {
                panic!("{task:?} is the first of {} and fits on {}", demand.queue, node.name);
            }
            if alone(demand) {
                self.check_behind(*task, demand, &why);
            }
            // Nobody waits for room while everything is idle.
            if alone(demand) && self.count.holders.is_empty() {
                let node = self.count.could_start(demand);
                assert!(
                    node.is_none(),
                    "nothing runs, and {task:?} waits that fits on {:?}",
                    node.map(|node| &node.name)
                );
            }
        }
        self.check_gangs_due();
        self.check_no_victim_missing();
        if self.rested {
            self.check_proposals();
        }
    }

    /// A gang that is the first of its queue starts as soon as its least fits in any way.
    fn check_gangs_due(&self) {
        let mut gangs: BTreeMap<Key, Vec<(TaskRef, &Demand)>> = BTreeMap::new();
        for (task, (demand, _)) in &self.waiting {
            if let Some(gang) = demand.gang.as_ref().filter(|gang| !self.gangs.is_formed(gang)) {
                gangs.entry(key(gang)).or_default().push((*task, demand));
            }
        }
        for members in gangs.values() {
            let Some(gang) = members[0].1.gang.as_ref() else { continue };
            let needed = (gang.least as usize).saturating_sub(self.gangs.started(gang).len());
            // Which members start first is the scheduler's choice unless all of them have to.
            if members.len() != needed || !gang.least_of.is_empty() {
                continue;
            }
            let is_first = members.iter().any(|(task, _)| {
                self.scheduler.why(*task).is_some_and(|why| why.position == 0 && why.waiting > 0 && !why.preempting)
            });
            let demands: Vec<&Demand> = members.iter().map(|(_, demand)| *demand).collect();
            if is_first && demands.len() <= 4 {
                let fits = self.count.could_start_together(&demands);
                assert!(!fits, "gang {} is the first of {} and fits", gang.name, demands[0].queue);
            }
        }
    }
}
