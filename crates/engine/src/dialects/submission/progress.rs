//! Live progress of a submitted job: folds its facts into nodes (the whole, the questions to plugins, the run that came
//! out) and events to display.

use octoflow_model::{
    Fact, NodeIx, RunPhase, Time,
    plugin::PluginType,
    run::node::{NodeKind, Phase},
    submitted::{ErredCall, GateVerdict, WalkFact},
};
use serde_json::Value;

use crate::run::follow::{Event, Follow, FollowedNode, FollowedRun, TaskEvent};

/// Implements [`Follow`] for submitted jobs.
#[derive(Debug)]
pub(super) struct WalkProgress;

/// The node of the whole job; that of the stage in progress is the last one.
const WHOLE: NodeIx = NodeIx(0);

impl Follow for WalkProgress {
    fn add_known_nodes(&self, run: &mut FollowedRun, _: &Value, at: Time) {
        run.total = PluginType::STAGES.len() + 1;
        let whole = node(run, run.name.clone(), NodeKind::Dag, at);
        run.nodes.push(whole);
    }

    fn take(&self, run: &mut FollowedRun, fact: &Fact) -> Option<(Time, Event)> {
        let Fact::SubmittedJob(fact) = fact else { return None };
        take(run, fact)
    }

    fn end(&self, run: &mut FollowedRun, phase: RunPhase, at: Time) {
        if let Some(whole) = run.nodes.first_mut() {
            whole.phase = if phase == RunPhase::Succeeded { Phase::Succeeded } else { Phase::Failed };
            whole.finished = Some(at);
        }
    }

    /// The tasks of a submitted job are those of the run that came out.
    fn task_event(&self, _: &FollowedRun, _: &Fact) -> Option<TaskEvent> {
        None
    }
}

fn node(run: &FollowedRun, name: String, kind: NodeKind, at: Time) -> FollowedNode {
    let number = run.nodes.len();
    FollowedNode {
        display: name.clone(),
        name,
        kind,
        phase: Phase::Pending,
        template: String::new(),
        message: String::new(),
        started: at,
        running: None,
        finished: None,
        boundary: None,
        holder: (number > 0).then_some(WHOLE),
        progress: (0, 1),
        rank: Some(number),
        retries: 0,
        preempted: 0,
    }
}

fn take(run: &mut FollowedRun, fact: &WalkFact) -> Option<(Time, Event)> {
    match fact {
        WalkFact::Bound { stage, at, plugins } => {
            run.done = PluginType::STAGES.iter().position(|known| known == stage).unwrap_or_default();
            let first = run.began.is_none();
            if first {
                run.began = Some(*at);
                run.phase = RunPhase::Running;
                run.nodes.first_mut()?.phase = Phase::Running;
            }
            if !plugins.is_empty() {
                let stage = node(run, stage.word().to_owned(), NodeKind::StepGroup, *at);
                run.nodes.push(stage);
            }
            first.then_some((*at, Event::Began))
        }
        WalkFact::Called { at } => {
            let (at, last) = (*at, last(run)?);
            let stage = run.nodes.get_mut(last.at())?;
            stage.phase = Phase::Running;
            stage.running.is_none().then(|| stage.running = Some(at)).map(|()| (at, Event::Started(last)))
        }
        WalkFact::Erred { at, why, then } => {
            let last = last(run)?;
            let stage = run.nodes.get_mut(last.at())?;
            stage.message.clone_from(why);
            match then {
                ErredCall::Retried(until) => {
                    stage.retries += 1;
                    Some((*at, Event::Backoff { node: last, until: *until, message: why.clone() }))
                }
                ErredCall::Ignored => None,
                ErredCall::Fatal => {
                    (stage.phase, stage.finished) = (Phase::Failed, Some(*at));
                    Some((*at, Event::Finished(last)))
                }
            }
        }
        WalkFact::Judged { at, verdict, reason, .. } => {
            let last = last(run)?;
            let stage = run.nodes.get_mut(last.at())?;
            stage.message.clone_from(reason);
            match verdict {
                GateVerdict::Pass => None,
                GateVerdict::Suspend => Some((*at, Event::Suspended)),
                GateVerdict::Stop => {
                    (stage.phase, stage.finished) = (Phase::Failed, Some(*at));
                    Some((*at, Event::Finished(last)))
                }
            }
        }
        WalkFact::Released { at, .. } => Some((*at, Event::Resumed)),
        WalkFact::HandedOver { at } => {
            run.done = PluginType::STAGES.len();
            for stage in run.nodes.iter_mut().skip(1) {
                (stage.phase, stage.finished) = (Phase::Succeeded, Some(*at));
            }
            None
        }
        WalkFact::Held { why, .. } => {
            run.nodes.first_mut()?.message.clone_from(why);
            None
        }
        WalkFact::Made { at, kind, name, .. } => {
            run.nodes.first_mut()?.message.clear();
            let child = node(run, format!("{kind} {name}"), NodeKind::Pod, *at);
            run.nodes.push(child);
            None
        }
        WalkFact::Observed { at, message, began, .. } => {
            let last = last(run)?;
            let child = run.nodes.get_mut(last.at())?;
            child.message.clone_from(message);
            if began.is_none() || child.running.is_some() {
                return None;
            }
            (child.phase, child.running) = (Phase::Running, *began);
            Some((*at, Event::Started(last)))
        }
        WalkFact::Over { at, end, message } => {
            let succeeded = *end == octoflow_model::submitted::WalkEnd::Succeeded;
            run.done += usize::from(succeeded);
            for part in run.nodes.iter_mut().skip(1).filter(|part| part.finished.is_none()) {
                part.phase = if succeeded { Phase::Succeeded } else { Phase::Failed };
                part.finished = Some(*at);
                part.message.clone_from(message);
            }
            None
        }
        WalkFact::Translated { .. }
        | WalkFact::Extended { .. }
        | WalkFact::Advised { .. }
        | WalkFact::RecheckDue { .. }
        | WalkFact::Told { .. } => None,
    }
}

/// Returns the part in progress: a stage, or the run that came out.
fn last(run: &FollowedRun) -> Option<NodeIx> {
    let last = run.nodes.len().checked_sub(1).filter(|last| *last > 0)?;
    Some(NodeIx(u32::try_from(last).ok()?))
}
