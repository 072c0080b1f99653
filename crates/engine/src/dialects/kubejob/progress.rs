//! Live progress of a job: folds its facts into nodes (the whole and its pods) and events to display.

use octoflow_model::{
    Fact, NodeIx, RunPhase, Time,
    argo::{NodeKind, Phase},
    kubejob::{KubeJobFact, PodEnd, PodOutcome, PodStop},
};
use serde_json::Value;

use super::{defaults, ident};
use crate::run::follow::{Event, Follow, FollowedNode, FollowedRun, TaskEvent};

/// Implements [`Follow`] for jobs.
#[derive(Debug)]
pub(super) struct Progress;

impl Follow for Progress {
    fn add_known_nodes(&self, run: &mut FollowedRun, manifest: &Value, at: Time) {
        let Ok(job) = defaults::read(manifest) else { return };
        run.total = job.spec.completions.unwrap_or(1) as usize;
        let name = run.name.clone();
        run.nodes.push(node(name, NodeKind::Dag, None, 0, at));
    }

    fn take(&self, run: &mut FollowedRun, fact: &Fact) -> Option<(Time, Event)> {
        let Fact::KubeJob(fact) = fact else { return None };
        take(run, fact)
    }

    fn end(&self, run: &mut FollowedRun, phase: RunPhase, at: Time) {
        if let Some(whole) = run.nodes.first_mut() {
            whole.phase = if phase == RunPhase::Succeeded { Phase::Succeeded } else { Phase::Failed };
            whole.finished = Some(at);
        }
    }

    fn task_event(&self, run: &FollowedRun, fact: &Fact) -> Option<TaskEvent> {
        let Fact::KubeJob(fact) = fact else { return None };
        if let KubeJobFact::Launched { pod, .. } = fact {
            let label = run.label(node_of(*pod));
            return Some(TaskEvent::Launched { task: NodeIx(*pod), attempt: None, label });
        }
        let KubeJobFact::Ended(end) = fact else { return None };
        Some(TaskEvent::Ended { task: NodeIx(end.pod) })
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

/// Returns the node of a pod: the job itself comes first.
fn node_of(pod: u32) -> NodeIx {
    NodeIx(1 + pod)
}

fn take(run: &mut FollowedRun, fact: &KubeJobFact) -> Option<(Time, Event)> {
    match fact {
        KubeJobFact::Began { at } => {
            run.phase = RunPhase::Running;
            run.nodes.first_mut()?.phase = Phase::Running;
            let first = run.began.is_none();
            run.began.get_or_insert(*at);
            first.then_some((*at, Event::Began))
        }
        KubeJobFact::Created { first, count, indexes, seed, at } => {
            let mut all = indexes.iter().flat_map(|range| range.0..=range.1);
            for pod in *first..*first + *count {
                let name = ident::pod_name(&run.name, all.next(), *seed, pod);
                let short = ident::short_name(&run.name, &name).to_owned();
                let mut added = node(short, NodeKind::Pod, Some(NodeIx(0)), pod as usize, *at);
                added.template = name;
                run.nodes.push(added);
            }
            None
        }
        KubeJobFact::Amended { to, .. } => {
            run.total = to.completions.unwrap_or(1) as usize;
            None
        }
        KubeJobFact::Judged { message, .. } => {
            run.nodes.first_mut()?.message.clone_from(message);
            None
        }
        KubeJobFact::Launched { pod, .. } => {
            let seen = run.nodes.get_mut(node_of(*pod).at())?;
            if seen.finished.take().is_some() {
                seen.retries += 1;
            }
            None
        }
        KubeJobFact::Started { pod, at } => {
            let node = node_of(*pod);
            let seen = run.nodes.get_mut(node.at())?;
            seen.phase = Phase::Running;
            seen.running = Some(*at);
            Some((*at, Event::Started(node)))
        }
        KubeJobFact::Ready { .. } => None,
        KubeJobFact::Ending { pod, at, why, message, .. } => {
            let node = node_of(*pod);
            run.nodes.get_mut(node.at())?.message.clone_from(message);
            (*why == PodStop::Preempted).then(|| (*at, Event::Preempted { node, message: message.clone() }))
        }
        KubeJobFact::Ended(end) => ended(run, end),
        KubeJobFact::Removed { pods, .. } => {
            for pod in pods {
                run.nodes.get_mut(node_of(*pod).at())?.phase = Phase::Skipped;
            }
            None
        }
    }
}

fn ended(run: &mut FollowedRun, end: &PodEnd) -> Option<(Time, Event)> {
    let node = node_of(end.pod);
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
    Some((end.at, event))
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
