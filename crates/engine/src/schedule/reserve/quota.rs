//! Reservations of quota: when the first unit of a queue will fit within a capability, and how much of that is left beside it then.
//! Units behind it pass if they end before, or use what is left. It starts nobody.

use std::time::Duration;

use octoflow_model::Time;

use super::UNKNOWN;
use crate::schedule::{
    Scheduler,
    amounts::Amounts,
    shapes::DemandShape,
    tree::{QueueIx, QuotaLimit},
    units::UnitIx,
};

/// Tasks that are late are expected to be over after so long.
const SOON: Duration = Duration::from_secs(1);

/// The quota that a unit waits for.
#[derive(Clone, Debug)]
pub(in crate::schedule) struct QuotaReservation {
    pub unit: UnitIx,
    limit: QuotaLimit,
    /// The queues that it was computed of.
    version: u64,
    /// When it is expected; `None`: nobody knows how long tasks in the way take.
    at: Option<Time>,
    /// How much is left beside the unit at that time.
    left: u64,
}

impl QuotaReservation {
    fn lets_pass(&self, amount: u64, bound: Option<Duration>, now: Time) -> bool {
        let ends_before = bound.is_some_and(|bound| self.at.is_some_and(|at| now.saturating_add(bound) <= at));
        ends_before || amount <= self.left
    }

    /// Notes that a task that will still run then has taken quota beside the unit.
    pub(in crate::schedule) fn passed(&mut self, amounts: &Amounts, end: Time) {
        if self.at.is_none_or(|at| end > at) {
            self.left = self.left.saturating_sub(amounts.get(self.limit.resource));
        }
    }
}

impl Scheduler {
    /// Reports whether a unit may pass the first of its queue that waits for quota.
    pub(in crate::schedule) fn passes_quota(
        &mut self,
        leaf: QueueIx,
        head: UnitIx,
        limit: &QuotaLimit,
        wanted: &DemandShape,
        now: Time,
    ) -> bool {
        let amount = wanted.total().get(limit.resource);
        if amount == 0 {
            return true;
        }
        // When others will have started who are guaranteed something, nobody knows.
        if limit.guarantee {
            return false;
        }
        let version = self.tree.version();
        let is_known = |known: &QuotaReservation| {
            known.unit == head
                && known.limit == *limit
                && known.version == version
                && known.at.is_none_or(|at| at > now)
        };
        if !self.tree.get(leaf).leaf.quota_reservation.as_ref().is_some_and(is_known) {
            self.tree.leaf(leaf).quota_reservation = self.reserve_quota(head, limit, now);
        }
        let known = self.tree.get(leaf).leaf.quota_reservation.as_ref();
        known.is_some_and(|known| known.lets_pass(amount, wanted.bound, now))
    }

    /// Finds when a unit fits within a capability. Looks at all that run, once for each unit that waits so.
    fn reserve_quota(&self, head: UnitIx, limit: &QuotaLimit, now: Time) -> Option<QuotaReservation> {
        let most = self.tree.get(limit.queue).capability().get(limit.resource)?;
        let wanted = self.shapes.total(self.units.get(head)?.shape).get(limit.resource);
        let below = self.running.values().filter(|running| self.tree.path(running.leaf).any(|at| at == limit.queue));
        let mut ends: Vec<(Time, u64)> = below
            .map(|running| (running.end, running.amounts.get(limit.resource)))
            .filter(|(_, amount)| *amount > 0)
            .collect();
        ends.sort_unstable();
        let mut used: u64 = ends.iter().map(|(_, amount)| *amount).sum();
        let mut at = now;
        for (end, amount) in ends {
            if used.saturating_add(wanted) <= most && end > at {
                break;
            }
            used -= amount;
            at = end;
        }
        let (at, used) = if at == UNKNOWN { (None, 0) } else { (Some(at.max(now.saturating_add(SOON))), used) };
        let left = most.saturating_sub(used).saturating_sub(wanted);
        Some(QuotaReservation { unit: head, limit: *limit, version: self.tree.version(), at, left })
    }
}
