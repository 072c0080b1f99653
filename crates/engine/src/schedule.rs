//! The scheduler: which waiting task starts next, and on which node. It knows no dialect. Queues share by what they deserve;
//! within a queue tenants share by what they used, then rank decides. Whoever is first and does not fit holds a reservation,
//! so nothing starves. `docs/scheduling.md` tells the whole rule.

mod amounts;
mod charge;
mod classes;
mod config;
mod counters;
mod data;
mod end;
pub mod fit;
mod gang;
mod never;
mod node;
mod nominate;
mod pick;
mod preempt;
mod remedy;
mod report;
mod reserve;
mod room;
mod shapes;
pub mod spec;
mod taint;
#[cfg(test)]
mod tests;
mod tree;
mod trial;
mod units;
mod usage;
mod waiting;
mod why;
mod work;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use octoflow_model::{IdMap, NodeIx as TaskIx, RunId, Time, task::placement::Assignment};

use amounts::{Amounts, ResourceNames};
use gang::{GangIx, Gangs};
use reserve::UNKNOWN;
use room::{NodeIx, Room};
use shapes::{DemandShape, ShapeIx, Shapes};
use spec::{ClassSpec, Demand};
use tree::{QueueIx, Tree};
use units::{Rank, Unit, UnitIx, Units};
use usage::{TenantIx, Usage};
use waiting::TurnNumber;

pub use counters::{Counters, Latency, PreemptionKind};
pub use node::Misfit;
pub use preempt::{Preemption, PreemptionReason};
pub use remedy::{Proposal, Remedy};
pub use report::{GangReport, NodeReport, QueueReport};
pub use spec::Gang;
pub use taint::Eviction;
pub use tree::MAX_DEPTH;
pub use trial::Estimate;
pub use usage::UsageRecord;
pub use why::{Level, WaitReason};

/// A task by the run and node it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskRef {
    pub run: RunId,
    pub node: TaskIx,
}

impl TaskRef {
    const FIRST: Self = Self { run: RunId(0), node: TaskIx(0) };
}

/// After this wait a task is first in its queue, unless the run or the queue says otherwise.
pub const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// What the scheduler decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The task has room from now on.
    Start { task: TaskRef, assignment: Assignment },
    /// The task is to be ended for another. It keeps its room until it is over.
    Preempt(Preemption),
}

#[derive(Clone, Debug)]
pub struct Scheduler {
    names: ResourceNames,
    room: Room,
    tree: Tree,
    classes: HashMap<Arc<str>, ClassSpec>,
    default_class: Option<Arc<str>>,
    shapes: Shapes,
    units: Units,
    gangs: Gangs,
    usage: Usage,
    waiting: IdMap<TaskRef, Waiting>,
    running: IdMap<TaskRef, Running>,
    /// Those of them that are being ended.
    ending: BTreeSet<TaskRef>,
    runs: IdMap<RunId, RunState>,
    /// Decisions that belong together and have not been returned yet.
    decided: VecDeque<Decision>,
    /// Tasks that use no resources; they never wait behind one that does.
    weightless: VecDeque<TaskRef>,
    /// Units whose victims are ending, and the nodes that keep room for them.
    nominees: BTreeMap<UnitIx, Nominee>,
    /// When running tasks are charged again.
    charges: BTreeSet<(Time, TaskRef)>,
    /// When running tasks have to leave their nodes.
    evictions: BTreeSet<(Time, TaskRef)>,
    /// Tasks that were ended for others, and when: they wait again since then.
    requeued: BTreeMap<TaskRef, Time>,
    counters: Counters,
    /// When usages were last handed out to be persisted.
    usage_taken: Option<Time>,
    /// When a queue has to be looked at again although nothing happens.
    wakes: BTreeSet<(Time, QueueIx)>,
    last_turn: u64,
    /// Counts changes of nodes.
    nodes_version: u64,
    /// The time of the last decision.
    clock: Time,
    /// Kept only in a copy that is not changed.
    lines: why::Lines,
}

