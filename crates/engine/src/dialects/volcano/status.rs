//! The object of a job: the manifest with its defaults, and a `status` in the shape that users and tools know, with the
//! pods beside. A projection of the state; nothing is decided here.

use octoflow_model::{
    Time,
    pod::Terminated,
    volcano::{PodPhase, Sizes},
};
use serde_json::{Map, Value, json};

use super::{
    defaults,
    run::{Pod, Run, Task},
};
use crate::run::mark;

/// Renders the whole object: current metadata, the spec with its defaults, the current status.
pub fn object(run: &Run) -> Value {
    object_of(run, run.manifest())
}

/// Renders the whole object from the manifest it was submitted with.
pub fn object_of(run: &Run, manifest: Value) -> Value {
    let mut object = summary_of(run, manifest);
    let pods = 0..run.state.pods.len() as u32;
    object["status"]["pods"] = pods.filter_map(|pod| pod_status(run, pod)).collect();
    object
}

/// Renders the object without its pods.
pub(super) fn summary_of(run: &Run, manifest: Value) -> Value {
    let mut object = manifest;
    defaults::fill(&mut object);
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.insert("queue".to_owned(), json!(run.program.queue(run.known.queue.as_deref())));
        if let Some(sizes) = &run.state.sizes {
            resized(spec, sizes);
        }
    }
    mark::overlay(&mut object, &run.state.head, &run.state.head.labels);
    object["status"] = summary_status(run);
    object
}

/// Shows the numbers of pods as somebody has changed them.
fn resized(spec: &mut Map<String, Value>, sizes: &Sizes) {
    spec.insert("minAvailable".to_owned(), json!(sizes.min_available));
    match &sizes.class {
        Some(class) => drop(spec.insert("priorityClassName".to_owned(), json!(class))),
        None => drop(spec.remove("priorityClassName")),
    }
    let tasks = spec.get_mut("tasks").and_then(Value::as_array_mut);
    for (task, size) in tasks.into_iter().flatten().zip(&sizes.tasks) {
        task["replicas"] = json!(size.replicas);
        task["minAvailable"] = json!(size.min_available);
    }
}

/// Renders the whole status.
pub fn status(run: &Run) -> Value {
    object(run)["status"].take()
}

fn summary_status(run: &Run) -> Value {
    let (state, counts) = (&run.state, run.counts());
    let (done, all) = state.progress();
    let tasks = state.tasks.iter().zip(&run.program.job.spec.tasks);
    let by_task: Map<String, Value> =
        tasks.map(|(task, spec)| (spec.name.clone(), json!({"phase": by_phase(run, task)}))).collect();
    let condition = |(phase, at): &(octoflow_model::volcano::JobPhase, Time)| json!({"status": phase.word(), "lastTransitionTime": at.to_string()});
    let plugins = run.program.job.spec.plugins.keys();
    let controlled: Map<String, Value> = plugins.map(|name| (format!("plugin-{name}"), json!(name))).collect();
    let mut status = json!({
        "state": {
            "phase": state.phase.word(),
            "reason": state.reason,
            "message": state.message,
            "lastTransitionTime": state.transition.to_string(),
        },
        "minAvailable": run.program.least(),
        "taskStatusCount": by_task,
        "pending": if state.admitted { counts.pending } else { state.count(PodPhase::Starting) },
        "running": counts.running,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "terminating": counts.terminating,
        "unknown": 0,
        "admitted": state.admitted,
        "version": state.version,
        "retryCount": state.retries,
        "runningDuration": format!("{}s", state.transition.since(state.head.created).as_secs()),
        "controlledResources": controlled,
        "conditions": state.history.iter().map(condition).collect::<Vec<_>>(),
        "startedAt": time(state.started),
        "finishedAt": time(state.finished),
        "progress": format!("{done}/{all}"),
        "preemptCount": state.preempted,
    });
    if let Some((since, claims)) = &state.awaits {
        status["awaitedClaims"] = json!({"names": claims, "since": since.to_string()});
    }
    if let Some((message, at)) = state.head.deadlock.as_ref().zip(state.head.deadlock_at) {
        status["deadlock"] = json!({"at": at.to_string(), "message": **message});
    }
    status
}

