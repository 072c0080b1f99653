//! Reruns of a TaskSet: the old object without what the old run added to it. There is nothing to choose and nothing to
//! keep: its replicas belong together, so all of them start afresh.

use octoflow_model::{Time, submission::Stored, taskset::TaskSet};
use serde::Deserialize;
use serde_json::{Value, json};

use super::program::gang_name;
use crate::{
    admit::Catalog,
    run::rerun::{RerunManifest, RerunOptions, RerunPlan, RerunRefusal, Reruns, ResubmitOptions, RunContext},
};

/// Metadata fields that belong to the old run only.
const OWN_METADATA: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "selfLink",
    "managedFields",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Implements retry and resubmit for TaskSets.
#[derive(Debug)]
pub(super) struct Retries;

impl Reruns for Retries {
    /// Plans a rerun of everything; no result is reused.
    fn plan(&self, object: &Value, _: &RunContext, options: &RerunOptions) -> Result<RerunPlan, RerunRefusal> {
        allows(object, options)?;
        Ok(RerunPlan::default())
    }

    /// Builds the same TaskSet again, with the PodGroups as they are now.
    fn retry(
        &self,
        object: &Value,
        context: &RunContext,
        options: &RerunOptions,
        others: &dyn Catalog,
    ) -> Result<RerunManifest, RerunRefusal> {
        let plan = self.plan(object, context, options)?;
        let manifest = renewed(object);
        let set = TaskSet::deserialize(&manifest)
            .map_err(|error| RerunRefusal::Said(format!("the TaskSet cannot be read: {error}")))?;
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let mut stored = Stored::default();
        for name in set.spec.roles.iter().filter_map(gang_name) {
            let Some(group) = others.pod_group(namespace, name) else { continue };
            let least = group["spec"]["minMember"].as_u64().and_then(|least| u32::try_from(least).ok());
            stored.groups.insert(name.to_owned(), least.unwrap_or_default());
        }
        Ok(RerunManifest { manifest, stored, generate_name: String::new(), plan })
    }

    fn resubmit(
        &self,
        object: &Value,
        _: &RunContext,
        options: &ResubmitOptions,
        _: Time,
    ) -> Result<RerunManifest, RerunRefusal> {
        if options.memoized || !options.parameters.is_empty() {
            return Err(RerunRefusal::Said("a TaskSet has no parameters, and no results to take over".to_owned()));
        }
        let manifest = resubmitted(object);
        let generate_name = manifest["metadata"]["generateName"].as_str().unwrap_or_default().to_owned();
        Ok(RerunManifest { manifest, stored: Stored::default(), generate_name, plan: RerunPlan::default() })
    }

    fn whole(&self) -> Option<&'static str> {
        Some("all of it would run again under the same name")
    }
}

/// Checks whether the TaskSet may be retried.
fn allows(object: &Value, options: &RerunOptions) -> Result<(), RerunRefusal> {
    let no = |text: &str| Err(RerunRefusal::Said(text.to_owned()));
    match object["status"]["state"].as_str() {
        Some("Failed") if *options == RerunOptions::default() => Ok(()),
        Some("Failed") => no("a TaskSet is retried as a whole: it has no nodes to choose and no parameters"),
        Some("Succeeded") => {
            no("the TaskSet succeeded, so nothing of it has to be done again; resubmit makes a new one")
        }
        _ => no("the TaskSet is not over yet, so it cannot be retried"),
    }
}

/// Returns the manifest of the same TaskSet, under its old name.
fn renewed(object: &Value) -> Value {
    let mut manifest = object.clone();
    if let Some(fields) = manifest.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = manifest["metadata"].as_object_mut() {
        metadata.retain(|field, _| !OWN_METADATA.contains(&field.as_str()));
    }
    if let Some(spec) = manifest["spec"].as_object_mut() {
        // Suspension and shutdown of the old run do not carry over.
        spec.retain(|field, _| field != "suspend" && field != "shutdown");
    }
    manifest
}

/// Returns the manifest of a new TaskSet; its name is generated from the old one's.
fn resubmitted(object: &Value) -> Value {
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
        assert!(allows(&object, &RerunOptions::default()).is_ok());
        assert!(allows(&object, &RerunOptions { failed: true, ..RerunOptions::default() }).is_err());
        assert!(allows(&json!({"status": {"state": "Succeeded"}}), &RerunOptions::default()).is_err());
        assert!(allows(&json!({"status": {"state": "Running"}}), &RerunOptions::default()).is_err());
    }
}
