//! Translates the facts of a workflow into events for its followers.

use octoflow_model::{
    Fact, NodeIx, RunPhase, Time,
    argo::{LifecycleFact, NodeAdded, NodeKind, Phase, Role, WorkflowFact},
};

use super::ident::{display_name, node_id};
use crate::run::{
    follow::{Event, Follow, FollowedNode, FollowedRun, TaskEvent},
    view,
};

/// Follows workflows.
#[derive(Debug)]
pub(super) struct Progress;

impl Follow for Progress {
    fn take(&self, run: &mut FollowedRun, fact: &Fact) -> Option<(Time, Event)> {
        let Fact::Workflow(fact) = fact else { return None };
        match fact {
            WorkflowFact::Began { at, .. } => {
                run.phase = RunPhase::Running;
                run.began = Some(*at);
                Some((*at, Event::Began))
            }
            WorkflowFact::Added(added) => added_node(run, added),
            WorkflowFact::Started { node, at } => {
                let seen =
                    run.nodes.get_mut(node.at()).filter(|seen| seen.running.is_none() && seen.finished.is_none())?;
                seen.phase = Phase::Running;
                seen.running = Some(*at);
                seen.kind.tasked().then_some((*at, Event::Started(*node)))
            }
            WorkflowFact::Progressed { node, done, total } => {
                let seen = run.nodes.get_mut(node.at()).filter(|seen| seen.finished.is_none())?;
                let before = std::mem::replace(&mut seen.progress, (*done, *total));
                run.done = run.done + *done as usize - before.0 as usize;
                run.total = run.total + *total as usize - before.1 as usize;
                None
            }
            WorkflowFact::Supplied { node, message, .. } => {
                let seen = run.nodes.get_mut(node.at()).filter(|_| !message.is_empty())?;
                message.clone_into(&mut seen.message);
                None
            }
            WorkflowFact::Stopping { node, message } => {
                let seen = run.nodes.get_mut(node.at()).filter(|seen| seen.finished.is_none())?;
                message.clone_into(&mut seen.message);
                None
            }
            WorkflowFact::Preempted { node, at, message } => {
                let seen = run.nodes.get_mut(node.at()).filter(|seen| seen.finished.is_none())?;
                message.clone_into(&mut seen.message);
                Some((*at, Event::Preempted { node: *node, message: message.clone() }))
            }
            WorkflowFact::Requeued { node, at, attempt, .. } => {
                requeue(run, *node, *at, *attempt);
                None
            }
            WorkflowFact::Backoff { node, at, until, message } => {
                Some((*at, Event::Backoff { node: *node, until: *until, message: message.clone() }))
            }
            WorkflowFact::Waiting { node, at, lock, holders, message } => {
                match node {
                    Some(node) => message.clone_into(&mut run.nodes.get_mut(node.at())?.message),
                    None => message.clone_into(&mut run.message),
                }
                Some((*at, Event::Locked { node: *node, lock: lock.clone(), holders: holders.clone() }))
            }
            WorkflowFact::Locked { node: None, .. } => {
                run.message.clear();
                None
            }
            WorkflowFact::Locked { node: Some(node), at, .. } => {
                let seen = run.nodes.get_mut(node.at())?;
                seen.message.clear();
                if !seen.kind.tasked() {
                    seen.phase = Phase::Running;
                }
                (seen.kind == NodeKind::Suspend).then_some((*at, Event::Waits(*node)))
            }
            WorkflowFact::Finished(end) => {
                let message = readable(run, &end.message);
                let seen = run.nodes.get_mut(end.node.at()).filter(|seen| seen.finished.is_none())?;
                seen.phase = end.phase;
                seen.finished = Some(end.at);
                seen.message = message;
                if counts(seen.kind) && !end.phase.bad() {
                    let (done, total) = seen.progress;
                    run.done += (total - done) as usize;
                    seen.progress = (total, total);
                }
                is_told(seen.kind).then_some((end.at, Event::Finished(end.node)))
            }
            WorkflowFact::Wanted { .. }
            | WorkflowFact::Expanded { .. }
            | WorkflowFact::Launched { .. }
            | WorkflowFact::ChildCreated { .. }
            | WorkflowFact::Settled { .. }
            | WorkflowFact::Metered(_)
            | WorkflowFact::Unmetered { .. }
            | WorkflowFact::Due { .. }
            | WorkflowFact::Expired { .. }
            | WorkflowFact::Daemoned { .. }
            | WorkflowFact::Dismissed { .. }
            | WorkflowFact::Recalled { .. }
            | WorkflowFact::Memoized { .. }
            | WorkflowFact::Exported { .. } => None,
        }
    }

