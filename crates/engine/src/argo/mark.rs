//! What people write on a run, and how the parts of its object that can change stand now.
//! None of it changes what the run does.

use octoflow_model::Marks;
use serde_json::Value;

use super::{run::Run, status, turn::Turn};
use crate::{input::Refusal, mark};

impl Turn<'_> {
    pub(super) fn mark(&mut self, read: &Marks, write: &Marks) -> Result<(), Refusal> {
        if let Some(fact) = mark::written(&marks(self.run), read, write, self.now)? {
            self.decide(fact);
        }
        Ok(())
    }
}

/// What stands on the run now.
pub fn marks(run: &Run) -> Marks {
    let mut object = run.manifest();
    stand(run, &mut object);
    Marks::of(&object["metadata"])
}

/// Completes the manifest with what became of its metadata, of its being held, and of its being ended.
pub(super) fn stand(run: &Run, object: &mut Value) {
    let state = &run.state;
    let metadata = object["metadata"].as_object_mut().map(std::mem::take).unwrap_or_default();
    object["metadata"] = status::completed(metadata, state);
    mark::stand(object, state.head.suspended, state.head.shutdown);
}
