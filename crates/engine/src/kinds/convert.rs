//! Conversion between a kind that runs and the kind of its templates, whose specifications are the same. Identity and status
//! of an object are not carried over.

use serde_json::{Map, Value, json};

use super::{Kind, all};

/// Metadata that a new object keeps.
const KEPT: [&str; 5] = ["name", "generateName", "namespace", "labels", "annotations"];

/// The annotation in which kubectl keeps the object it has applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns the kind that objects of this kind can be converted to.
pub fn counterpart(kind: &Kind) -> Option<&'static Kind> {
    let of_template = all().find(|other| other.alternate_of.is_none() && other.template_of == Some(kind));
    kind.template_of.or(of_template)
}

/// Returns the names of the kinds that can be converted, with their groups.
pub fn convertible() -> Vec<String> {
    let kinds = all().filter(|kind| kind.alternate_of.is_none() && counterpart(kind).is_some());
    kinds.map(|kind| format!("{} of {}", kind.name, kind.group)).collect()
}

/// Returns an object as one of another kind with the same specification.
pub fn converted(object: &Value, to: &Kind) -> Value {
    let mut metadata: Map<String, Value> = object["metadata"].as_object().cloned().unwrap_or_default();
    metadata.retain(|field, _| KEPT.contains(&field.as_str()));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    json!({"apiVersion": to.api_version(), "kind": to.name, "metadata": metadata, "spec": object["spec"]})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::of_manifest;

    #[test]
    fn jf23_converting_twice_is_the_identity_and_identity_is_not_carried_over() {
        let job = json!({
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
            "metadata": {"name": "a", "labels": {"x": "y"}, "uid": "u", "resourceVersion": "7",
                         "annotations": {LAST_APPLIED: "{}"}, "ownerReferences": [{}]},
            "spec": {"tasks": [{"name": "main"}], "queue": "q"}, "status": {"state": {"phase": "Completed"}},
        });
        let to = counterpart(of_manifest(&job).unwrap()).unwrap();
        let template = converted(&job, to);
        assert_eq!(
            template,
            json!({"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate",
                   "metadata": {"name": "a", "labels": {"x": "y"}}, "spec": job["spec"]})
        );
        let again = converted(&template, counterpart(of_manifest(&template).unwrap()).unwrap());
        assert_eq!((&again["kind"], &again["spec"]), (&json!("Job"), &job["spec"]));
        assert_eq!(converted(&again, to), template);
        assert_eq!(convertible(), ["Job of batch.volcano.sh", "JobTemplate of flow.volcano.sh"]);
        assert!(counterpart(crate::kinds::find("flow.volcano.sh", "JobFlow").unwrap()).is_none());
    }
}
