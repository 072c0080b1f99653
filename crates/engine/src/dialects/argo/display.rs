//! Implements the dialect-independent views of a workflow: pods, events, logs.

mod event;
mod pod;
mod pod_node;

use std::collections::{HashMap, HashSet};

use octoflow_model::{AttemptId, Time};
use serde_json::Value;

use super::DIALECT;
use crate::run::view::{Heading, LogFilter, LogPart, MAIN, PodLog, Pods, RunView};

/// The views of workflows.
#[derive(Debug)]
pub(super) struct ObjectView;

impl RunView for ObjectView {
    fn is_over(&self, object: &Value) -> bool {
        DIALECT.is_decided(object)
    }

    fn pods(&self, object: &Value, now: Time, _: Option<&str>) -> Pods {
        pod::all(object, now)
    }

    fn has_pod(&self, object: &Value, _: &[(String, AttemptId)], pod: &str) -> bool {
        pod_node::of(object).any(|one| one.name() == pod)
    }

    fn events(&self, object: &Value) -> Vec<(String, Value)> {
        event::all(object)
    }

    fn pod_logs(&self, object: &Value, attempts: &[(String, AttemptId)], filter: &LogFilter<'_>) -> Vec<PodLog> {
        let attempts: HashMap<&str, AttemptId> = attempts.iter().map(|(id, attempt)| (id.as_str(), *attempt)).collect();
        let sets: HashSet<&str> = containers(object).filter_map(|node| node["boundaryID"].as_str()).collect();
        let mains: HashSet<&str> = containers(object)
            .filter(|node| node["displayName"] == MAIN)
            .filter_map(|node| node["boundaryID"].as_str())
            .collect();
        pod_node::of(object)
            .filter(|pod| filter.pod.is_none_or(|wanted| pod.is_called(wanted)))
            .filter(|pod| filter.selects.is_none_or(|selects| selects(&pod::labelled(object, *pod))))
            .filter_map(|pod| {
                let id = pod.text("id");
                Some(PodLog {
                    pod: pod.name(),
                    attempt: *attempts.get(id)?,
                    began: Some(pod.began()),
                    over: pod.over(),
                    main: MAIN.to_owned(),
                    has_main: !sets.contains(id) || mains.contains(id),
                })
            })
            .collect()
    }

    fn log_parts(&self, object: &Value, attempts: &[(String, AttemptId)], names: &[String]) -> Vec<LogPart> {
        let attempts: HashMap<&str, AttemptId> = attempts.iter().map(|(id, attempt)| (id.as_str(), *attempt)).collect();
        let nodes = object["status"]["nodes"].as_object().into_iter().flatten();
        let mut parts: Vec<LogPart> = nodes
            .filter(|(_, node)| is_wanted(node["name"].as_str().unwrap_or_default(), names))
            .filter_map(|(id, node)| {
                let began = node["startedAt"].as_str().and_then(Time::parse).unwrap_or_default();
                Some((id, began, *attempts.get(id.as_str())?))
            })
            // The logs of preempted attempts come before that of the last one.
            .flat_map(|(id, began, last)| {
                (0..=last.attempt).map(move |attempt| LogPart {
                    id: id.clone(),
                    attempt: AttemptId { attempt, ..last },
                    began: if attempt == last.attempt { began } else { Time::default() },
                })
            })
            .collect();
        parts.sort_by_key(|part| (part.began, part.attempt));
        parts
    }

    /// Returns the name of the pod that a node runs as, whatever the runtime.
    fn pod_name(&self, object: &Value, node: &Value) -> String {
        match node["podName"].as_str().unwrap_or_default() {
            "" => pod_node::name(object["metadata"]["name"].as_str().unwrap_or_default(), node),
            name => name.to_owned(),
        }
    }

    fn heading(&self, object: &Value) -> Heading {
        let account = object["spec"]["serviceAccountName"].as_str();
        let account = account.unwrap_or("unset (will run with the default ServiceAccount)");
        Heading { before: vec![("ServiceAccount:", account.to_owned())], after: Vec::new() }
    }
}

fn containers(object: &Value) -> impl Iterator<Item = &Value> {
    let nodes = object["status"]["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values());
    nodes.filter(|node| node["type"] == "Container")
}

/// Whether a node is selected: a name selects its node and everything below it.
fn is_wanted(name: &str, names: &[String]) -> bool {
    let belongs = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[', '(']);
    names.is_empty() || names.iter().any(|wanted| name.strip_prefix(wanted.as_str()).is_some_and(belongs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_stands_for_what_belongs_to_it_and_for_nothing_else() {
        let names = ["w.a".to_owned()];
        assert!(is_wanted("w.a", &names) && is_wanted("w.a(0)", &names) && is_wanted("w.a[0].x", &names));
        assert!(!is_wanted("w.ab", &names) && !is_wanted("w", &names));
        assert!(is_wanted("w.anything", &[]));
    }
}
