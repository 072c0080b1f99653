//! Pods of jobs as Kubernetes shows them: those that exist, the ended ones too, until the job restarts them.

use octoflow_model::volcano::PodPhase;
use serde_json::{Map, Value, json};

use super::{additions::Additions, labels, main_container, own_marks, pods, task_of, text};
use crate::run::view::{MAIN, Pods, owner};

/// Default termination grace period in seconds, as in Kubernetes.
const GRACE_S: u64 = 30;

/// Returns the existing pods of a job. `host` is this machine.
pub(super) fn all(job: &Value, host: Option<&str>) -> Pods {
    // Before its gang is let in, none of its pods was created.
    let let_in = job["status"]["admitted"] != false;
    let is_there = |pod: &&Value| match text(pod, "phase") {
        phase if phase == PodPhase::Absent.word() => false,
        phase if phase == PodPhase::Queued.word() => let_in,
        _ => true,
    };
    let additions = Additions::of(job);
    let shown =
        |pod: &Value| Some((text(pod, "name").to_owned(), render(job, task_of(job, pod)?, pod, host, &additions)));
    let mut items: Vec<(String, Value)> = pods(job).filter(is_there).filter_map(shown).collect();
    items.sort_by(|one, other| one.0.cmp(&other.0));
    Pods { items, until: None }
}

fn render(job: &Value, task: &Value, pod: &Value, host: Option<&str>, additions: &Additions) -> Value {
    let metadata = &job["metadata"];
    let template = &task["template"];
    let mut annotations = template["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    annotations.extend(own_marks(job, pod));
    annotations.extend(additions.annotations(pod));
    let mut spec = spec(task, pod, host);
    additions.add_to(&mut spec, pod);
    let mut own = json!({
        "name": pod["name"], "namespace": metadata["namespace"], "uid": pod["uid"],
        "resourceVersion": metadata["resourceVersion"], "creationTimestamp": pod["createdAt"],
        "labels": labels(job, task, pod), "annotations": annotations, "ownerReferences": [owner(job)],
    });
    if text(pod, "phase") == PodPhase::Terminating.word() {
        own["deletionTimestamp"] = pod["transitionTime"].clone();
        own["deletionGracePeriodSeconds"] = json!(grace(template));
    }
    let phase = phase_of(pod);
    let containers = spec["containers"].as_array().into_iter().flatten();
    let inits = spec["initContainers"].as_array().into_iter().flatten();
    let main = main_container(task);
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
        "apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": spec, "status": status,
    })
}

fn phase_of(pod: &Value) -> &'static str {
    let known = PodPhase::ALL.iter().find(|phase| phase.word() == text(pod, "phase"));
    known.and_then(|phase| super::super::status::kubernetes_phase(*phase)).unwrap_or("Unknown")
}

/// Returns the pod spec of the template with the controller's additions.
fn spec(task: &Value, pod: &Value, host: Option<&str>) -> Value {
    let mut spec = task["template"]["spec"].clone();
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            if container["name"].is_null() {
                container["name"] = json!(MAIN);
            }
        }
    }
    if spec["restartPolicy"].is_null() {
        spec["restartPolicy"] = json!("Never");
    }
    spec["schedulerName"] = json!("volcano");
    spec["terminationGracePeriodSeconds"] = json!(grace(&task["template"]));
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
    json!([one("PodScheduled", placed), one("Initialized", placed), one("ContainersReady", up), one("Ready", up)])
}
