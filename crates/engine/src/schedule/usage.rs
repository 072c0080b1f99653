//! What tenants have used, fading with a half-life. New usage weighs more than old: nothing has to be touched for the old to
//! fade, and two tenants change places only when one of them uses something.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use octoflow_model::{IdMap, Time};
use serde::{Deserialize, Serialize};

use super::{charge::CHARGED_AHEAD, tree::QueueIx};

/// A tenant by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TenantIx(u32);

/// Half of a usage is forgotten after this time.
const HALF_LIFE_SECONDS: f64 = 3600.0;
/// Weights are computed from a new epoch before they become too large to add small ones to.
const MAX_HALF_LIVES: f64 = 400.0;

/// The usage of one tenant in one queue, as it is persisted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsageRecord {
    pub queue: String,
    pub tenant: String,
    /// Whole-machine seconds, as they count at the time `at`.
    pub value: f64,
    pub at: Time,
}

#[derive(Clone, Debug)]
pub(super) struct Usage {
    tenants: HashMap<Arc<str>, TenantIx>,
    names: Vec<Arc<str>>,
    epoch: Time,
    /// Values as of the epoch.
    values: IdMap<(QueueIx, TenantIx), f64>,
    touched: BTreeSet<(QueueIx, TenantIx)>,
    /// When the usages that were restored had been persisted.
    restored: Option<Time>,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            tenants: HashMap::new(),
            names: Vec::new(),
            epoch: Time(i64::MIN),
            values: IdMap::default(),
            touched: BTreeSet::new(),
            restored: None,
        }
    }
}

/// Orders tenants. Values are never negative, so their bits are in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UsageKey(u64);

impl Usage {
    pub(super) fn tenant(&mut self, name: &Arc<str>) -> TenantIx {
        if let Some(tenant) = self.tenants.get(name) {
            return *tenant;
        }
        let tenant = TenantIx(u32::try_from(self.names.len()).expect("fewer tenants than bytes of memory"));
        self.names.push(name.clone());
        self.tenants.insert(name.clone(), tenant);
        tenant
    }

    pub(super) fn key(&self, queue: QueueIx, tenant: TenantIx) -> UsageKey {
        UsageKey(self.values.get(&(queue, tenant)).copied().unwrap_or(0.0).to_bits())
    }

    /// Adds usage at this time. Returns whether all keys have changed, because a new epoch began.
    pub(super) fn charge(&mut self, queue: QueueIx, tenant: TenantIx, amount: f64, now: Time) -> bool {
        let rebased = self.rebase(now);
        let weight = self.weight(now);
        let value = self.values.entry((queue, tenant)).or_insert(0.0);
        *value = (*value + amount * weight).max(0.0);
        self.touched.insert((queue, tenant));
        rebased
    }

    fn weight(&self, now: Time) -> f64 {
        (half_lives(self.epoch, now)).exp2()
    }

    fn rebase(&mut self, now: Time) -> bool {
        if self.epoch == Time(i64::MIN) {
            self.epoch = now;
            return false;
        }
        if half_lives(self.epoch, now) < MAX_HALF_LIVES {
            return false;
        }
        let weight = self.weight(now);
        self.values.values_mut().for_each(|value| *value /= weight);
        // What has faded to nothing is forgotten.
        self.values.retain(|_, value| *value > 1e-9);
        self.epoch = now;
        true
    }

    pub(super) fn restore(&mut self, queue: QueueIx, record: &UsageRecord) {
        if self.epoch == Time(i64::MIN) {
            self.epoch = record.at;
        }
        self.restored = self.restored.max(Some(record.at));
        let tenant = self.tenant(&record.tenant.as_str().into());
        let weight = self.weight(record.at);
        let value = record.value * weight;
        if value.is_finite() && value >= 0.0 {
            self.values.insert((queue, tenant), value);
        }
    }

    /// Returns until when a task that started then is charged in the usages that were restored.
    pub(super) fn charged_before(&self, started: Time) -> Time {
        let ahead = CHARGED_AHEAD.as_micros() as i64;
        match self.restored.map(|at| at.0.saturating_sub(started.0)) {
            Some(span) if span >= 0 => Time(started.0.saturating_add((span / ahead + 1).saturating_mul(ahead))),
            Some(_) | None => started,
        }
    }

    /// Forgets what tenants used in a queue that is gone.
    pub(super) fn forget(&mut self, queue: QueueIx) {
        self.values.retain(|(of, _), _| *of != queue);
        self.touched.retain(|(of, _)| *of != queue);
    }

    pub(super) fn has_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Returns what has changed since the last call, with values as they count now.
    pub(super) fn take_touched(&mut self, now: Time) -> Vec<(QueueIx, Arc<str>, f64)> {
        let weight = self.weight(now);
        let touched = std::mem::take(&mut self.touched).into_iter();
        touched
            .map(|(queue, tenant)| {
                let value = self.values.get(&(queue, tenant)).copied().unwrap_or(0.0);
                (queue, self.names[tenant.0 as usize].clone(), value / weight)
            })
            .collect()
    }

    /// Returns what a tenant's usage of a queue counts now.
    #[cfg(test)]
    pub(super) fn value(&self, queue: QueueIx, tenant: TenantIx, now: Time) -> f64 {
        self.values.get(&(queue, tenant)).map_or(0.0, |value| value / self.weight(now))
    }
}

fn half_lives(from: Time, to: Time) -> f64 {
    (to.0.saturating_sub(from.0)) as f64 / 1e6 / HALF_LIFE_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::tree::Tree;

    fn hours(count: i64) -> Time {
        Time::from_secs(count * 3600)
    }

    #[test]
    fn usage_halves_with_every_half_life_and_new_usage_counts_fully() {
        let mut usage = Usage::default();
        let tenant = usage.tenant(&"a".into());
        usage.charge(Tree::ROOT, tenant, 8.0, hours(0));
        assert_eq!(usage.value(Tree::ROOT, tenant, hours(2)), 2.0);
        usage.charge(Tree::ROOT, tenant, 1.0, hours(2));
        assert_eq!(usage.value(Tree::ROOT, tenant, hours(2)), 3.0);
        assert_eq!(usage.value(Tree::ROOT, tenant, hours(3)), 1.5);
    }

    #[test]
    fn the_order_of_tenants_survives_a_new_epoch_and_a_restart() {
        let mut usage = Usage::default();
        let (a, b) = (usage.tenant(&"a".into()), usage.tenant(&"b".into()));
        usage.charge(Tree::ROOT, a, 4.0, hours(10));
        usage.charge(Tree::ROOT, b, 3.0, hours(10));
        assert!(usage.key(Tree::ROOT, a) > usage.key(Tree::ROOT, b));
        assert!(usage.charge(Tree::ROOT, b, 5.0, hours(500)), "a new epoch");
        assert!(usage.key(Tree::ROOT, b) > usage.key(Tree::ROOT, a));
        let mut later = Usage::default();
        for (_, tenant, value) in usage.take_touched(hours(500)) {
            let record = UsageRecord { queue: "root".to_owned(), tenant: tenant.to_string(), value, at: hours(500) };
            later.restore(Tree::ROOT, &record);
        }
        let again = later.tenant(&"b".into());
        assert!((later.value(Tree::ROOT, again, hours(500)) - 5.0).abs() < 1e-6);
    }
}
