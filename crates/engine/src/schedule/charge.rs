//! Charges tenants for what their tasks use: in advance when they start, again as they go on, and what was paid too much is given
//! back when they end.

use std::time::Duration;

use octoflow_model::Time;

use super::{Running, Scheduler, amounts::Amounts, tree::QueueIx, usage::TenantIx};

/// Usage is charged for this much time in advance, so that it counts from the start.
pub(super) const CHARGED_AHEAD: Duration = Duration::from_secs(60);
/// So many running tasks are charged at a time; the others follow with the next decision.
const CHARGED_AT_ONCE: usize = 64;

impl Scheduler {
    pub(super) fn settle_charge(&mut self, running: &Running, now: Time) {
        let paid = running.charged_until.0.saturating_sub(running.started.0);
        let used = now.0.saturating_sub(running.started.0).max(0);
        self.charge(running.leaf, running.tenant, &running.amounts.clone(), (used - paid) as f64 / 1e6, now);
    }

    /// Charges a tenant for using amounts for some seconds: the largest part of all nodes counts.
    fn charge(&mut self, leaf: QueueIx, tenant: TenantIx, amounts: &Amounts, seconds: f64, now: Time) {
        let total = self.tree.total();
        let part = |(index, amount): (usize, u64)| match total.get(index) {
            0 => 0.0,
            all => amount as f64 / all as f64,
        };
        let share = amounts.iter().map(part).fold(0.0, f64::max);
        if self.usage.charge(leaf, tenant, share * seconds, now) {
            self.retenant_all();
        }
        let key = self.usage.key(leaf, tenant);
        if self.tree.get(leaf).leaf.waits() && self.tree.leaf(leaf).retenant_waiting(tenant, key) {
            self.tree.mark(leaf);
        }
    }

    fn retenant_all(&mut self) {
        let leaves: Vec<QueueIx> = self.tree.all().map(|(at, _)| at).collect();
        for leaf in leaves {
            let tenants: Vec<TenantIx> = self.tree.get(leaf).leaf.tenants().collect();
            for tenant in tenants {
                let key = self.usage.key(leaf, tenant);
                if self.tree.leaf(leaf).retenant_waiting(tenant, key) {
                    self.tree.mark(leaf);
                }
            }
        }
    }

    /// Charges running tasks whose time paid in advance is over.
    pub(super) fn charge_due(&mut self, now: Time) {
        for _ in 0..CHARGED_AT_ONCE {
            let Some((at, task)) = self.charges.first().copied().filter(|(at, _)| *at <= now) else { return };
            self.charges.pop_first();
            let Some(running) = self.running.get_mut(&task) else { continue };
            // However long nothing happened, it is charged in one go.
            let until = now.max(at).saturating_add(CHARGED_AHEAD);
            let seconds = until.0.saturating_sub(running.charged_until.0) as f64 / 1e6;
            running.charged_until = until;
            let (leaf, tenant, amounts) = (running.leaf, running.tenant, running.amounts.clone());
            self.charges.insert((until, task));
            self.charge(leaf, tenant, &amounts, seconds, now);
        }
    }
}
