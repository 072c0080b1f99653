//! Reruns of a flow. A retry runs the entries that failed and those that follow from them; completed ones keep their jobs. A
//! resubmit is a new flow that begins from the start.

use std::collections::BTreeMap;

use octoflow_model::{
    Time,
    jobflow::{CompletedJob, EntryResult, FormerJob, TaskCounts},
    submission::Stored,
    volcano::JobPhase,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{child::phase_of_word, program::Program};
use crate::{
    admit::Catalog,
    dialects::volcano::admit::MAX_NAME_LENGTH,
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

/// Implements retry and resubmit for flows.
#[derive(Debug)]
pub(super) struct Retries;

impl Reruns for Retries {
    fn plan(&self, object: &Value, _: &RunContext, options: &RerunOptions) -> Result<RerunPlan, RerunRefusal> {
        allows(object, options)?;
        let plan = plan(object);
        names_fit(object, &plan)?;
        Ok(plan)
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
            let message =
                "a JobFlow has no parameters, and a new one makes all of its jobs; retry keeps completed ones";
            return Err(RerunRefusal::Said(message.to_owned()));
        }
        let manifest = resubmitted(object);
        let generate_name = manifest["metadata"]["generateName"].as_str().unwrap_or_default().to_owned();
        Ok(RerunManifest { manifest, stored: Stored::default(), generate_name, plan: RerunPlan::default() })
    }
}

/// Checks whether the flow may be retried.
fn allows(object: &Value, options: &RerunOptions) -> Result<(), RerunRefusal> {
    let no = |text: &str| Err(RerunRefusal::Said(text.to_owned()));
    let over = object["status"]["finishedAt"].is_string();
    match object["status"]["state"]["phase"].as_str() {
        Some("Failed") if over && *options == RerunOptions::default() => Ok(()),
        Some("Failed") if over => {
            no("a retry of a JobFlow runs what failed and what follows from it; there is nothing to choose")
        }
        Some("Succeed") => {
            no("the JobFlow has succeeded, so nothing of it has to be done again; resubmit makes a new one")
        }
        _ => no("the JobFlow is not over yet, so it cannot be retried"),
    }
}

/// Checks that the names of the jobs that would be made are not too long.
fn names_fit(object: &Value, plan: &RerunPlan) -> Result<(), RerunRefusal> {
    let program = Program::compile(object).map_err(RerunRefusal::Said)?;
    let flow = text(&object["metadata"], "name");
    for again in &plan.rerun {
        let entry = (0..program.entries.len()).find(|entry| program.name(*entry) == again.node);
        let tries = plan.entries.get(&again.node).map_or(0, |known| known.tries);
        let Some(name) = entry.map(|entry| program.job_name(flow, entry, tries)) else { continue };
        if name.len() > MAX_NAME_LENGTH {
            return Err(RerunRefusal::Said(format!(
                "the next job of '{}' would be called '{name}', which has {} characters, and {MAX_NAME_LENGTH} are the \
                 most; resubmit makes a new JobFlow",
                again.node,
                name.len()
            )));
        }
    }
    Ok(())
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Returns what is kept, and what runs again and why.
fn plan(object: &Value) -> RerunPlan {
    let status = &object["status"];
    let known: BTreeMap<&str, &Value> = list(&status["entries"]).map(|entry| (text(entry, "name"), entry)).collect();
    let mut plan = RerunPlan::default();
    let mut again: Vec<&str> = Vec::new();
    for entry in list(&status["entries"]) {
        plan.entries.insert(text(entry, "name").to_owned(), result(status, entry));
        if text(entry, "stage") != "Completed" {
            again.push(text(entry, "name"));
        }
    }
    for flow in list(&object["spec"]["flows"]) {
        let name = text(flow, "name");
        let Some(entry) = known.get(name).filter(|_| again.contains(&name)) else { continue };
        let before =
            list(&flow["dependsOn"]["targets"]).filter_map(Value::as_str).find(|target| again.contains(target));
        let why = match (text(entry, "stage"), before) {
            ("Waiting", Some(target)) => Why::After(target.to_owned()),
            ("Waiting" | "Stopped", _) => Why::Unfinished,
            (stage, _) => Why::Ended { phase: stage.to_owned(), message: text(entry, "message").to_owned() },
        };
        plan.rerun.push(Rerun { node: name.to_owned(), display: name.to_owned(), why });
    }
    plan
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Reads what is known of an entry back from the object.
fn result(status: &Value, entry: &Value) -> EntryResult {
    let time = |value: &Value| value.as_str().and_then(Time::parse);
    let name = text(entry, "job");
    let job = list(&status["jobStatusList"]).find(|job| text(job, "name") == name);
    let histories = job.into_iter().flat_map(|job| list(&job["runningHistories"]));
    let history =
        histories.filter_map(|part| Some((phase_of_word(text(part, "state"))?, time(&part["startTimestamp"])?)));
    let history: Vec<(JobPhase, Time)> = history.collect();
    let tasks = status["conditions"][name]["taskStatusCount"].as_object();
    let tasks: TaskCounts = tasks
        .into_iter()
        .flatten()
        .filter_map(|(task, counts)| Some((task.clone(), Deserialize::deserialize(&counts["phase"]).ok()?)))
        .collect();
    let number = |field: &str| u32::try_from(entry[field].as_u64().unwrap_or_default()).unwrap_or_default();
    let completed = text(entry, "stage") == "Completed";
    let job_of = |job: &Value, name: &str, made: Option<Time>| FormerJob {
        name: name.to_owned(),
        uid: text(job, "uid").to_owned(),
        made,
        ended: time(&job["finishedAt"]),
        message: text(job, "message").to_owned(),
    };
    let mut former: Vec<FormerJob> =
        list(&entry["former"]).map(|job| job_of(job, text(job, "name"), time(&job["madeAt"]))).collect();
    if entry["uid"].is_string() && !completed {
        former.push(job_of(entry, name, time(&entry["madeAt"]).or_else(|| time(&entry["startedAt"]))));
    }
    let conditions = list(&entry["metConditions"]).filter_map(Value::as_u64);
    EntryResult {
        tries: number("tries"),
        restarts: number("restarts"),
        job: completed.then(|| CompletedJob { name: name.to_owned(), uid: text(entry, "uid").to_owned(), tasks }),
        history,
        started: time(&entry["startedAt"]),
        ended: time(&entry["finishedAt"]),
        met: conditions.filter_map(|number| u32::try_from(number).ok()).collect(),
        former,
    }
}

/// Returns the manifest of the same flow, under its old name.
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

/// Returns the manifest of a new flow; its name is generated from the old one's.
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

    fn failed() -> Value {
        let entry = |name: &str, stage: &str, tries: u32| json!({"name": name, "job": format!("test-{name}"), "stage": stage, "tries": tries, "uid": "u", "message": "m"});
        json!({
            "metadata": {"name": "test", "uid": "u"},
            "spec": {"shutdown": "Stop", "flows": [
                {"name": "a"}, {"name": "c", "dependsOn": {"targets": ["a"]}}, {"name": "e", "dependsOn": {"targets": ["c"]}},
            ]},
            "status": {
                "state": {"phase": "Failed"}, "finishedAt": "2020-01-01T00:00:00Z",
                "entries": [entry("a", "Completed", 1), entry("c", "Failed", 2), entry("e", "Waiting", 0)],
                "conditions": {"test-a": {"taskStatusCount": {"t": {"phase": {"Succeeded": 2}}}}},
                "jobStatusList": [{"name": "test-a", "runningHistories": [
                    {"state": "Pending", "startTimestamp": "2020-01-01T00:00:00Z"}]}],
            },
        })
    }

    #[test]
    fn jf_26_only_what_failed_and_what_follows_from_it_runs_again() {
        let plan = Retries.plan(&failed(), &RunContext::default(), &RerunOptions::default()).unwrap();
        let told: Vec<String> = plan.rerun.iter().map(|again| format!("{}: {}", again.node, again.why)).collect();
        assert_eq!(told, ["c: it ended Failed: m", "e: it comes after c"]);
        let kept = &plan.entries["a"];
        assert_eq!(kept.job.as_ref().unwrap().tasks["t"]["Succeeded"], 2);
        assert_eq!(kept.history.len(), 1);
        assert_eq!(plan.kept().collect::<Vec<_>>(), ["a"], "a completed job stays, and so the plan counts it");
        assert_eq!((plan.entries["c"].tries, &plan.entries["c"].job), (2, &None), "its jobs keep their names");
        assert!(renewed(&failed())["spec"]["shutdown"].is_null());
    }

    #[test]
    fn flows_that_are_open_or_have_succeeded_are_not_retried() {
        for (phase, over) in [("Running", false), ("Succeed", true), ("Failed", false)] {
            let mut object = failed();
            object["status"]["state"]["phase"] = json!(phase);
            object["status"]["finishedAt"] = if over { json!("2020-01-01T00:00:00Z") } else { Value::Null };
            assert!(allows(&object, &RerunOptions::default()).is_err(), "{phase}");
        }
    }
}
