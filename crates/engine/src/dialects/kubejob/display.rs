//! Views of a job's object as pods, events, logs and nodes.

mod event;
mod name;
mod pod;
mod tree;

use std::{borrow::Cow, collections::HashMap};

use octoflow_model::{
    AttemptId, Time,
    kubejob::{PodPhase, mark},
};
use serde_json::{Map, Value, json};

use super::{DIALECT, ident};
use crate::run::view::{Heading, LogFilter, LogPart, MAIN, PodLog, PodNames, Pods, RunView};

/// Renders views of jobs.
#[derive(Debug)]
pub(super) struct ObjectView;

impl RunView for ObjectView {
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
        let known: HashMap<&str, &Value> = pods(object).map(|pod| (text(pod, "name"), pod)).collect();
        let placed = [PodPhase::Starting, PodPhase::Running, PodPhase::Terminating].map(PodPhase::word);
        let wanted = attempts.iter().filter(|(log, _)| filter.pod.is_none_or(|wanted| wanted == log));
        let mut logs = Vec::new();
        for (log, attempt) in wanted {
            let (pod, earlier) = ident::log_of(log);
            let Some(found) = known.get(pod) else { continue };
            let labelled = || json!({"metadata": {"name": pod, "labels": labels(object, found)}});
            if filter.selects.is_some_and(|selects| !selects(&labelled())) {
                continue;
            }
            logs.push(PodLog {
                pod: log.clone(),
                attempt: *attempt,
                began: None,
                over: earlier.is_some() || !placed.contains(&text(found, "phase")),
                main: main_container(object).to_owned(),
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

    /// Matches a log by its own name, and by the names that it may end in.
    fn is_meant(&self, log: &str, names: &[String]) -> bool {
        names.is_empty() || names.iter().any(|name| name::may_mean(name, log))
    }

    fn with_nodes<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        tree::with_nodes(object)
    }

    fn heading(&self, object: &Value) -> Heading {
        let (spec, status) = (&object["spec"], &object["status"]);
        let count = |field: &str| status[field].as_u64().unwrap_or_default();
        let statuses =
            format!("{} active, {} succeeded, {} failed", count("active"), count("succeeded"), count("failed"));
        let all = spec["completions"].as_u64().map_or_else(|| "<unset>".to_owned(), |all| all.to_string());
        let mut after =
            vec![("Parallelism:", spec["parallelism"].to_string()), ("Completions:", all), ("Pods:", statuses)];
        if let Some(indexes) = status["completedIndexes"].as_str() {
            after.push(("Completed:", indexes.to_owned()));
        }
        if let Some(indexes) = status["failedIndexes"].as_str().filter(|indexes| !indexes.is_empty()) {
            after.push(("Failed:", indexes.to_owned()));
        }
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

/// Returns the labels of a pod: those of the template, which identify the job, and its index.
fn labels(job: &Value, pod: &Value) -> Map<String, Value> {
    let mut labels = job["spec"]["template"]["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    if let Some(index) = pod["index"].as_u64() {
        labels.insert(mark::COMPLETION_INDEX.to_owned(), json!(index.to_string()));
    }
    labels
}

/// Returns the name of the first container.
fn main_container(job: &Value) -> &str {
    job["spec"]["template"]["spec"]["containers"][0]["name"].as_str().unwrap_or(MAIN)
}
