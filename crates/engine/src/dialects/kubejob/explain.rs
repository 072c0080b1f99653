//! Explains why a job or a pod is not done. Reasons are derived from the state, never guessed from logs.

use octoflow_model::{
    NodeIx,
    kubejob::{JobPhase, PodPhase},
};

use super::run::Run;
use crate::{
    run::explain::{Explanation, ask},
    schedule::{Scheduler, TaskRef, WaitReason},
};

/// Explains what has failed and everything that is still open, from the whole to its parts.
pub fn explain(run: &Run, scheduler: Option<&Scheduler>) -> Vec<Explanation> {
    let state = &run.state;
    let mut found = Vec::new();
    let deadlock = state.head.deadlock.as_ref().filter(|_| !state.over).map(ToString::to_string);
    for reason in whole(run).into_iter().chain(deadlock) {
        found.push(Explanation {
            node: state.head.name.to_string(),
            id: None,
            phase: state.phase().word().to_owned(),
            reason,
            since: state.judgement.as_ref().map(|judgement| judgement.at).or(state.started),
            wait: None,
        });
    }
    let mut asked = 0;
    for (at, slot) in state.pods.iter().enumerate() {
        let pod = at as u32;
        let reference = TaskRef { run: run.id, node: NodeIx(pod) };
        let waits = slot.phase == PodPhase::Queued;
        let wait = scheduler.filter(|_| waits).and_then(|scheduler| ask(scheduler, reference, &mut asked));
        if let Some(reason) = of_pod(run, pod, wait.as_ref()) {
            let name = run.pod_name(pod);
            found.push(Explanation {
                node: name.clone(),
                id: Some(name),
                phase: slot.phase.word().to_owned(),
                reason,
                since: Some(slot.transition),
                wait: wait.map(Box::new),
            });
        }
    }
    found
}

fn whole(run: &Run) -> Option<String> {
    let state = &run.state;
    let why = state.judgement.as_ref().map_or("", |judgement| judgement.message.as_str());
    match state.phase() {
        JobPhase::Pending => None,
        JobPhase::Suspended => Some("suspended: it has no pods until someone resumes it".to_owned()),
        JobPhase::SuccessCriteriaMet => Some(format!("has succeeded, and ends the pods that are left ({why})")),
        JobPhase::FailureTarget => Some(format!("has failed, and ends the pods that are left ({why})")),
        JobPhase::Complete | JobPhase::Failed => (!why.is_empty()).then(|| why.to_owned()),
        JobPhase::Running => {
            let next = run.todo.timer.filter(|at| Some(*at) != state.deadline())?;
            let failures = state.failed;
            Some(format!("{failures} pods failed so far; the next one is created at {next}"))
        }
    }
}

fn of_pod(run: &Run, at: u32, wait: Option<&WaitReason>) -> Option<String> {
    let pod = &run.state.pods[at as usize];
    Some(match pod.phase {
        PodPhase::Gone | PodPhase::Succeeded => return None,
        PodPhase::Queued => wait.map_or_else(|| "waits for its turn".to_owned(), ToString::to_string),
        PodPhase::Starting => format!("being started since {}", pod.transition),
        PodPhase::Running => format!("running since {}", pod.started.unwrap_or(pod.transition)),
        PodPhase::BackOff => {
            let until = pod.wake.map(|at| at.to_string()).unwrap_or_default();
            let last = failure(run, at).unwrap_or_default();
            format!("started again at {until}, {} times so far: {last}", pod.restarts)
        }
        PodPhase::Terminating => format!("being ended: {}", pod.message),
        PodPhase::Failed => failure(run, at).unwrap_or_else(|| "failed".to_owned()),
    })
}

/// Returns how its last attempt failed, if it did.
fn failure(run: &Run, at: u32) -> Option<String> {
    let pod = &run.state.pods[at as usize];
    let mut parts = Vec::new();
    if !pod.reason.is_empty() {
        parts.push(pod.reason.clone());
    }
    if let Some(end) = pod.terminated.as_deref().filter(|end| end.exit_code != 0) {
        let signal = if end.signal == 0 { String::new() } else { format!(", signal {}", end.signal) };
        let message = end.message.trim_end();
        let message = if message.is_empty() { String::new() } else { format!(": {message}") };
        parts.push(format!("{} (exit code {}{signal}){message}", end.reason, end.exit_code));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}
