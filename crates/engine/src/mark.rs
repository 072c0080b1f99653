//! What people write on a run of any dialect, and what a run's object says of its being held or ended.
//! None of it changes what the run does.

use octoflow_model::{Fact, Marks, RunFact, Time, task::Labels};
use serde_json::{Value, json};

use crate::{dialect::DialectRun, head::Head, input::Refusal};

/// The fact that writes on a run, if what stands there is still what was read; nothing when it stands there already.
pub(crate) fn written(run: &dyn DialectRun, read: &Marks, write: &Marks, at: Time) -> Result<Option<Fact>, Refusal> {
    let now = run.marks();
    // Also when somebody else wrote the very same: two who count must not both count to the same number.
    if now != *read {
        return Err(Refusal::Stale);
    }
    Ok((now != *write).then(|| Fact::Run(RunFact::Marked { at, marks: Box::new(write.clone()) })))
}

/// What stands on a run now, read from its manifest, its head and the labels it can be selected by.
pub(crate) fn marks(manifest: Value, head: &Head, labels: &Labels) -> Marks {
    let mut object = manifest;
    stand(&mut object, head, labels);
    Marks::of(&object["metadata"])
}

/// Completes the manifest with what became of its metadata, of its being held, and of its being ended.
pub(crate) fn stand(object: &mut Value, head: &Head, labels: &Labels) {
    let mut metadata = object["metadata"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let mut put = |field: &str, value: Value| drop(metadata.insert(field.to_owned(), value));
    put("name", json!(*head.name));
    put("namespace", json!(*head.namespace));
    put("uid", json!(*head.uid));
    put("creationTimestamp", json!(head.created.to_string()));
    for (field, texts) in [("labels", labels), ("annotations", &head.annotations)] {
        if texts.is_empty() {
            metadata.remove(field);
        } else {
            metadata.insert(field.to_owned(), json!(texts));
        }
    }
    if let Some(ties) = &head.ties {
        ties.write(&mut metadata);
    }
    object["metadata"] = Value::Object(metadata);
    let Some(spec) = object["spec"].as_object_mut() else { return };
    if head.suspended {
        spec.insert("suspend".to_owned(), json!(true));
    } else if spec.get("suspend") == Some(&Value::Bool(true)) {
        spec.remove("suspend");
    }
    if let Some(how) = head.shutdown {
        spec.insert("shutdown".to_owned(), json!(how.word()));
    }
}
