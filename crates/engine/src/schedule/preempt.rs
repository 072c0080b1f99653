//! Finds victims: running tasks whose end makes room for a unit that is entitled to it. It decides only whom to end; nobody
//! is chosen unless the unit then starts.

mod search;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

use octoflow_model::Time;

use search::Search;

use super::{
    Running, Scheduler, TaskRef,
    amounts::Amounts,
    counters::PreemptionKind,
    gang::GangIx,
    room::NodeIx,
    shapes::DemandShape,
    tree::{FreedQuota, QueueIx},
    units::{Unit, UnitIx},
    work,
};

/// Why a running task is ended for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreemptionReason {
    /// Its queue uses more than it deserves, and the other's less.
    Reclaimed,
    /// The other's class is higher.
    LowerClass,
}

impl PreemptionReason {
    pub(super) fn kind(self) -> PreemptionKind {
        match self {
            Self::Reclaimed => PreemptionKind::Reclaimed,
            Self::LowerClass => PreemptionKind::LowerClass,
        }
    }
}

/// A task that is ended so that another can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preemption {
    pub victim: TaskRef,
    /// Who starts in its place.
    pub by: TaskRef,
    /// The queue of the one who starts.
    pub queue: String,
    pub reason: PreemptionReason,
}

/// Tasks that are ended together: one, or a whole gang.
#[derive(Clone, Debug)]
struct Group {
    tasks: Vec<TaskRef>,
    reason: PreemptionReason,
}

/// A queue whose tasks may be ended for a unit, why, and how distant it is.
#[derive(Clone, Copy, Debug)]
struct Source {
    leaf: QueueIx,
    reason: PreemptionReason,
    distance: usize,
}

/// More nodes, or tasks, are not tried one by one for a unit.
const MAX_NODES: usize = 64;

/// What victims free of quotas, and whether a unit then fits within them.
struct QuotaTrial {
    leaf: QueueIx,
    wanted: Amounts,
    freed: FreedQuota,
}

impl QuotaTrial {
    fn count(&mut self, scheduler: &Scheduler, task: TaskRef, gone: bool) {
        if let Some(running) = scheduler.running.get(&task) {
            self.freed.count(&scheduler.tree, running.leaf, &running.amounts, gone);
        }
    }

    fn count_group(&mut self, scheduler: &Scheduler, group: &Group, gone: bool) {
        group.tasks.iter().for_each(|task| self.count(scheduler, *task, gone));
    }

    fn fits(&self, scheduler: &Scheduler) -> bool {
        scheduler.tree.fits_quotas(self.leaf, &self.wanted, &self.freed)
    }
}

/// Possible victims of one queue in the order of the harm that ending them does: lower classes, younger tasks.
pub(super) type Harm = (i32, Reverse<Time>, TaskRef);

impl Scheduler {
    /// Returns the victims that make room for a unit, with the nodes it then gets; `None` if there are none. Looks at the
    /// tasks of queues that something may be taken from, least harm first, and stops when there is room.
    pub(super) fn victims(&mut self, at: UnitIx) -> Option<(Vec<Preemption>, Vec<NodeIx>)> {
        let unit = self.units.get(at)?.clone();
        let shape = self.shapes.get(unit.shape);
        let wanted = shape.total();
        let sources = self.sources(&unit, &wanted);
        if sources.is_empty() {
            return None;
        }
        // Those who do least harm may be on the wrong nodes, and a queue lets go of no more than it has above its share.
        let chosen = self.choose(at, &unit, &shape, &sources, None).or_else(|| {
            let nodes = if shape.single().is_some() { self.nodes_of(&sources) } else { Vec::new() };
            let on_one = nodes.into_iter().find_map(|node| self.choose(at, &unit, &shape, &sources, Some(node)));
            // Several small ones may be too much for a guarantee where one large one is not.
            on_one.or_else(|| self.choose_one(at, &unit, &shape, &sources))
        })?;
        let (chosen, placement) = self.least_harm(at, unit.leaf, &shape, chosen)?;
        let queue = self.tree.get(unit.leaf).spec.name.to_string();
        let victims = chosen.into_iter().flat_map(|group| {
            let queue = queue.clone();
            group.tasks.into_iter().map(move |victim| Preemption {
                victim,
                by: unit.task,
                queue: queue.clone(),
                reason: group.reason,
            })
        });
        Some((victims.collect(), placement))
    }

