//! Reservations: when and where the first unit of a queue will find room, from how long running tasks take at most. Units
//! behind it may pass if they end before, or use what it does not need.

mod quota;

use std::time::Duration;

use octoflow_model::Time;

use super::{
    TaskRef,
    amounts::{Amounts, ResourceNames},
    node::ScheduledNode,
    room::{NodeIx, Room},
    shapes::{DemandShape, TaskShape},
    units::UnitIx,
};

pub(super) use quota::QuotaReservation;

/// More nodes are not looked at for the reservation of one task.
const MAX_NODES: usize = 32;

/// The room that a unit waits for.
#[derive(Clone, Debug)]
pub(super) struct Reservation {
    pub unit: UnitIx,
    /// When the room is expected; `None`: nobody knows how long tasks in the way take.
    pub at: Option<Time>,
    /// The nodes of the unit, and how much of each is left beside it at that time.
    rooms: Vec<(NodeIx, Amounts)>,
}

/// A time that never comes: nobody knows when.
pub(super) const UNKNOWN: Time = Time(i64::MAX);

impl Reservation {
    /// Finds the earliest room for a unit. A unit that not even idle nodes could hold gets none.
    pub(super) fn find<'a>(
        unit: UnitIx,
        shape: &DemandShape,
        room: &'a Room,
        names: &ResourceNames,
        amounts: impl Fn(TaskRef) -> &'a Amounts,
    ) -> Option<Self> {
        let allowed = |node: &ScheduledNode| {
            !node.spec.cordoned
                && shape.parts.iter().any(|(task, _)| node.excludes(&task.amounts, &task.constraints, names).is_none())
        };
        // One task finds its room on a few nodes; a gang may need all of them.
        let most = if shape.single().is_some() { MAX_NODES } else { usize::MAX };
        let nodes: Vec<(NodeIx, &ScheduledNode)> = room.all().filter(|(_, node)| allowed(node)).take(most).collect();
        let found = match shape.single() {
            Some(task) => earliest(task, &nodes, names, &amounts),
            None => {
                let each = nodes.iter().flat_map(|(_, node)| node.ends.iter().map(|(end, _)| *end));
                let mut ends: Vec<Time> = each.collect();
                ends.sort_unstable();
                ends.dedup();
                // Whoever fits at some time fits later: the first such time is found by halving.
                let at_end = |end: Time| fill(shape, &nodes, end, names, &amounts);
                let first = ends.partition_point(|end| at_end(*end).is_none());
                ends.get(first).and_then(|end| Some((*end, at_end(*end)?)))
            }
        };
        let (end, rooms) = found.or_else(|| {
            // Larger than all nodes: it gets one that is idle, if that is possible at all.
            let node = room.node_for_alone(shape, names)?;
            let end = room.get(node)?.ends.last().map_or(UNKNOWN, |(end, _)| *end);
            Some((end, vec![(node, Amounts::default())]))
        })?;
        Some(Self { unit, at: (end != UNKNOWN).then_some(end), rooms })
    }

    /// Returns the reservation of a unit that no node could ever hold: nobody has to wait for it.
    pub(super) fn nowhere(unit: UnitIx) -> Self {
        Self { unit, at: None, rooms: Vec::new() }
    }

    /// Reports whether it is the reservation of this unit and still to come.
    pub(super) fn is_for(&self, unit: UnitIx, now: Time) -> bool {
        self.unit == unit && self.at.is_none_or(|at| at > now)
    }

    /// Reports whether a task of a unit behind may start on this node.
    pub(super) fn lets_pass(&self, task: &TaskShape, bound: Option<Duration>, node: NodeIx, now: Time) -> bool {
        let Some((_, left)) = self.rooms.iter().find(|(at, _)| *at == node) else { return true };
        self.is_after(bound, now) || task.amounts.iter().all(|(index, amount)| amount <= left.get(index))
    }

    /// Reports whether a unit that starts now ends before the reserved time.
    pub(super) fn is_after(&self, bound: Option<Duration>, now: Time) -> bool {
        bound.is_some_and(|bound| self.at.is_some_and(|at| now.saturating_add(bound) <= at))
    }

    /// Notes that a task that will still run then has taken room beside the unit.
    pub(super) fn passed(&mut self, amounts: &Amounts, node: NodeIx, end: Time) {
        let late = self.at.is_none_or(|at| end > at);
        if let Some((_, left)) = self.rooms.iter_mut().find(|(at, _)| *at == node && late) {
            for (index, amount) in amounts.iter() {
                left.set(index, left.get(index).saturating_sub(amount));
            }
        }
    }

    pub(super) fn concerns(&self, node: NodeIx) -> bool {
        self.rooms.iter().any(|(at, _)| *at == node)
    }
}

