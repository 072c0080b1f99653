//! Says whether tasks could ever start, however little else runs: what no node has, what no queue on the path allows, what
//! all nodes together do not hold. It asks for capacity only, not for what is in use.

use super::{
    Demand, Scheduler,
    node::{Misfit, ScheduledNode},
    shapes::{DemandShape, TaskShape},
    spec::{NodeSpec, QueueSpec},
};

/// Why tasks could never start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Never {
    /// No node that it may run on has so much.
    Node { resource: String, wanted: u64, most: u64 },
    /// No node has enough of everything that it wants, although some have enough of each.
    Nowhere,
    /// Labels of no node match its selector or affinity.
    NotSelected,
    /// Every node has a taint that it does not tolerate; this is one of them.
    Tainted { key: String },
    /// A queue on its path may not use so much.
    Queue { queue: String, resource: String, wanted: u64, most: u64 },
    /// All nodes together hold only so many of those that start at once.
    Together { wanted: u32, most: u32 },
}

/// What can be said about tasks before they are submitted. Each is told with the index of its task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FitVerdict {
    pub never: Vec<(usize, Never)>,
    /// More than any node was measured to have: such tasks get a whole node.
    pub alone: Vec<(usize, Never)>,
}

/// Judges tasks that start at once on empty nodes, within queues: the queue of the tasks and those above it.
pub fn judge(nodes: &[NodeSpec], queues: &[QueueSpec], members: &[(&Demand, u32)]) -> FitVerdict {
    let mut scheduler = Scheduler::default();
    nodes.iter().for_each(|node| scheduler.put_node(node.clone()));
    queues.iter().for_each(|queue| scheduler.put_queue(queue.clone()));
    scheduler.judge(members, queues)
}

impl Scheduler {
    fn judge(&mut self, members: &[(&Demand, u32)], queues: &[QueueSpec]) -> FitVerdict {
        let mut verdict = FitVerdict::default();
        let mut shape = DemandShape { parts: Vec::new(), bound: None, preempts: None };
        for (at, (demand, count)) in members.iter().enumerate() {
            let amounts = self.names.of_task(&demand.resources);
            let one = DemandShape::of_task(amounts, demand.constraints.clone(), None);
            let Some((task, _)) = one.parts.into_iter().next() else { continue };
            self.judge_nodes(at, &task, &mut verdict);
            shape.parts.push((task, *count));
        }
        let total = shape.total();
        for queue in queues {
            for (resource, most) in &queue.capability {
                let index = self.names.index(resource);
                let wanted = total.get(index);
                if wanted > *most {
                    let (queue, resource, most) = (queue.name.to_string(), resource.clone(), *most);
                    let largest = (0..members.len())
                        .max_by_key(|at| (shape.parts[*at].0.amounts.get(index), std::cmp::Reverse(*at)));
                    verdict.never.push((largest.unwrap_or(0), Never::Queue { queue, resource, wanted, most }));
                }
            }
        }
        let all: u32 = members.iter().map(|(_, count)| *count).sum();
        if all > 1 && verdict.never.is_empty() && !self.room.could_hold(&shape, &self.names, true) {
            let most = self.most_of(&shape);
            let together = Never::Together { wanted: all, most };
            let alone = self.room.node_for_alone(&shape, &self.names).is_some();
            if alone { &mut verdict.alone } else { &mut verdict.never }.push((0, together));
        }
        verdict
    }

    fn judge_nodes(&self, at: usize, task: &TaskShape, verdict: &mut FitVerdict) {
        let nodes: Vec<&ScheduledNode> = self.room.all().map(|(_, node)| node).collect();
        if nodes.is_empty() {
            return;
        }
        let of_amounts = |misfit: &Option<Misfit>| matches!(misfit, None | Some(Misfit::TooLarge(_)));
        let misfits: Vec<(Option<Misfit>, &ScheduledNode)> =
            nodes.iter().map(|node| (node.excludes(&task.amounts, &task.constraints, &self.names), *node)).collect();
        let chosen: Vec<&ScheduledNode> =
            misfits.iter().filter(|(misfit, _)| of_amounts(misfit)).map(|(_, node)| *node).collect();
        if chosen.is_empty() {
            let taint = misfits.iter().find_map(|(misfit, _)| match misfit {
                Some(Misfit::Tainted(key)) => Some(key.clone()),
                Some(Misfit::Cordoned | Misfit::NotSelected | Misfit::TooLarge(_) | Misfit::Full(_)) | None => None,
            });
            let never = taint.map_or(Never::NotSelected, |key| Never::Tainted { key });
            verdict.never.push((at, never));
            return;
        }
        let fits = misfits.iter().any(|(misfit, _)| misfit.is_none());
        let before = verdict.never.len();
        for (index, wanted) in task.amounts.iter() {
            // Where a node has as much as anybody wants, nobody wants too much.
            let Some(has) = chosen.iter().map(|node| node.capacity(index)).collect::<Option<Vec<_>>>() else {
                continue;
            };
            let most = has.iter().map(|has| has.amount).max().unwrap_or(0);
            let hard = has.iter().all(|has| has.declared && has.amount < wanted || has.amount == 0);
            let told = Never::Node { resource: self.names.name(index).to_string(), wanted, most };
            if hard && !fits {
                verdict.never.push((at, told));
            } else if most < wanted && fits {
                verdict.alone.push((at, told));
            }
        }
        if !fits && verdict.never.len() == before {
            verdict.never.push((at, Never::Nowhere));
        }
    }

    /// Returns how many tasks of a unit, in its order, empty nodes hold at once.
    fn most_of(&self, shape: &DemandShape) -> u32 {
        let all: u32 = shape.parts.iter().map(|(_, count)| *count).sum();
        let (mut least, mut most) = (0, all);
        while least < most {
            let middle = least + (most - least).div_ceil(2);
            if self.room.could_hold(&first_of(shape, middle), &self.names, true) {
                least = middle;
            } else {
                most = middle - 1;
            }
        }
        least
    }
}

/// Returns the first tasks of a shape.
fn first_of(shape: &DemandShape, count: u32) -> DemandShape {
    let mut left = count;
    let mut parts = Vec::new();
    for (task, count) in &shape.parts {
        let taken = left.min(*count);
        left -= taken;
        if taken > 0 {
            parts.push((task.clone(), taken));
        }
    }
    DemandShape { parts, bound: None, preempts: None }
}
