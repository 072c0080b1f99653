//! A TaskSet as a tree of nodes: the TaskSet, its roles, their replicas. A projection of the object's status.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{list, text};
use crate::{dialects::taskset::DIALECT, run::view::GROUP};

/// Returns the object with `status.nodes`, derived from its roles.
pub(super) fn with_nodes(object: &Value) -> Cow<'_, Value> {
    let (name, status) = (text(&object["metadata"], "name"), &object["status"]);
    let mut nodes = Map::new();
    let mut add = |node: Value| nodes.insert(text(&node, "id").to_owned(), node);
    add(json!({
        "id": name, "name": name, "displayName": name, "type": DIALECT.kind.name, "phase": DIALECT.phase_of(object),
        "message": whole(status), "startedAt": status["startAt"], "finishedAt": status["finishAt"],
        "retries": status["totalRetriedCount"], "rank": 0, "step": status["phase"],
    }));
    for (rank, role) in list(&status["roleStatus"]).iter().enumerate() {
        let called = text(role, "name");
        // A role may have the name of its TaskSet.
        let id = format!("{name}/{called}");
        let message = first(&[text(role, "stateMessage"), text(role, "phaseMessage")]);
        add(json!({
            "id": id, "name": called, "displayName": called, "type": GROUP, "phase": role["state"], "message": message,
            "boundaryID": name, "rank": rank, "step": role["phase"],
        }));
        for one in list(&role["replicaStatus"]) {
            add(replica(called, &id, one));
        }
    }
    let mut whole = object.clone();
    whole["status"]["nodes"] = Value::Object(nodes);
    Cow::Owned(whole)
}

fn replica(role: &str, role_id: &str, one: &Value) -> Value {
    let name = format!("{role}-{}", one["index"]);
    let pod = text(one, "podName");
    json!({
        "id": if pod.is_empty() { &name } else { pod }, "name": name, "displayName": name, "type": "Pod",
        "phase": display_phase(one), "message": message(one), "boundaryID": role_id, "rank": one["index"],
        "startedAt": one["startAt"], "finishedAt": one["finishAt"], "podName": pod, "step": one["phase"],
        "retries": one["totalRetriedCount"], "address": one["podIP"], "templateName": role,
        "outputs": {"exitCode": one["terminatedInfo"]["exitCode"]},
    })
}

/// Returns the display phase of a replica.
fn display_phase(one: &Value) -> &'static str {
    match text(one, "phase").trim_start_matches("TaskRoleReplica") {
        "AttemptRunning" | "AttemptDeletionRequested" => "Running",
        "Completed" if one["stopped"] == true => "Stopped",
        "Completed" if one["terminatedInfo"]["exitCode"] == 0 && text(one, "podReason").is_empty() => "Succeeded",
        "Completed" => "Failed",
        _ => "Pending",
    }
}

/// Returns the reason for its phase: how its pod ended, then what comes next.
fn message(one: &Value) -> String {
    let info = &one["terminatedInfo"];
    let mut parts = vec![text(one, "podReason").to_owned()];
    if let Some(code) = info["exitCode"].as_i64().filter(|code| *code != 0 && one["stopped"] != true) {
        let words = text(info, "exitMessage").trim();
        let words = if words.is_empty() { String::new() } else { format!(": {words}") };
        parts.push(format!("{} (exit code {code}){words}", text(info, "reason")));
    }
    parts.push(text(one, "phaseMessage").to_owned());
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}

fn whole(status: &Value) -> &str {
    first(&[text(status, "stateMessage"), text(status, "phaseMessage")])
}

fn first<'a>(texts: &[&'a str]) -> &'a str {
    texts.iter().copied().find(|text| !text.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        let replica = |index: u32, phase: &str, more: Value| {
            let mut one = json!({"index": index, "phase": format!("TaskRoleReplica{phase}"), "stopped": false,
                "podName": format!("demo-worker-0-0-{index}"), "totalRetriedCount": 0, "terminatedInfo": null});
            one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            one
        };
        json!({"kind": "TaskSet", "metadata": {"name": "demo"}, "status": {
            "phase": "TaskSetAttemptRunning", "state": "Running", "startAt": "2026-01-01T00:00:00Z", "roleStatus": [
                {"name": "worker", "phase": "TaskRoleRunning", "state": "Running", "replicaStatus": [
                    replica(0, "AttemptRunning", json!({})),
                    replica(1, "Completed", json!({"terminatedInfo": {"exitCode": 3, "reason": "Error", "exitMessage": "no\n"}})),
                    replica(2, "Completed", json!({"stopped": true, "terminatedInfo": {"exitCode": 143}})),
                    replica(3, "Completed", json!({"terminatedInfo": {"exitCode": 0}})),
                    replica(4, "AttemptPending", json!({"podName": ""}))]}]}})
    }

    #[test]
    fn roles_and_replicas_become_nodes() {
        let object = object();
        let shown = with_nodes(&object);
        let nodes = shown["status"]["nodes"].as_object().unwrap();
        assert_eq!((nodes["demo"]["phase"].as_str(), nodes.len()), (Some("Running"), 7));
        let told = |name: &str| {
            let node = nodes.values().find(|node| node["displayName"] == name).unwrap();
            format!("{} {} {}", text(node, "id"), text(node, "phase"), text(node, "message"))
        };
        assert_eq!(told("worker-0"), "demo-worker-0-0-0 Running ");
        assert_eq!(told("worker-1"), "demo-worker-0-0-1 Failed Error (exit code 3): no");
        assert_eq!(told("worker-2"), "demo-worker-0-0-2 Stopped ");
        assert_eq!(told("worker-3"), "demo-worker-0-0-3 Succeeded ");
        assert_eq!(told("worker-4"), "worker-4 Pending ");
    }
}