    /// Returns nodes on which tasks of these queues run, those first that do less harm.
    fn nodes_of(&self, sources: &[Source]) -> Vec<NodeIx> {
        let mut nodes = Vec::new();
        for harm in sources.iter().flat_map(|source| &self.tree.get(source.leaf).leaf.victims) {
            if let Some(node) = self.running.get(&harm.2).map(|running| running.node)
                && !nodes.contains(&node)
            {
                nodes.push(node);
                if nodes.len() == MAX_NODES {
                    break;
                }
            }
        }
        nodes
    }

    /// Returns the queues that something may be taken from for a unit, nearest first.
    fn sources(&self, unit: &Unit, wanted: &Amounts) -> Vec<Source> {
        let mut sources = Vec::new();
        if unit.preempts {
            sources.push(Source { leaf: unit.leaf, reason: PreemptionReason::LowerClass, distance: 0 });
        }
        if !self.tree.may_reclaim(unit.leaf, wanted) {
            return sources;
        }
        let mut below = unit.leaf;
        for distance in 1.. {
            // Every queue on the way to the common ancestor must be entitled to it.
            let Some(parent) = self.tree.get(below).parent.filter(|_| self.tree.is_entitled(below, wanted)) else {
                break;
            };
            for relative in self.tree.get(parent).live().filter(|relative| *relative != below) {
                let queue = self.tree.get(relative);
                if wanted.iter().any(|(index, _)| queue.is_above_without(index, 0)) {
                    self.leaves_below(relative, distance, &mut sources);
                }
            }
            below = parent;
        }
        sources
    }

    /// Adds the leaves below a queue that let go of what they have.
    fn leaves_below(&self, top: QueueIx, distance: usize, sources: &mut Vec<Source>) {
        let mut open = vec![top];
        while let Some(at) = open.pop() {
            let queue = self.tree.get(at);
            if queue.spec.reclaimable {
                if !queue.leaf.victims.is_empty() {
                    sources.push(Source { leaf: at, reason: PreemptionReason::Reclaimed, distance });
                }
                open.extend(queue.live());
            }
        }
    }

    /// Reports whether a running task of a source may be ended for a unit.
    fn may_end(&self, unit: &Unit, source: &Source, running: &Running) -> bool {
        let free = !running.ending && running.demand.preemptable != Some(false);
        free && match source.reason {
            PreemptionReason::LowerClass => {
                unit.class.is_some_and(|class| class > running.class.unwrap_or(0))
                    && (running.demand.preemptable == Some(true) || self.tree.get(source.leaf).is_over())
            }
            PreemptionReason::Reclaimed => true,
        }
    }

    /// Chooses groups, least harm first, until the unit fits: single tasks and members above a gang's least, near queues
    /// first; then whole gangs. With a node, only those who run there, and those who hold quota that it lacks.
    fn choose(
        &self,
        at: UnitIx,
        unit: &Unit,
        shape: &DemandShape,
        sources: &[Source],
        only: Option<NodeIx>,
    ) -> Option<Vec<Group>> {
        let mut search = Search::new(self, at, unit, shape);
        // Tasks that are being ended anyway are as good as gone, so it may be that nobody else has to end.
        if search.fits() {
            return Some(search.chosen);
        }
        let (gang_of_unit, promised) = (self.gangs.of(unit.task), self.promised_gangs());
        let mut gangs: BTreeMap<GangIx, BTreeSet<TaskRef>> = BTreeMap::new();
        let mut rest = sources;
        while let Some(first) = rest.first() {
            let (near, further) = rest.split_at(rest.partition_point(|source| source.distance == first.distance));
            rest = further;
            let mut lines: Vec<_> = near.iter().map(|source| self.tree.get(source.leaf).leaf.victims.iter()).collect();
            let mut next: BinaryHeap<Reverse<(Harm, usize)>> = BinaryHeap::new();
            for (index, line) in lines.iter_mut().enumerate() {
                next.extend(line.next().map(|harm| Reverse((*harm, index))));
            }
            while let Some(Reverse(((_, _, task), index))) = next.pop() {
                next.extend(lines[index].next().map(|harm| Reverse((*harm, index))));
                let source = &near[index];
                let Some(running) = self.running.get(&task).filter(|running| self.may_end(unit, source, running))
                else {
                    continue;
                };
                if only.is_some_and(|node| node != running.node) && search.fits_quotas() {
                    continue;
                }
                let gang = self.gangs.of(task);
                // Without them it would have to wait for its gang itself, or one to whom room was promised would.
                if gang.is_some_and(|gang| gang_of_unit == Some(gang) || promised.contains(&gang)) {
                    continue;
                }
                if let Some(gang) = self.formed_gang(task) {
                    // Members above the least go one by one, the rest together or not at all.
                    if !gangs.entry(gang).or_insert_with(|| self.spare(gang)).contains(&task) {
                        continue;
                    }
                }
                search.end(Group { tasks: vec![task], reason: source.reason }, &[running]);
                if search.fits() {
                    return Some(search.chosen);
                }
            }
        }
        let mut whole: Vec<_> = gangs.keys().filter_map(|gang| self.whole(*gang, unit, sources)).collect();
        whole.sort_by_key(|(harm, _)| *harm);
        for (_, group) in whole {
            search.end_whole(group);
            if search.fits() {
                return Some(search.chosen);
            }
        }
        None
    }

