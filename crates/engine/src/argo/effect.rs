//! What each decision about a workflow means beyond the workflow: room, locks, metrics, caches, and who must hear of it.

use octoflow_model::argo::WorkflowFact;

use super::turn::Turn;
use crate::effect::CacheEntry;

impl Turn<'_> {
    pub(super) fn note(&mut self, fact: &WorkflowFact) {
        let effects = &mut self.effects;
        // A start is told to nobody who waits for it: it may be kept together with what comes next.
        effects.change.urgent |= !matches!(fact, WorkflowFact::Started { .. });
        match fact {
            WorkflowFact::Began { .. } => {
                effects.change.phase = true;
                effects.change.lifecycle = true;
            }
            WorkflowFact::Finished(finished) => {
                effects.freed.push(finished.node);
                effects.unlocked.push(finished.node);
            }
            // It may stay for as long as the run does; its place is for those who end by themselves.
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
            | WorkflowFact::Started { .. }
            | WorkflowFact::Progressed { .. }
            | WorkflowFact::Dismissed { .. }
            | WorkflowFact::Stopping { .. }
            | WorkflowFact::Backoff { .. }
            | WorkflowFact::Supplied { .. }
            | WorkflowFact::Settled { .. }
            | WorkflowFact::Due { .. }
            | WorkflowFact::Recalled { .. }
            | WorkflowFact::Exported { .. }
            | WorkflowFact::Unmetered { .. }
            | WorkflowFact::Expired { .. } => {}
        }
    }
}
