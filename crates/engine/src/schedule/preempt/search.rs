//! Who is ended on trial for a unit, and whether there is room and quota for it then. It changes nothing.

use std::collections::BTreeMap;

use super::{Group, PreemptionReason};
use crate::schedule::{
    Running, Scheduler,
    amounts::Amounts,
    room::NodeIx,
    shapes::DemandShape,
    tree::{FreedQuota, QueueIx},
    units::{Unit, UnitIx},
};

/// Who is ended on trial, and whether the unit fits then. Each further task costs as much as its queue is deep.
pub(super) struct Search<'s> {
    scheduler: &'s Scheduler,
    unit: UnitIx,
    /// The queue of the unit and those above it.
    path: Vec<QueueIx>,
    shape: &'s DemandShape,
    wanted: Amounts,
    /// True if tasks are being ended anyway.
    has_ending: bool,
    /// What would be freed on each node, and in each queue.
    on_nodes: BTreeMap<NodeIx, Amounts>,
    in_queues: FreedQuota,
    /// For each part of the shape, how many of its tasks each node then holds, and their sum.
    slots: Vec<(BTreeMap<NodeIx, u64>, u64)>,
    pub(super) chosen: Vec<Group>,
}

impl<'s> Search<'s> {
    /// Begins with the tasks that are being ended anyway: they are as good as gone.
    pub(super) fn new(scheduler: &'s Scheduler, at: UnitIx, unit: &Unit, shape: &'s DemandShape) -> Self {
        let ending = scheduler.ending();
        let mut search = Self {
            scheduler,
            unit: at,
            path: scheduler.tree.path(unit.leaf).collect(),
            shape,
            wanted: shape.total(),
            has_ending: !ending.is_empty(),
            on_nodes: BTreeMap::new(),
            in_queues: FreedQuota::default(),
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
    pub(super) fn end_whole(&mut self, gang: Group) {
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
    pub(super) fn end(&mut self, group: Group, running: &[&Running]) -> bool {
        let tree = &self.scheduler.tree;
        let mut more: BTreeMap<QueueIx, Amounts> = BTreeMap::new();
        for one in running {
            for at in tree.path(one.leaf) {
                more.entry(at).or_default().add(&one.amounts);
            }
        }
        let wanted = &self.wanted;
        let gone = |at: QueueIx, index: usize| self.in_queues.get(at, index);
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
            one.amounts.iter().any(|(index, _)| wanted.get(index) > 0 && queue.is_above_without(index, gone(at, index)))
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
        self.in_queues.count(&self.scheduler.tree, running.leaf, &running.amounts, true);
        self.on_nodes.entry(running.node).or_default().add(&running.amounts);
    }

    /// Takes back that a task frees something. Nodes are counted again by whoever ends or keeps a group.
    fn count_kept(&mut self, running: &Running) {
        self.in_queues.count(&self.scheduler.tree, running.leaf, &running.amounts, false);
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

    /// Reports whether the unit is within all quotas then.
    pub(super) fn fits_quotas(&self) -> bool {
        self.path.first().is_none_or(|leaf| self.scheduler.tree.fits_quotas(*leaf, &self.wanted, &self.in_queues))
    }

    /// Reports whether there is room and quota for every part. Parts that want the same room are told apart when they are placed.
    pub(super) fn fits(&self) -> bool {
        (self.has_ending || !self.chosen.is_empty())
            && self.shape.parts.iter().zip(&self.slots).all(|((_, count), (_, sum))| *sum >= u64::from(*count))
            && self.fits_quotas()
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