    fn readable(&self, run: &FollowedRun, message: &str) -> String {
        readable(run, message)
    }

    fn task_event(&self, run: &FollowedRun, fact: &Fact) -> Option<TaskEvent> {
        let Fact::Workflow(fact) = fact else { return None };
        match fact.lifecycle()? {
            LifecycleFact::Launched(task) => {
                let attempt = run.nodes.get(task.at()).map_or(0, |seen| seen.preempted);
                Some(TaskEvent::Launched { task, attempt: Some(attempt), label: run.label(task) })
            }
            LifecycleFact::Finished(end) => Some(TaskEvent::Ended { task: end.node }),
            LifecycleFact::Requeued(task) => Some(TaskEvent::Ended { task }),
            LifecycleFact::Began | LifecycleFact::Added(_) => None,
        }
    }
}

/// Makes a preempted node pending again, and the containers of its pod.
fn requeue(run: &mut FollowedRun, node: NodeIx, at: Time, attempt: u32) {
    for (index, seen) in run.nodes.iter_mut().enumerate().skip(node.at()) {
        let of_pod = seen.kind == NodeKind::Container && seen.boundary == Some(node);
        if index == node.at() || of_pod {
            let before = std::mem::replace(&mut seen.progress, (0, 1));
            (seen.phase, seen.started, seen.running, seen.finished) = (Phase::Pending, at, None, None);
            run.done -= before.0 as usize;
            run.total = run.total + 1 - before.1 as usize;
        }
        if index == node.at() {
            seen.preempted = attempt;
        }
    }
}

/// Replaces node ids in a message by display names.
fn readable(run: &FollowedRun, message: &str) -> String {
    // Only messages about children contain ids, and there are few of them, so a linear search is cheap enough.
    let named =
        |id: &str| run.nodes.iter().find(|seen| node_id(&run.name, &seen.name) == id).map(|seen| seen.display.clone());
    view::readable(message, named)
}

fn added_node(run: &mut FollowedRun, added: &NodeAdded) -> Option<(Time, Event)> {
    let at = NodeIx(u32::try_from(run.nodes.len()).expect("runs have fewer than four billion nodes"));
    let boundary_name = added.boundary.and_then(|boundary| run.nodes.get(boundary.at())).map(|seen| seen.name.as_str());
    let display = match &added.display {
        Some(display) => display.clone(),
        None => display_name(&added.name, boundary_name).to_owned(),
    };
    let held = matches!(added.role, Role::Group(_) | Role::Step { .. } | Role::Attempt(_));
    let add_final = added.phase.fulfilled();
    run.nodes.push(FollowedNode {
        name: added.name.clone(),
        display,
        kind: added.kind,
        phase: added.phase,
        template: added.template.clone().unwrap_or_default(),
        message: added.message.clone(),
        started: added.at,
        running: None,
        finished: add_final.then_some(added.at),
        boundary: added.boundary,
        holder: if held { added.parent.or(added.boundary) } else { added.boundary },
        progress: (u32::from(add_final), 1),
        rank: None,
        retries: 0,
        preempted: 0,
    });
    run.total += usize::from(counts(added.kind));
    run.done += usize::from(counts(added.kind) && add_final);
    if add_final {
        is_told(added.kind).then_some((added.at, Event::Finished(at)))
    } else {
        (added.kind == NodeKind::Suspend && !added.barred).then_some((added.at, Event::Waits(at)))
    }
}

fn counts(kind: NodeKind) -> bool {
    kind.executable()
}

/// Whether an event is sent for the end of such a node. Groups and graphs end with their last step, which had an event.
fn is_told(kind: NodeKind) -> bool {
    kind.executable() || kind == NodeKind::Skipped
}
