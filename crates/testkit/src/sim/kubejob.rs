//! Kubernetes' Jobs in a world: random ones, what people do with them, and the guarantees as checks on them.

use std::collections::BTreeSet;

use octoflow_engine::{
    Command,
    kubejob::{Run, ident},
};
use octoflow_model::{
    AttemptId, Fact, RunId, Time,
    kubejob::{KubeJobFact, PodPhase},
    taskset::StopReason,
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

/// Somebody submits a Job, changes its numbers, and tells it to do this and that.
pub(super) fn acts(seed: u64, run: RunId, at: Time) -> Result<Vec<UserAction>, Broken> {
    let (name, uid) = (format!("k{run}"), format!("uid-{run}"));
    let mut draw = Draw::new(seed, &name);
    let object = admitted(&manifest(&mut draw, &name))?;
    let mut acts = vec![UserAction::submit(seed, run, at, name.clone(), object.clone())];
    for _ in 0..draw.below(6) {
        let at = at.saturating_add(ticks(draw.below(1500)));
        let command = command(&mut draw, &name, &uid, &object);
        acts.push(UserAction { at, run, request: UserRequest::Command(command) });
    }
    Ok(acts)
}

fn command(draw: &mut Draw, name: &str, uid: &str, object: &Value) -> Command {
    let indexed = object["spec"]["completionMode"] == "Indexed";
    match draw.below(14) {
        0 | 1 => Command::Suspend,
        2 | 3 => resume(),
        4 => Command::Stop,
        5 => Command::Terminate,
        6..=9 => {
            let mut spec = object["spec"].clone();
            let to = draw.between(1, 5);
            spec["parallelism"] = json!(to);
            if indexed && draw.chance(50) {
                spec["completions"] = json!(to);
            }
            if draw.chance(30) {
                spec["backoffLimit"] = json!(draw.below(5));
            }
            if draw.chance(20) {
                spec["activeDeadlineSeconds"] = json!(draw.between(1, 60));
            }
            Command::Amend { spec: Box::new(spec) }
        }
        _ => {
            let number = draw.below(6) as u32;
            let index = indexed.then(|| draw.below(5) as u32);
            let why = *draw.pick(&[StopReason::Deleted, StopReason::Evicted]);
            Command::Evict { pod: ident::pod_name(name, index, ident::seed(uid), number), why }
        }
    }
}

/// A Job that is let in.
pub(crate) fn manifest(draw: &mut Draw, name: &str) -> Value {
    let failing = *draw.pick(&[0, 10, 30, 70]);
    let mut arguments = vec![format!("fail={failing}")];
    if draw.chance(15) {
        arguments.push("stubborn".to_owned());
    }
    let again = draw.chance(25);
    let mut spec = json!({
        "parallelism": draw.between(1, 4),
        "backoffLimit": draw.below(5),
        "template": {"spec": {
            "terminationGracePeriodSeconds": draw.between(0, 3),
            "restartPolicy": if again { "OnFailure" } else { "Never" },
            "containers": [{"name": "main", "image": "i", "command": ["c"], "args": arguments}],
        }},
    });
    let indexed = draw.chance(50);
    let completions = draw.between(1, 5);
    if indexed || draw.chance(60) {
        spec["completions"] = json!(completions);
    }
    if indexed {
        spec["completionMode"] = json!("Indexed");
        limits(draw, &mut spec, completions, again);
    }
    if !again && draw.chance(40) {
        let mut actions = vec!["FailJob", "Count"];
        if !spec["backoffLimitPerIndex"].is_null() {
            actions.push("FailIndex");
        }
        let codes = json!({"operator": draw.pick(&["In", "NotIn"]), "values": [1, 2, 3]});
        let mut rules = vec![json!({"action": draw.pick(&actions), "onExitCodes": codes})];
        if draw.chance(50) {
            rules.push(json!({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}));
        }
        spec["podFailurePolicy"] = json!({"rules": rules});
    } else if draw.chance(40) {
        spec["podReplacementPolicy"] = json!(draw.pick(&["TerminatingOrFailed", "Failed"]));
    }
    if draw.chance(15) {
        spec["activeDeadlineSeconds"] = json!(draw.between(1, 60));
    }
    if draw.chance(10) {
        spec["suspend"] = json!(true);
    }
    if draw.chance(20) {
        spec["template"]["spec"]["activeDeadlineSeconds"] = json!(draw.between(1, 10));
    }
    if draw.chance(20) {
        spec["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "400m"}});
    }
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec})
}

