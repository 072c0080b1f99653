//! The object of a job: the manifest with its defaults, and a `status` as Kubernetes reports it, with what people and our
//! own tools ask for beside. A projection of the state; nothing is decided here.

use octoflow_model::{
    Time,
    kubejob::{PodPhase, Verdict},
    pod::Terminated,
    task::Labels,
};
use serde_json::{Value, json};

use super::{
    defaults,
    run::{Pod, Run},
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
    object["status"]["pods"] = pods.map(|pod| pod_status(run, pod)).collect();
    object
}

/// Renders the object without its pods.
pub(super) fn summary_of(run: &Run, manifest: Value) -> Value {
    let (state, mut object) = (&run.state, manifest);
    defaults::fill(&mut object);
    defaults::identify(&mut object, &state.head.name, &state.head.uid);
    mark::overlay(&mut object, &state.head, &labels(run));
    let settings = &state.settings;
    let spec = &mut object["spec"];
    spec["suspend"] = json!(state.head.suspended);
    spec["parallelism"] = json!(settings.parallelism);
    spec["backoffLimit"] = json!(settings.backoff_limit);
    let optional = [
        ("completions", settings.completions.map(u64::from)),
        ("maxFailedIndexes", settings.max_failed_indexes.map(u64::from)),
        ("activeDeadlineSeconds", settings.active_deadline_seconds),
        ("ttlSecondsAfterFinished", settings.ttl_seconds_after_finished),
    ];
    for (field, value) in optional {
        match (value, spec.as_object_mut()) {
            (Some(value), _) => spec[field] = json!(value),
            (None, Some(fields)) => drop(fields.remove(field)),
            (None, None) => {}
        }
    }
    object["status"] = status(run);
    object
}

/// Returns the labels of the job: those of its pods if it has none itself, as Kubernetes defaults them.
pub(super) fn labels(run: &Run) -> Labels {
    let own = &run.state.head.labels;
    if own.is_empty() { run.common_labels() } else { own.clone() }
}

pub fn status(run: &Run) -> Value {
    let state = &run.state;
    let (done, all) = state.progress();
    let message = state.judgement.as_ref().map_or("", |judgement| judgement.message.as_str());
    let mut status = json!({
        "conditions": conditions(run),
        "ready": ready(run),
        "terminating": state.count(PodPhase::Terminating),
        // A pod is counted in the commit in which it ends, so there is never one that is not.
        "uncountedTerminatedPods": {},
        "phase": state.phase().word(),
        "message": message,
        "progress": format!("{done}/{all}"),
    });
    let mut put = |field: &str, value: Value| status[field] = value;
    for (field, count) in [("active", state.active()), ("succeeded", state.succeeded), ("failed", state.failed)] {
        if count > 0 {
            put(field, json!(count));
        }
    }
    if !state.succeeded_indexes.is_empty() {
        put("completedIndexes", json!(state.succeeded_indexes.to_string()));
    }
    if run.program.limit_per_index.is_some() {
        put("failedIndexes", json!(state.failed_indexes.to_string()));
    }
    if let Some(at) = state.started {
        put("startTime", json!(at.to_string()));
    }
    if let Some(at) = state.finished {
        put("finishedAt", json!(at.to_string()));
        let complete = state.judgement.as_ref().is_some_and(|judgement| judgement.verdict == Verdict::Complete);
        if complete {
            put("completionTime", json!(at.to_string()));
        }
    }
    if let Some((message, at)) = state.head.deadlock.as_ref().zip(state.head.deadlock_at) {
        put("deadlock", json!({"at": at.to_string(), "message": **message}));
    }
    status
}

fn conditions(run: &Run) -> Vec<Value> {
    let state = &run.state;
    let one = |kind: &str, holds: bool, at: Time, reason: &str, message: &str| {
        let at = at.to_string();
        json!({"type": kind, "status": if holds { "True" } else { "False" }, "lastProbeTime": at,
               "lastTransitionTime": at, "reason": reason, "message": message})
    };
    let mut found = Vec::new();
    match state.suspension {
        Some((true, at)) => found.push(one("Suspended", true, at, "JobSuspended", "Job suspended")),
        Some((false, at)) => found.push(one("Suspended", false, at, "JobResumed", "Job resumed")),
        None => {}
    }
    if let Some(judgement) = &state.judgement {
        let (first, last) = match judgement.verdict {
            Verdict::Complete => ("SuccessCriteriaMet", "Complete"),
            Verdict::Failed => ("FailureTarget", "Failed"),
        };
        found.push(one(first, true, judgement.at, &judgement.reason, &judgement.message));
        if let Some(at) = state.finished {
            found.push(one(last, true, at, &judgement.reason, &judgement.message));
        }
    }
    found
}

/// Returns the phase that Kubernetes shows for a pod; `None` if there is none.
pub(super) fn kubernetes_phase(phase: PodPhase) -> Option<&'static str> {
    match phase {
        PodPhase::Queued | PodPhase::Starting => Some("Pending"),
        PodPhase::Running | PodPhase::BackOff | PodPhase::Terminating => Some("Running"),
        PodPhase::Succeeded => Some("Succeeded"),
        PodPhase::Failed => Some("Failed"),
        PodPhase::Gone => None,
    }
}

/// Counts the pods that are ready: those that run, or whose readiness probes say so.
fn ready(run: &Run) -> u32 {
    if !run.program.is_probed() {
        return run.state.count(PodPhase::Running);
    }
    run.state.pods.iter().filter(|pod| pod.phase == PodPhase::Running && pod.ready).count() as u32
}

/// Renders a pod that is there, or was.
fn pod_status(run: &Run, at: u32) -> Value {
    let pod = &run.state.pods[at as usize];
    let mut status = json!({
        "name": run.pod_name(at),
        "uid": run.pod_uid(at),
        "phase": pod.phase.word(),
        "message": pod.message,
        "reason": pod.reason,
        "tries": pod.tries,
        "restarts": pod.restarts,
        "createdAt": pod.created.to_string(),
        "transitionTime": pod.transition.to_string(),
        "startedAt": time(pod.started),
        "finishedAt": time(pod.finished),
        "podIP": if pod.tries == 0 { String::new() } else { run.address_of(at).to_string() },
        "containerID": container_id(run, at, pod),
        "terminated": pod.terminated.as_deref().map(terminated),
    });
    if let Some(index) = pod.index {
        status["index"] = json!(index);
        if run.program.limit_per_index.is_some() {
            status["indexFailures"] = json!(pod.before.0);
            status["ignoredIndexFailures"] = json!(pod.before.1);
        }
    }
    if run.program.is_probed() {
        status["ready"] = json!(pod.ready);
    }
    if let Some(counted) = pod.counted {
        status["counted"] = json!(counted);
    }
    if !pod.disruption.is_empty() {
        status["disruption"] = json!(pod.disruption);
    }
    if let Some(on) = pod.on.as_ref().filter(|on| !on.node.is_empty()) {
        status["nodeName"] = json!(on.node);
    }
    if pod.phase == PodPhase::BackOff {
        status["restartsAt"] = json!(time(pod.wake));
    }
    status
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
