//! The engine dies and another goes on: what the journal tells is all that is left of it.

use octoflow_engine::{
    Engine, Input,
    engine::{Keyed, fold},
};
use octoflow_model::{Fact, argo::WorkflowFact};

use super::{Stage, What, engine, id, put};

impl Stage<'_> {
    pub(super) fn restart(&mut self) {
        // Metrics are kept beside the runs.
        let meters = self.engine.meters().clone();
        let before = std::mem::replace(&mut self.engine, engine(&self.scene, meters));
        for index in &self.put {
            if let What::Put(object) = &self.scene.deeds[*index].what {
                self.engine.handle(put(object), self.now);
            }
        }
        self.keep_caches(&before);
        let begun: Vec<usize> = (0..self.facts.len()).filter(|run| !self.facts[*run].is_empty()).collect();
        for run in &begun {
            match fold(id(*run), self.facts[*run].iter().cloned()) {
                Ok(folded) => drop(self.engine.handle(Input::Restore(Box::new(folded)), self.now)),
                Err(why) => {
                    self.played.faults.push((None, format!("the journal cannot be read after a restart: {why}")));
                }
            }
            if let (Some(old), Some(new)) = (
                before.run_of::<octoflow_engine::argo::Run>(id(*run)),
                self.engine.run_of::<octoflow_engine::argo::Run>(id(*run)),
            ) {
                assert!(old.state == new.state, "the journal of run {run} does not tell what became of it");
            }
        }
        for run in begun {
            let mut outcome = self.engine.handle(Input::Continue { runs: vec![id(run)] }, self.now);
            for (attempt, task) in std::mem::take(&mut outcome.assumed_running) {
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
                    let (kind, namespace, name) = (Keyed::ConfigMap, namespace.clone(), cache.clone());
                    let input = Input::Object { kind, namespace, name, data: Some(kept.clone()) };
                    self.engine.handle(input, self.now);
                }
            }
        }
    }
}
