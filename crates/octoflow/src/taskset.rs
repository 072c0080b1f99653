//! A TaskSet as a tree of nodes, so that whoever shows the nodes of a run shows its roles and replicas too.
//! A projection of the object's own status; nothing is decided here.

use std::borrow::Cow;

use anyhow::Result;
use octoflow_control::read::lines::MAIN;
use serde_json::{Map, Value, json};

use crate::{
    exit::Failure,
    names,
    workflow::{Workflow, list, text},
};

/// What the node of a role says it is.
pub(crate) const ROLE: &str = "Role";

/// The object of a run with `status.nodes`: a workflow has them, those of a TaskSet are made from its roles.
pub(crate) fn with_nodes(object: &Value) -> Cow<'_, Value> {
    let run = Workflow::new(object);
    if !run.is_task_set() {
        return Cow::Borrowed(object);
    }
    let status = run.status();
    let mut nodes = Map::new();
    let mut add = |node: Value| nodes.insert(text(&node, "id").to_owned(), node);
    add(json!({
        "id": run.name(), "name": run.name(), "displayName": run.name(), "type": "TaskSet", "phase": run.phase(),
        "message": whole(status), "startedAt": status["startAt"], "finishedAt": status["finishAt"],
        "retries": status["totalRetriedCount"], "rank": 0, "step": status["phase"],
    }));
    for (rank, role) in list(&status["roleStatus"]).iter().enumerate() {
        let name = text(role, "name");
        // A role may be called as its TaskSet is.
        let id = format!("{}/{name}", run.name());
        let message = first(&[text(role, "stateMessage"), text(role, "phaseMessage")]);
        add(json!({
            "id": id, "name": name, "displayName": name, "type": ROLE, "phase": role["state"], "message": message,
            "boundaryID": run.name(), "rank": rank, "step": role["phase"],
        }));
        for one in list(&role["replicaStatus"]) {
            add(replica(name, &id, one));
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
        "phase": standing(one), "message": message(one), "boundaryID": role_id, "rank": one["index"],
        "startedAt": one["startAt"], "finishedAt": one["finishAt"], "podName": pod, "step": one["phase"],
        "retries": one["totalRetriedCount"], "address": one["podIP"], "templateName": role,
        "outputs": {"exitCode": one["terminatedInfo"]["exitCode"]},
    })
}

/// How a replica stands, in a word people know.
fn standing(one: &Value) -> &'static str {
    match text(one, "phase").trim_start_matches("TaskRoleReplica") {
        "AttemptRunning" | "AttemptDeletionRequested" => "Running",
        "Completed" if one["stopped"] == true => "Stopped",
        "Completed" if one["terminatedInfo"]["exitCode"] == 0 && text(one, "podReason").is_empty() => "Succeeded",
        "Completed" => "Failed",
        _ => "Pending",
    }
}

/// Why it is where it is: how its pod ended, then what comes next.
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

/// What lines of a pod begin with: its replica, and which try it was unless it was the first.
/// `{taskset}-{role}-{attempt}-{retry}-{index}`; none of the names has a dash.
pub(crate) fn label(pod: &str) -> String {
    let parts: Vec<&str> = pod.split('-').collect();
    let [_, role, attempt, retry, index] = parts[..] else { return pod.to_owned() };
    let attempt = if attempt == "0" { String::new() } else { format!(" attempt {attempt}") };
    let retry = if retry == "0" { String::new() } else { format!(" retry {retry}") };
    format!("{role}-{index}{attempt}{retry}")
}

/// Whether a pod of this name is, or may have been, one of the TaskSet.
pub(crate) fn is_pod_of(set: Workflow<'_>, name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let [of, role, attempt, retry, index] = parts[..] else { return false };
    let number = |text: &str| text.parse::<u32>().is_ok();
    of == set.name() && number(attempt) && number(retry) && has_replica(set, role, index)
}

/// The role, the replica or the pod that somebody means; the reason when there is none.
pub(crate) fn pods_named(set: Workflow<'_>, wanted: &str) -> Result<String> {
    let roles = || list(&set.spec()["roles"]).iter().map(|role| text(role, "name"));
    let replica = wanted.split_once('-').is_some_and(|(role, index)| has_replica(set, role, index));
    if roles().any(|role| role == wanted) || replica || is_pod_of(set, wanted) {
        return Ok(wanted.to_owned());
    }
    let known: Vec<&str> = roles().collect();
    let help = names::suggestion(wanted, known.iter().copied()).unwrap_or_else(|| {
        format!("name a role ({}), a replica such as {}-0, or a pod", known.join(", "), known.first().unwrap_or(&""))
    });
    let text = format!("TaskSet `{}` has no role, replica or pod `{wanted}`", set.name());
    Err(Failure::not_found(text).help(help).into())
}

fn has_replica(set: Workflow<'_>, role: &str, index: &str) -> bool {
    let spec = list(&set.spec()["roles"]).iter().find(|known| text(known, "name") == role);
    let count = spec.and_then(|spec| spec["replicas"].as_u64()).unwrap_or_default();
    index.parse::<u64>().is_ok_and(|at| at < count && at.to_string() == index)
}

/// What a container is called in the logs: the one that a replica ends with has no name there.
pub(crate) fn container(set: Workflow<'_>, name: &str) -> String {
    let mut first = list(&set.spec()["roles"]).iter().map(|role| &role["template"]["spec"]["containers"][0]);
    let main = first.any(|container| text(container, "name") == name);
    if main { MAIN.to_owned() } else { name.to_owned() }
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
        let run = Workflow::new(&shown);
        assert_eq!((run.phase(), run.noun(), run.nodes().len()), ("Running", "TaskSet", 7));
        let told = |name: &str| {
            let node = run.nodes().into_iter().find(|node| node.display() == name).unwrap();
            format!("{} {} {}", node.id(), node.phase(), node.message())
        };
        assert_eq!(told("worker-0"), "demo-worker-0-0-0 Running ");
        assert_eq!(told("worker-1"), "demo-worker-0-0-1 Failed Error (exit code 3): no");
        assert_eq!(told("worker-2"), "demo-worker-0-0-2 Stopped ");
        assert_eq!(told("worker-3"), "demo-worker-0-0-3 Succeeded ");
        assert_eq!(told("worker-4"), "worker-4 Pending ");
    }

    #[test]
    fn a_pod_is_called_as_its_replica_and_its_try() {
        assert_eq!(label("demo-worker-0-0-1"), "worker-1");
        assert_eq!(label("demo-worker-0-2-1"), "worker-1 retry 2");
        assert_eq!(label("demo-ps-1-0-0"), "ps-0 attempt 1");
        assert_eq!(label("something else"), "something else");
    }
}
