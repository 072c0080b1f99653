//! The object of a flow: the manifest and a `status` in the shape that users and tools know, with the entries beside. A
//! projection of the state; nothing is decided here.

use octoflow_model::{
    Time,
    jobflow::{API_VERSION, FormerJob, JobEnd, KIND},
    volcano::JobPhase,
};
use serde_json::{Map, Value, json};

use super::{
    run::Run,
    state::{Entry, Stage},
};
use crate::{dialects::dialect::remove_status, run::mark};

/// The phase of an entry whose job is not made yet, as the status shows it.
pub(super) const WAITING: &str = "waiting";

/// The lists of jobs by phase, in the original's spelling.
pub(super) const LISTS: [&str; 6] =
    ["pendingJobs", "runningJobs", "failedJobs", "completedJobs", "terminatedJobs", "unKnowJobs"];

/// Renders the whole object.
pub fn object(run: &Run) -> Value {
    object_of(run, run.manifest())
}

/// Renders the whole object from the manifest it was submitted with.
pub fn object_of(run: &Run, manifest: Value) -> Value {
    let mut object = manifest;
    // Both groups mean the same objects; they are kept in one.
    object["apiVersion"] = json!(API_VERSION);
    object["kind"] = json!(KIND);
    mark::overlay(&mut object, &run.state.head, &run.state.head.labels);
    object["status"] = Value::Object(whole_status(run));
    object
}

/// Renders the object without what it says about each entry.
pub(super) fn summary(run: &Run) -> Value {
    let mut object = run.manifest();
    object["apiVersion"] = json!(API_VERSION);
    object["kind"] = json!(KIND);
    mark::overlay(&mut object, &run.state.head, &run.state.head.labels);
    object["status"] = Value::Object(status(run));
    object
}

/// Removes from an object what it says about each entry.
pub(super) fn summarize(object: &mut Value) {
    remove_status(object, &LISTS);
    remove_status(object, &["jobStatusList", "conditions", "entries"]);
}

fn whole_status(run: &Run) -> Map<String, Value> {
    let (state, mut status) = (&run.state, status(run));
    for list in LISTS {
        status.insert(list.to_owned(), json!([]));
    }
    let (mut jobs, mut conditions, mut entries) = (Vec::new(), Map::new(), Vec::new());
    for (at, entry) in state.flow.entries.iter().enumerate() {
        let name = run.job_name(at);
        if let Some(list) = list_of(entry).and_then(|list| status[list].as_array_mut()) {
            list.push(json!(name));
        }
        if entry.started.is_some() || !entry.history.is_empty() {
            jobs.push(job_status(&name, entry));
        }
        conditions.insert(name.clone(), condition(entry));
        entries.push(entry_status(run, at, &name, entry));
    }
    status.insert("jobStatusList".to_owned(), json!(jobs));
    status.insert("conditions".to_owned(), Value::Object(conditions));
    status.insert("entries".to_owned(), json!(entries));
    status
}

fn status(run: &Run) -> Map<String, Value> {
    let (state, mut status) = (&run.state, Map::new());
    let (done, all) = run.progress();
    status.insert("state".to_owned(), json!({"phase": run.flow_phase().word(), "message": message(run)}));
    status.insert("startedAt".to_owned(), json!(time(run.began())));
    status.insert("finishedAt".to_owned(), json!(time(state.finished)));
    status.insert("progress".to_owned(), json!(format!("{done}/{all}")));
    if let Some((message, at)) = state.head.deadlock.as_ref().zip(state.head.deadlock_at) {
        status.insert("deadlock".to_owned(), json!({"at": at.to_string(), "message": **message}));
    }
    status
}

/// Returns why the flow is as it is: how it ended, or what its first held entry waits for.
pub(super) fn message(run: &Run) -> String {
    let state = &run.state;
    if state.finished.is_some() {
        return state.message.clone();
    }
    if let Some(deadlock) = &state.head.deadlock {
        return deadlock.to_string();
    }
    let held = |(at, entry): (usize, &Entry)| {
        let held = matches!(entry.stage, Stage::Wanted | Stage::Waiting) && !entry.message.is_empty();
        held.then(|| format!("'{}' waits: {}", run.program.name(at), entry.message))
    };
    state.flow.entries.iter().enumerate().find_map(held).unwrap_or_default()
}

/// Returns the phase of the job of an entry, as far as the flow knows; `None` if there is no job.
fn phase_of(entry: &Entry) -> Option<JobPhase> {
    let of_job = entry.job.as_ref().map(|job| job.phase);
    match entry.stage {
        Stage::Waiting | Stage::Wanted => None,
        Stage::Active | Stage::BackOff(_) => of_job.or(Some(JobPhase::Failed)),
        Stage::Over(end) => Some(match end {
            JobEnd::Completed => JobPhase::Completed,
            JobEnd::Failed | JobEnd::Refused => JobPhase::Failed,
            JobEnd::Terminated | JobEnd::Deleted => JobPhase::Terminated,
            JobEnd::Stopped => return None,
        }),
    }
}

