//! What people write on a run, and how the parts of its object that can change stand now.
//! None of it changes what the run does.

use octoflow_model::{Fact, Marks, argo::Shutdown};
use serde_json::{Value, json};

use super::{run::Run, status, turn::Turn};
use crate::input::Refusal;

impl Turn<'_> {
    pub(super) fn mark(&mut self, read: &Marks, write: &Marks) -> Result<(), Refusal> {
        let now = marks(self.run);
        if now == *write {
            return Ok(());
        }
        if now != *read {
            return Err(Refusal::Stale);
        }
        self.decide(Fact::Marked { at: self.now, marks: Box::new(write.clone()) });
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
