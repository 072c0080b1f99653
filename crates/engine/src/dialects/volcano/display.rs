//! Views of a job's object as pods, events, logs and nodes.

mod additions;
mod event;
mod name;
mod pod;
mod tree;

use std::{borrow::Cow, collections::HashSet};

use octoflow_model::{
    AttemptId, Time,
    volcano::{PodPhase, mark},
};
use serde_json::{Map, Value, json};

use super::{DIALECT, ident};
use crate::run::view::{Heading, LogFilter, LogPart, MAIN, PodLog, PodNames, Pods, RunView};

/// Renders views of jobs.
#[derive(Debug)]
pub(super) struct ObjectView;

impl RunView for ObjectView {
    /// Tests the end of the run: the phase is already final while the last pods are still being ended.
    fn is_over(&self, object: &Value) -> bool {
        object["status"]["finishedAt"].is_string()
    }

    fn pods(&self, object: &Value, _: Time, host: Option<&str>) -> Pods {
        pod::all(object, host)
    }

    fn has_pod(&self, _: &Value, attempts: &[(String, AttemptId)], pod: &str) -> bool {
        attempts.iter().any(|(name, _)| name == pod)
    }

    fn events(&self, object: &Value) -> Vec<(String, Value)> {
        event::all(object)
    }

    /// Returns every try; logs outlive pods. Start times of earlier ones are no longer known.
    fn pod_logs(&self, object: &Value, attempts: &[(String, AttemptId)], filter: &LogFilter<'_>) -> Vec<PodLog> {
        let placed = [PodPhase::Starting, PodPhase::Running, PodPhase::Terminating].map(PodPhase::word);
        let live = pods(object).filter(|pod| placed.contains(&text(pod, "phase")));
        let live: HashSet<&str> = live.map(|pod| text(pod, "name")).collect();
        let wanted = attempts.iter().filter(|(log, _)| filter.pod.is_none_or(|wanted| wanted == log));
        let mut logs = Vec::new();
        for (log, attempt) in wanted {
            let (pod, earlier) = ident::log_of(log);
            let Some(found) = pods(object).find(|one| text(one, "name") == pod) else { continue };
            let Some(task) = task_of(object, found) else { continue };
            let labelled = || json!({"metadata": {"name": pod, "labels": labels(object, task, found)}});
            if filter.selects.is_some_and(|selects| !selects(&labelled())) {
                continue;
            }
            logs.push(PodLog {
                pod: log.clone(),
                attempt: *attempt,
                began: None,
                over: earlier.is_some() || !live.contains(pod),
                main: main_container(task).to_owned(),
                has_main: true,
            });
        }
        logs
    }

    fn log_parts(&self, object: &Value, attempts: &[(String, AttemptId)], names: &[String]) -> Vec<LogPart> {
        let job = text(&object["metadata"], "name");
        let wanted =
            attempts.iter().filter(|(log, _)| names.is_empty() || names.iter().any(|name| name::means(job, name, log)));
        wanted.map(|(log, attempt)| LogPart { id: log.clone(), attempt: *attempt, began: Time(0) }).collect()
    }

    /// Matches a log by its own name, and by the names that it may end in: those of its pod and its task.
    fn is_meant(&self, log: &str, names: &[String]) -> bool {
        names.is_empty() || names.iter().any(|name| name::may_mean(name, log))
    }

    fn with_nodes<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        tree::with_nodes(object)
    }

    fn heading(&self, object: &Value) -> Heading {
        let (spec, status) = (&object["spec"], &object["status"]);
        let least = spec["minAvailable"].as_u64().unwrap_or_default();
        let most = spec["maxRetry"].as_u64().unwrap_or_default();
        let after = vec![
            ("Queue:", text(spec, "queue").to_owned()),
            ("Available:", format!("{} running, {least} at least", status["running"])),
            ("Attempt:", format!("{} of {most}", status["retryCount"].as_u64().unwrap_or_default() + 1)),
        ];
        Heading { before: vec![("Kind:", DIALECT.kind.noun.to_owned())], after }
    }

    fn explains_all(&self) -> bool {
        true
    }

    fn pod_names(&self) -> Option<&dyn PodNames> {
        Some(&name::Names)
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Iterates over the pods that are there, or were.
fn pods(job: &Value) -> impl Iterator<Item = &Value> {
    list(&job["status"]["pods"]).iter()
}

/// Returns the specification of a pod's task.
fn task_of<'a>(job: &'a Value, pod: &Value) -> Option<&'a Value> {
    list(&job["spec"]["tasks"]).iter().find(|task| task["name"] == pod["task"])
}

/// Returns the labels of a pod.
fn labels(job: &Value, task: &Value, pod: &Value) -> Map<String, Value> {
    let mut labels = task["template"]["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    labels.extend(own_marks(job, pod));
    labels
}

/// Returns the labels and annotations that say which pod it is.
fn own_marks(job: &Value, pod: &Value) -> Map<String, Value> {
    let metadata = &job["metadata"];
    let number = |value: &Value| json!(value.to_string());
    let own = [
        (mark::JOB_NAME, metadata["name"].clone()),
        (mark::JOB_NAMESPACE, metadata["namespace"].clone()),
        (mark::QUEUE_NAME, job["spec"]["queue"].clone()),
        (mark::TASK_SPEC, pod["task"].clone()),
        (mark::TASK_INDEX, number(&pod["index"])),
        (mark::JOB_VERSION, number(&pod["version"])),
        (mark::JOB_RETRY_COUNT, number(&job["status"]["retryCount"])),
        (mark::TEMPLATE_UID, json!(format!("{}-{}", text(metadata, "uid"), text(pod, "task")))),
        (mark::GROUP_NAME, json!(ident::group_name(text(metadata, "name"), text(metadata, "uid")))),
    ];
    own.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Returns the name of the container whose end is the pod's.
fn main_container(task: &Value) -> &str {
    task["template"]["spec"]["containers"][0]["name"].as_str().unwrap_or(MAIN)
}