    /// Chooses one task whose end is enough for a unit of one task, least harm first.
    fn choose_one(&self, at: UnitIx, unit: &Unit, shape: &DemandShape, sources: &[Source]) -> Option<Vec<Group>> {
        let wanted = &shape.single()?.amounts;
        let promised = self.promised_gangs();
        let lines = sources.iter().flat_map(|source| {
            let line = self.tree.get(source.leaf).leaf.victims.iter();
            line.map(move |(_, _, task)| (source, *task))
        });
        let candidates = lines.filter_map(|(source, task)| {
            let running = self.running.get(&task).filter(|running| self.may_end(unit, source, running))?;
            let gang = self.gangs.of(task);
            let own = gang.is_some_and(|at| gang == self.gangs.of(unit.task) || promised.contains(&at));
            let spare = self.formed_gang(task).is_none_or(|gang| self.spare(gang).contains(&task));
            let node = self.room.get(running.node)?;
            // Whoever lacks quota alone has room elsewhere.
            let helps = node.slots(wanted, Some(at), Some(&running.amounts)) > 0
                || self.room.all().any(|(_, node)| node.shortage(wanted, Some(at)).is_none());
            (!own && spare && helps).then_some((source, task, running))
        });
        candidates.take(MAX_NODES).find_map(|(source, task, running)| {
            let mut search = Search::new(self, at, unit, shape);
            search.end(Group { tasks: vec![task], reason: source.reason }, &[running]);
            search.fits().then_some(search.chosen)
        })
    }

    /// Returns the gangs of units to which room was promised.
    fn promised_gangs(&self) -> BTreeSet<GangIx> {
        self.promised().filter_map(|task| self.gangs.of(task)).collect()
    }

    fn formed_gang(&self, task: TaskRef) -> Option<GangIx> {
        self.gangs.of(task).filter(|gang| self.gangs.get(*gang).is_some_and(|gang| gang.formed))
    }

    /// Returns the members of a gang that run and are not being ended, the youngest first.
    fn youngest_first(&self, gang: GangIx) -> Vec<TaskRef> {
        let running = self.gangs.get(gang).into_iter().flat_map(|gang| gang.running.iter());
        let running = running.filter_map(|task| Some((task, self.running.get(task)?)));
        let mut members: Vec<_> =
            running.filter(|(_, running)| !running.ending).map(|(task, running)| (running.started, *task)).collect();
        members.sort_unstable_by_key(|member| Reverse(*member));
        members.into_iter().map(|(_, task)| task).collect()
    }

    /// Returns the members of a gang that may be ended without the others.
    fn spare(&self, gang: GangIx) -> BTreeSet<TaskRef> {
        let members = self.youngest_first(gang);
        self.gangs.get(gang).map(|gang| gang.spare(&members)).unwrap_or_default()
    }

    /// Returns a whole gang, if each of its members may be ended.
    fn whole(&self, gang: GangIx, unit: &Unit, sources: &[Source]) -> Option<((usize, Harm), Group)> {
        let tasks = self.youngest_first(gang);
        let source_of = |task: &TaskRef| {
            let running = self.running.get(task)?;
            let source = sources.iter().find(|source| source.leaf == running.leaf)?;
            self.may_end(unit, source, running).then_some((source, running))
        };
        let found: Vec<_> = tasks.iter().map(source_of).collect::<Option<_>>()?;
        let (source, running) = found.first()?;
        let harm = (running.class.unwrap_or(0), Reverse(running.started), *tasks.first()?);
        Some(((source.distance, harm), Group { reason: source.reason, tasks }))
    }

