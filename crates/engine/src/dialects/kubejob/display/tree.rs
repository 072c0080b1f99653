//! A job as a tree of nodes: the job and its pods. A projection of the object's status.

use std::borrow::Cow;

use octoflow_model::kubejob::PodPhase;
use serde_json::{Map, Value, json};

use super::{pods, text};
use crate::dialects::kubejob::{DIALECT, ended::failure, ident};

/// Returns the object with `status.nodes`, derived from its pods.
pub(super) fn with_nodes(object: &Value) -> Cow<'_, Value> {
    let (name, status) = (text(&object["metadata"], "name"), &object["status"]);
    let mut nodes = Map::new();
    let mut add = |node: Value| nodes.insert(text(&node, "id").to_owned(), node);
    add(json!({
        "id": name, "name": name, "displayName": name, "type": DIALECT.kind.name, "phase": DIALECT.phase_of(object),
        "message": status["message"], "startedAt": status["startTime"], "finishedAt": status["finishedAt"],
        "retries": status["failed"], "rank": 0, "step": status["phase"],
    }));
    for (rank, pod) in pods(object).enumerate() {
        add(node(name, rank, pod));
    }
    let mut whole = object.clone();
    whole["status"]["nodes"] = Value::Object(nodes);
    Cow::Owned(whole)
}

fn node(job: &str, rank: usize, pod: &Value) -> Value {
    let (name, tries) = (text(pod, "name"), pod["tries"].as_u64().unwrap_or_default());
    let short = ident::short_name(job, name);
    json!({
        "id": name, "name": short, "displayName": short, "type": "Pod", "phase": display_phase(pod),
        "message": message(pod), "boundaryID": job, "rank": rank, "startedAt": pod["startedAt"],
        "finishedAt": pod["finishedAt"], "podName": if tries == 0 { "" } else { name }, "step": pod["phase"],
        "retries": tries.saturating_sub(1), "address": pod["podIP"], "templateName": job,
        "outputs": {"exitCode": pod["terminated"]["exitCode"]},
    })
}

/// Returns the display phase of a pod.
fn display_phase(pod: &Value) -> &'static str {
    let is = |phase: PodPhase| text(pod, "phase") == phase.word();
    if is(PodPhase::Running) || is(PodPhase::Terminating) || is(PodPhase::BackOff) {
        "Running"
    } else if is(PodPhase::Succeeded) {
        "Succeeded"
    } else if is(PodPhase::Failed) {
        "Failed"
    } else if is(PodPhase::Gone) {
        "Stopped"
    } else {
        "Pending"
    }
}

fn message(pod: &Value) -> String {
    let is_failed = text(pod, "phase") == PodPhase::Failed.word();
    if is_failed { failure(pod) } else { text(pod, "message").to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_become_nodes() {
        let pod = |suffix: &str, phase: &str, tries: u32| {
            json!({"name": format!("demo-{suffix}"), "phase": phase, "tries": tries,
                   "terminated": {"exitCode": 3, "reason": "Error", "message": "no\n"}})
        };
        let pods = [pod("a", "Running", 1), pod("b", "Failed", 2), pod("c", "Gone", 1), pod("d", "Queued", 0)];
        let object = json!({"metadata": {"name": "demo"}, "status": {"phase": "Running", "pods": pods}});
        let shown = with_nodes(&object);
        let nodes = shown["status"]["nodes"].as_object().unwrap();
        assert_eq!(nodes.len(), 5);
        let told = |name: &str| {
            let node = nodes.values().find(|node| node["displayName"] == name).unwrap();
            format!("{} {} {}", text(node, "podName"), text(node, "phase"), text(node, "message"))
        };
        assert_eq!(told("a"), "demo-a Running ");
        assert_eq!(told("b"), "demo-b Failed Error (exit code 3): no");
        assert_eq!(told("c"), "demo-c Stopped ");
        assert_eq!(told("d"), " Pending ");
    }
}
