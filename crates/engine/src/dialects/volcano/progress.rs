//! Live progress of a job: folds its facts into nodes (the whole, its tasks, their pods) and events to display.

use octoflow_model::{
    Fact, NodeIx, RunPhase, Time,
    argo::{NodeKind, Phase},
    volcano::{JobFact, JobPhase, PodEnd, PodOutcome, PodStop, Sizes},
};
use serde_json::Value;

use super::{defaults, ident};
use crate::run::follow::{Event, Follow, FollowedNode, FollowedRun, TaskEvent};

/// Implements [`Follow`] for jobs.
#[derive(Debug)]
pub(super) struct Progress;

impl Follow for Progress {
    fn add_known_nodes(&self, run: &mut FollowedRun, manifest: &Value, at: Time) {
        add_known_nodes(run, manifest, at);
    }

    fn take(&self, run: &mut FollowedRun, fact: &Fact) -> Option<(Time, Event)> {
        let Fact::VolcanoJob(fact) = fact else { return None };
        take(run, fact)
    }

    fn end(&self, run: &mut FollowedRun, phase: RunPhase, at: Time) {
        if let Some(whole) = run.nodes.first_mut() {
            whole.phase = if phase == RunPhase::Succeeded { Phase::Succeeded } else { Phase::Failed };
            whole.finished = Some(at);
        }
    }

    fn task_event(&self, run: &FollowedRun, fact: &Fact) -> Option<TaskEvent> {
        let Fact::VolcanoJob(fact) = fact else { return None };
        if let JobFact::Launched { pod, .. } = fact {
            let label = run.label(node_of(run, *pod));
            return Some(TaskEvent::Launched { task: NodeIx(*pod), attempt: None, label });
        }
        let JobFact::Ended(end) = fact else { return None };
        Some(TaskEvent::Ended { task: NodeIx(end.pod) })
    }
}

/// Adds all nodes of a job, which are known from its manifest.
fn add_known_nodes(run: &mut FollowedRun, manifest: &Value, at: Time) {
    let Ok(job) = defaults::read(manifest) else { return };
    run.groups = job.spec.tasks.len();
    let name = run.name.clone();
    run.nodes.push(node(name, NodeKind::Dag, None, 0, at));
    for (rank, task) in job.spec.tasks.iter().enumerate() {
        run.nodes.push(node(task.name.clone(), NodeKind::Dag, Some(NodeIx(0)), rank, at));
    }
    for (number, task) in job.spec.tasks.iter().enumerate() {
        for index in 0..task.replicas {
            let holder = Some(NodeIx(1 + number as u32));
            run.nodes.push(node(ident::short_name(&task.name, index), NodeKind::Pod, holder, index as usize, at));
            run.total += 1;
        }
    }
}

/// Adds the nodes of pods that a task did not have before, in the order of their numbers.
fn resized(run: &mut FollowedRun, sizes: &Sizes) {
    run.total = sizes.tasks.iter().map(|size| size.replicas as usize).sum();
    for (at, size) in sizes.tasks.iter().enumerate() {
        let holder = NodeIx(1 + at as u32);
        let has = run.nodes.iter().filter(|node| node.holder == Some(holder)).count() as u32;
        let name = run.nodes.get(holder.at()).map(|task| task.display.clone()).unwrap_or_default();
        for index in has..size.replicas {
            let display = ident::short_name(&name, index);
            run.nodes.push(node(display, NodeKind::Pod, Some(holder), index as usize, sizes.at));
        }
    }
}

fn node(display: String, kind: NodeKind, holder: Option<NodeIx>, rank: usize, at: Time) -> FollowedNode {
    FollowedNode {
        name: display.clone(),
        display,
        kind,
        phase: Phase::Pending,
        template: String::new(),
        message: String::new(),
        started: at,
        running: None,
        finished: None,
        boundary: None,
        holder,
        progress: (0, 1),
        rank: Some(rank),
        retries: 0,
        preempted: 0,
    }
}

/// Returns the node of a pod; pods are numbered across all tasks.
fn node_of(run: &FollowedRun, pod: u32) -> NodeIx {
    NodeIx(1 + run.groups as u32 + pod)
}

