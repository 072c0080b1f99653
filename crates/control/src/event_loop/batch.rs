//! What the store is asked to keep for a piece of decisions: rows, facts and records of runs, caches, control units.
//! It decides nothing and writes nothing but what is to be deleted.

use octoflow_engine::engine::Keyed;
use octoflow_model::garbage::GcStrategy;
use octoflow_store::{Batch, Change};

use super::{
    DecidedBatch, EventLoop,
    effect::Effect,
    row::{new_row, packed, tie, update},
    unit,
};
use crate::{
    Error,
    event_loop::cache,
    maintenance::sweep::{LocatedDeletion, QueuedDeletion},
};

impl EventLoop {
    /// What runs that end now want deleted is written down before their end is, so that a crash forgets none of it.
    pub(super) fn queue_deletions(&mut self, decided: &DecidedBatch) -> Vec<LocatedDeletion> {
        const STRATEGY: GcStrategy = GcStrategy::OnWorkflowCompletion;
        let engine = &self.driver.engine;
        let ended = decided.ended.iter().filter_map(|run| engine.run(*run));
        // The archiver does this for large runs.
        let small = ended.filter(|run| run.size() <= self.limits.large_run);
        let with_garbage = small.map(|run| (run, run.garbage(Some(STRATEGY)))).filter(|(_, items)| !items.is_empty());
        let mut deletions = Vec::new();
        for (run, items) in with_garbage {
            let deletion = QueuedDeletion::new(run.id(), run.namespace(), STRATEGY, items);
            self.effects.push(Effect::QueueDeletion(deletion.clone()));
            deletions.push(deletion.locate(engine.shared()));
        }
        deletions
    }

    pub(super) fn batch(&mut self, decided: &DecidedBatch) -> Result<Batch, Error> {
        let mut batch = Batch::new();
        for (namespace, name) in &decided.caches {
            let data = self.driver.engine.keyed(Keyed::ConfigMap, namespace, name);
            if let Some(data) = data {
                batch.push(cache::put(&self.storage.reader()?, namespace, name, data)?);
            }
        }
        for ((run, attempt), there) in &decided.units {
            if let Some(run) = self.driver.engine.run(*run) {
                batch.extend(unit::change(run, *attempt, *there));
            }
        }
        for run in &decided.objects {
            batch.extend(self.bring_objects(*run, self.clock.now())?);
        }
        for (id, record) in &decided.records {
            let run = self.driver.engine.run(*id).expect("a run stays in the engine until its last facts are cut off");
            if decided.submitted.contains(id) {
                let row = Box::new(new_row(run));
                batch.push(match self.replaces.get(id) {
                    Some(old) => Change::ReplaceRun { old: *old, row },
                    None => Change::NewRun(row),
                });
                if run.is_owned() {
                    batch.push(tie(run));
                }
                batch.extend(self.beside.remove(id).into_iter().flatten());
            }
            let ended = decided.ended.contains(id);
            if ended && run.size() <= self.limits.large_run {
                if decided.marked.contains(id) {
                    batch.push(tie(run));
                }
                batch.push(Change::Finish { run: *id, archive: packed(run), row: update(run) });
                if let due @ Some(_) = run.expires() {
                    batch.push(Change::Expire { run: *id, due });
                }
                continue;
            }
            batch.push(Change::AppendFacts {
                run: *id,
                first: record.first,
                count: record.count,
                lines: record.lines.clone(),
            });
            if decided.marked.contains(id) {
                batch.push(tie(run));
            }
            // A new row says already how the run stands. The record of one that is over and large follows.
            if ended || decided.changed.contains(id) && !decided.submitted.contains(id) {
                batch.push(Change::UpdateRun { run: *id, row: update(run) });
            }
        }
        Ok(batch)
    }
}
