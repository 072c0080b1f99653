//! The kinds of the submission pipeline: their rows in the table of kinds, and their table columns.

use octoflow_model::{
    Time,
    plugin::{FEATURE_KIND, GROUP, JOB_KIND},
};
use serde_json::{Value, json};

use super::{
    admit::advice,
    dialect::DIALECT,
    feature,
    fields::{FEATURE as FEATURE_FIELDS, SUBMITTED_JOB as JOB_FIELDS},
};
use crate::kinds::{AGE, Column, Kind, NAME, Rows, Storage, number, since, text, text_column, wide};

pub static ROWS: Rows = Rows { kinds: &[&SUBMITTED_JOB, &FEATURE], refused: &[] };

pub static SUBMITTED_JOB: Kind = Kind {
    plural: "submittedjobs",
    singular: "submittedjob",
    short: &["sj"],
    categories: &["all"],
    storage: Storage::Run(&DIALECT),
    schema_prefix: "io.octoflow.v1alpha1.",
    shape: Some(&JOB_FIELDS),
    has_status: true,
    advise: Some(advice),
    columns: &[
        NAME,
        text_column("Status", "The state"),
        text_column("Kind", "The kind of the job, as it was submitted"),
        text_column("User", "Whose job it is"),
        AGE,
        wide(text_column("Job", "What people call it")),
        wide(text_column("State", "The finer state")),
        wide(text_column("Stage", "The stage in progress")),
        wide(text_column("Message", "Why it is in this state")),
    ],
    cells: job_cells,
    ..Kind::new(GROUP, "v1alpha1", JOB_KIND)
};

pub static FEATURE: Kind = Kind {
    plural: "features",
    singular: "feature",
    namespaced: false,
    schema_prefix: "io.octoflow.v1alpha1.",
    shape: Some(&FEATURE_FIELDS),
    not_run: Some(("a Feature does not run by itself", "enable it, and submit a job that its plugins are for")),
    check: Some(feature::check),
    columns: &[
        NAME,
        text_column("Author", "Who wrote it"),
        Column { kind: "boolean", ..text_column("Enabled", "Whether its plugins are called") },
        number("Plugins", "How many plugins it has"),
        AGE,
        wide(text_column("Types", "The types of its plugins")),
        wide(text_column("Description", "What it is for")),
    ],
    cells: feature::cells,
    ..Kind::new(GROUP, "v1alpha1", FEATURE_KIND)
};

fn job_cells(object: &Value, now: Time) -> Vec<Value> {
    let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
    vec![
        metadata["name"].clone(),
        text(&status["phase"]),
        text(&spec["jobKind"]),
        text(&spec["userID"]),
        json!(since(&metadata["creationTimestamp"], now)),
        text(&spec["jobName"]),
        text(&status["state"]),
        text(&status["stage"]),
        text(&status["message"]),
    ]
}
