//! What the store keeps of a run beside its facts: the row that lists are made of, its ties, and its final record.

use std::collections::BTreeMap;

use octoflow_engine::Run;
use octoflow_model::task::Labels;
use octoflow_store::{Archive, Change, RunRow, RunUpdate};
use serde_json::json;

/// Who the run belongs to, and whether it is on its way out.
pub(super) fn tie(run: &Run) -> Change {
    let ownership = run.marks().ownership;
    Change::SetOwners {
        kind: run.kind().key.to_owned(),
        namespace: run.namespace().to_owned(),
        name: run.name().to_owned(),
        owners: ownership.owner_uids(),
        deleting: ownership.deleted.is_some(),
    }
}

pub(super) fn new_row(run: &Run) -> RunRow {
    let parameters: BTreeMap<&str, &str> = run.parameters().into_iter().collect();
    RunRow {
        phase: run.phase().to_owned(),
        started: run.began(),
        labels: labels(run),
        progress: progress(run),
        priority: i64::from(run.run_priority()),
        parameters: json!(parameters).to_string(),
        parent: run.parent(),
        ..RunRow::new(run.id(), run.namespace(), run.kind().key, run.name(), run.uid(), run.created())
    }
}

pub(super) fn update(run: &Run) -> RunUpdate {
    RunUpdate {
        phase: Some(run.phase().to_owned()),
        message: Some(run.message().to_owned()),
        started: run.began(),
        finished: run.ended(),
        labels: Some(labels(run)),
        progress: Some(progress(run)),
        priority: None,
    }
}

/// Labels and terms: what lists find the run by.
fn labels(run: &Run) -> Labels {
    let mut labels = run.labels();
    labels.append(&mut run.terms());
    labels
}

fn progress(run: &Run) -> String {
    let (done, all) = run.progress();
    format!("{done}/{all}")
}

pub(super) fn packed(run: &Run) -> Archive {
    Archive::pack_with(|to| run.write_record(to))
}
