//! Builds the manifest of a rerun: the old object without what the old run added to it.

use octoflow_model::submission::Stored;
use serde_json::{Map, Value, json};

/// Labels with the old run's status and its submitter.
const DROPPED_LABELS: [&str; 7] = [
    "workflows.argoproj.io/creator",
    "workflows.argoproj.io/creator-email",
    "workflows.argoproj.io/creator-preferred-username",
    "workflows.argoproj.io/phase",
    "workflows.argoproj.io/completed",
    "workflows.argoproj.io/workflow-archiving-status",
    PREVIOUS,
];
/// Label with the name of the run that a new one was made from.
const PREVIOUS: &str = "workflows.argoproj.io/resubmitted-from-workflow";
/// Metadata fields that belong to the old run alone.
const OWN_METADATA: [&str; 7] =
    ["name", "uid", "creationTimestamp", "resourceVersion", "selfLink", "managedFields", "deletionTimestamp"];

/// The manifest to submit.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowManifest {
    pub manifest: Value,
    pub stored: Stored,
    /// Prefix of the new name.
    pub generate_name: String,
}

/// Builds the manifest of a retry, under the old name.
pub fn retry_manifest(object: &Value, parameters: &[(String, String)]) -> WorkflowManifest {
    let mut made = base_manifest(object, parameters);
    if let Some(metadata) = made.manifest["metadata"].as_object_mut() {
        // These are assigned anew; the labels of the user, and of who submitted it, stay.
        for field in OWN_METADATA.iter().filter(|field| **field != "name") {
            metadata.remove(*field);
        }
        let own = |label: &str| matches!(label, "workflows.argoproj.io/phase" | "workflows.argoproj.io/completed");
        drop_labels(metadata, own);
    }
    made
}

/// Builds the manifest of a resubmit, under a new name.
pub fn resubmit_manifest(object: &Value, parameters: &[(String, String)]) -> WorkflowManifest {
    let mut made = base_manifest(object, parameters);
    let old = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if let Some(metadata) = made.manifest["metadata"].as_object_mut() {
        for field in OWN_METADATA {
            metadata.remove(field);
        }
        drop_labels(metadata, |label| DROPPED_LABELS.contains(&label));
        metadata.entry("labels").or_insert_with(|| json!({}))[PREVIOUS] = json!(old);
        metadata.insert("generateName".to_owned(), json!(made.generate_name));
    }
    made
}

fn base_manifest(object: &Value, parameters: &[(String, String)]) -> WorkflowManifest {
    let mut manifest = object.clone();
    let status = manifest.as_object_mut().and_then(|fields| fields.remove("status")).unwrap_or_default();
    if !manifest["metadata"].is_object() {
        manifest["metadata"] = json!({});
    }
    let templates = status["storedTemplates"].as_object().cloned().unwrap_or_default();
    let mut stored = Stored {
        templates: templates.into_iter().collect(),
        spec: Some(status["storedWorkflowTemplateSpec"].clone()).filter(Value::is_object),
        ..Stored::default()
    };
    for spec in manifest.get_mut("spec").into_iter().chain(stored.spec.as_mut()) {
        if let Some(fields) = spec.as_object_mut() {
            // The old run was stopped or suspended; the new one is not.
            fields.remove("shutdown");
            fields.remove("suspend");
            override_parameters(fields, parameters);
        }
    }
    let metadata = &manifest["metadata"];
    let generate_name = match metadata["generateName"].as_str().filter(|text| !text.is_empty()) {
        Some(text) => text.to_owned(),
        None => format!("{}-", metadata["name"].as_str().unwrap_or_default()),
    };
    WorkflowManifest { manifest, stored, generate_name }
}

/// Replaces the values of parameters by name, `valueFrom` included. Undeclared ones are added.
fn override_parameters(spec: &mut Map<String, Value>, parameters: &[(String, String)]) {
    if parameters.is_empty() {
        return;
    }
    let arguments = spec.entry("arguments").or_insert_with(|| json!({}));
    if !arguments.is_object() {
        *arguments = json!({});
    }
    let list = &mut arguments["parameters"];
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    for (name, value) in parameters {
        let own = list.iter_mut().find(|parameter| parameter["name"] == **name);
        match own.and_then(Value::as_object_mut) {
            Some(parameter) => {
                parameter.remove("valueFrom");
                parameter.insert("value".to_owned(), json!(value));
            }
            None => list.push(json!({"name": name, "value": value})),
        }
    }
}

fn drop_labels(metadata: &mut Map<String, Value>, drops: impl Fn(&str) -> bool) {
    if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
        labels.retain(|label, _| !drops(label));
        if labels.is_empty() {
            metadata.remove("labels");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old() -> Value {
        json!({
            "metadata": {
                "name": "w-abc", "namespace": "n", "uid": "u", "creationTimestamp": "t", "generateName": "w-",
                "labels": {
                    "own": "1", "workflows.argoproj.io/phase": "Failed", "workflows.argoproj.io/completed": "true",
                    "workflows.argoproj.io/creator": "me",
                },
            },
            "spec": {"shutdown": "Stop", "suspend": true, "arguments": {"parameters": [
                {"name": "a", "valueFrom": {"configMapKeyRef": {}}}, {"name": "b", "value": "2"},
            ]}},
            "status": {
                "storedTemplates": {"namespaced/t/x": {"name": "x"}},
                "storedWorkflowTemplateSpec": {"entrypoint": "x", "shutdown": "Stop"},
            },
        })
    }

    #[test]
    fn j13_a_resubmitted_run_has_a_new_name_and_says_where_it_comes_from() {
        let made = resubmit_manifest(&old(), &[]);
        let metadata = &made.manifest["metadata"];
        assert_eq!(
            (made.generate_name.as_str(), &metadata["name"], &metadata["uid"]),
            ("w-", &Value::Null, &Value::Null)
        );
        assert_eq!(metadata["labels"], json!({"own": "1", PREVIOUS: "w-abc"}));
        assert_eq!(made.manifest["spec"]["shutdown"], Value::Null);
        assert_eq!(made.manifest.get("status"), None);
        let mut nameless = old();
        nameless["metadata"].as_object_mut().unwrap().remove("generateName");
        assert_eq!(resubmit_manifest(&nameless, &[]).generate_name, "w-abc-");
    }

    #[test]
    fn a_renewed_run_keeps_its_name_and_labels_and_what_it_refers_to() {
        let made = retry_manifest(&old(), &[]);
        let metadata = &made.manifest["metadata"];
        assert_eq!((&metadata["name"], &metadata["uid"]), (&json!("w-abc"), &Value::Null));
        assert_eq!(metadata["labels"], json!({"own": "1", "workflows.argoproj.io/creator": "me"}));
        assert_eq!(made.stored.spec, Some(json!({"entrypoint": "x"})));
        assert_eq!(made.stored.templates["namespaced/t/x"], json!({"name": "x"}));
        assert_eq!(made.manifest["spec"].get("suspend"), None);
    }

    #[test]
    fn arguments_are_replaced_by_name_and_others_added() {
        let given = [("a".to_owned(), "1".to_owned()), ("c".to_owned(), "3".to_owned())];
        let made = retry_manifest(&old(), &given);
        let wanted = json!([{"name": "a", "value": "1"}, {"name": "b", "value": "2"}, {"name": "c", "value": "3"}]);
        assert_eq!(made.manifest["spec"]["arguments"]["parameters"], wanted);
        assert_eq!(made.stored.spec.unwrap()["arguments"]["parameters"].as_array().unwrap().len(), 2);
    }
}
