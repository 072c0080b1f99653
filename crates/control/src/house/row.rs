//! What the store keeps of a run beside its facts: the row that lists are made of, its ties, and its final record.

use std::collections::BTreeMap;

use octoflow_engine::argo::{Run, mark, status};
use octoflow_store::{Archive, Change, RunRow, RunUpdate};
use serde_json::json;

use crate::archive;

/// The kind of the runs this house has.
pub(super) const KIND: &str = "Workflow";

/// Who the run belongs to, and whether it is on its way out.
pub(super) fn tie(run: &Run) -> Change {
    let ties = mark::marks(run).ties;
    Change::Tie {
        kind: KIND.to_owned(),
        namespace: run.state.namespace.to_string(),
        name: run.state.name.to_string(),
        owners: ties.owner_uids(),
        leaving: ties.deleted.is_some(),
    }
}

pub(super) fn new_row(run: &Run) -> RunRow {
    let state = &run.state;
    let parameters = &run.program.workflow.spec.arguments.parameters;
    let parameters: BTreeMap<&str, &str> = parameters
        .iter()
        .filter_map(|parameter| Some((parameter.name.as_str(), parameter.value.as_ref()?.0.as_str())))
        .collect();
    RunRow {
        phase: state.phase.word().to_owned(),
        started: state.began,
        labels: status::labels(run),
        progress: progress(run),
        priority: i64::from(run.program.workflow.spec.priority.unwrap_or(0)),
        parameters: json!(parameters).to_string(),
        parent: state.parent,
        ..RunRow::new(run.id, &state.namespace, KIND, &state.name, &state.uid, state.created)
    }
}

pub(super) fn update(run: &Run) -> RunUpdate {
    let state = &run.state;
    RunUpdate {
        phase: Some(state.phase.word().to_owned()),
        message: Some(state.message.clone()),
        started: state.began,
        finished: state.ended,
        labels: Some(status::labels(run)),
        progress: Some(progress(run)),
        priority: None,
    }
}

fn progress(run: &Run) -> String {
    format!("{}/{}", run.state.progress.0, run.state.progress.1)
}

pub(super) fn packed(run: &Run) -> Archive {
    Archive::pack_with(|to| archive::write_record(run, to))
}
