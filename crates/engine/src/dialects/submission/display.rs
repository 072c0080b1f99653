//! Views of a submitted job's object as events and nodes. It has no pods and no logs of its own: the run that came out has.

mod event;
mod tree;

use std::borrow::Cow;

use octoflow_model::{AttemptId, Time};
use serde_json::Value;

use super::DIALECT;
use crate::{
    kinds,
    run::view::{Heading, LogFilter, LogPart, PodLog, Pods, RunBelow, RunView},
};

/// Renders views of submitted jobs.
#[derive(Debug)]
pub(super) struct ObjectView;

impl RunView for ObjectView {
    fn is_over(&self, object: &Value) -> bool {
        object["status"]["finishedAt"].is_string()
    }

    fn pods(&self, _: &Value, _: Time, _: Option<&str>) -> Pods {
        Pods::default()
    }

    fn has_pod(&self, _: &Value, _: &[(String, AttemptId)], _: &str) -> bool {
        false
    }

    fn events(&self, object: &Value) -> Vec<(String, Value)> {
        event::all(object)
    }

    fn pod_logs(&self, _: &Value, _: &[(String, AttemptId)], _: &LogFilter<'_>) -> Vec<PodLog> {
        Vec::new()
    }

    fn log_parts(&self, _: &Value, _: &[(String, AttemptId)], _: &[String]) -> Vec<LogPart> {
        Vec::new()
    }

    fn with_nodes<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        tree::with_nodes(object)
    }

    fn consists_of_runs(&self) -> bool {
        true
    }

    fn runs_below(&self, object: &Value) -> Vec<RunBelow> {
        let child = &object["status"]["child"];
        let Ok(kind) = kinds::of_manifest(child) else { return Vec::new() };
        let name = text(child, "name").to_owned();
        vec![RunBelow { kind: kind.key, node: tree::child_id(&name), label: name.clone(), name }]
    }

    fn heading(&self, object: &Value) -> Heading {
        let (spec, status) = (&object["spec"], &object["status"]);
        let mut after = vec![
            ("Job:", format!("{} ({})", text(spec, "jobName"), text(spec, "jobKind"))),
            ("User:", text(spec, "userID").to_owned()),
            ("State:", text(status, "state").to_owned()),
        ];
        if status["stage"].is_string() {
            let plugin = text(status, "plugin");
            let plugin = if plugin.is_empty() { String::new() } else { format!(", {plugin}") };
            after.push(("Stage:", format!("{}{plugin}", text(status, "stage"))));
        }
        if status["child"].is_object() {
            let child = &status["child"];
            after.push(("Runs as:", format!("{} {}", text(child, "kind"), text(child, "name"))));
        }
        Heading { before: vec![("Kind:", DIALECT.kind.noun.to_owned())], after }
    }

    fn explains_all(&self) -> bool {
        true
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns what came of a question to a plugin, in a few words, and whether it went wrong.
fn came_of(outcome: &Value) -> (String, bool) {
    let reason = text(outcome, "reason");
    let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    if let Some(error) = outcome["error"].as_str() {
        (error.to_owned(), true)
    } else if let Some(decision) = outcome["decision"].as_str() {
        (format!("{decision}{why}"), decision != "pass")
    } else if let Some(factors) = outcome["factors"].as_array() {
        let topics: Vec<String> =
            factors.iter().map(|one| format!("{} {}", text(one, "topic"), text(one, "advice"))).collect();
        (if topics.is_empty() { "no factor".to_owned() } else { topics.join(", ") }, false)
    } else if outcome["job"].is_object() {
        (format!("made a {}", text(&outcome["job"], "kind")), false)
    } else if outcome["change"].is_object() {
        let added = list(&outcome["change"]["added"]).iter().map(|one| text(one, "path"));
        let added: Vec<&str> = added.take(3).collect();
        (if added.is_empty() { "changed nothing".to_owned() } else { format!("added {}", added.join(", ")) }, false)
    } else {
        (String::new(), false)
    }
}
