//! Mutable metadata of a run of any dialect, and the parts of a run's object that reflect suspension and shutdown. None
//! of it affects execution.

use octoflow_model::{Fact, MutableMetadata, RunFact, Time, task::Labels};
use serde_json::{Value, json};

use crate::{dialects::dialect::DialectRun, engine::input::Refusal, run::head::Head};

/// Returns the fact that changes a run's metadata, if it is still what the caller read; `None` if nothing changes.
pub(crate) fn change(
    run: &dyn DialectRun,
    read: &MutableMetadata,
    write: &MutableMetadata,
    at: Time,
) -> Result<Option<Fact>, Refusal> {
    let now = run.marks();
    // Also if another client wrote the same value: of two clients that increment a counter, one must retry.
    if now != *read {
        return Err(Refusal::Stale);
    }
    Ok((now != *write).then(|| Fact::Run(RunFact::Marked { at, marks: Box::new(write.clone()) })))
}

/// Returns the current metadata of a run, from its manifest, its head and the labels it can be selected by.
pub(crate) fn marks(manifest: Value, head: &Head, labels: &Labels) -> MutableMetadata {
    let mut object = manifest;
    overlay(&mut object, head, labels);
    MutableMetadata::of(&object["metadata"])
}

/// Overlays the manifest with the run's current metadata, suspension and shutdown.
pub(crate) fn overlay(object: &mut Value, head: &Head, labels: &Labels) {
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
    if let Some(ownership) = &head.ownership {
        ownership.write(&mut metadata);
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
