//! Deliveries as faces ask for them: what waits, what was given up, and sending it again.

use octoflow_engine::Explanation;
use octoflow_model::{RunId, plugin::PluginType};
use octoflow_store::{Batch, Change, Delivery, DeliveryCount, DeliveryFilter, DeliveryStatus, Reader};

use super::DeliveryTotals;
use crate::{
    Error, clock,
    registry::{Fault, Registry},
};

/// Dead letters that are sent again with one commit.
const AT_ONCE: usize = 500;

/// The most deliveries that a page has.
pub const MAX_PAGE: usize = 1000;

/// A life hook and its deliveries.
#[derive(Clone, Debug)]
pub struct HookSummary {
    /// Key of the plugin.
    pub plugin: String,
    /// `None` if there is no such plugin any more.
    pub enabled: Option<bool>,
    pub address: String,
    pub states: Vec<&'static str>,
    pub pending: u64,
    pub dead: u64,
    /// Since the start of the server.
    pub totals: DeliveryTotals,
}

impl Registry {
    /// Returns a page of deliveries, oldest first, and the cursor of the next page if there is one.
    pub fn deliveries(
        &self,
        filter: &DeliveryFilter,
        after: u64,
        limit: usize,
    ) -> Result<(Vec<Delivery>, Option<u64>), Fault> {
        self.read(|reader| Ok(reader.deliveries(filter, after, limit.clamp(1, MAX_PAGE))?))
    }

    /// Returns all life hooks by key, and what there is of those that are gone.
    pub fn hooks(&self) -> Result<Vec<HookSummary>, Fault> {
        let (table, mut counts) = (self.plugins()?, self.read(|reader| Ok(reader.delivery_counts()?))?);
        let totals = self.controller().delivery_totals();
        let totals_of = |plugin: &str| totals.get(plugin).copied().unwrap_or_default();
        let mut found: Vec<HookSummary> = Vec::new();
        for hook in table.of_type(PluginType::LifeHook) {
            let at = counts.iter().position(|count| count.plugin == hook.key);
            let DeliveryCount { pending, dead, .. } = at.map(|at| counts.swap_remove(at)).unwrap_or_default();
            found.push(HookSummary {
                plugin: hook.key.clone(),
                enabled: Some(hook.enabled),
                address: hook.address.text(),
                states: hook.states.iter().map(|state| state.word()).collect(),
                pending,
                dead,
                totals: totals_of(&hook.key),
            });
        }
        found.extend(counts.into_iter().map(|DeliveryCount { plugin, pending, dead }| HookSummary {
            enabled: None,
            address: String::new(),
            states: Vec::new(),
            pending,
            dead,
            totals: totals_of(&plugin),
            plugin,
        }));
        found.sort_by(|one, other| one.plugin.cmp(&other.plugin));
        Ok(found)
    }

    /// Has a dead letter sent again. Returns false if there is none of this id.
    pub fn replay_delivery(&self, event: &str) -> Result<bool, Fault> {
        let found = self.read(|reader| Ok(reader.delivery(event)?))?;
        let Some(delivery) = found.filter(|delivery| delivery.status == DeliveryStatus::Dead) else { return Ok(false) };
        self.replay(std::slice::from_ref(&delivery))?;
        Ok(true)
    }

    /// Has all dead letters of a plugin sent again, each behind what its run has under way. Returns their number.
    pub fn replay_dead(&self, plugin: &str) -> Result<u64, Fault> {
        let filter = DeliveryFilter { plugin: Some(plugin.to_owned()), dead: Some(true), ..DeliveryFilter::default() };
        let (mut after, mut count) = (0, 0);
        loop {
            let (page, next) = self.read(|reader| Ok(reader.deliveries(&filter, after, AT_ONCE)?))?;
            self.replay(&page)?;
            count += page.len() as u64;
            match next {
                Some(next) => after = next,
                None => return Ok(count),
            }
        }
    }

    /// Deletes a delivery: its event is never sent again. Returns false if there is none of this id.
    pub fn drop_delivery(&self, event: &str) -> Result<bool, Fault> {
        let Some(delivery) = self.read(|reader| Ok(reader.delivery(event)?))? else { return Ok(false) };
        let change = Change::DeleteDelivery { event: event.to_owned() };
        self.handle().store.commit_wait(change.into())?;
        self.handle().hooks.send_due([delivery.plugin].into());
        Ok(true)
    }

    fn replay(&self, dead: &[Delivery]) -> Result<(), Fault> {
        let due = clock::steady();
        let replay = |delivery: &Delivery| Change::ReplayDelivery { event: delivery.event.clone(), due };
        self.handle().store.commit_wait(dead.iter().map(replay).collect::<Batch>())?;
        self.handle().hooks.send_due(dead.iter().map(|delivery| delivery.plugin.clone()).collect());
        Ok(())
    }
}

/// Explains which life hooks have not heard of everything about a run.
pub(crate) fn explain(reader: &Reader, run: RunId) -> Result<Vec<Explanation>, Error> {
    /// More would say the same.
    const MOST: usize = 100;
    let Some(row) = reader.run(run)? else { return Ok(Vec::new()) };
    let filter = DeliveryFilter { run: Some(row.uid), ..DeliveryFilter::default() };
    let (found, _) = reader.deliveries(&filter, 0, MOST)?;
    Ok(found.iter().map(explanation).collect())
}

fn explanation(delivery: &Delivery) -> Explanation {
    let Delivery { plugin, state, tries, reason, event, .. } = delivery;
    let why = match delivery.status {
        DeliveryStatus::Dead => {
            format!("the life hook did not take `{state}`: {reason}; `octoflow hook replay {event}` sends it again")
        }
        DeliveryStatus::Behind => format!("the life hook hears of `{state}` once it has acknowledged what was before"),
        DeliveryStatus::Next if *tries == 0 => format!("the life hook has not acknowledged `{state}` yet"),
        DeliveryStatus::Next => {
            format!("the life hook has not acknowledged `{state}` after {tries} tries: {reason}; it is sent again")
        }
    };
    Explanation {
        node: plugin.clone(),
        id: None,
        phase: String::new(),
        reason: why,
        since: Some(delivery.created),
        wait: None,
    }
}
