//! Explains why a submitted job is not done. Reasons are derived from the state, or from the object of a job that is over.

use octoflow_model::Time;
use serde_json::Value;

use super::{
    run::Run,
    state::{State, TraceOutcome, WalkStep},
    status,
};
use crate::run::explain::Explanation;

/// Explains where the job is, and every plugin that has not let it pass.
pub fn explain(run: &Run) -> Vec<Explanation> {
    let state = &run.state;
    let (reason, since) = of_whole(run);
    let mut found = vec![Explanation {
        node: state.head.name.to_string(),
        id: None,
        phase: run.walk_state().word().to_owned(),
        reason,
        since: since.or(Some(state.head.created)),
        wait: None,
    }];
    if let (Some(deadlock), None) = (&state.head.deadlock, state.finished) {
        let whole = found[0].clone();
        found.push(Explanation { reason: deadlock.to_string(), since: state.head.deadlock_at, ..whole });
    }
    found
}

fn of_whole(run: &Run) -> (String, Option<Time>) {
    let (state, walk) = (&run.state, &run.state.walk);
    let plugin = walk.plugin().map_or("", |plugin| plugin.key.as_str());
    let asked = walk.trace.last().map(|entry| entry.started);
    let told = |why: &str| if why.is_empty() { String::new() } else { format!(": {why}") };
    match walk.step {
        WalkStep::Over(_) | WalkStep::Ending(_) => (walk.message.clone(), state.finished),
        _ if state.head.suspended && !walk.gated && walk.child.is_none() => {
            ("suspended: no plugin is called until someone resumes it".to_owned(), None)
        }
        WalkStep::Ready => ("goes on at once".to_owned(), asked),
        WalkStep::Calling => (format!("waits for the answer of {plugin}{}", stage(walk)), walk.called),
        WalkStep::Pausing(until) => (format!("{plugin} is called again at {until}{}", told(&last_error(walk))), asked),
        WalkStep::Gated(None) => (format!("held by {plugin} until someone resumes it{}", told(&walk.message)), asked),
        WalkStep::Gated(Some(at)) => {
            (format!("held by {plugin}, which is asked again at {at}{}", told(&walk.message)), asked)
        }
        WalkStep::HandingOver => {
            let kind = walk.job["kind"].as_str().unwrap_or_default();
            (format!("its {kind} is being created{}", told(&walk.message)), walk.handed_over)
        }
        WalkStep::Following => {
            let Some(child) = &walk.child else { return (String::new(), walk.handed_over) };
            let (kind, name, phase) = (&child.kind, &child.name, &child.phase);
            (format!("its {kind} {name} is {phase}{}", told(status::message(run))), child.began.or(walk.handed_over))
        }
    }
}

fn stage(walk: &State) -> String {
    walk.stage.map(|stage| format!(" ({stage}, try {})", walk.tries)).unwrap_or_default()
}

fn last_error(walk: &State) -> String {
    let last = walk.trace.last().and_then(|entry| entry.outcome.as_ref());
    match last {
        Some(TraceOutcome::Error(why)) => why.clone(),
        Some(
            TraceOutcome::Job(_) | TraceOutcome::Added(_) | TraceOutcome::Factors(_) | TraceOutcome::Verdict { .. },
        )
        | None => String::new(),
    }
}

/// Explains how a job ended, from its object.
pub(super) fn ended(object: &Value) -> Vec<Explanation> {
    let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
    let status = &object["status"];
    vec![Explanation {
        node: text(&object["metadata"], "name"),
        id: None,
        phase: text(status, "phase"),
        reason: text(status, "message"),
        since: None,
        wait: None,
    }]
}