#[derive(Clone, Debug)]
struct Waiting {
    demand: Arc<Demand>,
    leaf: QueueIx,
    since: Time,
    /// `None` while it waits for its gang.
    unit: Option<UnitIx>,
}

/// A unit whose victims are ending.
#[derive(Clone, Debug)]
struct Nominee {
    nodes: Vec<NodeIx>,
    /// True if something was freed for it since it was last tried.
    retry: bool,
}

#[derive(Clone, Debug)]
struct Running {
    demand: Arc<Demand>,
    leaf: QueueIx,
    tenant: TenantIx,
    node: NodeIx,
    amounts: Amounts,
    assignment: Assignment,
    started: Time,
    /// When it is over at the latest; [`UNKNOWN`] if nobody knows.
    end: Time,
    class: Option<i32>,
    /// True if it is being ended for another.
    ending: bool,
    charged_until: Time,
    /// When it has to leave its node.
    leaves: Option<Time>,
}

impl Running {
    /// Returns the place of the task among possible victims.
    fn harm(&self, task: TaskRef) -> preempt::Harm {
        (self.class.unwrap_or(0), std::cmp::Reverse(self.started), task)
    }
}

#[derive(Clone, Debug, Default)]
struct RunState {
    turn: TurnNumber,
    running: u32,
    /// Where units of it wait, and how many.
    waits: IdMap<(QueueIx, ShapeIx, TenantIx), u32>,
}

impl Default for Scheduler {
    fn default() -> Self {
        let mut names = ResourceNames::default();
        let tree = Tree::new(&mut names);
        Self {
            names,
            room: Room::default(),
            tree,
            classes: HashMap::new(),
            default_class: None,
            shapes: Shapes::default(),
            units: Units::default(),
            gangs: Gangs::default(),
            usage: Usage::default(),
            waiting: IdMap::default(),
            running: IdMap::default(),
            ending: BTreeSet::new(),
            runs: IdMap::default(),
            decided: VecDeque::new(),
            weightless: VecDeque::new(),
            nominees: BTreeMap::new(),
            charges: BTreeSet::new(),
            evictions: BTreeSet::new(),
            requeued: BTreeMap::new(),
            counters: Counters::default(),
            usage_taken: None,
            wakes: BTreeSet::new(),
            last_turn: 0,
            nodes_version: 0,
            clock: Time(0),
            lines: why::Lines::default(),
        }
    }
}

impl Scheduler {
    /// Queues a task that waits since this time.
    pub fn enqueue(&mut self, task: TaskRef, demand: Arc<Demand>, since: Time) {
        self.release(task, self.clock);
        // Its run began anew before a start that was decided for it was returned.
        self.decided.retain(|decision| !matches!(decision, Decision::Start { task: started, .. } if *started == task));
        let rank = Rank::new(since, self.priority(&demand));
        let gathers = demand.gang.as_ref().and_then(|gang| self.gangs.gather(task, rank, gang));
        let leaf = self.tree.find_or_remember(&demand.queue);
        self.tree.count_waiting(leaf, true);
        self.waiting.insert(task, Waiting { demand, leaf, since, unit: None });
        match gathers {
            Some(gang) => self.reform(gang, false),
            None => self.insert_unit(task, None, std::slice::from_ref(&task)),
        }
    }

    /// Queues a task that uses no resources: it starts at once, and never counts as running.
    pub fn enqueue_weightless(&mut self, task: TaskRef) {
        self.weightless.push_back(task);
    }

    fn priority(&self, demand: &Demand) -> i32 {
        self.class(demand).map_or(demand.priority, |class| class.value)
    }

    fn class(&self, demand: &Demand) -> Option<ClassSpec> {
        let name = demand.class.as_ref().or(self.default_class.as_ref().filter(|_| demand.priority == 0))?;
        self.classes.get(name).copied()
    }

