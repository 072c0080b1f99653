//! A TaskSet that is done again: the old object without what the old run put into it. There is nothing to choose and nothing
//! to keep: its replicas belong together, so all of them start afresh.

use serde_json::{Value, json};

use crate::argo::again::{AgainOptions, Refusal};

/// What only the old run can have in its metadata.
const OWN_METADATA: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "selfLink",
    "managedFields",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Whether it may take its own place.
pub fn allows(object: &Value, options: &AgainOptions) -> Result<(), Refusal> {
    let no = |text: &str| Err(Refusal::TaskSet(text.to_owned()));
    match object["status"]["state"].as_str() {
        Some("Failed") if *options == AgainOptions::default() => Ok(()),
        Some("Failed") => no("a TaskSet is retried as a whole: it has no nodes to choose and no parameters"),
        Some("Succeeded") => {
            no("the TaskSet succeeded, so nothing of it has to be done again; resubmit makes a new one")
        }
        _ => no("the TaskSet is not over yet, so it cannot be retried"),
    }
}

/// The same TaskSet once more, under its old name.
pub fn renewed(object: &Value) -> Value {
    let mut manifest = object.clone();
    if let Some(fields) = manifest.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = manifest["metadata"].as_object_mut() {
        metadata.retain(|field, _| !OWN_METADATA.contains(&field.as_str()));
    }
    if let Some(spec) = manifest["spec"].as_object_mut() {
        // How the old one was held or ended is not how the new one is meant.
        spec.retain(|field, _| field != "suspend" && field != "shutdown");
    }
    manifest
}

/// A new one made from an old one; its name begins as the old one's.
pub fn resubmitted(object: &Value) -> Value {
    let mut manifest = renewed(object);
    if let Some(metadata) = manifest["metadata"].as_object_mut() {
        let name = metadata.remove("name").unwrap_or_default();
        metadata.entry("generateName").or_insert_with(|| json!(name));
        metadata.retain(|field, _| field != "finalizers" && field != "ownerReferences");
    }
    manifest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_old_run_put_into_it_is_left_out() {
        let object = json!({"kind": "TaskSet", "metadata": {"name": "demo", "uid": "u", "labels": {"a": "b"}},
                            "spec": {"roles": [], "shutdown": "Stop", "suspend": true}, "status": {"state": "Failed"}});
        let same =
            json!({"kind": "TaskSet", "metadata": {"name": "demo", "labels": {"a": "b"}}, "spec": {"roles": []}});
        assert_eq!(renewed(&object), same);
        let other = resubmitted(&object);
        assert_eq!(other["metadata"], json!({"generateName": "demo", "labels": {"a": "b"}}));
        assert!(allows(&object, &AgainOptions::default()).is_ok());
        assert!(allows(&object, &AgainOptions { failed: true, ..AgainOptions::default() }).is_err());
        assert!(allows(&json!({"status": {"state": "Succeeded"}}), &AgainOptions::default()).is_err());
        assert!(allows(&json!({"status": {"state": "Running"}}), &AgainOptions::default()).is_err());
    }
}
