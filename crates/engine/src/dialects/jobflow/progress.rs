//! Live progress of a flow: folds its facts into nodes (the whole, its entries) and events to display.

use octoflow_model::{
    Fact, NodeIx, RunPhase, Time,
    argo::{NodeKind, Phase},
    jobflow::{FlowFact, JobEnd, JobFlow},
    volcano::JobPhase,
};
use serde::Deserialize;
use serde_json::Value;

use crate::run::follow::{Event, Follow, FollowedNode, FollowedRun, TaskEvent};

/// Implements [`Follow`] for flows.
#[derive(Debug)]
pub(super) struct Progress;

impl Follow for Progress {
    fn add_known_nodes(&self, run: &mut FollowedRun, manifest: &Value, at: Time) {
        let Ok(flow) = JobFlow::deserialize(manifest) else { return };
        run.total = flow.spec.flows.len();
        let names = std::iter::once(run.name.clone()).chain(flow.spec.flows.into_iter().map(|entry| entry.name));
        for (number, name) in names.enumerate() {
            run.nodes.push(FollowedNode {
                display: name.clone(),
                name,
                kind: if number == 0 { NodeKind::Dag } else { NodeKind::Pod },
                phase: Phase::Pending,
                template: String::new(),
                message: String::new(),
                started: at,
                running: None,
                finished: None,
                boundary: None,
                holder: (number > 0).then_some(NodeIx(0)),
                progress: (0, 1),
                rank: Some(number),
                retries: 0,
                preempted: 0,
            });
        }
    }

    fn take(&self, run: &mut FollowedRun, fact: &Fact) -> Option<(Time, Event)> {
        let Fact::JobFlow(fact) = fact else { return None };
        take(run, fact)
    }

    fn end(&self, run: &mut FollowedRun, phase: RunPhase, at: Time) {
        if let Some(whole) = run.nodes.first_mut() {
            whole.phase = if phase == RunPhase::Succeeded { Phase::Succeeded } else { Phase::Failed };
            whole.finished = Some(at);
        }
    }

    /// The tasks of a flow are its jobs' tasks.
    fn task_event(&self, _: &FollowedRun, _: &Fact) -> Option<TaskEvent> {
        None
    }
}

fn node_of(entry: u32) -> NodeIx {
    NodeIx(1 + entry)
}

fn take(run: &mut FollowedRun, fact: &FlowFact) -> Option<(Time, Event)> {
    match fact {
        FlowFact::Wanted { entry, at } => {
            let seen = run.nodes.get_mut(node_of(*entry).at())?;
            if seen.running.is_some() || seen.finished.is_some() {
                seen.retries += 1;
            }
            (seen.phase, seen.finished) = (Phase::Pending, None);
            let first = run.began.is_none();
            if first {
                run.began = Some(*at);
                run.phase = RunPhase::Running;
                run.nodes.first_mut()?.phase = Phase::Running;
            }
            first.then_some((*at, Event::Began))
        }
        FlowFact::Held { entry, why, .. } => {
            run.nodes.get_mut(node_of(*entry).at())?.message.clone_from(why);
            None
        }
        FlowFact::Made { entry, name, .. } => {
            let seen = run.nodes.get_mut(node_of(*entry).at())?;
            seen.template.clone_from(name);
            seen.message.clear();
            None
        }
        FlowFact::Observed { entry, at, phase, .. } => {
            let node = node_of(*entry);
            let seen = run.nodes.get_mut(node.at())?;
            if *phase != JobPhase::Running || seen.phase == Phase::Running {
                return None;
            }
            seen.phase = Phase::Running;
            seen.running = Some(*at);
            Some((*at, Event::Started(node)))
        }
        FlowFact::Ended { entry, at, end, message, again } => {
            let node = node_of(*entry);
            let seen = run.nodes.get_mut(node.at())?;
            seen.finished = Some(*at);
            seen.message.clone_from(message);
            if let Some(until) = again {
                seen.phase = Phase::Pending;
                return Some((*at, Event::Backoff { node, until: *until, message: message.clone() }));
            }
            seen.phase = match end {
                JobEnd::Completed => Phase::Succeeded,
                JobEnd::Failed | JobEnd::Terminated | JobEnd::Deleted | JobEnd::Refused => Phase::Failed,
                JobEnd::Stopped => Phase::Skipped,
            };
            run.done += usize::from(*end == JobEnd::Completed);
            Some((*at, Event::Finished(node)))
        }
        FlowFact::Probing { .. }
        | FlowFact::ConditionMet { .. }
        | FlowFact::Removing { .. }
        | FlowFact::Removed { .. } => None,
    }
}
