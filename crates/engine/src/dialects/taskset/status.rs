//! The object of a TaskSet: the manifest with a `status` in exactly the shape that users and tools know. A projection
//! of the state; nothing is decided here.

use octoflow_model::{
    Time,
    taskset::{ReplicaPhase, Terminated},
};
use serde_json::{Value, json};

use super::{
    ident,
    run::{Replica, Run},
};
use crate::run::mark;

/// Address of the host, as seen from its pods.
const HOST_ADDRESS: &str = "127.0.0.1";

/// Renders the whole object: current metadata, the spec as given, the current status.
pub fn object(run: &Run) -> Value {
    object_of(run, run.manifest())
}

/// Renders the whole object from the manifest it was submitted with.
pub fn object_of(run: &Run, manifest: Value) -> Value {
    let mut object = summary_of(run, manifest);
    for (at, role) in object["status"]["roleStatus"].as_array_mut().into_iter().flatten().enumerate() {
        let plan = &run.program.roles[at];
        let replicas = plan.first..plan.first + plan.count;
        role["replicaStatus"] = replicas.map(|replica| replica_status(run, at, replica)).collect();
    }
    object
}

/// Renders the object without its replicas.
pub(super) fn summary(run: &Run) -> Value {
    summary_of(run, run.manifest())
}

fn summary_of(run: &Run, manifest: Value) -> Value {
    let mut object = manifest;
    mark::overlay(&mut object, &run.state.head, &run.state.head.labels);
    object["status"] = summary_status(run);
    object
}

/// Removes the replicas from an object.
pub(super) fn summarize(object: &mut Value) {
    for role in object["status"]["roleStatus"].as_array_mut().into_iter().flatten() {
        role.as_object_mut().into_iter().for_each(|role| drop(role.remove("replicaStatus")));
    }
}

/// Renders the whole status.
pub fn status(run: &Run) -> Value {
    object(run)["status"].take()
}

fn summary_status(run: &Run) -> Value {
    let state = &run.state;
    let (done, all) = state.progress();
    let mut status = json!({
        "phase": state.phase.word(),
        "phaseMessage": state.phase_message,
        "transitionTime": state.transition.to_string(),
        "state": state.summary.word(),
        "stateMessage": state.summary_message,
        "controlUnitUID": state.unit.as_deref(),
        "controlUnitName": state.unit.as_ref().map(|_| ident::unit_name(&state.head.name, state.attempt)),
        "createdAt": state.head.created.to_string(),
        "startAt": time(state.started),
        "finishAt": time(state.finished),
        "totalRetriedCount": state.attempt,
        "preemptCount": state.preempted,
        "progress": format!("{done}/{all}"),
        "roleStatus": (0..state.roles.len()).map(|role| role_status(run, role)).collect::<Vec<_>>(),
    });
    if let Some((message, at)) = state.head.deadlock.as_ref().zip(state.head.deadlock_at) {
        status["deadlock"] = json!({"message": message, "at": at.to_string()});
    }
    status
}

fn role_status(run: &Run, at: usize) -> Value {
    let role = &run.state.roles[at];
    let name = &run.program.spec(at).name;
    json!({
        "name": name,
        "phase": role.phase.word(),
        "phaseMessage": role.phase_message,
        "transitionTime": role.transition.to_string(),
        "state": role.summary.word(),
        "stateMessage": role.summary_message,
    })
}

fn replica_status(run: &Run, role: usize, at: u32) -> Value {
    let replica = &run.state.replicas[at as usize];
    let spec = run.program.spec(role);
    let container = spec.template.spec.containers.first().map(|container| &container.container);
    let pod = run.pod_of(at);
    // Only what was given to a runtime has an address and an id.
    let placed = pod.as_ref().map(|_| run.address_of(at).to_string()).unwrap_or_default();
    let mut status = json!({
        "index": at - run.program.roles[role].first,
        "name": spec.name,
        "phase": replica.phase.word(),
        "phaseMessage": replica.phase_message,
        "stopped": replica.stopped,
        "transitionTime": replica.transition.to_string(),
        "startAt": time(replica.started),
        "finishAt": time(replica.finished),
        "totalRetriedCount": replica.retried,
        "podUID": pod.as_deref().map(|pod| ident::uid(&run.state.head.uid, &["pod", pod])),
        "podIP": placed,
        "podHostIP": if pod.is_some() { HOST_ADDRESS } else { "" },
        "podReason": replica.reason,
        "containerName": container.map(|container| container.name.as_deref().unwrap_or(crate::pod::MAIN)),
        "containerID": container_id(run, at, replica),
        "podName": pod.unwrap_or_default(),
        "terminatedInfo": replica.terminated.as_deref().map(terminated_info),
    });
    if let Some(on) = replica.on.as_ref().filter(|on| !on.node.is_empty()) {
        status["nodeName"] = json!(on.node);
    }
    if let Some(preempted) = &replica.preempted {
        status["preempted"] =
            json!({"count": preempted.count, "at": preempted.at.to_string(), "message": preempted.why});
    }
    status
}

fn container_id(run: &Run, at: u32, replica: &Replica) -> String {
    let begun = replica.started.is_some() || replica.phase == ReplicaPhase::AttemptRunning;
    run.attempt_of(at).filter(|_| begun).map(|attempt| format!("octoflow://{attempt}")).unwrap_or_default()
}

fn terminated_info(info: &Terminated) -> Value {
    json!({
        "exitCode": info.exit_code,
        "exitMessage": info.message,
        "signal": info.signal,
        "reason": info.reason,
    })
}

fn time(at: Option<Time>) -> Option<String> {
    at.map(|at| at.to_string())
}
