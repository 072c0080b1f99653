//! Finds victims: running tasks whose end makes room for a unit that is entitled to it. It decides only whom to end; nobody
//! is chosen unless the unit then starts.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

use octoflow_model::Time;

use super::{
    Running, Scheduler, TaskRef,
    amounts::Amounts,
    counters::PreemptionKind,
    gang::GangIx,
    room::NodeIx,
    shapes::Shape,
    tree::QueueIx,
    units::{Unit, UnitIx},
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

/// Possible victims of one queue in the order of the harm that ending them does: lower classes, younger tasks.
pub(super) type Harm = (i32, Reverse<Time>, TaskRef);

impl Scheduler {
    /// Returns the victims that make room for a unit, with the nodes it then gets; `None` if there are none. Looks at the
    /// tasks of queues that something may be taken from, least harm first, and stops when there is room.
    pub(super) fn victims(&mut self, at: UnitIx) -> Option<(Vec<Preemption>, Vec<NodeIx>)> {
        let unit = self.units.get(at)?.clone();
        let shape = self.shapes.get(unit.shape);
        let wanted = shape.total();
        if self.tree.limit(unit.leaf, &wanted).is_some_and(|limit| !limit.guarantee) {
            return None;
        }
        let sources = self.sources(&unit, &wanted);
        if sources.is_empty() {
            return None;
        }
        let chosen = self.choose(at, &unit, &shape, &sources)?;
        let (chosen, placement) = self.least_harm(at, &shape, chosen)?;
        // Whoever is kept from starting by guarantees of others would not start then.
        let gone = chosen.iter().flat_map(|group| &group.tasks).filter_map(|task| self.running.get(task));
        let ending = self.running.values().filter(|running| running.ending);
        let freed: Vec<(QueueIx, Amounts)> =
            gone.chain(ending).map(|running| (running.leaf, running.amounts.clone())).collect();
        if self.tree.breaks_guarantees_without(unit.leaf, &wanted, &freed) {
            return None;
        }
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

    /// Returns the queues that something may be taken from for a unit, nearest first.
    fn sources(&self, unit: &Unit, wanted: &Amounts) -> Vec<Source> {
        let mut sources = Vec::new();
        if unit.preempts {
            sources.push(Source { leaf: unit.leaf, reason: PreemptionReason::LowerClass, distance: 0 });
        }
        let mut below = unit.leaf;
        for distance in 1.. {
            // Every queue on the way to the common ancestor must be entitled to it.
            let Some(parent) = self.tree.get(below).parent.filter(|_| self.tree.is_entitled(below, wanted)) else {
                break;
            };
            for relative in self.tree.get(parent).live().filter(|relative| *relative != below) {
                let queue = self.tree.get(relative);
                if wanted.iter().any(|(index, _)| queue.allocated().get(index) > queue.deserved().get(index)) {
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
    /// first; then whole gangs.
    fn choose(&self, at: UnitIx, unit: &Unit, shape: &Shape, sources: &[Source]) -> Option<Vec<Group>> {
        let mut search = Search::new(self, at, unit, shape);
        // Tasks that are being ended anyway are as good as gone, so it may be that nobody else has to end.
        if search.fits() {
            return Some(search.chosen);
        }
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
                let gang = self.gangs.of(task);
                // Without them it would have to wait for its gang itself.
                if gang.is_some() && gang == self.gangs.of(unit.task) {
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

    fn spare(&self, gang: GangIx) -> BTreeSet<TaskRef> {
        let members = self.youngest_first(gang);
        let least = self.gangs.get(gang).map_or(0, |gang| gang.least as usize);
        members[..members.len().saturating_sub(least)].iter().copied().collect()
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
    fn least_harm(&mut self, at: UnitIx, shape: &Shape, mut chosen: Vec<Group>) -> Option<(Vec<Group>, Vec<NodeIx>)> {
        let ending = self.ending();
        ending.iter().for_each(|task| self.lift(*task));
        chosen.iter().flat_map(|group| &group.tasks).for_each(|task| self.lift(*task));
        let mut placement = self.trial(at, shape);
        if let Some(nodes) = &placement {
            self.spare_beside(at, shape, nodes, &mut chosen);
            // Elsewhere it may fit without one of those that are left.
            for index in (0..chosen.len()).rev() {
                chosen[index].tasks.iter().for_each(|task| self.put_back(*task));
                match self.trial(at, shape) {
                    Some(found) => {
                        placement = Some(found);
                        chosen.remove(index);
                    }
                    None => chosen[index].tasks.iter().for_each(|task| self.lift(*task)),
                }
            }
        }
        chosen.iter().flat_map(|group| &group.tasks).for_each(|task| self.put_back(*task));
        ending.iter().for_each(|task| self.put_back(*task));
        placement.filter(|_| !(chosen.is_empty() && ending.is_empty())).map(|placement| (chosen, placement))
    }

    fn trial(&mut self, at: UnitIx, shape: &Shape) -> Option<Vec<NodeIx>> {
        self.room.place(shape, Some(at), false, &self.names, &|_, _| true)
    }

    /// Leaves out whoever still has room beside the unit on its nodes.
    fn spare_beside(&mut self, at: UnitIx, shape: &Shape, nodes: &[NodeIx], chosen: &mut Vec<Group>) {
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
            if self.stays(at, &chosen[index]) {
                chosen.remove(index);
            }
        }
        for (node, amounts) in taken {
            self.room.change(node, |node| node.give_back(&amounts));
        }
    }

    /// Returns the tasks that are being ended.
    fn ending(&self) -> Vec<TaskRef> {
        self.running.iter().filter(|(_, running)| running.ending).map(|(task, _)| *task).collect()
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

/// Who is ended on trial, and whether the unit fits then. Each further task costs as much as its queue is deep.
struct Search<'s> {
    scheduler: &'s Scheduler,
    unit: UnitIx,
    /// The queue of the unit and those above it.
    path: Vec<QueueIx>,
    shape: &'s Shape,
    /// True if tasks are being ended anyway.
    has_ending: bool,
    /// What would be freed on each node, and in each queue.
    on_nodes: BTreeMap<NodeIx, Amounts>,
    in_queues: BTreeMap<QueueIx, Amounts>,
    /// For each part of the shape, how many of its tasks each node then holds, and their sum.
    slots: Vec<(BTreeMap<NodeIx, u64>, u64)>,
    chosen: Vec<Group>,
}

impl<'s> Search<'s> {
    /// Begins with the tasks that are being ended anyway: they are as good as gone.
    fn new(scheduler: &'s Scheduler, at: UnitIx, unit: &Unit, shape: &'s Shape) -> Self {
        let ending = scheduler.ending();
        let mut search = Self {
            scheduler,
            unit: at,
            path: scheduler.tree.path(unit.leaf).collect(),
            shape,
            has_ending: !ending.is_empty(),
            on_nodes: BTreeMap::new(),
            in_queues: BTreeMap::new(),
            slots: vec![(BTreeMap::new(), 0); shape.parts.len()],
            chosen: Vec::new(),
        };
        for running in ending.iter().filter_map(|task| scheduler.running.get(task)) {
            search.count_gone(running);
        }
        let nodes: Vec<NodeIx> = scheduler.room.all().map(|(at, _)| at).collect();
        nodes.into_iter().for_each(|node| search.recount(node));
        search
    }

    /// Ends a whole gang. Members above its least may have been chosen before; they then end with it, so that leaving out
    /// whoever was not needed leaves a whole gang or none.
    fn end_whole(&mut self, gang: Group) {
        let is_part = |one: &Group| one.tasks.iter().all(|task| gang.tasks.contains(task));
        let (parts, rest): (Vec<Group>, Vec<Group>) = std::mem::take(&mut self.chosen).into_iter().partition(is_part);
        self.chosen = rest;
        let of_parts: Vec<&Running> =
            parts.iter().flat_map(|part| &part.tasks).filter_map(|task| self.scheduler.running.get(task)).collect();
        of_parts.iter().for_each(|one| self.count_kept(one));
        let members: Vec<&Running> = gang.tasks.iter().filter_map(|task| self.scheduler.running.get(task)).collect();
        if !self.end(gang, &members) {
            of_parts.iter().for_each(|one| self.count_gone(one));
            self.chosen.extend(parts);
        }
    }

    /// Ends a group, unless a queue would lose its guarantee, or more than it has above its share; reports whether it did.
    fn end(&mut self, group: Group, running: &[&Running]) -> bool {
        let tree = &self.scheduler.tree;
        let mut more: BTreeMap<QueueIx, Amounts> = BTreeMap::new();
        for one in running {
            for at in tree.path(one.leaf) {
                more.entry(at).or_default().add(&one.amounts);
            }
        }
        let wanted = self.shape.total();
        let gone = |at: QueueIx, index: usize| self.in_queues.get(&at).map_or(0, |gone| gone.get(index));
        let kept = more.iter().all(|(at, more)| {
            let queue = tree.get(*at);
            queue.guarantee().iter().all(|(index, least)| {
                // What starts in their place counts for the queues that both are in.
                let comes = if self.path.contains(at) { wanted.get(index) } else { 0 };
                let gone = gone(*at, index) + more.get(index);
                let left = queue.allocated().get(index).saturating_sub(gone);
                more.get(index) == 0 || left.saturating_add(comes) >= least
            })
        });
        let is_above_share = |at: QueueIx, one: &Running| {
            let queue = tree.get(at);
            one.amounts.iter().any(|(index, _)| {
                let used = queue.allocated().get(index).saturating_sub(gone(at, index));
                wanted.get(index) > 0 && used > queue.deserved().get(index)
            })
        };
        let over = match group.reason {
            // What starts in its place is of the same queue, so that has as much afterwards.
            PreemptionReason::LowerClass => true,
            PreemptionReason::Reclaimed => running.iter().all(|one| {
                // Every queue below the common ancestor has more than its share until then.
                tree.path(one.leaf).take_while(|at| !self.path.contains(at)).all(|at| is_above_share(at, one))
            }),
        };
        if !(kept && over) {
            return false;
        }
        for one in running {
            self.count_gone(one);
        }
        for one in running {
            self.recount(one.node);
        }
        self.chosen.push(group);
        true
    }

    /// Counts what a task frees on its node and in its queues.
    fn count_gone(&mut self, running: &Running) {
        for at in self.scheduler.tree.path(running.leaf) {
            self.in_queues.entry(at).or_default().add(&running.amounts);
        }
        self.on_nodes.entry(running.node).or_default().add(&running.amounts);
    }

    /// Takes back that a task frees something. Nodes are counted again by whoever ends or keeps a group.
    fn count_kept(&mut self, running: &Running) {
        for at in self.scheduler.tree.path(running.leaf) {
            self.in_queues.entry(at).or_default().sub(&running.amounts);
        }
        self.on_nodes.entry(running.node).or_default().sub(&running.amounts);
    }

    /// Counts again how many tasks of each part a node holds.
    fn recount(&mut self, at: NodeIx) {
        let Some(node) = self.scheduler.room.get(at) else { return };
        let freed = self.on_nodes.get(&at);
        for ((task, count), (slots, sum)) in self.shape.parts.iter().zip(&mut self.slots) {
            let now = if node.spec.cordoned
                || node.excludes(&task.amounts, &task.constraints, &self.scheduler.names).is_some()
            {
                0
            } else {
                node.slots(&task.amounts, Some(self.unit), freed).min(u64::from(*count))
            };
            let before = slots.insert(at, now).unwrap_or(0);
            *sum = *sum - before + now;
        }
    }

    /// Reports whether there is room for every part. Parts that want the same room are told apart when they are placed.
    fn fits(&self) -> bool {
        (self.has_ending || !self.chosen.is_empty())
            && self.shape.parts.iter().zip(&self.slots).all(|((_, count), (_, sum))| *sum >= u64::from(*count))
            && (self.shape.parts.len() == 1 || self.fits_together())
    }

    /// Places all parts on trial, in the order in which they are placed for good.
    fn fits_together(&self) -> bool {
        let mut freed = self.on_nodes.clone();
        let mut used: BTreeMap<NodeIx, Amounts> = BTreeMap::new();
        self.shape.parts.iter().all(|(task, count)| {
            (0..*count).all(|_| {
                let found = self.scheduler.room.all().find(|(at, node)| {
                    !node.spec.cordoned
                        && node.excludes(&task.amounts, &task.constraints, &self.scheduler.names).is_none()
                        && node.slots_beside(&task.amounts, Some(self.unit), freed.get(at), used.get(at)) > 0
                });
                found.is_some_and(|(at, node)| {
                    used.entry(at).or_default().add(&node.fitted(&task.amounts));
                    freed.entry(at).or_default();
                    true
                })
            })
        })
    }
}
