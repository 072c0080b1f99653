//! Volcano Jobs in a world: random ones, what people do with them, and the guarantees as checks on them.

use std::collections::BTreeSet;

use octoflow_engine::{Command, Engine, schedule::TaskRef, volcano::Run};
use octoflow_model::{
    AttemptId, Fact, NodeIx, RunId, Time,
    taskset::StopReason,
    volcano::{JobFact, JobPhase, PodPhase},
};
use serde_json::{Value, json};

use super::{
    calendar::ticks,
    disk::Part,
    draw::Draw,
    failure::{Broken, Guarantee, broken},
    runtime::Runtime,
    world::{UserAction, UserRequest, admitted, resume},
};

/// Somebody submits a Job, scales it, and tells it to do this and that.
pub(super) fn acts(seed: u64, run: RunId, at: Time, slots: usize) -> Result<Vec<UserAction>, Broken> {
    let name = format!("j{run}");
    let mut draw = Draw::new(seed, &name);
    let object = admitted(&manifest(&mut draw, &name, slots))?;
    let mut acts = vec![UserAction::submit(seed, run, at, name, object.clone())];
    for _ in 0..draw.below(6) {
        let at = at.saturating_add(ticks(draw.below(1500)));
        let command = command(&mut draw, run, &object, slots);
        acts.push(UserAction { at, run, request: UserRequest::Command(command) });
    }
    Ok(acts)
}

fn command(draw: &mut Draw, run: RunId, object: &Value, slots: usize) -> Command {
    match draw.below(14) {
        0 | 1 => Command::Suspend,
        2 | 3 => resume(),
        4 => Command::Stop,
        5 => Command::Terminate,
        6 | 7 => {
            let action = *draw.pick(&["AbortJob", "RestartJob", "CompleteJob", "ResumeJob", "TerminateJob"]);
            Command::Perform { action: action.to_owned() }
        }
        8..=10 => {
            let mut spec = object["spec"].clone();
            let mut all = 0;
            for task in spec["tasks"].as_array_mut().into_iter().flatten() {
                if task["partitionPolicy"].is_null() {
                    task["replicas"] = json!(draw.between(1, 4));
                    task["minAvailable"] = json!(1);
                }
                all += task["replicas"].as_u64().unwrap_or(1);
            }
            spec["minAvailable"] = json!(draw.between(1, all.min(slots as u64)));
            Command::Amend { spec: Box::new(spec) }
        }
        _ => {
            let tasks = object["spec"]["tasks"].as_array().map_or(1, |tasks| tasks.len() as u64);
            let (task, index) = (draw.below(tasks), draw.below(3));
            let why = *draw.pick(&[StopReason::Deleted, StopReason::Evicted]);
            Command::Evict { pod: format!("j{run}-t{task}-{index}"), why }
        }
    }
}

/// A Job that is let in.
pub(crate) fn manifest(draw: &mut Draw, name: &str, slots: usize) -> Value {
    let failing = *draw.pick(&[0, 10, 30, 70]);
    let mut tasks: Vec<Value> = Vec::new();
    let mut all = 0;
    for at in 0..draw.between(1, 3) {
        let partitions = draw.chance(15).then(|| draw.between(1, 2));
        let replicas = partitions.map_or_else(|| draw.between(1, 4), |parts| 2 * parts);
        all += replicas;
        let mut arguments = vec![format!("fail={failing}")];
        if draw.chance(15) {
            arguments.push("stubborn".to_owned());
        }
        let again = draw.chance(25);
        let mut policies = policies(draw);
        if again && policies.iter().all(|policy| policy["event"] != "TaskFailed") {
            // A pod fails here as often as it is tried; without this it would be started again for ever.
            policies.push(json!({"event": "TaskFailed", "action": draw.pick(&["RestartJob", "TerminateJob"])}));
        }
        let mut task = json!({
            "name": format!("t{at}"),
            "replicas": replicas,
            "minAvailable": draw.between(0, replicas),
            "policies": policies,
            "template": {"spec": {
                "terminationGracePeriodSeconds": draw.between(0, 3),
                "restartPolicy": if again { "OnFailure" } else { "Never" },
                "containers": [{"name": "main", "image": "i", "command": ["c"], "args": arguments}],
            }},
        });
        if let Some(parts) = partitions {
            task["partitionPolicy"] = json!({"totalPartitions": parts, "partitionSize": 2});
        }
        if draw.chance(10) {
            task["template"]["spec"]["activeDeadlineSeconds"] = json!(draw.between(1, 10));
        }
        if draw.chance(20) {
            task["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "400m"}});
        }
        if at > 0 && draw.chance(35) {
            let iteration = if draw.chance(50) { "any" } else { "all" };
            task["dependsOn"] = json!({"name": [format!("t{}", draw.below(at))], "iteration": iteration});
        }
        tasks.push(task);
    }
    // A gang that is larger than the machine gets more than the machine, which is its right and hard to check.
    let least = draw.between(1, all.min(slots as u64));
    let mut spec =
        json!({"tasks": tasks, "minAvailable": least, "maxRetry": draw.between(1, 4), "policies": policies(draw)});
    if draw.chance(20) {
        spec["minSuccess"] = json!(draw.between(1, all));
    }
    json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec})
}