    /// Makes the unit of a gang again after its members have changed. A unit that is complete stays as it is while
    /// members are only added.
    fn reform(&mut self, at: GangIx, removed: bool) {
        let Some(gang) = self.gangs.get(at) else { return };
        if let Some(unit) = gang.unit {
            if !removed {
                return;
            }
            self.remove_unit(unit);
            self.gangs.set_unit(at, None);
        }
        let Some(gang) = self.gangs.get(at) else { return };
        for member in gang.members() {
            if let Some(waiting) = self.waiting.get_mut(&member) {
                waiting.unit = None;
            }
        }
        if let Some(first) = gang.first() {
            self.insert_unit(first[0], Some(at), &first);
        }
    }

    fn insert_unit(&mut self, task: TaskRef, gang: Option<GangIx>, members: &[TaskRef]) {
        let Some(waiting) = self.waiting.get(&task) else { return };
        let (demand, leaf) = (waiting.demand.clone(), waiting.leaf);
        let longest = demand.longest_wait.or(self.tree.get(leaf).spec.longest_wait).unwrap_or(LONGEST_WAIT);
        let mut since = waiting.since;
        let mut priority = self.priority(&demand);
        for other in members.iter().filter_map(|member| self.waiting.get(member)) {
            since = since.min(other.since);
            priority = priority.max(self.priority(&other.demand));
        }
        let class = self.class(&demand);
        let mut shape = self.shape_of(members);
        shape.preempts = class.filter(|class| class.preempts).map(|class| class.value);
        let unit = Unit {
            task,
            gang,
            leaf,
            tenant: self.usage.tenant(&demand.tenant),
            run: task.run,
            shape: self.shapes.enter(shape, leaf),
            priority,
            rank: Rank::new(since, priority),
            deadline: since.saturating_add(longest),
            class: class.map(|class| class.value),
            preempts: class.is_some_and(|class| class.preempts),
        };
        let usage = self.usage.key(leaf, unit.tenant);
        let run = self.runs.entry(task.run).or_default();
        if run.waits.is_empty() {
            // Who comes goes behind all that wait.
            self.last_turn += 1;
            run.turn = TurnNumber(self.last_turn);
        }
        *run.waits.entry((leaf, unit.shape, unit.tenant)).or_default() += 1;
        let turn = run.turn;
        let at = self.units.insert(unit.clone());
        self.tree.leaf(leaf).insert(at, &unit, usage, turn);
        self.tree.count(leaf, true);
        self.tree.mark(leaf);
        if self.tree.get(leaf).leaf.wake.is_none_or(|wake| unit.deadline < wake) {
            self.set_wake(leaf);
        }
        for member in members {
            if let Some(waiting) = self.waiting.get_mut(member) {
                waiting.unit = Some(at);
            }
        }
        if let Some(gang) = gang {
            self.gangs.set_unit(gang, Some(at));
        }
    }

    fn shape_of(&mut self, members: &[TaskRef]) -> DemandShape {
        let mut shape = DemandShape { parts: Vec::new(), bound: None, preempts: None };
        let mut bounds = Vec::with_capacity(members.len());
        for demand in members.iter().filter_map(|member| self.waiting.get(member)).map(|waiting| &waiting.demand) {
            let one =
                DemandShape::of_task(self.names.of_task(&demand.resources), demand.constraints.clone(), demand.bound);
            bounds.push(demand.bound);
            let Some((task, _)) = one.parts.into_iter().next() else { continue };
            match shape.parts.iter_mut().find(|(known, _)| *known == task) {
                Some((_, count)) => *count += 1,
                None => shape.parts.push((task, 1)),
            }
        }
        shape.bound = bounds.into_iter().collect::<Option<Vec<Duration>>>().and_then(|all| all.into_iter().max());
        shape
    }

