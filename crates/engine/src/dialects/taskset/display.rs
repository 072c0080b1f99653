//! Views of a TaskSet's object as pods, events, logs and nodes.

mod event;
mod name;
mod pod;
mod replica;
mod tree;

use std::{borrow::Cow, collections::HashSet};

use octoflow_model::{AttemptId, Time, taskset::SetPhase};
use serde_json::{Value, json};

use super::DIALECT;
use crate::run::view::{Heading, LogFilter, LogPart, PodLog, PodNames, Pods, RunView};

/// Renders views of TaskSets.
#[derive(Debug)]
pub(super) struct ObjectView;

impl RunView for ObjectView {
    /// Tests the phase: the state is already final while the last pods are still being stopped.
    fn is_over(&self, object: &Value) -> bool {
        object["status"]["phase"] == SetPhase::Completed.word()
    }

    fn pods(&self, object: &Value, _: Time, host: Option<&str>) -> Pods {
        pod::all(object, host)
    }

    fn has_pod(&self, object: &Value, attempts: &[(String, AttemptId)], pod: &str) -> bool {
        attempts.iter().any(|(name, _)| name == pod)
            || replica::waiting(object).any(|(_, status)| status["podName"] == pod)
    }

    fn events(&self, object: &Value) -> Vec<(String, Value)> {
        event::all(object)
    }

    /// Returns every pod it ever had; logs outlive pods. Start times are no longer known.
    fn pod_logs(&self, object: &Value, attempts: &[(String, AttemptId)], filter: &LogFilter<'_>) -> Vec<PodLog> {
        let live: HashSet<&str> = replica::live(object).map(|replica| replica.pod()).collect();
        let wanted = attempts.iter().filter(|(pod, _)| filter.pod.is_none_or(|wanted| wanted == pod));
        let mut pods = Vec::new();
        for (pod, attempt) in wanted {
            let Some(role) = replica::role_of(object, pod) else { continue };
            let labelled = || json!({"metadata": {"name": pod, "labels": replica::labels(object, role)}});
            if filter.selects.is_some_and(|selects| !selects(&labelled())) {
                continue;
            }
            pods.push(PodLog {
                pod: pod.clone(),
                attempt: *attempt,
                began: None,
                over: !live.contains(pod.as_str()),
                main: replica::main_container(role).to_owned(),
                has_main: true,
            });
        }
        pods
    }

    /// Returns every pod it had, including those of earlier tries. Start times are not known.
    fn log_parts(&self, _: &Value, attempts: &[(String, AttemptId)], names: &[String]) -> Vec<LogPart> {
        let wanted = attempts.iter().filter(|(pod, _)| self.is_meant(pod, names));
        wanted.map(|(pod, attempt)| LogPart { id: pod.clone(), attempt: *attempt, began: Time(0) }).collect()
    }

    /// Matches a pod by its own name, by that of its replica (`worker-1`), and by that of its role.
    fn is_meant(&self, pod: &str, names: &[String]) -> bool {
        // None of the five parts of its name has a dash.
        let parts: Vec<&str> = pod.split('-').collect();
        let (role, index) = (parts.get(1).copied().unwrap_or_default(), parts.last().copied().unwrap_or_default());
        names.is_empty()
            || names.iter().any(|name| name == pod || name == role || name.split_once('-') == Some((role, index)))
    }

    fn with_nodes<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        tree::with_nodes(object)
    }

    /// Shows the phase in the dialect's words, and the number of retries.
    fn heading(&self, object: &Value) -> Heading {
        let status = &object["status"];
        let (phase, message) = (text(status, "phase"), text(status, "phaseMessage"));
        let shown = if message.is_empty() { phase.to_owned() } else { format!("{phase} ({message})") };
        let mut after = vec![("Phase:", shown)];
        let policy = &object["spec"]["retryPolicy"];
        if policy["retry"] == true {
            let most = policy["maxRetryCount"].as_u64().unwrap_or_default();
            after.push(("Retried:", format!("{} of at most {most} times", status["totalRetriedCount"])));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_found_by_its_name_its_replica_and_its_role() {
        let pod = "demo-worker-0-2-1";
        for name in ["demo-worker-0-2-1", "worker-1", "worker"] {
            assert!(ObjectView.is_meant(pod, &[name.to_owned()]), "{name}");
        }
        for name in ["demo-worker-0-1-1", "worker-2", "work", "demo", "1"] {
            assert!(!ObjectView.is_meant(pod, &[name.to_owned()]), "{name}");
        }
        assert!(ObjectView.is_meant(pod, &[]));
    }
}
