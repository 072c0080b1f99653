//! Explains why a flow or one of its entries is not done. Reasons are derived from the state, or from the object of a flow
//! that is over.

use octoflow_model::{Time, jobflow::Strategy};
use serde_json::Value;

use super::{
    decide::{self, EntryGate},
    run::Run,
    state::{Entry, Removal, Stage},
    status,
};
use crate::run::explain::Explanation;

/// Explains what has failed and everything that is still open, from the whole to its entries.
pub fn explain(run: &Run) -> Vec<Explanation> {
    let (state, mut found) = (&run.state, Vec::new());
    let whole = |reason: String| Explanation {
        node: state.head.name.to_string(),
        id: None,
        phase: run.flow_phase().word().to_owned(),
        reason,
        since: run.began().or(Some(state.head.created)),
        wait: None,
    };
    let told = run.told();
    if state.finished.is_none() && told.closing {
        found.push(whole("it is being ended: it waits for its jobs".to_owned()));
    } else if state.finished.is_none() && told.suspended {
        found.push(whole("suspended: no job is made until someone resumes it".to_owned()));
    } else if state.flow.removal == Removal::UnderWay {
        found.push(whole("its jobs are being deleted, as its jobRetainPolicy says".to_owned()));
    } else if !state.message.is_empty() {
        found.push(whole(state.message.clone()));
    }
    found.extend(state.head.deadlock.iter().map(|deadlock| whole(deadlock.to_string())));
    let gates = decide::gates(&run.program, &state.flow);
    for (at, entry) in state.flow.entries.iter().enumerate() {
        let Some((reason, since)) = of_entry(run, at, entry, gates[at]) else { continue };
        found.push(Explanation {
            node: run.program.name(at).to_owned(),
            id: Some(run.job_name(at)),
            phase: status::stage_word(entry.stage).to_owned(),
            reason,
            since,
            wait: None,
        });
    }
    found
}

fn of_entry(run: &Run, at: usize, entry: &Entry, gate: EntryGate) -> Option<(String, Option<Time>)> {
    let job = run.job_name(at);
    Some(match entry.stage {
        Stage::Waiting => (waits_for(run, at, gate), None),
        Stage::Wanted if entry.message.is_empty() => (format!("Job {job} is being made"), None),
        Stage::Wanted => (format!("Job {job} is not made yet: {}", entry.message), None),
        Stage::Active => {
            let phase = entry.job.as_ref().map_or("", |job| job.phase.word());
            let since = entry.history.last().map(|(_, at)| *at);
            (format!("Job {job} is {phase}; `octoflow explain {job}` tells more"), since)
        }
        Stage::BackOff(until) => (format!("tried again at {until}: {}", entry.message), entry.ended),
        Stage::Over(_) if !entry.has_failed() => return None,
        Stage::Over(_) => (entry.message.clone(), entry.ended),
    })
}

fn waits_for(run: &Run, at: usize, gate: EntryGate) -> String {
    let (plan, state) = (&run.program.entries[at], &run.state.flow.entries);
    let told = |up: &usize| {
        let stage = status::stage_word(state[*up].stage);
        format!("'{}' ({stage})", run.program.name(*up))
    };
    let names: Vec<String> = plan.needs.iter().map(told).collect();
    let (joined, word) = match plan.strategy {
        Strategy::All => (names.join(" and "), "all"),
        Strategy::Any => (names.join(" or "), "one"),
    };
    let met = state[at].met.len();
    let conditions = match plan.conditions {
        0 => String::new(),
        count => format!(", and for {word} of {count} conditions of its probe, {met} of which hold"),
    };
    let why = if state[at].message.is_empty() { String::new() } else { format!(": {}", state[at].message) };
    match gate {
        EntryGate::Never => format!("can never start: it waits for {joined}{conditions}{why}"),
        EntryGate::Open => "waits to be ordered".to_owned(),
        EntryGate::Closed => format!("waits for {joined}{conditions}{why}"),
    }
}

/// Explains how a flow and its failed entries ended, from its object.
pub(super) fn ended(object: &Value) -> Vec<Explanation> {
    let text = |of: &Value, field: &str| of[field].as_str().unwrap_or_default().to_owned();
    let state = &object["status"]["state"];
    let mut found = vec![Explanation {
        node: text(&object["metadata"], "name"),
        id: None,
        phase: text(state, "phase"),
        reason: text(state, "message"),
        since: None,
        wait: None,
    }];
    for entry in object["status"]["entries"].as_array().into_iter().flatten() {
        let stage = text(entry, "stage");
        if stage == "Completed" {
            continue;
        }
        let reason = match stage.as_str() {
            "Waiting" => "it was not started: what it waits for did not complete".to_owned(),
            _ => text(entry, "message"),
        };
        let (node, id) = (text(entry, "name"), Some(text(entry, "job")));
        found.push(Explanation { node, id, phase: stage, reason, since: None, wait: None });
    }
    found
}
