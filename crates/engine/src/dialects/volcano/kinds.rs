//! The kinds of Volcano's batch group: their rows in the table of kinds, and their table columns.

use octoflow_model::{
    Time,
    volcano::{GROUP, KIND},
};
use serde_json::{Value, json};

use super::{admit::advice, bus::COMMAND, dialect::DIALECT, fields::JOB as FIELDS};
use crate::kinds::{AGE, Kind, NAME, Rows, Storage, number, since, text, text_column, wide};

pub static ROWS: Rows = Rows { kinds: &[&JOB, &COMMAND], refused: &["HyperNode", "CronJob"] };

pub static JOB: Kind = Kind {
    plural: "jobs",
    singular: "job",
    short: &["vcjob", "vj"],
    categories: &["all"],
    // Other groups have Jobs too.
    word: "Job.batch.volcano.sh",
    key: "VolcanoJob",
    storage: Storage::Run(&DIALECT),
    schema_prefix: "sh.volcano.batch.v1alpha1.",
    shape: Some(&FIELDS),
    has_status: true,
    advise: Some(advice),
    columns: &[
        NAME,
        text_column("Status", "The phase"),
        number("MinAvailable", "So many pods start together"),
        number("Runnings", "Pods that run"),
        AGE,
        wide(text_column("Queue", "The queue it waits in")),
        wide(number("Retries", "How often it was restarted or resumed")),
        wide(text_column("Message", "Why it is in this phase")),
    ],
    cells,
    ..Kind::new(GROUP, "v1alpha1", KIND)
};

fn cells(object: &Value, now: Time) -> Vec<Value> {
    let (metadata, status) = (&object["metadata"], &object["status"]);
    vec![
        metadata["name"].clone(),
        text(&status["state"]["phase"]),
        json!(status["minAvailable"].as_i64().unwrap_or(0)),
        json!(status["running"].as_i64().unwrap_or(0)),
        json!(since(&metadata["creationTimestamp"], now)),
        text(&object["spec"]["queue"]),
        json!(status["retryCount"].as_i64().unwrap_or(0)),
        text(&status["state"]["message"]),
    ]
}
