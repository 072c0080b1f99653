//! Reruns of a job: the old object without what the old run added to it. There is nothing to choose and nothing to keep:
//! its pods belong together, so all of them start afresh.

use octoflow_model::{Time, submission::Stored};
use serde_json::{Value, json};

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

/// Implements retry and resubmit for jobs.
#[derive(Debug)]
pub(super) struct Retries;

impl Reruns for Retries {
    fn plan(&self, object: &Value, _: &RunContext, options: &RerunOptions) -> Result<RerunPlan, RerunRefusal> {
        allows(object, options)?;
        Ok(RerunPlan::default())
    }

    fn retry(
        &self,
        object: &Value,
        context: &RunContext,
        options: &RerunOptions,
        _: &dyn Catalog,
    ) -> Result<RerunManifest, RerunRefusal> {
        let plan = self.plan(object, context, options)?;
        let manifest = renewed(object);
        Ok(RerunManifest { manifest, stored: Stored::default(), generate_name: String::new(), plan })
    }

    fn resubmit(
        &self,
        object: &Value,
        _: &RunContext,
        options: &ResubmitOptions,
        _: Time,
    ) -> Result<RerunManifest, RerunRefusal> {
        if options.memoized || !options.parameters.is_empty() {
            return Err(RerunRefusal::Said("a Job has no parameters, and no results to take over".to_owned()));
        }
        let manifest = resubmitted(object);
        let generate_name = manifest["metadata"]["generateName"].as_str().unwrap_or_default().to_owned();
        Ok(RerunManifest { manifest, stored: Stored::default(), generate_name, plan: RerunPlan::default() })
    }

    fn whole(&self) -> Option<&'static str> {
        Some("all of it would run again under the same name")
    }
}

/// Checks whether the job may be retried.
fn allows(object: &Value, options: &RerunOptions) -> Result<(), RerunRefusal> {
    let no = |text: &str| Err(RerunRefusal::Said(text.to_owned()));
    match object["status"]["state"]["phase"].as_str() {
        Some("Failed" | "Terminated") if *options == RerunOptions::default() => Ok(()),
        Some("Failed" | "Terminated") => no("a Job is retried as a whole: it has no nodes to choose and no parameters"),
        Some("Completed") => {
            no("the Job is completed, so nothing of it has to be done again; resubmit makes a new one")
        }
        _ => no("the Job is not over yet, so it cannot be retried"),
    }
}

/// Returns the manifest of the same job, under its old name.
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

/// Returns the manifest of a new job; its name is generated from the old one's.
fn resubmitted(object: &Value) -> Value {
    let mut manifest = renewed(object);
    if let Some(metadata) = manifest["metadata"].as_object_mut() {
        let name = metadata.remove("name").unwrap_or_default();
        let beginning = format!("{}-", name.as_str().unwrap_or_default());
        metadata.entry("generateName").or_insert_with(|| json!(beginning));
        metadata.retain(|field, _| field != "finalizers" && field != "ownerReferences");
    }
    manifest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_old_run_put_into_it_is_left_out() {
        let object = json!({"kind": "Job", "metadata": {"name": "demo", "uid": "u", "labels": {"a": "b"}},
                            "spec": {"tasks": [], "shutdown": "Stop", "suspend": true},
                            "status": {"state": {"phase": "Terminated"}}});
        let same = json!({"kind": "Job", "metadata": {"name": "demo", "labels": {"a": "b"}}, "spec": {"tasks": []}});
        assert_eq!(renewed(&object), same);
        assert_eq!(resubmitted(&object)["metadata"], json!({"generateName": "demo-", "labels": {"a": "b"}}));
        let of = |phase: &str| json!({"status": {"state": {"phase": phase}}});
        assert!(allows(&object, &RerunOptions::default()).is_ok());
        assert!(allows(&of("Failed"), &RerunOptions::default()).is_ok());
        assert!(allows(&of("Failed"), &RerunOptions { failed: true, ..RerunOptions::default() }).is_err());
        for phase in ["Completed", "Running", "Aborted"] {
            assert!(allows(&of(phase), &RerunOptions::default()).is_err(), "{phase}");
        }
    }
}