/// Limits of single indexes, and when some of them are enough.
fn limits(draw: &mut Draw, spec: &mut Value, completions: u64, again: bool) {
    // Kubernetes lets containers start again in place only without limits for each index.
    if !again && draw.chance(50) {
        spec["backoffLimitPerIndex"] = json!(draw.below(3));
        if draw.chance(50) {
            spec["maxFailedIndexes"] = json!(draw.below(completions + 1));
        }
    }
    if draw.chance(30) {
        spec["successPolicy"] = json!({"rules": [{"succeededCount": draw.between(1, completions)}]});
    }
}

/// Everything of a Job that can end for good, and how it has.
pub(super) fn finals(run: &Run) -> Vec<(Part, Option<&'static str>)> {
    vec![(Part::Job, run.state.over.then(|| run.state.phase().word()))]
}

/// Whether a pod is over, as people can see it.
pub(super) fn pod_over(run: &Run, pod: usize) -> Option<bool> {
    let phase = run.state.pods.get(pod)?.phase;
    Some(matches!(phase, PodPhase::Succeeded | PodPhase::Failed | PodPhase::Gone))
}

/// G4 and G5: nothing is created or starts that may not, no index has two pods at once, and never too many are active.
pub(super) fn grown(run: &Run, fact: &Fact) -> Result<(), Broken> {
    let what = match fact {
        Fact::KubeJob(KubeJobFact::Launched { pod, .. }) => format!("pod {pod} starts"),
        Fact::KubeJob(KubeJobFact::Created { first, .. }) => format!("pod {first} is created"),
        _ => return Ok(()),
    };
    let state = &run.state;
    if state.judgement.is_some() || state.head.suspended {
        return broken(Guarantee::Limits, format!("{what} in {}", state.phase()));
    }
    if state.failed > state.settings.backoff_limit {
        return broken(Guarantee::Limits, format!("{what} after {} failures", state.failed));
    }
    // Once a pod of a work queue has succeeded, no pod is created any more and none is taken away: those that there are start.
    let drains = state.settings.completions.is_none() && state.succeeded > 0;
    let starts = matches!(fact, Fact::KubeJob(KubeJobFact::Launched { .. }));
    if state.active() > state.settings.parallelism && !(drains && starts) {
        return broken(Guarantee::Limits, format!("{what}: {} pods are active", state.active()));
    }
    let mut taken = BTreeSet::new();
    for pod in state.pods.iter().filter(|pod| pod.phase.active()) {
        let Some(index) = pod.index else { continue };
        if !taken.insert(index) || state.succeeded_indexes.contains(index) {
            return broken(Guarantee::Twice, format!("{what}: index {index} has two pods, or is done"));
        }
    }
    Ok(())
}

/// G2: everything open has somebody who will bring it on. How many wait for room, and how many have it.
pub(super) fn owned(
    run: &Run,
    wake_at: Option<Time>,
    runtime: &Runtime,
    (starting, ending): (&BTreeSet<AttemptId>, &BTreeSet<AttemptId>),
    now: Time,
) -> Result<(usize, usize), Broken> {
    let state = &run.state;
    let fail = |what: String| broken(Guarantee::Owned, format!("{}: {what}", state.head.name));
    let woken = |at: Time| at <= now || wake_at.is_some_and(|wake| wake <= at);
    let judged = state.judgement.is_some();
    if !judged && state.deadline().is_some_and(|deadline| !woken(deadline)) {
        return fail("nobody watches its deadline".to_owned());
    }
    // One that was accepted begins later; one without pods waits for the end of a pause, or for a person.
    let waits = state.head.suspended || wake_at.is_some();
    if !state.over && state.open.is_empty() && state.started.is_some() && (judged || !waits) {
        return fail(format!("it is {} and nothing will ever happen to it", state.phase()));
    }
    let (mut queued, mut placed) = (0, 0);
    for (at, pod) in state.pods.iter().enumerate() {
        match pod.phase {
            PodPhase::Queued => queued += 1,
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
            PodPhase::Succeeded | PodPhase::Failed | PodPhase::Gone => {}
        }
    }
    Ok((queued, placed))
}
