//! The engine dies and another goes on: what the journal tells is all that is left of it.

use octoflow_engine::{Engine, engine::Keyed};
use octoflow_model::{Fact, argo::WorkflowFact};

use super::{Stage, What, engine, id};

impl Stage<'_> {
    pub(super) fn restart(&mut self) {
        let mut before = std::mem::replace(&mut self.engine, engine(&self.scene));
        // Metrics are kept beside the runs.
        *self.engine.meters_mut() = std::mem::take(before.meters_mut());
        for index in &self.put {
            if let What::Put(object) = &self.scene.deeds[*index].what {
                self.engine.put_keyed(object.kind, &object.namespace, &object.name, object.data.clone());
            }
        }
        self.keep_caches(&before);
        let begun: Vec<usize> = (0..self.facts.len()).filter(|run| !self.facts[*run].is_empty()).collect();
        for run in &begun {
            if let Err(why) = self.engine.restore(id(*run), self.facts[*run].iter().cloned()) {
                self.played.faults.push((None, format!("the journal cannot be read after a restart: {why}")));
            }
            if let (Some(old), Some(new)) = (
                before.run_of::<octoflow_engine::argo::Run>(id(*run)),
                self.engine.run_of::<octoflow_engine::argo::Run>(id(*run)),
            ) {
                assert!(old.state == new.state, "the journal of run {run} does not tell what became of it");
            }
        }
        for run in begun {
            let (believed, outcome) = self.engine.take_up(id(run), self.now);
            for (attempt, task) in believed {
                if !self.flights.contains_key(&attempt) {
                    self.fly(attempt, task);
                }
            }
            self.take(outcome);
        }
    }

    /// What runs have remembered outlives them.
    fn keep_caches(&mut self, before: &Engine) {
        for (run, facts) in self.facts.iter().enumerate() {
            let namespace = &self.scene.entries[run].namespace;
            for fact in facts {
                let Fact::Workflow(WorkflowFact::Memoized { cache, .. }) = fact else { continue };
                if let Some(kept) = before.keyed(Keyed::ConfigMap, namespace, cache) {
                    self.engine.put_keyed(Keyed::ConfigMap, namespace, cache, kept.clone());
                }
            }
        }
    }
}