fn list_of(entry: &Entry) -> Option<&'static str> {
    let [pending, running, failed, completed, terminated, unknown] = LISTS;
    match phase_of(entry)? {
        JobPhase::Pending => Some(pending),
        JobPhase::Running => Some(running),
        JobPhase::Failed => Some(failed),
        JobPhase::Completed => Some(completed),
        JobPhase::Terminated => Some(terminated),
        JobPhase::Restarting | JobPhase::Aborting | JobPhase::Aborted => Some(unknown),
        // On their way to one of the others.
        JobPhase::Completing | JobPhase::Terminating => None,
    }
}

fn job_status(name: &str, entry: &Entry) -> Value {
    let end_of_all = entry.ended.filter(|_| matches!(entry.stage, Stage::Over(_) | Stage::BackOff(_)));
    let ends = entry.history.iter().skip(1).map(|(_, at)| Some(*at)).chain([end_of_all]);
    let histories = entry.history.iter().zip(ends).map(|((phase, at), end)| {
        json!({"startTimestamp": at.to_string(), "endTimestamp": time(end), "state": phase.word()})
    });
    json!({
        "name": name,
        "state": phase_of(entry).map_or(WAITING, JobPhase::word),
        "startTimestamp": time(entry.history.first().map(|(_, at)| *at)),
        "endTimestamp": time(end_of_all),
        "restartCount": entry.restarts(),
        "runningHistories": histories.collect::<Vec<_>>(),
    })
}

fn condition(entry: &Entry) -> Value {
    let created = entry.job.as_ref().and(entry.started);
    let end = entry.ended.filter(|_| matches!(entry.stage, Stage::Over(_) | Stage::BackOff(_)));
    let last = end.or_else(|| entry.history.last().map(|(_, at)| *at));
    let ran = created.zip(last).map(|(from, to)| format!("{}s", to.since(from).as_secs()));
    let tasks = entry.job.iter().flat_map(|job| &job.tasks);
    let counts: Map<String, Value> = tasks.map(|(task, phases)| (task.clone(), json!({"phase": phases}))).collect();
    let mut condition = json!({
        "phase": phase_of(entry).map_or(WAITING, JobPhase::word),
        "message": entry.message,
        "createTime": time(created),
        "runningDuration": ran,
    });
    if !counts.is_empty() {
        condition["taskStatusCount"] = Value::Object(counts);
    }
    condition
}

fn entry_status(run: &Run, at: usize, name: &str, entry: &Entry) -> Value {
    let mut status = json!({
        "name": run.program.name(at),
        "job": name,
        "stage": stage_word(entry.stage),
        "tries": entry.earlier + entry.tries,
        "restarts": entry.restarts(),
        "message": entry.message,
        "startedAt": time(entry.started),
        "finishedAt": time(entry.ended),
    });
    if let Some(job) = &entry.job {
        status["uid"] = json!(job.uid);
        // That of the first job is `startedAt`.
        if job.made.is_some() && job.made != entry.started {
            status["madeAt"] = json!(time(job.made));
        }
    }
    if !entry.former.is_empty() {
        status["former"] = entry.former.iter().map(former_status).collect();
    }
    if !entry.met.is_empty() {
        status["metConditions"] = json!(entry.met);
    }
    if let Stage::BackOff(until) = entry.stage {
        status["retryAt"] = json!(until.to_string());
    }
    status
}

fn former_status(job: &FormerJob) -> Value {
    let mut status = json!({"name": job.name, "uid": job.uid});
    if job.made.is_some() {
        status["madeAt"] = json!(time(job.made));
    }
    if job.ended.is_some() {
        status["finishedAt"] = json!(time(job.ended));
    }
    if !job.message.is_empty() {
        status["message"] = json!(job.message);
    }
    status
}

/// Returns the word for where an entry is.
pub(super) fn stage_word(stage: Stage) -> &'static str {
    match stage {
        Stage::Waiting => "Waiting",
        Stage::Wanted => "Ordered",
        Stage::Active => "Active",
        Stage::BackOff(_) => "BackOff",
        Stage::Over(JobEnd::Completed) => "Completed",
        Stage::Over(JobEnd::Failed) => "Failed",
        Stage::Over(JobEnd::Terminated) => "Terminated",
        Stage::Over(JobEnd::Deleted) => "Deleted",
        Stage::Over(JobEnd::Refused) => "Refused",
        Stage::Over(JobEnd::Stopped) => "Stopped",
    }
}

fn time(at: Option<Time>) -> Option<String> {
    at.map(|at| at.to_string())
}
