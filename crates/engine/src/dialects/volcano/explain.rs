//! Explains why a job, a task or a pod is not done. Reasons are derived from the state, never guessed from logs.

use octoflow_model::{
    NodeIx,
    volcano::{Event, JobPhase, PodPhase},
};

use super::run::{Run, TaskGate};
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
            phase: state.phase.word().to_owned(),
            reason,
            since: Some(state.transition),
            wait: None,
        });
    }
    let mut asked = 0;
    for (task, gate) in run.gates().into_iter().enumerate() {
        let plan = &run.program.tasks[task];
        if gate != TaskGate::Open && state.phase.creates_pods() {
            found.push(Explanation {
                node: run.program.spec(task).name.clone(),
                id: None,
                phase: "Pending".to_owned(),
                reason: waits_for(run, task, gate),
                since: Some(state.transition),
                wait: None,
            });
            continue;
        }
        for pod in plan.pods() {
            let slot = &state.pods[pod as usize];
            let reference = TaskRef { run: run.id, node: NodeIx(pod) };
            let waits = slot.phase == PodPhase::Queued;
            let wait = scheduler.filter(|_| waits).and_then(|scheduler| ask(scheduler, reference, &mut asked));
            if let Some(reason) = of_pod(run, pod, wait.as_ref()) {
                found.push(Explanation {
                    node: run.short_name(pod),
                    id: Some(run.pod_name(pod)),
                    phase: slot.phase.word().to_owned(),
                    reason,
                    since: Some(slot.transition),
                    wait: wait.map(Box::new),
                });
            }
        }
    }
    found
}

fn whole(run: &Run) -> Option<String> {
    let state = &run.state;
    let why = if state.message.is_empty() { String::new() } else { format!(" ({})", state.message) };
    match state.phase {
        JobPhase::Aborted => {
            let told = aborted(&state.head.name, &state.reason, state.retries, run.program.rules.max_retry);
            Some(format!("{told}{why}"))
        }
        JobPhase::Aborting | JobPhase::Completing | JobPhase::Terminating => Some(format!("ending what is left{why}")),
        JobPhase::Restarting => {
            let all = run.program.rules.max_retry;
            Some(format!("ending pods before attempt {} of {all}{why}", state.retries + 1))
        }
        JobPhase::Completed | JobPhase::Failed | JobPhase::Terminated => {
            (!state.message.is_empty()).then(|| state.message.clone())
        }
        JobPhase::Pending | JobPhase::Running => {
            let (_, claims) = state.awaits.as_ref()?;
            Some(format!("no pod is created until {} there", named(claims)))
        }
    }
}

/// Says what aborted a job, and what can be done: a resume is an attempt, and the one that reaches `maxRetry` fails it.
fn aborted(name: &str, reason: &str, retries: u32, all: u32) -> String {
    let what = if Event::WORDS.contains(&reason) {
        format!("a policy aborted it because of {reason}")
    } else {
        "suspended".to_owned()
    };
    let next = retries + 1;
    let way = if next < all {
        format!("`octoflow resume {name}` begins attempt {} of {all}", next + 1)
    } else {
        format!(
            "no attempt is left (maxRetry is {all}), so resuming fails it; `octoflow terminate {name}` ends it, and \
             `octoflow retry {name}` then runs all of it again"
        )
    };
    format!("{what}: nothing runs until someone resumes it; {way}")
}

/// Names claims, and says whether they are one.
pub(super) fn named(claims: &[String]) -> String {
    match claims {
        [claim] => format!("the claim {claim} is"),
        claims => format!("the claims {} are", claims.join(", ")),
    }
}

fn waits_for(run: &Run, task: usize, gate: TaskGate) -> String {
    let plan = &run.program.tasks[task];
    let told = |up: &usize| {
        let (needed, has) =
            (run.program.tasks[*up].least, run.state.tasks[*up].available(run.program.tasks[*up].probed));
        format!("task '{}' ({has} of {needed} pods ready or done)", run.program.spec(*up).name)
    };
    let names: Vec<String> = plan.after.iter().map(told).collect();
    let joined = names.join(if plan.any { " or " } else { " and " });
    match gate {
        TaskGate::Never => format!("can never start: it waits for {joined}"),
        TaskGate::Open | TaskGate::Closed => format!("waits for {joined}"),
    }
}

fn of_pod(run: &Run, at: u32, wait: Option<&WaitReason>) -> Option<String> {
    let pod = &run.state.pods[at as usize];
    let reason = match pod.phase {
        PodPhase::Absent if run.state.phase.creates_pods() => "waits until it is created".to_owned(),
        PodPhase::Absent | PodPhase::Succeeded => return None,
        PodPhase::Queued => waiting(run, at, wait),
        PodPhase::Starting => format!("being started since {}", pod.transition),
        PodPhase::Running => format!("running since {}", pod.started.unwrap_or(pod.transition)),
        PodPhase::BackOff => {
            let until = pod.wake.map(|at| at.to_string()).unwrap_or_default();
            let last = failure(run, at).unwrap_or_default();
            format!("started again at {until}, {} times so far: {last}", pod.restarts)
        }
        PodPhase::Terminating => format!("being ended: {}", pod.message),
        PodPhase::Failed => failure(run, at).unwrap_or_else(|| "failed".to_owned()),
    };
    let later = run
        .state
        .delayed
        .get(&at)
        .map(|delayed| format!("; {} follows {} at {}", delayed.action.word(), delayed.event.word(), delayed.due));
    Some(format!("{reason}{}", later.unwrap_or_default()))
}

fn waiting(run: &Run, at: u32, wait: Option<&WaitReason>) -> String {
    let preempted = run.state.pods[at as usize].preempted.as_ref().filter(|preempted| preempted.waits);
    let again = preempted.map(|preempted| format!(" (again: {})", preempted.why)).unwrap_or_default();
    let Some(wait) = wait else { return format!("waits for its turn{again}") };
    match wait.gang {
        Some((there, least)) if wait.gathers() => {
            format!("waits for its gang: {there} of {least} pods are there{again}")
        }
        Some(_) | None => format!("{wait}{again}"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aborted_job_says_by_what_and_what_can_be_done() {
        let way = "nothing runs until someone resumes it; `octoflow resume j` begins attempt 2 of 3";
        assert_eq!(aborted("j", "TaskFailed", 0, 3), format!("a policy aborted it because of TaskFailed: {way}"));
        assert_eq!(aborted("j", "PodEvicted", 0, 3), format!("a policy aborted it because of PodEvicted: {way}"));
        assert_eq!(aborted("j", "Suspended", 0, 3), format!("suspended: {way}"));
        // The resume that reaches maxRetry fails the job.
        for (retries, all) in [(2, 3), (0, 1)] {
            let told = aborted("j", "TaskFailed", retries, all);
            assert!(told.contains("no attempt is left") && told.contains("`octoflow terminate j`"), "{told}");
        }
    }
}
