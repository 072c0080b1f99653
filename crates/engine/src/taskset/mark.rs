//! What people write on a TaskSet, and how the parts of its object that can change stand now.
//! None of it changes what it does.

use octoflow_model::{Fact, Marks, argo::Shutdown};
use serde_json::{Value, json};

use super::{run::Run, turn::Turn};
use crate::input::Refusal;

impl Turn<'_> {
    pub(super) fn mark(&mut self, read: &Marks, write: &Marks) -> Result<(), Refusal> {
        let now = marks(self.run);
        // Also when somebody else wrote the very same: two who count must not both count to the same number.
        if now != *read {
            return Err(Refusal::Stale);
        }
        if now != *write {
            self.decide_any(Fact::Marked { at: self.now, marks: Box::new(write.clone()) });
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
    put("name", json!(*state.name));
    put("namespace", json!(*state.namespace));
    put("uid", json!(*state.uid));
    put("creationTimestamp", json!(state.created.to_string()));
    for (field, texts) in [("labels", &state.labels), ("annotations", &state.annotations)] {
        if texts.is_empty() {
            metadata.remove(field);
        } else {
            metadata.insert(field.to_owned(), json!(texts));
        }
    }
    if let Some(ties) = &state.ties {
        ties.write(&mut metadata);
    }
    object["metadata"] = Value::Object(metadata);
    let Some(spec) = object["spec"].as_object_mut() else { return };
    if state.suspended {
        spec.insert("suspend".to_owned(), json!(true));
    } else if spec.get("suspend") == Some(&Value::Bool(true)) {
        spec.remove("suspend");
    }
    if let Some(how) = state.shutdown {
        let word = match how {
            Shutdown::Stop => "Stop",
            Shutdown::Terminate => "Terminate",
        };
        spec.insert("shutdown".to_owned(), json!(word));
    }
}
