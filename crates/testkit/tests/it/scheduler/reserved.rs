//! Who may pass the first of a queue, and which queue comes first, judged by the rule as it is written: a reservation is kept,
//! nobody waits behind one that does not concern it, and no queue is passed by one that comes after it.

use std::{collections::BTreeMap, sync::Arc};

use octoflow_engine::schedule::{TaskRef, WaitReason, spec::Demand};
use octoflow_model::{Time, task::placement::Assignment};
use octoflow_testkit::recount::Recount;

use super::world::World;

/// The first task of a queue, if it waits alone.
pub(super) struct Head {
    task: TaskRef,
    demand: Arc<Demand>,
    /// When it is to start at the latest, if anybody knows.
    expected: Option<Time>,
}

impl World {
    /// Returns the first of each queue. The order of before time passed is not that of now.
    pub(super) fn heads(&self) -> BTreeMap<Arc<str>, Head> {
        let first = |(task, (demand, _)): (&TaskRef, &(Arc<Demand>, Time))| {
            let alone = demand.gang.as_ref().is_none_or(|gang| self.gangs.is_formed(gang));
            let why = self.scheduler.why(*task).filter(|why| alone && why.position == 0 && !why.preempting)?;
            let head = Head { task: *task, demand: demand.clone(), expected: why.expected };
            Some((demand.queue.clone(), head))
        };
        self.waiting.iter().filter_map(first).collect()
    }

    /// A start does not take what is reserved for the first of its queue: that fits then as early as it was promised.
    pub(super) fn check_reserved(
        &self,
        heads: &BTreeMap<Arc<str>, Head>,
        before: &Recount,
        task: TaskRef,
        demand: &Demand,
    ) {
        // Whose run is not ready keeps its place and holds up nobody.
        let Some(head) =
            heads.get(&demand.queue).filter(|head| head.task != task && !self.busy.contains(&head.task.run))
        else {
            return;
        };
        let Some(expected) = head.expected.filter(|at| *at > self.now) else { return };
        let kept = |count: &Recount| count.earliest(&head.demand).is_some_and(|at| at <= expected);
        if before.quota(&[&head.demand]).is_none() && kept(before) {
            assert!(
                kept(&self.count),
                "{task:?} of {} takes the room that {:?} was to get at {expected}",
                demand.queue,
                head.task
            );
        }
    }

    /// A start does not take the room of the first of another queue that comes before its own.
    pub(super) fn check_queues(
        &self,
        heads: &BTreeMap<Arc<str>, Head>,
        before: &Recount,
        task: TaskRef,
        demand: &Demand,
        on: &Assignment,
    ) {
        // Members of a gang are started in one decision, so what the first of them takes is no reason for the next.
        let others = heads.iter().filter(|(queue, head)| {
            demand.gang.is_none()
                && **queue != demand.queue
                && !self.busy.contains(&head.task.run)
                && head.demand.resources == demand.resources
                && head.demand.constraints == demand.constraints
        });
        for (queue, head) in others {
            let devices = on.devices.clone();
            let there = Assignment { node: on.node.clone(), devices };
            assert!(
                before.start_problem(&head.demand, &there).is_some() || !before.precedes(queue, &demand.queue),
                "{task:?} of {} starts before {:?} of {queue}, which takes the same room and comes first",
                demand.queue,
                head.task
            );
        }
    }

    /// The first of a queue holds one node. Whoever fits on two, and is behind it alone, has no reason to wait.
    pub(super) fn check_behind(&self, task: TaskRef, demand: &Demand, why: &WaitReason) {
        if why.position == 0
            || why.preempting
            || self.count.declared.queue(&demand.queue).is_none_or(|queue| queue.strict)
        {
            return;
        }
        let heads = self.heads();
        // Whoever could never start holds up nobody, and who does instead is not told.
        let Some(head) = heads.get(&demand.queue).filter(|head| self.count.could_ever_run(&head.demand)) else {
            return;
        };
        // Quota is reserved too, and no node tells where.
        if self.count.quota(&[&head.demand]).is_some() || self.count.quota(&[demand]).is_some() {
            return;
        }
        let fits: Vec<&str> = self
            .count
            .declared
            .nodes
            .values()
            .filter(|node| self.count.fits(demand, node))
            .map(|node| &*node.name)
            .collect();
        assert!(fits.len() < 2, "{task:?} of {} is behind {:?} and fits on {fits:?}", demand.queue, head.task);
    }
}
