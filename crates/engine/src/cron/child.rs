//! Builds the Workflow of one scheduled time. It validates nothing; admission checks the result like any other
//! manifest.

use octoflow_model::Time;
use serde_json::{Map, Value, json};

use super::{LABEL, SCHEDULED_TIME};
use crate::dialects::argo::fields::API_VERSION;

/// Builds the manifest of the run for a scheduled time. The name is derived from the time, so that creating it twice
/// cannot result in two runs.
pub fn child(object: &Value, uid: &str, nominal: Time) -> Value {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let given = |field: &str| -> Map<String, Value> {
        object["spec"]["workflowMetadata"][field].as_object().cloned().unwrap_or_default()
    };
    let (mut labels, mut annotations) = (given("labels"), given("annotations"));
    labels.insert(LABEL.to_owned(), json!(name));
    annotations.insert(SCHEDULED_TIME.to_owned(), json!(nominal.to_string()));
    let owner = json!({
        "apiVersion": API_VERSION, "kind": "CronWorkflow", "name": name, "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    });
    let mut manifest = json!({
        "apiVersion": API_VERSION,
        "kind": "Workflow",
        "metadata": {
            "name": child_name(name, nominal),
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner],
        },
        "spec": object["spec"]["workflowSpec"],
    });
    if let Some(namespace) = metadata["namespace"].as_str().filter(|namespace| !namespace.is_empty()) {
        manifest["metadata"]["namespace"] = json!(namespace);
    }
    manifest
}

pub fn child_name(cron: &str, nominal: Time) -> String {
    format!("{cron}-{}", nominal.seconds())
}
