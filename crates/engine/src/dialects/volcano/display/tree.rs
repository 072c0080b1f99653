//! A job as a tree of nodes: the job, its tasks, their pods. A projection of the object's status.

use std::borrow::Cow;

use octoflow_model::volcano::PodPhase;
use serde_json::{Map, Value, json};

use super::{list, pods, text};
use crate::{
    dialects::volcano::{DIALECT, ended::failure},
    run::view::GROUP,
};

/// Returns the object with `status.nodes`, derived from its tasks and pods.
pub(super) fn with_nodes(object: &Value) -> Cow<'_, Value> {
    let (name, status) = (text(&object["metadata"], "name"), &object["status"]);
    let mut nodes = Map::new();
    let mut add = |node: Value| nodes.insert(text(&node, "id").to_owned(), node);
    add(json!({
        "id": name, "name": name, "displayName": name, "type": DIALECT.kind.name, "phase": DIALECT.phase_of(object),
        "message": status["state"]["message"], "startedAt": status["startedAt"], "finishedAt": status["finishedAt"],
        "retries": status["retryCount"], "rank": 0, "step": status["state"]["phase"],
    }));
    for (rank, task) in list(&object["spec"]["tasks"]).iter().enumerate() {
        let called = text(task, "name");
        // A task may have the name of its job.
        let id = format!("{name}/{called}");
        let own: Vec<&Value> = pods(object).filter(|pod| text(pod, "task") == called).collect();
        add(json!({
            "id": id, "name": called, "displayName": called, "type": GROUP, "phase": phase_of(&own), "message": "",
            "boundaryID": name, "rank": rank, "step": "",
        }));
        let count = task["replicas"].as_u64().unwrap_or_default();
        for index in 0..count {
            let short = format!("{called}-{index}");
            match own.iter().find(|pod| pod["index"] == index) {
                Some(pod) => add(node(&short, &id, pod)),
                None => add(json!({
                    "id": short, "name": short, "displayName": short, "type": "Pod", "phase": "Pending",
                    "boundaryID": id, "rank": index, "podName": "", "templateName": called, "retries": 0,
                })),
            };
        }
    }
    let mut whole = object.clone();
    whole["status"]["nodes"] = Value::Object(nodes);
    Cow::Owned(whole)
}

fn node(short: &str, task: &str, pod: &Value) -> Value {
    let tries = pod["tries"].as_u64().unwrap_or_default();
    let name = if tries == 0 { "" } else { text(pod, "name") };
    json!({
        "id": if name.is_empty() { short } else { name }, "name": short, "displayName": short, "type": "Pod",
        "phase": display_phase(pod), "message": message(pod), "boundaryID": task, "rank": pod["index"],
        "startedAt": pod["startedAt"], "finishedAt": pod["finishedAt"], "podName": name, "step": pod["phase"],
        "retries": tries.saturating_sub(1), "address": pod["podIP"], "templateName": pod["task"],
        "outputs": {"exitCode": pod["terminated"]["exitCode"]},
    })
}

/// Returns the phase of a task: that of its pods.
fn phase_of(pods: &[&Value]) -> &'static str {
    let phases: Vec<&str> = pods.iter().map(|pod| display_phase(pod)).collect();
    let any = |phase: &str| phases.contains(&phase);
    if any("Running") {
        "Running"
    } else if any("Failed") {
        "Failed"
    } else if any("Pending") || phases.is_empty() {
        "Pending"
    } else if any("Stopped") {
        "Stopped"
    } else {
        "Succeeded"
    }
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
    } else if is(PodPhase::Absent) && pod["tries"].as_u64().is_some_and(|tries| tries > 0) {
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
    fn tasks_and_pods_become_nodes() {
        let pod = |index: u32, phase: &str, tries: u32| {
            json!({"name": format!("demo-w-{index}"), "task": "w", "index": index, "phase": phase, "tries": tries,
                   "terminated": {"exitCode": 3, "reason": "Error", "message": "no\n"}})
        };
        let pods = [pod(0, "Running", 1), pod(1, "Failed", 2), pod(2, "Absent", 1), pod(3, "Queued", 0)];
        let object = json!({
            "metadata": {"name": "demo"}, "spec": {"tasks": [{"name": "w", "replicas": 5}]},
            "status": {"state": {"phase": "Running"}, "pods": pods},
        });
        let shown = with_nodes(&object);
        let nodes = shown["status"]["nodes"].as_object().unwrap();
        assert_eq!(nodes.len(), 7);
        let told = |name: &str| {
            let node = nodes.values().find(|node| node["displayName"] == name).unwrap();
            format!("{} {} {}", text(node, "id"), text(node, "phase"), text(node, "message"))
        };
        assert_eq!(told("w"), "demo/w Running ");
        assert_eq!(told("w-0"), "demo-w-0 Running ");
        assert_eq!(told("w-1"), "demo-w-1 Failed Error (exit code 3): no");
        assert_eq!(told("w-2"), "demo-w-2 Stopped ");
        assert_eq!(told("w-3"), "w-3 Pending ");
        assert_eq!(told("w-4"), "w-4 Pending ");
    }
}