/// Returns when one task fits first, and how much of its node is left then. Follows the ends on each node only as long as
/// they come before what was found elsewhere.
fn earliest<'a>(
    task: &TaskShape,
    nodes: &[(NodeIx, &ScheduledNode)],
    names: &ResourceNames,
    amounts: &impl Fn(TaskRef) -> &'a Amounts,
) -> Option<(Time, Vec<(NodeIx, Amounts)>)> {
    let mut best: Option<(Time, NodeIx, &ScheduledNode)> = None;
    for &(at, node) in nodes {
        let mut freed = Amounts::default();
        for (end, ending) in node.ends.iter().take_while(|(end, _)| best.is_none_or(|(best, _, _)| *end < best)) {
            freed.add(amounts(*ending));
            if node.holds_without(&task.amounts, &freed) {
                best = Some((*end, at, node));
                break;
            }
        }
    }
    let (end, at, node) = best?;
    let mut used = node.fitted(&task.amounts);
    if end != UNKNOWN {
        for (_, running) in node.ends.iter().rev().take_while(|(later, _)| *later > end) {
            used.add(amounts(*running));
        }
    }
    let mut left = Amounts::default();
    for index in 0..names.len() {
        let has = node.capacity(index).map_or(u64::MAX, |has| has.amount);
        left.set(index, has.saturating_sub(used.get(index)));
    }
    Some((end, vec![(at, left)]))
}

/// Places a unit as if all tasks that end by then were gone; returns how much is left on each node it uses.
fn fill<'a>(
    shape: &DemandShape,
    nodes: &[(NodeIx, &ScheduledNode)],
    end: Time,
    names: &ResourceNames,
    amounts: &impl Fn(TaskRef) -> &'a Amounts,
) -> Option<Vec<(NodeIx, Amounts)>> {
    let mut used: Vec<Amounts> = nodes
        .iter()
        .map(|(_, node)| {
            let mut used = node.used().clone();
            for (_, task) in node.ends.iter().take_while(|(at, _)| *at <= end) {
                used.sub(amounts(*task));
            }
            used
        })
        .collect();
    let mut touched = vec![false; nodes.len()];
    for (task, count) in &shape.parts {
        for _ in 0..*count {
            let place = (0..nodes.len()).find(|place| {
                let node = nodes[*place].1;
                node.excludes(&task.amounts, &task.constraints, names).is_none()
                    && task.amounts.iter().all(|(index, amount)| {
                        node.capacity(index).is_none_or(|has| {
                            let amount = if has.declared { amount } else { amount.min(has.amount) };
                            used[*place].get(index).saturating_add(amount) <= has.amount
                        })
                    })
            })?;
            used[place].add(&nodes[place].1.fitted(&task.amounts));
            touched[place] = true;
        }
    }
    let left = |place: usize| {
        let mut left = Amounts::default();
        for index in 0..names.len() {
            let has = nodes[place].1.capacity(index).map_or(u64::MAX, |has| has.amount);
            left.set(index, has.saturating_sub(used[place].get(index)));
        }
        (nodes[place].0, left)
    };
    Some((0..nodes.len()).filter(|place| touched[*place]).map(left).collect())
}