/// Counts the pods of a task by their phases in Kubernetes.
fn by_phase(run: &Run, task: &Task) -> Map<String, Value> {
    let mut counts: Map<String, Value> = Map::new();
    for phase in PodPhase::ALL {
        let (Some(word), count) = (shown_phase(run, *phase), task.count(*phase)) else { continue };
        if count > 0 {
            let before = counts.get(word).and_then(Value::as_u64).unwrap_or(0);
            counts.insert(word.to_owned(), json!(before + u64::from(count)));
        }
    }
    counts
}

/// Returns the phase that Kubernetes shows for pods of a job in this phase; `None` if they do not exist. Before its gang is
/// let in, none of its pods was created.
pub(crate) fn shown_phase(run: &Run, phase: PodPhase) -> Option<&'static str> {
    if phase == PodPhase::Queued && !run.state.admitted { None } else { kubernetes_phase(phase) }
}

/// Returns the phase that Kubernetes shows for a pod; `None` if there is none.
pub(crate) fn kubernetes_phase(phase: PodPhase) -> Option<&'static str> {
    match phase {
        PodPhase::Absent => None,
        PodPhase::Queued | PodPhase::Starting => Some("Pending"),
        PodPhase::Running | PodPhase::BackOff | PodPhase::Terminating => Some("Running"),
        PodPhase::Succeeded => Some("Succeeded"),
        PodPhase::Failed => Some("Failed"),
    }
}

/// Renders a pod that is there, or was.
fn pod_status(run: &Run, at: u32) -> Option<Value> {
    let pod = &run.state.pods[at as usize];
    if pod.created == 0 {
        return None;
    }
    let task = run.program.task_of(at);
    let mut status = json!({
        "name": run.pod_name(at),
        "task": run.program.spec(task).name,
        "index": run.program.index_of(at),
        "uid": run.pod_uid(at),
        "phase": pod.phase.word(),
        "message": pod.message,
        "reason": pod.reason,
        "version": pod.tries.last().copied().unwrap_or(run.state.version),
        "tries": pod.tries.len(),
        "restarts": pod.restarts,
        "createdAt": pod.queued.to_string(),
        "transitionTime": pod.transition.to_string(),
        "startedAt": time(pod.started),
        "finishedAt": time(pod.finished),
        "podIP": if pod.tries.is_empty() { String::new() } else { run.address_of(at).to_string() },
        "containerID": container_id(run, at, pod),
        "terminated": pod.terminated.as_deref().map(terminated),
    });
    if let Some(on) = pod.on.as_ref().filter(|on| !on.node.is_empty()) {
        status["nodeName"] = json!(on.node);
    }
    if pod.phase == PodPhase::BackOff {
        status["restartsAt"] = json!(time(pod.wake));
    }
    if let Some(preempted) = &pod.preempted {
        status["preempted"] =
            json!({"count": preempted.count, "at": preempted.at.to_string(), "message": preempted.why});
    }
    if run.program.tasks[task].probed {
        status["ready"] = json!(pod.ready);
    }
    if let Some(delayed) = run.state.delayed.get(&at) {
        status["delayedAction"] =
            json!({"event": delayed.event, "action": delayed.action, "at": delayed.due.to_string()});
    }
    Some(status)
}

fn container_id(run: &Run, at: u32, pod: &Pod) -> String {
    let begun = pod.started.is_some() || pod.phase == PodPhase::Running;
    run.attempt_of(at).filter(|_| begun).map(|attempt| format!("octoflow://{attempt}")).unwrap_or_default()
}

fn terminated(end: &Terminated) -> Value {
    json!({"exitCode": end.exit_code, "message": end.message, "signal": end.signal, "reason": end.reason})
}

fn time(at: Option<Time>) -> Option<String> {
    at.map(|at| at.to_string())
}
