//! TaskSets in a world: random ones, what people do with them, and the guarantees as checks on them.

use std::collections::BTreeSet;

use octoflow_engine::{
    Command, Engine,
    schedule::TaskRef,
    taskset::{Run, run::Replica},
};
use octoflow_model::{
    AttemptId, Fact, NodeIx, RunId, Time,
    taskset::{ReplicaPhase, RolePhase, SetFact, SetPhase, StopReason, SummaryState},
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

/// Somebody submits a TaskSet, and tells it to do this and that.
pub(super) fn acts(seed: u64, run: RunId, at: Time, slots: usize) -> Result<Vec<UserAction>, Broken> {
    let name = format!("t{run}");
    let mut draw = Draw::new(seed, &name);
    let object = manifest(&mut draw, &name, slots);
    let mut acts = vec![UserAction::submit(seed, run, at, name, admitted(&object)?)];
    for _ in 0..draw.below(5) {
        let at = at.saturating_add(ticks(draw.below(1500)));
        let command = command(&mut draw, run, &object);
        acts.push(UserAction { at, run, request: UserRequest::Command(command) });
    }
    Ok(acts)
}

fn command(draw: &mut Draw, run: RunId, object: &Value) -> Command {
    let attempt = draw.below(2);
    match draw.below(12) {
        0..=2 => Command::Suspend,
        3..=5 => resume(),
        6 => Command::Stop,
        7 => Command::Terminate,
        8 => Command::Disband { unit: format!("c-t{run}-{attempt}") },
        _ => {
            let roles = object["spec"]["roles"].as_array().map_or(1, |roles| roles.len() as u64);
            let (role, retried, index) = (draw.below(roles), draw.below(2), draw.below(3));
            let why = *draw.pick(&[StopReason::Deleted, StopReason::Evicted]);
            Command::Evict { pod: format!("t{run}-r{role}-{attempt}-{retried}-{index}"), why }
        }
    }
}

/// A TaskSet that is let in.
pub(crate) fn manifest(draw: &mut Draw, name: &str, slots: usize) -> Value {
    let count = draw.between(1, 4);
    let failing = *draw.pick(&[0, 10, 30, 70]);
    let deadline = draw.chance(20).then(|| draw.between(2, 30));
    let ganged = draw.chance(30);
    let mut roles: Vec<Value> = Vec::new();
    let mut members = 0;
    for at in 0..count {
        let replicas = draw.between(1, 4);
        // A gang that is larger than the machine gets more than the machine, which is its right and hard to check.
        let gang = ganged && draw.chance(60) && members + replicas <= slots as u64;
        let criterion = |draw: &mut Draw| if draw.chance(15) { json!(-1) } else { json!(draw.between(1, replicas)) };
        let (most, least) = (criterion(draw), criterion(draw));
        let mut arguments = vec![format!("fail={failing}")];
        if draw.chance(15) {
            arguments.push("stubborn".to_owned());
        }
        if deadline.is_some() && draw.chance(10) {
            arguments.push("endless".to_owned());
        }
        let mut role = json!({
            "name": format!("r{at}"),
            "replicas": replicas,
            "completionPolicy": {"maxFailed": most, "minSucceeded": least},
            "retryPolicy": retry(draw),
            "template": {"spec": {
                "terminationGracePeriodSeconds": draw.between(0, 3),
                "containers": [{"name": "main", "image": "i", "command": ["c"], "args": arguments}],
            }},
        });
        if draw.chance(10) {
            role["template"]["spec"]["activeDeadlineSeconds"] = json!(draw.between(1, 10));
        }
        if draw.chance(20) {
            role["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "400m"}});
        }
        let rules: Vec<Value> = (0..draw.below(3)).map(|_| rule(draw)).collect();
        if !rules.is_empty() {
            role["eventPolicy"] = Value::Array(rules);
        }
        let free = |other: &&Value| !gang || other["dependsOn"].is_null() && other["template"]["metadata"].is_null();
        let ups: Vec<Value> = roles.iter().filter(free).map(|other| other["name"].clone()).collect();
        if !ups.is_empty() && draw.chance(40) {
            let condition = *draw.pick(&["Running", "Succeeded", "Completed"]);
            role["dependsOn"] = json!([{"role": draw.pick(&ups), "condition": condition}]);
        }
        if gang {
            members += replicas;
            role["template"]["metadata"] = json!({"annotations": {"scheduling.k8s.io/group-name": "g"}});
        }
        roles.push(role);
    }
    let mut spec = json!({"retryPolicy": retry(draw), "roles": roles, "priority": draw.below(3)});
    if let Some(deadline) = deadline {
        spec["activeDeadlineSeconds"] = json!(deadline);
    }
    if draw.chance(8) {
        spec["suspend"] = json!(true);
    }
    json!({"apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet", "metadata": {"name": name}, "spec": spec})
}

fn retry(draw: &mut Draw) -> Value {
    json!({"retry": draw.chance(60), "delay": draw.below(5), "maxRetryCount": draw.below(3)})
}

fn rule(draw: &mut Draw) -> Value {
    let event = *draw.pick(&["RoleFailed", "RoleSucceeded", "RoleCompleted"]);
    let action = *draw.pick(&["NoAction", "NoAction", "TaskSetFailed", "TaskSetSucceeded", "TaskSetCompleted"]);
    json!({"event": event, "action": action})
}

/// Everything of a TaskSet that can end, and how it has.
pub(super) fn finals(run: &Run) -> Vec<(Part, Option<&'static str>)> {
    let state = &run.state;
    let attempt = state.attempt;
    let mut found = vec![(Part::TaskSet, state.over().then(|| state.summary.word()))];
    for (at, role) in state.roles.iter().enumerate() {
        let verdict = role.verdict.as_ref().map(|verdict| SummaryState::of(verdict.succeeded).word());
        found.push((Part::Role { attempt, at: at as u32 }, verdict));
    }
    for (at, replica) in state.replicas.iter().enumerate() {
        let word = match replica.outcome {
            Some(true) => "succeeded",
            Some(false) => "failed",
            None => "ended with its role",
        };
        let over = replica.phase == ReplicaPhase::Completed;
        found.push((Part::Replica { attempt, at: at as u32 }, over.then_some(word)));
    }
    found
}

/// G4 and G5: nothing starts that may not, and nothing more often than its policy says.
pub(super) fn grown(run: &Run, fact: &Fact) -> Result<(), Broken> {
    let Fact::TaskSet(SetFact::Launched { replica, at, .. }) = fact else { return Ok(()) };
    let state = &run.state;
    let role = run.program.role_of(*replica);
    let (spec, one) = (run.program.spec(role), &state.replicas[*replica as usize]);
    let retries = if spec.retry_policy.retry { spec.retry_policy.max_retry_count } else { 0 };
    if u64::from(one.retried) > retries {
        return broken(
            Guarantee::Limits,
            format!("replica {replica} is tried again {} times of {retries}", one.retried),
        );
    }
    let policy = &run.program.set.spec.retry_policy;
    let attempts = if policy.retry { policy.max_retry_count } else { 0 };
    if u64::from(state.attempt) > attempts || state.closing() || state.head.suspended {
        return broken(Guarantee::Limits, format!("replica {replica} starts in {} at {at}", state.phase));
    }
    if let Some((last, before)) = one.tries.split_last()
        && before.contains(last)
    {
        return broken(Guarantee::Fenced, format!("two pods of replica {replica} have one name"));
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
    alone: bool,
) -> Result<(usize, usize), Broken> {
    let state = &run.state;
    let fail = |what: String| broken(Guarantee::Owned, format!("{}: {what}", state.head.name));
    let held = state.head.suspended && !state.closing();
    let woken = |at: Option<Time>| at.is_some_and(|at| at <= now || wake_at.is_some_and(|wake| wake <= at));
    if state.phase == SetPhase::AttemptRetryPending && !held && !woken(state.wake) {
        return fail("nobody begins the next attempt".to_owned());
    }
    let (mut queued, mut placed) = (0, 0);
    for (at, replica) in state.replicas.iter().enumerate().filter(|_| state.at_work()) {
        let role = run.program.role_of(at as u32);
        match replica.phase {
            ReplicaPhase::AttemptPending => {
                let mut ups = run.program.roles[role].after.iter();
                if !held && !ups.any(|(up, _)| state.roles[*up].phase != RolePhase::Completed) {
                    return fail(format!("replica {at} waits for nothing"));
                }
            }
            ReplicaPhase::AttemptPreparing => {
                let task = TaskRef { run: run.id, node: NodeIx(at as u32) };
                match engine.scheduler().gathering(task) {
                    // Members above a PodGroup's least wait for the first ones.
                    Some((there, least)) if there >= least as usize && alone => {
                        return fail(format!("the gang of replica {at} is complete and waits"));
                    }
                    Some(_) => {}
                    None => queued += 1,
                }
            }
            ReplicaPhase::AttemptRetryPending if !held && !woken(replica.wake) => {
                return fail(format!("nobody tries replica {at} again"));
            }
            ReplicaPhase::AttemptRetryPending | ReplicaPhase::Completed => {}
            phase => {
                placed += 1;
                if let Err(what) = with_runtime(run, at as u32, replica, runtime, starting, ending) {
                    return fail(what);
                }
                if phase != ReplicaPhase::AttemptDeletionRequested && replica.wake.is_some() && !woken(replica.wake) {
                    return fail(format!("nobody watches the deadline of replica {at}"));
                }
            }
        }
    }
    Ok((queued, placed))
}

fn with_runtime(
    run: &Run,
    at: u32,
    replica: &Replica,
    runtime: &Runtime,
    starting: &BTreeSet<AttemptId>,
    ending: &BTreeSet<AttemptId>,
) -> Result<(), String> {
    let Some(attempt) = run.attempt_of(at) else { return Err(format!("replica {at} has no attempt")) };
    if !runtime.answers_for(attempt) && !starting.contains(&attempt) {
        return Err(format!("replica {at} is {}, but no runtime has it", replica.phase));
    }
    let ends = replica.phase == ReplicaPhase::AttemptDeletionRequested;
    if ends && !runtime.told_to_end(attempt) && !ending.contains(&attempt) {
        return Err(format!("replica {at} should end, but nobody tells its pod"));
    }
    Ok(())
}