    /// Leaves out whoever need not be ended for the unit, the most harm first. Nothing is changed.
    fn least_harm(
        &mut self,
        at: UnitIx,
        leaf: QueueIx,
        shape: &DemandShape,
        mut chosen: Vec<Group>,
    ) -> Option<(Vec<Group>, Vec<NodeIx>)> {
        let ending = self.ending();
        ending.iter().for_each(|task| self.lift(*task));
        chosen.iter().flat_map(|group| &group.tasks).for_each(|task| self.lift(*task));
        let mut quota = QuotaTrial { leaf, wanted: shape.total(), freed: FreedQuota::default() };
        ending.iter().for_each(|task| quota.count(self, *task, true));
        chosen.iter().for_each(|group| quota.count_group(self, group, true));
        let mut placement = self.trial(at, shape).filter(|_| quota.fits(self));
        if let Some(nodes) = &placement {
            self.spare_beside(at, shape, nodes, &mut chosen, &mut quota);
            // Elsewhere it may fit without one of those that are left.
            for index in (0..chosen.len()).rev() {
                quota.count_group(self, &chosen[index], false);
                chosen[index].tasks.iter().for_each(|task| self.put_back(*task));
                match if quota.fits(self) { self.trial(at, shape) } else { None } {
                    Some(found) => {
                        placement = Some(found);
                        chosen.remove(index);
                    }
                    None => {
                        chosen[index].tasks.iter().for_each(|task| self.lift(*task));
                        quota.count_group(self, &chosen[index], true);
                    }
                }
            }
        }
        chosen.iter().flat_map(|group| &group.tasks).for_each(|task| self.put_back(*task));
        ending.iter().for_each(|task| self.put_back(*task));
        placement.filter(|_| !(chosen.is_empty() && ending.is_empty())).map(|placement| (chosen, placement))
    }

    fn trial(&mut self, at: UnitIx, shape: &DemandShape) -> Option<Vec<NodeIx>> {
        self.room.place(shape, Some(at), false, &self.names, &|_, _| true)
    }

    /// Leaves out whoever still has room beside the unit on its nodes.
    fn spare_beside(
        &mut self,
        at: UnitIx,
        shape: &DemandShape,
        nodes: &[NodeIx],
        chosen: &mut Vec<Group>,
        quota: &mut QuotaTrial,
    ) {
        let mut places = nodes.iter();
        let mut taken = Vec::with_capacity(nodes.len());
        for (task, count) in &shape.parts {
            for node in places.by_ref().take(*count as usize) {
                let amounts = self.room.get(*node).map(|node| node.fitted(&task.amounts)).unwrap_or_default();
                self.room.change(*node, |node| node.take(&amounts));
                taken.push((*node, amounts));
            }
        }
        for index in (0..chosen.len()).rev() {
            quota.count_group(self, &chosen[index], false);
            if quota.fits(self) && self.stays(at, &chosen[index]) {
                chosen.remove(index);
            } else {
                quota.count_group(self, &chosen[index], true);
            }
        }
        for (node, amounts) in taken {
            self.room.change(node, |node| node.give_back(&amounts));
        }
    }

    /// Returns the tasks that are being ended.
    fn ending(&self) -> Vec<TaskRef> {
        self.ending.iter().inspect(|_| work::look()).copied().collect()
    }

    /// Puts a group back if there is room for all of it beside the unit.
    fn stays(&mut self, at: UnitIx, group: &Group) -> bool {
        for (index, task) in group.tasks.iter().enumerate() {
            let fits = self.running.get(task).is_some_and(|running| {
                self.room.get(running.node).is_none_or(|node| node.shortage(&running.amounts, Some(at)).is_none())
            });
            if !fits {
                group.tasks[..index].iter().for_each(|task| self.lift(*task));
                return false;
            }
            self.put_back(*task);
        }
        true
    }

    fn lift(&mut self, task: TaskRef) {
        if let Some(running) = self.running.get(&task) {
            self.room.change(running.node, |node| {
                node.give_back(&running.amounts);
                if running.ending {
                    node.count_ending(&running.amounts, false);
                }
            });
        }
    }

    fn put_back(&mut self, task: TaskRef) {
        if let Some(running) = self.running.get(&task) {
            self.room.change(running.node, |node| {
                node.take(&running.amounts);
                if running.ending {
                    node.count_ending(&running.amounts, true);
                }
            });
        }
    }
}