fn take(run: &mut FollowedRun, fact: &JobFact) -> Option<(Time, Event)> {
    match fact {
        JobFact::Entered { phase, at, retries, message, .. } => entered(run, *phase, *at, *retries, message),
        JobFact::Created { at, .. } if run.began.is_none() => {
            run.began = Some(*at);
            run.phase = RunPhase::Running;
            run.nodes.first_mut()?.phase = Phase::Running;
            Some((*at, Event::Began))
        }
        JobFact::Created { .. }
        | JobFact::Delayed(_)
        | JobFact::DelayEnded { .. }
        | JobFact::Ready { .. }
        | JobFact::Awaits { .. }
        | JobFact::Left { .. } => None,
        JobFact::Resized(sizes) => {
            resized(run, sizes);
            None
        }
        JobFact::Launched { pod, .. } => {
            let at = node_of(run, *pod);
            let job = run.name.clone();
            let seen = run.nodes.get_mut(at.at())?;
            if !seen.template.is_empty() {
                seen.retries += 1;
            }
            seen.template = format!("{job}-{}", seen.display);
            None
        }
        JobFact::Started { pod, at } => {
            let node = node_of(run, *pod);
            let seen = run.nodes.get_mut(node.at())?;
            seen.phase = Phase::Running;
            seen.running = Some(*at);
            let holder = seen.holder;
            if let Some(task) = holder.and_then(|holder| run.nodes.get_mut(holder.at())) {
                task.phase = Phase::Running;
            }
            Some((*at, Event::Started(node)))
        }
        JobFact::Ending { pod, at, why, message } => {
            let node = node_of(run, *pod);
            run.nodes.get_mut(node.at())?.message.clone_from(message);
            (*why == PodStop::Preempted).then(|| (*at, Event::Preempted { node, message: message.clone() }))
        }
        JobFact::Ended(end) => ended(run, end),
        JobFact::Removed { first, count, .. } => {
            for pod in *first..*first + *count {
                reset(run, pod);
            }
            None
        }
    }
}

fn entered(run: &mut FollowedRun, phase: JobPhase, at: Time, retries: u32, message: &str) -> Option<(Time, Event)> {
    let whole = run.nodes.first_mut()?;
    whole.retries = retries;
    whole.message = message.to_owned();
    let again = phase == JobPhase::Restarting;
    again.then(|| (at, Event::TriedAgain { until: at, message: message.to_owned() }))
}

fn ended(run: &mut FollowedRun, end: &PodEnd) -> Option<(Time, Event)> {
    let node = node_of(run, end.pod);
    let seen = run.nodes.get_mut(node.at())?;
    seen.running = seen.running.or(end.started);
    seen.finished = Some(end.at);
    let told = summarise(end);
    let event = match end.outcome {
        PodOutcome::Succeeded => {
            (seen.phase, seen.message) = (Phase::Succeeded, String::new());
            run.done += 1;
            Event::Finished(node)
        }
        PodOutcome::Failed => {
            (seen.phase, seen.message) = (Phase::Failed, told);
            run.done += 1;
            Event::Finished(node)
        }
        PodOutcome::Gone => {
            seen.phase = Phase::Skipped;
            Event::Stopped(node)
        }
        PodOutcome::Restarted => {
            seen.phase = Phase::Pending;
            Event::Backoff { node, until: end.again.unwrap_or(end.at), message: told }
        }
    };
    settle_task(run, node);
    Some((end.at, event))
}

/// Gives a task the phase of its pods, once they have all ended.
fn settle_task(run: &mut FollowedRun, node: NodeIx) {
    let Some(holder) = run.nodes.get(node.at()).and_then(|seen| seen.holder) else { return };
    let own = || run.nodes.iter().filter(|seen| seen.holder == Some(holder)).map(|seen| seen.phase);
    let phase = if own().any(|phase| matches!(phase, Phase::Pending | Phase::Running)) {
        return;
    } else if own().any(|phase| phase == Phase::Failed) {
        Phase::Failed
    } else {
        Phase::Succeeded
    };
    run.nodes[holder.at()].phase = phase;
}

/// Resets the node of a pod that is gone and may be created again.
fn reset(run: &mut FollowedRun, pod: u32) {
    let at = node_of(run, pod).at();
    let Some(seen) = run.nodes.get_mut(at) else { return };
    if matches!(seen.phase, Phase::Succeeded | Phase::Failed) {
        run.done = run.done.saturating_sub(1);
    }
    (seen.phase, seen.running, seen.finished) = (Phase::Pending, None, None);
}

/// Summarises how a pod ended.
fn summarise(end: &PodEnd) -> String {
    let mut parts = Vec::new();
    if !end.reason.is_empty() {
        parts.push(end.reason.clone());
    }
    if let Some(end) = end.terminated.as_ref().filter(|end| end.exit_code != 0) {
        let words = end.message.trim();
        let words = if words.is_empty() { String::new() } else { format!(": {words}") };
        parts.push(format!("{} (exit code {}){words}", end.reason, end.exit_code));
    }
    parts.join("; ")
}