    /// Removes a unit from its queue. Its tasks are no longer waiting anywhere until they are queued again.
    fn remove_unit(&mut self, at: UnitIx) -> Option<Unit> {
        let unit = self.units.remove(at)?;
        let Some(run) = self.runs.get_mut(&unit.run) else { return Some(unit) };
        let turn = run.turn;
        if let Some(count) = run.waits.get_mut(&(unit.leaf, unit.shape, unit.tenant)) {
            *count -= 1;
            if *count == 0 {
                run.waits.remove(&(unit.leaf, unit.shape, unit.tenant));
            }
        }
        if run.waits.is_empty() && run.running == 0 {
            self.runs.remove(&unit.run);
        }
        self.tree.leaf(unit.leaf).remove(at, &unit, turn);
        self.tree.count(unit.leaf, false);
        self.tree.mark(unit.leaf);
        if !self.tree.get(unit.leaf).leaf.waits() {
            self.set_wake(unit.leaf);
        }
        if self.nominees.contains_key(&at) {
            let total = self.shapes.total(unit.shape);
            self.forget_promise(unit.leaf, &total);
        }
        self.shapes.leave(unit.shape, unit.leaf);
        self.give_up(at);
        Some(unit)
    }

    fn take_waiting(&mut self, task: TaskRef) -> Option<Waiting> {
        let waiting = self.waiting.remove(&task)?;
        self.tree.count_waiting(waiting.leaf, false);
        Some(waiting)
    }

    /// Removes a waiting task.
    fn dequeue(&mut self, task: TaskRef) {
        let Some(waiting) = self.take_waiting(task) else { return };
        match self.gangs.withdraw(task) {
            Some(gang) if waiting.unit.is_some() => self.reform(gang, true),
            Some(_) => {}
            None => {
                waiting.unit.and_then(|unit| self.remove_unit(unit));
            }
        }
        self.forget_queue(waiting.leaf);
    }

