//! Which running tasks would have to end so that enough is free: few, small, and those that end soonest. It ends nobody.

use std::cmp::Reverse;

use super::Remedy;
use crate::schedule::{Scheduler, TaskRef, room::NodeIx, spec::Quantities, tree::QueueIx};

/// Where tasks may be ended.
pub(super) enum EndScope {
    Nodes(Vec<NodeIx>),
    Queue(QueueIx),
}

/// A task that may be ended, and what it holds of what is wanted.
struct Freeable {
    task: TaskRef,
    held: Vec<u64>,
}

impl Scheduler {
    /// Returns tasks whose end frees this much, and how much they hold of it; `None` if all together do not hold it.
    pub(super) fn choose_ends(&self, scope: &EndScope, wanted: &Quantities) -> Option<(Vec<TaskRef>, Quantities)> {
        let least: Vec<u64> = wanted.values().copied().collect();
        let mut holders = self.holders(scope, wanted);
        let covers = |held: &[u64]| held.iter().zip(&least).all(|(held, least)| held >= least);
        let size = |holder: &Freeable| relative(&holder.held, &least);
        let alone = holders.iter().filter(|holder| covers(&holder.held)).min_by_key(|holder| size(holder));
        if let Some(alone) = alone {
            return Some((vec![alone.task], amounts(wanted, &alone.held)));
        }
        holders.sort_by_key(|holder| Reverse(size(holder).min(1_000_000 * least.len() as u64)));
        let mut sum = vec![0; least.len()];
        let mut chosen: Vec<Freeable> = Vec::new();
        for holder in holders {
            if covers(&sum) {
                break;
            }
            add(&mut sum, &holder.held);
            chosen.push(holder);
        }
        if !covers(&sum) {
            return None;
        }
        // The last ones may have made some of the first ones unnecessary.
        chosen.retain(|holder| {
            let without: Vec<u64> = sum.iter().zip(&holder.held).map(|(sum, held)| sum - held).collect();
            let needed = !covers(&without);
            if !needed {
                sum = without;
            }
            needed
        });
        Some((chosen.into_iter().map(|holder| holder.task).collect(), amounts(wanted, &sum)))
    }

    /// Returns all tasks that hold something of this.
    pub(super) fn all_ends(&self, scope: &EndScope, wanted: &Quantities) -> Vec<TaskRef> {
        self.holders(scope, wanted).into_iter().map(|holder| holder.task).collect()
    }

    /// Returns the change in which these tasks end, with what they hold of the resources that it named.
    pub(in crate::schedule) fn with_ends(&self, change: &Remedy, chosen: Vec<TaskRef>) -> Remedy {
        let mut change = change.clone();
        if let Remedy::FreeRoom { amounts: named, ends, .. } | Remedy::FreeQuota { amounts: named, ends, .. } =
            &mut change
        {
            let held = |name: &String| {
                let index = self.names.find(name);
                let of = |task: &TaskRef| index.map_or(0, |index| self.running[task].amounts.get(index));
                chosen.iter().map(of).fold(0, u64::saturating_add)
            };
            *named = named.keys().map(|name| (name.clone(), held(name))).filter(|(_, held)| *held > 0).collect();
            *ends = chosen;
        }
        change
    }

    /// Returns the tasks that may be ended, those first that end soonest.
    fn in_scope(&self, scope: &EndScope) -> Vec<TaskRef> {
        let mut tasks: Vec<TaskRef> = match scope {
            EndScope::Nodes(nodes) => {
                let nodes = nodes.iter().filter_map(|at| self.room.get(*at));
                nodes
                    .flat_map(|node| node.running.iter().copied())
                    .filter(|task| self.running.contains_key(task))
                    .collect()
            }
            EndScope::Queue(queue) => {
                self.running.keys().copied().filter(|task| self.is_of_queue(*task, *queue)).collect()
            }
        };
        tasks.sort_unstable_by_key(|task| (self.running[task].end, *task));
        tasks
    }

    fn holders(&self, scope: &EndScope, wanted: &Quantities) -> Vec<Freeable> {
        let indexes: Vec<Option<usize>> = wanted.keys().map(|name| self.names.find(name)).collect();
        let holder = |task: TaskRef| {
            let amounts = &self.running[&task].amounts;
            let held: Vec<u64> = indexes.iter().map(|index| index.map_or(0, |index| amounts.get(index))).collect();
            held.iter().any(|held| *held > 0).then_some(Freeable { task, held })
        };
        self.in_scope(scope).into_iter().filter_map(holder).collect()
    }
}

/// Returns how much this is of what is wanted: millionths, summed.
fn relative(held: &[u64], wanted: &[u64]) -> u64 {
    let part = |(held, wanted): (&u64, &u64)| {
        u64::try_from(u128::from(*held) * 1_000_000 / u128::from((*wanted).max(1))).unwrap_or(u64::MAX)
    };
    held.iter().zip(wanted).map(part).fold(0, u64::saturating_add)
}

fn amounts(wanted: &Quantities, held: &[u64]) -> Quantities {
    wanted.keys().cloned().zip(held.iter().copied()).filter(|(_, held)| *held > 0).collect()
}

fn add(sum: &mut [u64], held: &[u64]) {
    sum.iter_mut().zip(held).for_each(|(sum, held)| *sum = sum.saturating_add(*held));
}
