//! Reruns of a submitted job. A retry of one that failed or was stopped walks through all stages again, because what the
//! plugins said may not hold any more; a resubmit is a new job that does the same.

use octoflow_model::{Time, submission::Stored};
use serde_json::{Value, json};

use crate::{
    admit::Catalog,
    run::rerun::{
        Rerun, RerunManifest, RerunOptions, RerunPlan, RerunRefusal, Reruns, ResubmitOptions, RunContext, Why,
    },
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

/// Implements retry and resubmit for submitted jobs.
#[derive(Debug)]
pub(super) struct WalkReruns;

impl Reruns for WalkReruns {
    fn plan(&self, object: &Value, _: &RunContext, options: &RerunOptions) -> Result<RerunPlan, RerunRefusal> {
        allows(object, options)?;
        let status = &object["status"];
        let name = text(&object["metadata"], "name").to_owned();
        let why = Why::Ended { phase: text(status, "phase").to_owned(), message: text(status, "message").to_owned() };
        Ok(RerunPlan { rerun: vec![Rerun { node: name.clone(), display: name, why }], ..RerunPlan::default() })
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
            let message = "a submitted job has no parameters, and a new one walks through all stages";
            return Err(RerunRefusal::Said(message.to_owned()));
        }
        let manifest = resubmitted(object);
        let generate_name = text(&manifest["metadata"], "generateName").to_owned();
        Ok(RerunManifest { manifest, stored: Stored::default(), generate_name, plan: RerunPlan::default() })
    }

    fn whole(&self) -> Option<&'static str> {
        Some("the job walks through all stages again, and what comes out runs from the start")
    }
}

/// Checks whether the job may be retried.
fn allows(object: &Value, options: &RerunOptions) -> Result<(), RerunRefusal> {
    let no = |text: &str| Err(RerunRefusal::Said(text.to_owned()));
    let over = object["status"]["finishedAt"].is_string();
    match object["status"]["phase"].as_str() {
        Some("failed" | "stopped") if over && *options == RerunOptions::default() => Ok(()),
        Some("failed" | "stopped") if over => {
            no("a retry of a submitted job walks through all stages again; there is nothing to choose")
        }
        Some("succeeded") => no("the job has succeeded, so nothing has to be done again; resubmit makes a new one"),
        _ => no("the job is not over yet, so it cannot be retried"),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
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

/// Returns the manifest of a new job; its name, which is its id, is generated from the old one's.
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

    fn object(phase: &str, over: bool) -> Value {
        let finished = if over { json!("2020-01-01T00:00:00Z") } else { Value::Null };
        json!({
            "metadata": {"name": "j1", "uid": "u"},
            "spec": {"shutdown": "Stop", "job": {"kind": "TaskSet"}},
            "status": {"phase": phase, "message": "m", "finishedAt": finished},
        })
    }

    #[test]
    fn a_job_that_failed_or_was_stopped_walks_again() {
        for phase in ["failed", "stopped"] {
            let plan = WalkReruns.plan(&object(phase, true), &RunContext::default(), &RerunOptions::default());
            assert_eq!(plan.unwrap().rerun[0].why.to_string(), format!("it ended {phase}: m"));
        }
        assert!(renewed(&object("stopped", true))["spec"]["shutdown"].is_null());
        assert_eq!(resubmitted(&object("failed", true))["metadata"], json!({"generateName": "j1-"}));
    }

    #[test]
    fn open_and_succeeded_jobs_are_not_retried() {
        for (phase, over) in [("running", false), ("suspended", false), ("succeeded", true), ("failed", false)] {
            assert!(allows(&object(phase, over), &RerunOptions::default()).is_err(), "{phase}");
        }
    }
}
