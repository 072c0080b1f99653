//! What people write on a TaskSet, and how the parts of its object that can change stand now.
//! None of it changes what it does.

use octoflow_model::Marks;
use serde_json::{Value, json};

use super::{run::Run, turn::Turn};
use crate::{input::Refusal, mark};

impl Turn<'_> {
    pub(super) fn mark(&mut self, read: &Marks, write: &Marks) -> Result<(), Refusal> {
        if let Some(fact) = mark::written(&marks(self.run), read, write, self.now)? {
            self.decide(fact);
        }
        Ok(())
    }
}

/// What stands on the TaskSet now.
pub fn marks(run: &Run) -> Marks {
    let mut object = run.manifest();
    stand(run, &mut object);
    Marks::of(&object["metadata"])
}

/// Completes the manifest with what became of its metadata, of its being held, and of its being ended.
pub(super) fn stand(run: &Run, object: &mut Value) {
    let state = &run.state;
    let mut metadata = object["metadata"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let mut put = |field: &str, value: Value| drop(metadata.insert(field.to_owned(), value));
    put("name", json!(*state.head.name));
    put("namespace", json!(*state.head.namespace));
    put("uid", json!(*state.head.uid));
    put("creationTimestamp", json!(state.head.created.to_string()));
    for (field, texts) in [("labels", &state.head.labels), ("annotations", &state.head.annotations)] {
        if texts.is_empty() {
            metadata.remove(field);
        } else {
            metadata.insert(field.to_owned(), json!(texts));
        }
    }
    if let Some(ties) = &state.head.ties {
        ties.write(&mut metadata);
    }
    object["metadata"] = Value::Object(metadata);
    mark::stand(object, state.head.suspended, state.head.shutdown);
}