    /// Restores a running task. One whose node is unknown counts for its queue only.
    pub fn adopt(&mut self, task: TaskRef, demand: Arc<Demand>, assignment: Option<&Assignment>, started: Time) {
        let node = self.node_of(assignment);
        let wanted = self.names.of_task(&demand.resources);
        let amounts = self.room.get(node).map(|node| node.fitted(&wanted)).unwrap_or_default();
        let end = demand.bound.map_or(UNKNOWN, |bound| started.saturating_add(bound));
        let assignment = assignment.cloned().unwrap_or_default();
        let names = &mut self.names;
        self.room.change(node, |node| node.adopt(task, &amounts, end, &assignment, names));
        self.count_running(task, demand, node, amounts, assignment, started, end);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one record")]
    fn count_running(
        &mut self,
        task: TaskRef,
        demand: Arc<Demand>,
        node: NodeIx,
        amounts: Amounts,
        assignment: Assignment,
        started: Time,
        end: Time,
    ) {
        let leaf = self.tree.find_or_remember(&demand.queue);
        let tenant = self.usage.tenant(&demand.tenant);
        let class = self.class(&demand).map(|class| class.value);
        self.tree.allocate(leaf, &amounts);
        self.tree.leaf(leaf).tasks += 1;
        self.gangs.runs(task, true);
        self.runs.entry(task.run).or_default().running += 1;
        let record = Running {
            demand,
            leaf,
            tenant,
            node,
            amounts,
            assignment,
            started,
            end,
            class,
            ending: false,
            charged_until: self.usage.charged_before(started),
            leaves: None,
        };
        if record.demand.preemptable != Some(false) {
            self.tree.leaf(leaf).victims.insert(record.harm(task));
        }
        self.charges.insert((record.charged_until, task));
        self.running.insert(task, record);
        if self.room.get(node).is_some_and(|node| !node.spec.taints.is_empty()) {
            self.plan_eviction(task);
        }
    }

    /// Notes that a run had its turn: its waiting units go behind those of all other runs.
    fn had_turn(&mut self, run: RunId) {
        let Some(state) = self.runs.get_mut(&run) else { return };
        self.last_turn += 1;
        state.turn = TurnNumber(self.last_turn);
        for (leaf, shape, tenant) in state.waits.keys() {
            self.tree.leaf(*leaf).rerun(*shape, *tenant, run, state.turn);
            self.tree.mark(*leaf);
        }
    }

    fn count_ended(&mut self, run: RunId) {
        if let Some(state) = self.runs.get_mut(&run) {
            state.running -= 1;
            if state.running == 0 && state.waits.is_empty() {
                self.runs.remove(&run);
            }
        }
    }

    /// Frees the room of a task that is over, or removes it from its queue if it waits.
    pub fn release(&mut self, task: TaskRef, now: Time) {
        self.dequeue(task);
        let Some(running) = self.running.remove(&task) else { return };
        if running.ending {
            self.tree.count_ending(running.leaf, &running.amounts, false);
            self.room.change(running.node, |node| node.count_ending(&running.amounts, false));
        }
        self.charges.remove(&(running.charged_until, task));
        if let Some(at) = running.leaves {
            self.evictions.remove(&(at, task));
        }
        self.ending.remove(&task);
        if running.ending {
            self.requeued.insert(task, now);
        } else {
            self.tree.complete(running.leaf);
        }
        self.tree.leaf(running.leaf).victims.remove(&running.harm(task));
        self.settle_charge(&running, now);
        let (names, amounts, assignment) = (&mut self.names, &running.amounts, &running.assignment);
        self.room.change(running.node, |node| node.release(task, amounts, running.end, assignment, names));
        self.tree.free(running.leaf, &running.amounts);
        self.tree.leaf(running.leaf).tasks -= 1;
        if self.tree.get(running.leaf).leaf.waits() {
            // It may be entitled to more now.
            self.tree.mark(running.leaf);
        }
        self.gangs.runs(task, false);
        self.count_ended(task.run);
        self.room.drop_absent(running.node);
        self.freed(running.node);
        self.forget_queue(running.leaf);
    }

    /// Offers room that was freed on a node to the shapes that lacked it, and to nobody else.
    fn freed(&mut self, node: NodeIx) {
        let (room, names) = (&self.room, &self.names);
        let fits = self.shapes.asking().filter(|(_, shape)| room.may_fit(shape, node, names));
        let woken: Vec<ShapeIx> = fits.map(|(at, _)| at).collect();
        for shape in woken {
            self.shapes.offer(shape, node);
        }
        for unit in self.room.get(node).into_iter().flat_map(|node| node.nominees()) {
            if let Some(nominee) = self.nominees.get_mut(&unit) {
                nominee.retry = true;
            }
        }
    }

    /// Restores the gang membership of a started task.
    pub fn join(&mut self, task: TaskRef, gang: &Gang) {
        self.gangs.join(task, gang);
        self.gangs.runs(task, self.running.contains_key(&task));
    }

    pub fn running(&self) -> usize {
        self.running.len()
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len() + self.decided.len() + self.weightless.len()
    }

    /// Returns the present and the required number of members of a task's gang; `None` if it waits for no gang.
    pub fn gathering(&self, task: TaskRef) -> Option<(usize, u32)> {
        let waiting = self.waiting.get(&task)?;
        self.gangs.presence(task).filter(|_| waiting.unit.is_none())
    }

    /// Returns when to look again if nothing happens before.
    pub fn wake_at(&self) -> Option<Time> {
        let queues = self.wakes.first().map(|(at, _)| *at);
        queues.into_iter().chain(self.evictions.first().map(|(at, _)| *at)).min()
    }

    /// Sets the timer of a queue anew.
    fn set_wake(&mut self, leaf: QueueIx) {
        let queue = self.tree.leaf(leaf);
        let next = queue.next_change(self.clock);
        if queue.wake == next {
            return;
        }
        if let Some(before) = std::mem::replace(&mut queue.wake, next) {
            self.wakes.remove(&(before, leaf));
        }
        self.wakes.extend(next.map(|at| (at, leaf)));
    }

    fn node_of(&mut self, assignment: Option<&Assignment>) -> NodeIx {
        let known = match assignment {
            Some(assignment) if !assignment.node.is_empty() => self.room.find(&assignment.node),
            Some(_) | None => self.room.all().next().map(|(at, _)| at),
        };
        known.unwrap_or_else(|| {
            let name = assignment.map_or("", |assignment| assignment.node.as_str());
            self.room.insert_absent(config::absent(name), &mut self.names)
        })
    }
}
