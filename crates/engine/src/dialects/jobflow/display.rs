//! Views of a flow's object as events and nodes. It has no pods and no logs of its own: its jobs have.

mod event;
mod tree;

use std::borrow::Cow;

use octoflow_model::{AttemptId, Time};
use serde_json::Value;

use super::DIALECT;
use crate::{
    dialects::volcano::JOB,
    run::view::{Heading, LogFilter, LogPart, PodLog, Pods, RunBelow, RunView},
};

/// Renders views of flows.
#[derive(Debug)]
pub(super) struct ObjectView;

impl RunView for ObjectView {
    /// Tests the end of the run: the phase is already final while jobs are still being deleted.
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
        let below =
            |name: &str, label: String| RunBelow { kind: JOB.key, node: name.to_owned(), name: name.to_owned(), label };
        let mut all = Vec::new();
        for entry in list(&object["status"]["entries"]) {
            all.extend(former(entry).map(|(name, label)| below(name, label)));
            if entry["uid"].is_string() {
                all.push(below(text(entry, "job"), text(entry, "name").to_owned()));
            }
        }
        all
    }

    fn heading(&self, object: &Value) -> Heading {
        let status = &object["status"];
        let count = |list: &str| status[list].as_array().map_or(0, Vec::len);
        let jobs = format!(
            "{} completed, {} running, {} failed",
            count("completedJobs"),
            count("runningJobs"),
            count("failedJobs") + count("terminatedJobs")
        );
        Heading { before: vec![("Kind:", DIALECT.kind.noun.to_owned())], after: vec![("Jobs:", jobs)] }
    }

    fn explains_all(&self) -> bool {
        true
    }
}

/// Returns the names of the jobs of earlier tries, and what to call them.
fn former(entry: &Value) -> impl Iterator<Item = (&str, String)> {
    let jobs = list(&entry["former"]).iter().enumerate();
    jobs.map(|(number, job)| (text(job, "name"), format!("{} (try {})", text(entry, "name"), number + 1)))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
