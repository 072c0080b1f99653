//! Cuts off what was decided and makes one commit of it, with everything that follows once it is durable.

use octoflow_model::Revision;
use octoflow_store::{Batch, Change};

use super::{
    DecidedBatch, EventLoop,
    effect::{Commit, Decisions, Effect, Settlement},
    message::Entered,
};
use crate::{
    Error,
    event_loop::{meters, usage},
};

impl EventLoop {
    /// Hands what was decided to the store.
    pub(super) fn commit(&mut self) -> Result<(), Error> {
        let mut decided = self.driver.take_decided();
        self.gathering = None;
        let mut batch = self.batch(&decided)?;
        let claimed = self.claims.put(&decided.submitted, &mut batch, self.clock.now());
        batch.extend(decided.series.values().map(meters::put));
        batch.extend(decided.usage.values().map(usage::put));
        let hooks = decided.deliveries.iter().map(|delivery| delivery.plugin.clone()).collect();
        let deliveries = std::mem::take(&mut decided.deliveries).into_iter();
        batch.extend(deliveries.map(|delivery| Change::PutDelivery(Box::new(delivery))));
        self.show(&mut decided, &batch);
        self.replaces.retain(|run, _| !decided.submitted.contains(run));
        let deletions = self.queue_deletions(&decided);
        self.count(&decided);
        let DecidedBatch { watched, lifecycle, orders, mut ended, .. } = decided;
        // Of those that are packed elsewhere the store keeps the facts until that is done.
        let mut packed = Vec::new();
        ended.retain(|run| {
            self.watched.remove(run);
            let over = self.driver.release(*run);
            over.filter(|over| over.size() > self.limits.large_run).map(|over| packed.push(over)).is_none()
        });
        let decisions = Decisions {
            waiting: std::mem::take(&mut self.waiting),
            watched,
            lifecycle,
            orders,
            ended,
            named: std::mem::take(&mut self.named),
            claimed,
            deletions,
            hooks,
            names: self.names.clone(),
            watchers: self.watchers.clone(),
            inbox: self.inbox.clone(),
            outlet: self.outlet.clone(),
            memory: self.memory.clone(),
            outstanding: self.backlog.enter(),
        };
        self.effects.push(Effect::Commit(Commit { batch, then: Settlement::Decisions(Box::new(decisions)) }));
        packed.into_iter().for_each(|run| self.pack(run));
        Ok(())
    }

    /// Prepares the answers to those who want to see the run they submitted.
    fn show(&mut self, decided: &mut DecidedBatch, batch: &Batch) {
        if self.showing.is_empty() {
            return;
        }
        let behind = batch.revisions_behind();
        for (run, reply) in std::mem::take(&mut self.showing) {
            let object = self.driver.engine.run(run).map(|open| match decided.manifests.remove(&run) {
                Some(manifest) => open.object_of(manifest),
                None => open.object(),
            });
            let behind = behind.get(&run).copied().unwrap_or_default();
            let shown = move |last: Revision| Some((Revision(last.0 - behind), object?));
            self.answer(reply, Ok(move |last| Entered { run, shown: shown(last) }));
        }
    }
}
