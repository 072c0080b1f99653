//! Pods of jobs as Kubernetes shows them: those that exist, the ended ones too, until they or the job are deleted.

use octoflow_model::kubejob::{PodPhase, mark};
use serde_json::{Map, Value, json};

use super::{labels, main_container, pods, text};
use crate::{
    dialects::kubejob::{failure::DISRUPTION_TARGET, ident},
    run::view::{MAIN, Pods, owner},
};

/// Default termination grace period in seconds, as in Kubernetes.
const GRACE_S: u64 = 30;

/// Returns the existing pods of a job. `host` is this machine.
pub(super) fn all(job: &Value, host: Option<&str>) -> Pods {
    let there = pods(job).filter(|pod| text(pod, "phase") != PodPhase::Gone.word());
    let mut items: Vec<(String, Value)> =
        there.map(|pod| (text(pod, "name").to_owned(), render(job, pod, host))).collect();
    items.sort_by(|one, other| one.0.cmp(&other.0));
    Pods { items, until: None }
}

fn annotations(job: &Value, pod: &Value) -> Map<String, Value> {
    let given = &job["spec"]["template"]["metadata"]["annotations"];
    let mut annotations = given.as_object().cloned().unwrap_or_default();
    let count = |field: &str| pod[field].as_u64();
    let mut put = |key: &str, value: Option<u64>| {
        annotations.extend(value.map(|value| (key.to_owned(), json!(value.to_string()))));
    };
    put(mark::COMPLETION_INDEX, count("index"));
    put(mark::INDEX_FAILURES, count("indexFailures"));
    put(mark::INDEX_IGNORED, count("ignoredIndexFailures").filter(|count| *count > 0));
    annotations
}

fn render(job: &Value, pod: &Value, host: Option<&str>) -> Value {
    let metadata = &job["metadata"];
    let template = &job["spec"]["template"];
    let mut own = json!({
        "name": pod["name"], "generateName": generate_name(metadata, pod), "namespace": metadata["namespace"],
        "uid": pod["uid"], "resourceVersion": metadata["resourceVersion"], "creationTimestamp": pod["createdAt"],
        "labels": labels(job, pod), "annotations": annotations(job, pod), "ownerReferences": [owner(job)],
    });
    if own["annotations"] == json!({}) {
        own.as_object_mut().map(|fields| fields.remove("annotations"));
    }
    if text(pod, "phase") == PodPhase::Terminating.word() {
        own["deletionTimestamp"] = pod["transitionTime"].clone();
        own["deletionGracePeriodSeconds"] = json!(grace(template));
    }
    let phase = phase_of(pod);
    let containers = template["spec"]["containers"].as_array().into_iter().flatten();
    let inits = template["spec"]["initContainers"].as_array().into_iter().flatten();
    let main = main_container(job);
    let mut status = json!({
        "phase": phase, "reason": pod["reason"], "message": pod["message"],
        "hostIP": "127.0.0.1", "podIP": pod["podIP"], "startTime": pod["startedAt"],
        "conditions": conditions(pod),
        "containerStatuses": containers.map(|one| container(pod, one, main)).collect::<Vec<_>>(),
        "initContainerStatuses": inits.map(|one| before(pod, one)).collect::<Vec<_>>(),
        "qosClass": "BestEffort",
    });
    if let Some(fields) = status.as_object_mut() {
        fields.retain(|_, value| !value.is_null() && *value != "" && *value != json!([]));
    }
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": spec(job, pod, host), "status": status,
    })
}

/// Returns what the name of a pod begins with.
fn generate_name(metadata: &Value, pod: &Value) -> String {
    match pod["index"].as_u64() {
        Some(index) => format!("{}-{index}-", text(metadata, "name")),
        None => format!("{}-", text(metadata, "name")),
    }
}

fn phase_of(pod: &Value) -> &'static str {
    let known = PodPhase::ALL.iter().find(|phase| phase.word() == text(pod, "phase"));
    known.and_then(|phase| super::super::status::kubernetes_phase(*phase)).unwrap_or("Unknown")
}

