//! Order and missing preemptions, judged by the rule as it is written. Only tasks that take the same room are compared: of those,
//! nothing but the order decides who starts.

use octoflow_engine::schedule::{LONGEST_WAIT, TaskRef, spec::Demand};
use octoflow_model::Time;

use super::world::World;

/// One point of priority counts as much as a minute of waiting.
const MINUTE: i64 = 60_000_000;
/// So many that have waited too long are tried before all others of their queue.
const OVERDUE: usize = 8;

impl World {
    /// Nobody waits for long who may take something back or end a lower class, if the end of one task is enough for it.
    pub(super) fn check_no_victim_missing(&self) {
        let overdue = |since: Time| since.saturating_add(LONGEST_WAIT) <= self.now;
        let alone = |demand: &Demand| demand.gang.as_ref().is_none_or(|gang| self.gangs.is_formed(gang));
        let candidates = self.waiting.iter().filter(|(task, (demand, _))| {
            // Whoever has waited too long, or is the first in strict order, is not passed by those behind.
            let strict = self.count.declared.queue(&demand.queue).is_some_and(|queue| queue.strict);
            let others = self.waiting.iter().filter(|(other, (at, _))| other != task && at.queue == demand.queue);
            alone(demand)
                && !others.into_iter().any(|(_, (_, since))| overdue(*since))
                && (!strict || self.scheduler.why(**task).is_some_and(|why| why.position == 0))
        });
        for (task, (demand, _)) in candidates.take(if self.rested { 10 } else { 0 }) {
            if self.count.could_start(demand).is_none()
                && let Some((victim, reason)) = self.count.sufficient_victim(demand)
            {
                panic!("{task:?} of {} waits, and could start if {victim:?} were ended: {reason:?}", demand.queue);
            }
        }
    }

    fn priority(&self, demand: &Demand) -> i64 {
        i64::from(self.count.declared.class(demand).map_or(demand.priority, |class| class.value))
    }

    fn rank(&self, demand: &Demand, since: Time) -> i64 {
        since.0 - self.priority(demand) * MINUTE
    }

    /// Nobody starts before another of its queue that takes the same room and comes first.
    pub(super) fn check_order(&self, task: TaskRef, demand: &Demand, since: Time) {
        // Whoever others are ended for has room of its own.
        let promised = !self.nominees.is_empty() || self.count.holders.values().any(|holder| holder.ending);
        if promised || demand.gang.is_some() {
            return;
        }
        let is_overdue = |since: Time| since.saturating_add(LONGEST_WAIT) <= self.now;
        let alike = |other: &Demand| {
            other.gang.is_none()
                && other.queue == demand.queue
                && other.resources == demand.resources
                && other.constraints == demand.constraints
                && other.bound == demand.bound
        };
        let of_queue = self.waiting.values().filter(|(other, _)| other.queue == demand.queue);
        let many_overdue = of_queue.filter(|(_, since)| is_overdue(*since)).count() >= OVERDUE;
        let others: Vec<_> = self
            .waiting
            .iter()
            .filter(|(other, (of_other, _))| alike(of_other) && !self.busy.contains(&other.run))
            .map(|(other, (demand, since))| (*other, &**demand, *since))
            .collect();
        let level = others
            .iter()
            .filter(|(_, other, _)| other.tenant == demand.tenant && self.priority(other) == self.priority(demand))
            .map(|(_, other, since)| self.rank(other, *since))
            .chain([self.rank(demand, since)])
            .min()
            .unwrap_or(i64::MAX);
        for (other, of_other, other_since) in others {
            let first = match (is_overdue(other_since), is_overdue(since)) {
                (true, late) => !many_overdue && (!late || other_since < since),
                (false, true) => false,
                // Runs of one priority take turns; each serves its own in order, and a level goes by its oldest.
                (false, false) if self.priority(of_other) == self.priority(demand) => {
                    of_other.tenant == demand.tenant && other.run == task.run && other_since < since
                }
                (false, false) => of_other.tenant == demand.tenant && self.rank(of_other, other_since) < level,
            };
            assert!(
                !first,
                "{task:?} of {} starts before {other:?}, which takes the same room and comes first",
                demand.queue
            );
        }
    }
}
