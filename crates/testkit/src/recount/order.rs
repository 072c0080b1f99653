//! The order between queues, and when a task fits at last, counted from the list of what runs. It decides nothing.

use std::cmp::Reverse;

use octoflow_engine::schedule::spec::{Demand, NodeSpec};
use octoflow_model::Time;

use super::{Holder, Recount, excluded, resources_of, taken};

/// Shares closer than this are equal: the scheduler rounds them.
const ROUNDING: f64 = 1e-6;

impl Recount {
    /// Reports whether one queue is served before another for a reason: level by level from the root, where their paths part.
    pub fn precedes(&self, one: &str, other: &str) -> bool {
        let down = |name: &str| self.declared.path(name).into_iter().rev().collect::<Vec<_>>();
        let (ours, theirs) = (down(one), down(other));
        let Some((ours, theirs)) = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs) else { return false };
        let place = |name: &str| (!self.is_below_guarantee(name), Reverse(self.priority(name)));
        match place(ours).cmp(&place(theirs)) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Greater => false,
            std::cmp::Ordering::Equal => self.share(ours) * (1.0 + ROUNDING) + ROUNDING < self.share(theirs),
        }
    }

    fn priority(&self, queue: &str) -> i32 {
        self.declared.queue(queue).map_or(0, |spec| spec.priority)
    }

    fn is_below_guarantee(&self, queue: &str) -> bool {
        let guarantee = self.declared.queue(queue).map(|spec| spec.guarantee).unwrap_or_default();
        guarantee.iter().any(|(resource, least)| self.used_by(queue, resource) < *least)
    }

    /// Returns the largest part that a queue uses of what it deserves: of what it is judged by, or, if it uses nothing of
    /// that, of everything.
    fn share(&self, queue: &str) -> f64 {
        let deserved = |resource: &str| self.declared.deserved(queue, resource);
        let resources = self.declared.resources();
        let used = resources.iter().filter(|resource| self.used_by(queue, resource) > 0);
        let (judged, others): (Vec<_>, Vec<_>) = used.partition(|resource| self.declared.is_judged(queue, resource));
        let counted = if judged.is_empty() {
            others.into_iter().filter(|resource| deserved(resource) > 0).collect()
        } else {
            judged
        };
        let part = |resource: &String| self.used_by(queue, resource) as f64 / deserved(resource).max(1) as f64;
        counted.into_iter().map(part).fold(0.0, f64::max)
    }

    /// Returns when a task fits on some node at the latest, if everybody who runs takes as long as it may; `None`: nobody
    /// knows.
    pub fn earliest(&self, demand: &Demand) -> Option<Time> {
        let nodes = self.declared.nodes.values().filter(|node| excluded(demand, node).is_none());
        nodes.filter_map(|node| self.earliest_on(demand, node)).min()
    }

    fn earliest_on(&self, demand: &Demand, node: &NodeSpec) -> Option<Time> {
        let end = |holder: &Holder| holder.demand.bound.map(|bound| holder.started.saturating_add(bound));
        let here: Vec<&Holder> = self.holders.values().filter(|holder| *holder.assignment.node == *node.name).collect();
        let fits_at = |at: Time| {
            let left = || here.iter().filter(|holder| end(holder).is_none_or(|end| end > at));
            resources_of(demand).all(|resource| {
                let Some(has) = node.capacity.get(resource) else { return node.open_ended };
                let used: u64 = left().map(|holder| self.takes(holder, resource)).sum();
                used + taken(demand, Some(node), resource) <= has.amount
            })
        };
        here.iter().filter_map(|holder| end(holder)).filter(|at| fits_at(*at)).min()
    }
}