/// Returns the pod spec of the template with the controller's additions.
fn spec(job: &Value, pod: &Value, host: Option<&str>) -> Value {
    let mut spec = job["spec"]["template"]["spec"].clone();
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            if container["name"].is_null() {
                container["name"] = json!(MAIN);
            }
        }
    }
    if let Some(index) = pod["index"].as_u64().filter(|_| spec["hostname"].is_null()) {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        spec["hostname"] = json!(ident::host_name(text(&job["metadata"], "name"), index));
    }
    spec["terminationGracePeriodSeconds"] = json!(grace(&job["spec"]["template"]));
    let placed = pod["tries"].as_u64().is_some_and(|tries| tries > 0);
    if let Some(node) = pod["nodeName"].as_str().or(host).filter(|_| placed) {
        spec["nodeName"] = json!(node);
    }
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    spec
}

fn grace(template: &Value) -> u64 {
    template["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap_or(GRACE_S)
}

/// Renders a container status. All containers start together, so the start of the main one is taken for all.
fn container(pod: &Value, given: &Value, main: &str) -> Value {
    let name = given["name"].as_str().unwrap_or(MAIN);
    let (started, end) = (&pod["startedAt"], &pod["terminated"]);
    let state = match phase_of(pod) {
        "Succeeded" | "Failed" => json!({"terminated": {
            "exitCode": end["exitCode"].as_i64().unwrap_or(if phase_of(pod) == "Succeeded" { 0 } else { 128 }),
            "reason": end["reason"].as_str().unwrap_or("Error"), "message": text(end, "message"),
            "startedAt": started, "finishedAt": pod["finishedAt"],
        }}),
        _ if text(pod, "phase") == PodPhase::BackOff.word() => json!({"waiting": {"reason": "CrashLoopBackOff"}}),
        _ if started.is_null() => json!({"waiting": {"reason": "ContainerCreating"}}),
        _ => json!({"running": {"startedAt": started}}),
    };
    let ready = !state["running"].is_null() && is_ready(pod);
    status(name, given, if name == main { text(pod, "containerID") } else { "" }, ready, pod, state)
}

/// Renders an init container status. Init containers are over once the others have started.
fn before(pod: &Value, given: &Value) -> Value {
    let (name, started) = (given["name"].as_str().unwrap_or(MAIN), &pod["startedAt"]);
    if started.is_null() {
        return status(name, given, "", false, pod, json!({"waiting": {"reason": "PodInitializing"}}));
    }
    let over = json!({"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": started}});
    status(name, given, "", true, pod, over)
}

fn status(name: &str, given: &Value, id: &str, ready: bool, pod: &Value, state: Value) -> Value {
    let mut fields = Map::new();
    let image = given["image"].as_str().unwrap_or_default();
    let restarts = pod["restarts"].as_u64().unwrap_or_default();
    for (field, value) in [
        ("name", json!(name)),
        ("image", json!(image)),
        ("imageID", json!("")),
        ("containerID", json!(id)),
        ("ready", json!(ready)),
        ("started", json!(ready)),
        ("restartCount", json!(restarts)),
        ("state", state),
    ] {
        fields.insert(field.to_owned(), value);
    }
    Value::Object(fields)
}

/// Reports whether the readiness probes of a pod do not say otherwise.
fn is_ready(pod: &Value) -> bool {
    pod["ready"].as_bool().unwrap_or(true)
}

fn conditions(pod: &Value) -> Value {
    let since = &pod["transitionTime"];
    let placed = pod["tries"].as_u64().is_some_and(|tries| tries > 0);
    let up = text(pod, "phase") == PodPhase::Running.word() && is_ready(pod);
    let said = |holds: bool| if holds { "True" } else { "False" };
    let one = |kind: &str, holds: bool| json!({"type": kind, "status": said(holds), "lastTransitionTime": since});
    let mut all =
        vec![one("PodScheduled", placed), one("Initialized", placed), one("ContainersReady", up), one("Ready", up)];
    if let Some(reason) = pod["disruption"].as_str() {
        all.push(json!({"type": DISRUPTION_TARGET, "status": "True", "reason": reason, "lastTransitionTime": since}));
    }
    Value::Array(all)
}
