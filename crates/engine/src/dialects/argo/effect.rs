//! Notes the effects of each decision beyond its workflow: freed slots, released locks, metrics, caches, and observers
//! to notify.

use octoflow_model::argo::WorkflowFact;

use super::turn::Turn;
use crate::run::effect::CacheEntry;

impl Turn<'_> {
    pub(super) fn note(&mut self, fact: &WorkflowFact) {
        let effects = &mut self.effects;
        match fact {
            // No caller waits for a start: it may be committed together with what comes next.
            WorkflowFact::Started { .. } => return,
            WorkflowFact::Began { .. } => {
                effects.change.phase = true;
                effects.change.lifecycle = true;
            }
            WorkflowFact::Finished(finished) => {
                effects.freed.push(finished.node);
                effects.unlocked.push(finished.node);
            }
            WorkflowFact::Preempted { node, .. } | WorkflowFact::Stopping { node, .. } => effects.ending.push(*node),
            WorkflowFact::Requeued { node, .. } => effects.freed.push(*node),
            // A daemon may stay as long as the run does; its slot is for tasks that end by themselves.
            WorkflowFact::Daemoned { node } => effects.freed.push(*node),
            WorkflowFact::Metered(metered) => effects.metered.push((**metered).clone()),
            WorkflowFact::Memoized { node, at, cache, key, outputs } => {
                effects.change.caches.push(cache.clone());
                effects.cached.push(CacheEntry {
                    node: self.run.state.id_of(*node),
                    at: *at,
                    cache: cache.clone(),
                    key: key.clone(),
                    outputs: outputs.clone(),
                });
            }
            WorkflowFact::Added(_)
            | WorkflowFact::Wanted { .. }
            | WorkflowFact::Waiting { .. }
            | WorkflowFact::Locked { .. }
            | WorkflowFact::Expanded { .. }
            | WorkflowFact::Launched { .. }
            | WorkflowFact::ChildCreated { .. }
            | WorkflowFact::Progressed { .. }
            | WorkflowFact::Dismissed { .. }
            | WorkflowFact::Backoff { .. }
            | WorkflowFact::Supplied { .. }
            | WorkflowFact::Settled { .. }
            | WorkflowFact::Due { .. }
            | WorkflowFact::Recalled { .. }
            | WorkflowFact::Exported { .. }
            | WorkflowFact::Unmetered { .. }
            | WorkflowFact::Expired { .. } => {}
        }
        self.effects.change.urgent = true;
    }
}
