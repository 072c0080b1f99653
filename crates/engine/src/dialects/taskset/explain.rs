//! Explains why a TaskSet, a role or a replica is not done. Reasons are derived from the state, never guessed from
//! logs.

use octoflow_model::{
    NodeIx, Time,
    taskset::{ReplicaPhase, RolePhase, SetPhase},
};

use super::{
    ident,
    role::{Waits, waits},
    run::Run,
};
use crate::{
    run::explain::ask,
    schedule::{Scheduler, TaskRef, WaitReason},
};

/// Why a part is not over yet, or how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartExplanation {
    /// `worker-1`, the name of a role, or that of the TaskSet.
    pub node: String,
    /// The name of its pod, if it is about one.
    pub pod: Option<String>,
    pub phase: &'static str,
    pub reason: String,
    pub since: Option<Time>,
    pub wait: Option<Box<WaitReason>>,
}

/// Explains what has failed and everything that is still open, from the whole to its parts.
pub fn explain(run: &Run, scheduler: Option<&Scheduler>) -> Vec<PartExplanation> {
    let state = &run.state;
    let mut found = Vec::new();
    let mut asked = 0;
    let deadlock = state.head.deadlock.as_ref().filter(|_| state.finished.is_none()).map(ToString::to_string);
    for reason in whole(run).into_iter().chain(deadlock) {
        let (node, phase, since) = (state.head.name.to_string(), state.summary.word(), Some(state.transition));
        found.push(PartExplanation { node, pod: None, phase, reason, since, wait: None });
    }
    for (at, role) in state.roles.iter().enumerate() {
        let (plan, name) = (&run.program.roles[at], &run.program.spec(at).name);
        let waiting: Vec<String> = plan
            .after
            .iter()
            .filter(|(up, condition)| waits(&state.roles[*up], run.program.roles[*up].count, *condition) == Waits::Yes)
            .map(|(up, condition)| format!("'{}' to be {condition:?}", run.program.spec(*up).name))
            .collect();
        let since = Some(role.transition);
        let mut say = |reason| {
            let (node, phase) = (name.clone(), role.summary.word());
            found.push(PartExplanation { node, pod: None, phase, reason, since, wait: None })
        };
        match role.phase {
            RolePhase::Waiting if !waiting.is_empty() && state.at_work() => {
                say(format!("waits for role {}", waiting.join(" and role ")));
                continue;
            }
            RolePhase::CleaningPending => say(format!("stopping what is left: {}", role.phase_message)),
            RolePhase::Waiting | RolePhase::Running | RolePhase::Completed => {}
        }
        for index in 0..plan.count {
            let replica = NodeIx(plan.first + index);
            let task = TaskRef { run: run.id, node: replica };
            let waits = run.state.replicas[replica.at()].phase == ReplicaPhase::AttemptPreparing;
            let wait = scheduler.filter(|_| waits).and_then(|scheduler| ask(scheduler, task, &mut asked));
            if let Some(reason) = of_replica(run, replica, wait.as_ref()) {
                let pod = run.pod_name(replica.0, state.attempt, state.replicas[replica.at()].number());
                let state = &state.replicas[replica.at()];
                let (node, phase) = (ident::host_name(name, index), state.phase.word());
                let since = Some(state.transition);
                let wait = wait.map(Box::new);
                found.push(PartExplanation { node, pod: Some(pod), phase, reason, since, wait });
            }
        }
    }
    found
}

fn whole(run: &Run) -> Option<String> {
    let state = &run.state;
    if state.head.suspended && !state.closing() {
        return Some("suspended: nothing new is started until someone resumes it".to_owned());
    }
    match state.phase {
        SetPhase::AttemptRetryPending => {
            let until = state.wake.map(|at| at.to_string()).unwrap_or_default();
            let why = state.verdict.as_ref().map(|verdict| verdict.message.as_str()).unwrap_or_default();
            Some(format!("waits until {until} before attempt {}: {why}", state.attempt + 1))
        }
        SetPhase::AttemptDeletionRequested => Some(format!("stopping what is left: {}", state.phase_message)),
        SetPhase::Completed => (!state.summary_message.is_empty()).then(|| state.summary_message.clone()),
        SetPhase::AttemptPending
        | SetPhase::AttemptPreparing
        | SetPhase::AttemptRunning
        | SetPhase::AttemptCompleted => None,
    }
}

fn of_replica(run: &Run, at: NodeIx, wait: Option<&WaitReason>) -> Option<String> {
    let replica = &run.state.replicas[at.at()];
    let last = failure(run, at);
    Some(match replica.phase {
        ReplicaPhase::AttemptPending if !run.state.at_work() => return None,
        ReplicaPhase::AttemptPending => "waits until it may start".to_owned(),
        ReplicaPhase::AttemptPreparing => waiting(run, at, wait),
        ReplicaPhase::AttemptAssigned => format!("being started since {}", replica.transition),
        ReplicaPhase::AttemptRunning => {
            format!("running since {}", replica.started.unwrap_or(replica.transition))
        }
        ReplicaPhase::AttemptDeletionRequested => format!("being ended: {}", replica.phase_message),
        ReplicaPhase::AttemptRetryPending => {
            let until = replica.wake.map(|at| at.to_string()).unwrap_or_default();
            format!("waits until {until} before attempt {}: {}", replica.retried + 1, last.unwrap_or_default())
        }
        ReplicaPhase::Completed if replica.outcome == Some(false) => last.unwrap_or_else(|| "failed".to_owned()),
        ReplicaPhase::Completed => return None,
    })
}

fn waiting(run: &Run, at: NodeIx, wait: Option<&WaitReason>) -> String {
    let preempted = run.state.replicas[at.at()].preempted.as_ref().filter(|preempted| preempted.waits);
    let again = preempted.map(|preempted| format!(" (again: {})", preempted.why)).unwrap_or_default();
    format!("{}{again}", reason(run, at, wait))
}

fn reason(run: &Run, at: NodeIx, wait: Option<&WaitReason>) -> String {
    let Some(wait) = wait else { return "waits for its turn".to_owned() };
    match wait.gang {
        Some((there, least)) if wait.gathers() => {
            let name = run.gang(at).map(|gang| gang.name.to_string()).unwrap_or_default();
            format!("waits for its gang '{name}': {there} of {least} members are there")
        }
        Some(_) | None => wait.to_string(),
    }
}

/// Returns how its last pod failed, if it did.
fn failure(run: &Run, at: NodeIx) -> Option<String> {
    let replica = &run.state.replicas[at.at()];
    let mut parts = Vec::new();
    if !replica.reason.is_empty() {
        parts.push(replica.reason.clone());
    }
    if let Some(end) = replica.terminated.as_deref().filter(|end| end.exit_code != 0) {
        let signal = if end.signal == 0 { String::new() } else { format!(", signal {}", end.signal) };
        let message = end.message.trim_end();
        let message = if message.is_empty() { String::new() } else { format!(": {message}") };
        parts.push(format!("{} (exit code {}{signal}){message}", end.reason, end.exit_code));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}
