//! Events of TaskSets: start, ends of roles and replicas, and the end of the whole. Derived from the object, which has
//! the last try of each replica and the number of earlier ones.

use octoflow_model::taskset::{ReplicaPhase, SummaryState};
use serde_json::Value;

use super::replica::{self, ShownReplica};
use crate::run::view::{EventDetails, event};

/// Returns all events of a TaskSet with their sort keys.
pub(super) fn all(set: &Value) -> Vec<(String, Value)> {
    let status = &set["status"];
    let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
    let mut events = Vec::new();
    let mut say = |reason, about: &str, message: String, at: &Value, bad: bool, count: u64| {
        if at.is_string() {
            let source = "taskset-controller";
            events.push(event(set, &EventDetails { reason, about, message: &message, at, bad, count, source }));
        }
    };
    say("TaskSetCreated", "", "TaskSet was accepted".to_owned(), &status["createdAt"], false, 1);
    say("TaskSetRunning", "", "TaskSet is running".to_owned(), &status["startAt"], false, 1);
    if let Some(count @ 1..) = status["totalRetriedCount"].as_u64() {
        let message = format!("TaskSet is tried again: attempt {count}");
        say("TaskSetRetried", "~retried", message, &status["transitionTime"], true, count);
    }
    let deadlock = &status["deadlock"];
    say("Deadlock", "~deadlock", text(deadlock, "message"), &deadlock["at"], true, 1);
    for role in status["roleStatus"].as_array().into_iter().flatten() {
        let name = text(role, "name");
        let (failed, succeeded) = (SummaryState::Failed.word(), SummaryState::Succeeded.word());
        let reason = match text(role, "state") {
            state if state == failed => "RoleFailed",
            state if state == succeeded => "RoleSucceeded",
            _ => continue,
        };
        let message = format!("Role {name}: {}", text(role, "stateMessage"));
        say(reason, &name, message, &role["transitionTime"], reason == "RoleFailed", 1);
    }
    for one in replica::all(set) {
        let called = one.called();
        if let Some(count @ 1..) = one.status["totalRetriedCount"].as_u64() {
            let message = format!("Replica {called} is tried again: {count} times so far");
            say("ReplicaRetried", &called, message, &one.status["transitionTime"], true, count);
        }
        let preempted = &one.status["preempted"];
        if let Some(count @ 1..) = preempted["count"].as_u64() {
            let message = format!("Replica {called} was ended: {}", text(preempted, "message"));
            say("Preempted", &called, message, &preempted["at"], true, count);
        }
        if let Some(why) = failure(one) {
            let at = if one.status["finishAt"].is_null() { "transitionTime" } else { "finishAt" };
            say("ReplicaFailed", &called, format!("Replica {called} failed: {why}"), &one.status[at], true, 1);
        }
    }
    let ended = match text(status, "state") {
        state if state == SummaryState::Succeeded.word() => Some(("TaskSetSucceeded", false)),
        state if state == SummaryState::Failed.word() => Some(("TaskSetFailed", true)),
        _ => None,
    };
    if let Some((reason, bad)) = ended {
        say(reason, "~", format!("TaskSet ended: {}", text(status, "stateMessage")), &status["finishAt"], bad, 1);
    }
    events
}

/// Returns why the last pod of a replica failed, if it did.
fn failure(replica: ShownReplica<'_>) -> Option<String> {
    let over = [ReplicaPhase::Completed, ReplicaPhase::AttemptRetryPending].map(ReplicaPhase::word);
    if !over.contains(&replica.text("phase")) || replica.status["stopped"] == true {
        return None;
    }
    let info = &replica.status["terminatedInfo"];
    let (reason, code) = (replica.text("podReason"), info["exitCode"].as_i64());
    match code {
        Some(0) if reason.is_empty() => None,
        None if reason.is_empty() => None,
        Some(code) if reason.is_empty() => {
            let message = info["exitMessage"].as_str().unwrap_or_default().trim();
            Some(format!("exit code {code}{}{message}", if message.is_empty() { "" } else { ": " }))
        }
        _ => Some(reason.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ts23_what_became_of_roles_and_replicas_is_told_once_each() {
        let at = "2020-01-01T00:00:00Z";
        let set = json!({
            "apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet",
            "metadata": {"name": "demo", "namespace": "n", "uid": "u"},
            "spec": {"roles": [{"name": "worker"}]},
            "status": {
                "state": "Failed", "stateMessage": "role worker failed", "createdAt": at, "startAt": at, "finishAt": at,
                "transitionTime": at, "totalRetriedCount": 0,
                "roleStatus": [{"name": "worker", "state": "Failed", "stateMessage": "1 of 1 failed", "transitionTime": at,
                    "replicaStatus": [{"index": 0, "name": "worker", "phase": "TaskRoleReplicaCompleted", "stopped": false,
                        "transitionTime": at, "finishAt": at, "totalRetriedCount": 2, "podReason": "",
                        "preempted": {"count": 3, "at": at, "message": "Preempted: a workflow takes back what its queue deserves"},
                        "terminatedInfo": {"exitCode": 3, "exitMessage": "no luck\n"}}]}],
            },
        });
        let events = all(&set);
        let told: Vec<(&str, &str)> = events
            .iter()
            .map(|(_, event)| (event["reason"].as_str().unwrap(), event["type"].as_str().unwrap()))
            .collect();
        let wanted = [
            ("TaskSetCreated", "Normal"),
            ("TaskSetRunning", "Normal"),
            ("RoleFailed", "Warning"),
            ("ReplicaRetried", "Warning"),
            ("Preempted", "Warning"),
            ("ReplicaFailed", "Warning"),
            ("TaskSetFailed", "Warning"),
        ];
        assert_eq!(told, wanted);
        assert_eq!(events[3].1["count"], 2);
        let preempted = &events[4].1;
        assert_eq!(preempted["count"], 3);
        assert_eq!(
            preempted["message"],
            "Replica worker-0 was ended: Preempted: a workflow takes back what its queue deserves"
        );
        assert_eq!(events[5].1["message"], "Replica worker-0 failed: exit code 3: no luck");
        assert!(events.iter().all(|(_, event)| event["involvedObject"]["kind"] == "TaskSet"));
    }
}