fn policies(draw: &mut Draw) -> Vec<Value> {
    let actions =
        ["AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob"];
    let mut policies = Vec::new();
    for event in ["PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed"] {
        if draw.chance(15) {
            let mut policy = json!({"event": event, "action": draw.pick(&actions)});
            if event == "PodPending" || draw.chance(40) {
                policy["timeout"] = json!(format!("{}s", draw.between(1, 12)));
            }
            policies.push(policy);
        }
    }
    policies
}

/// Everything of a Job that can end for good, and how it has.
pub(super) fn finals(run: &Run) -> Vec<(Part, Option<&'static str>)> {
    vec![(Part::Job, run.state.over.then(|| run.state.phase.word()))]
}

/// G4 and G5: nothing starts that may not, and nothing more often than there are attempts.
pub(super) fn grown(run: &Run, fact: &Fact) -> Result<(), Broken> {
    let Fact::VolcanoJob(JobFact::Launched { pod, at, .. }) = fact else { return Ok(()) };
    let state = &run.state;
    if !matches!(state.phase, JobPhase::Pending | JobPhase::Running | JobPhase::Restarting) {
        return broken(Guarantee::Limits, format!("pod {pod} starts in {} at {at}", state.phase));
    }
    if run.program.is_surplus(*pod) {
        return broken(Guarantee::Limits, format!("pod {pod} starts though its task has become smaller"));
    }
    let most = run.program.job.spec.max_retry.and_then(|most| u32::try_from(most).ok()).unwrap_or(u32::MAX);
    if state.retries > 0 && state.retries >= most {
        return broken(Guarantee::Limits, format!("pod {pod} starts after {} of {most} attempts", state.retries));
    }
    Ok(())
}

/// G2: everything open has somebody who will bring it on. How many wait for room, and how many have it.
pub(super) fn owned(
    run: &Run,
    (engine, wake_at): (&Engine, Option<Time>),
    runtime: &Runtime,
    (starting, ending): (&BTreeSet<AttemptId>, &BTreeSet<AttemptId>),
    now: Time,
) -> Result<(usize, usize), Broken> {
    let state = &run.state;
    let fail = |what: String| broken(Guarantee::Owned, format!("{}: {what}", state.head.name));
    let woken = |at: Time| at <= now || wake_at.is_some_and(|wake| wake <= at);
    if let Some(delayed) = state.delayed.values().find(|delayed| !woken(delayed.due)) {
        return fail(format!("nobody carries out {delayed:?}"));
    }
    let live = state.pods.iter().any(|pod| !pod.phase.ended() && pod.phase != PodPhase::Absent);
    let waits = !state.delayed.is_empty() || state.phase == JobPhase::Aborted && state.head.suspended;
    // One that was accepted begins later.
    let begun = state.pods.iter().any(|pod| pod.created > 0);
    if begun && !state.over && !live && !waits {
        return fail(format!("it is {} and nothing will ever happen to it", state.phase));
    }
    let (mut queued, mut placed) = (0, 0);
    for (at, pod) in state.pods.iter().enumerate() {
        match pod.phase {
            PodPhase::Queued => {
                let task = TaskRef { run: run.id, node: NodeIx(at as u32) };
                if engine.scheduler().gathering(task).is_none() {
                    queued += 1;
                }
            }
            PodPhase::BackOff => {
                placed += 1;
                if !pod.wake.is_some_and(woken) {
                    return fail(format!("nobody starts pod {at} again"));
                }
            }
            PodPhase::Starting | PodPhase::Running | PodPhase::Terminating => {
                placed += 1;
                let Some(attempt) = run.attempt_of(at as u32) else { return fail(format!("pod {at} has no attempt")) };
                if !runtime.answers_for(attempt) && !starting.contains(&attempt) {
                    return fail(format!("pod {at} is {}, but no runtime has it", pod.phase));
                }
                let ends = pod.phase == PodPhase::Terminating;
                if ends && !runtime.told_to_end(attempt) && !ending.contains(&attempt) {
                    return fail(format!("pod {at} should end, but nobody tells it"));
                }
                if !ends && pod.wake.is_some_and(|wake| !woken(wake)) {
                    return fail(format!("nobody watches the deadline of pod {at}"));
                }
            }
            PodPhase::Absent | PodPhase::Succeeded | PodPhase::Failed => {}
        }
    }
    Ok((queued, placed))
}
