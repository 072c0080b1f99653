//! The object of a submitted job: the manifest and a `status` with everything that is known of its walk. A projection of
//! the state; nothing is decided here.

use octoflow_model::{
    Time,
    plugin::{API_VERSION, JOB_KIND},
};
use serde_json::{Map, Value, json};

use super::{
    run::Run,
    state::{TraceEntry, TraceOutcome, WalkStep},
};
use crate::{dialects::dialect::remove_status, run::mark};

/// What grows with the job and its plugins.
const LARGE: [&str; 4] = ["job", "factors", "trace", "reasons"];

/// Renders the whole object.
pub fn object(run: &Run) -> Value {
    object_of(run, run.manifest())
}

/// Renders the whole object from the manifest it was submitted with.
pub fn object_of(run: &Run, manifest: Value) -> Value {
    let mut object = headed(run, manifest);
    let walk = &run.state.walk;
    let mut status = status(run);
    let mut put = |field: &str, value: Value| drop(status.insert(field.to_owned(), value));
    put("job", walk.job.clone());
    put("factors", json!(walk.factors));
    put("trace", walk.trace.iter().map(entry).collect());
    if !walk.reasons.is_empty() {
        let told = walk.reasons.iter();
        let told = told.map(|one| json!({"at": one.at.to_string(), "command": one.command, "reason": one.reason}));
        put("reasons", told.collect());
    }
    object["status"] = Value::Object(status);
    object
}

/// Renders the object without what grows with the job and its plugins.
pub(super) fn summary(run: &Run) -> Value {
    let mut object = headed(run, run.manifest());
    object["status"] = Value::Object(status(run));
    object
}

/// Removes from an object what grows with the job and its plugins.
pub(super) fn summarize(object: &mut Value) {
    remove_status(object, &LARGE);
}

fn headed(run: &Run, manifest: Value) -> Value {
    let mut object = manifest;
    object["apiVersion"] = json!(API_VERSION);
    object["kind"] = json!(JOB_KIND);
    mark::overlay(&mut object, &run.state.head, &run.state.head.labels);
    object
}

fn status(run: &Run) -> Map<String, Value> {
    let (state, walk) = (&run.state, &run.state.walk);
    let fine = run.walk_state();
    let (done, all) = run.progress();
    let mut status = Map::new();
    let mut put = |field: &str, value: Value| drop(status.insert(field.to_owned(), value));
    put("phase", json!(fine.life().word()));
    put("state", json!(fine.word()));
    put("message", json!(message(run)));
    put("submittedAt", json!(state.head.created.to_string()));
    put("startedAt", time(run.began()));
    put("finishedAt", time(state.finished));
    put("progress", json!(format!("{done}/{all}")));
    put("header", state.header.clone());
    if let Some(stage) = walk.stage.filter(|_| !matches!(walk.step, WalkStep::Over(_))) {
        put("stage", json!(stage.word()));
        if let Some(plugin) = walk.plugin() {
            put("plugin", json!(plugin.key));
        }
    }
    match walk.step {
        WalkStep::Gated(Some(at)) => put("recheckAt", json!(at.to_string())),
        WalkStep::Pausing(at) => put("retryAt", json!(at.to_string())),
        WalkStep::Gated(None)
        | WalkStep::Ready
        | WalkStep::Calling
        | WalkStep::Ending(_)
        | WalkStep::HandingOver
        | WalkStep::Following
        | WalkStep::Over(_) => {}
    }
    if let Some(at) = walk.handed_over {
        put("handedOverAt", json!(at.to_string()));
    }
    if let Some(child) = &walk.child {
        put(
            "child",
            json!({
                "apiVersion": child.api_version, "kind": child.kind, "namespace": *state.head.namespace,
                "name": child.name, "uid": child.uid, "phase": child.phase, "message": child.message,
            }),
        );
    }
    if let Some((message, at)) = state.head.deadlock.as_ref().zip(state.head.deadlock_at) {
        put("deadlock", json!({"at": at.to_string(), "message": **message}));
    }
    status
}

/// Returns why the job is where it is.
pub(super) fn message(run: &Run) -> &str {
    let state = &run.state;
    let open = state.head.deadlock.as_deref().filter(|_| state.finished.is_none());
    let of_child = || state.walk.child.as_ref().map_or("", |child| child.message.as_str());
    let own = state.walk.message.as_str();
    open.unwrap_or(if own.is_empty() && state.walk.step == WalkStep::Following { of_child() } else { own })
}

fn entry(entry: &TraceEntry) -> Value {
    json!({
        "stage": entry.stage.word(),
        "plugin": entry.plugin,
        "call": entry.call,
        "tries": entry.tries,
        "startedAt": entry.started.to_string(),
        "finishedAt": time(entry.finished),
        "outcome": entry.outcome.as_ref().map(outcome),
    })
}

fn outcome(outcome: &TraceOutcome) -> Value {
    match outcome {
        TraceOutcome::Job(job) => json!({"job": job}),
        TraceOutcome::Added(added) => json!({"change": added}),
        TraceOutcome::Factors(factors) => json!({"factors": factors}),
        TraceOutcome::Verdict { verdict, reason, recheck } => {
            let mut told = json!({"decision": verdict.word(), "reason": reason});
            if let Some(at) = recheck {
                told["recheckAt"] = json!(at.to_string());
            }
            told
        }
        TraceOutcome::Error(why) => json!({"error": why}),
    }
}

fn time(at: Option<Time>) -> Value {
    json!(at.map(|at| at.to_string()))
}
