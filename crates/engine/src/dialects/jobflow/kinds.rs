//! The kinds of Volcano's flow group: their rows in the table of kinds, and their table columns. Manifests of the first
//! versions write another group for the same objects, so each kind has a row in both.

use octoflow_model::{
    Time,
    jobflow::{FIRST_GROUP, GROUP, KIND, TEMPLATE_KIND, mark},
};
use serde_json::{Value, json};

use super::{
    admit::advice,
    dialect::DIALECT,
    fields::{JOB_FLOW as FLOW_FIELDS, JOB_TEMPLATE as TEMPLATE_FIELDS},
    template,
};
use crate::{
    dialects::volcano::JOB,
    kinds::{AGE, Column, Kind, MadeRuns, NAME, Rows, Storage, number, since, text, text_column, wide},
};

pub static ROWS: Rows = Rows { kinds: &[&JOB_FLOW, &FIRST_JOB_FLOW, &JOB_TEMPLATE, &FIRST_JOB_TEMPLATE], refused: &[] };

pub static JOB_FLOW: Kind = flow(GROUP, "sh.volcano.flow.v1alpha1.");
static FIRST_JOB_FLOW: Kind =
    Kind { alternate_of: Some(&JOB_FLOW), short: &[], ..flow(FIRST_GROUP, "sh.volcano.batch.v1alpha1.") };
pub static JOB_TEMPLATE: Kind = job_template(GROUP, "sh.volcano.flow.v1alpha1.");
static FIRST_JOB_TEMPLATE: Kind =
    Kind { alternate_of: Some(&JOB_TEMPLATE), short: &[], ..job_template(FIRST_GROUP, "sh.volcano.batch.v1alpha1.") };

const FLOW_COLUMNS: &[Column] = &[
    NAME,
    text_column("Status", "The phase"),
    text_column("Progress", "Jobs that are completed, of all"),
    AGE,
    wide(number("Running", "Jobs that run")),
    wide(number("Failed", "Jobs that failed or were terminated")),
    wide(text_column("Message", "Why it is in this phase")),
];

const TEMPLATE_COLUMNS: &[Column] =
    &[NAME, number("Tasks", "How many tasks there are"), number("Pods", "How many pods"), AGE];

const fn flow(group: &'static str, schema_prefix: &'static str) -> Kind {
    Kind {
        plural: "jobflows",
        singular: "jobflow",
        short: &["jf"],
        categories: &["all"],
        storage: Storage::Run(&DIALECT),
        schema_prefix,
        shape: Some(&FLOW_FIELDS),
        has_status: true,
        advise: Some(advice),
        columns: FLOW_COLUMNS,
        cells: flow_cells,
        ..Kind::new(group, "v1alpha1", KIND)
    }
}

const fn job_template(group: &'static str, schema_prefix: &'static str) -> Kind {
    Kind {
        plural: "jobtemplates",
        singular: "jobtemplate",
        short: &["jt"],
        schema_prefix,
        shape: Some(&TEMPLATE_FIELDS),
        has_status: true,
        has_computed_status: true,
        not_run: Some(("a JobTemplate does not run by itself", "run a JobFlow that names it, or convert it to a Job")),
        check: Some(template::check),
        examine: Some(template::examine),
        make: Some(template::make),
        template_of: Some(&JOB),
        made_runs: Some(MadeRuns {
            kind: JOB.key,
            label: mark::BY_TEMPLATE,
            value: template::label_of,
            status: template::status,
        }),
        columns: TEMPLATE_COLUMNS,
        cells: template_cells,
        ..Kind::new(group, "v1alpha1", TEMPLATE_KIND)
    }
}

fn flow_cells(object: &Value, now: Time) -> Vec<Value> {
    let (metadata, status) = (&object["metadata"], &object["status"]);
    let count = |list: &str| status[list].as_array().map_or(0, Vec::len);
    vec![
        metadata["name"].clone(),
        text(&status["state"]["phase"]),
        text(&status["progress"]),
        json!(since(&metadata["creationTimestamp"], now)),
        json!(count("runningJobs")),
        json!(count("failedJobs") + count("terminatedJobs")),
        text(&status["state"]["message"]),
    ]
}

fn template_cells(object: &Value, now: Time) -> Vec<Value> {
    let tasks = object["spec"]["tasks"].as_array().map_or(&[][..], Vec::as_slice);
    let pods: u64 = tasks.iter().map(|task| task["replicas"].as_u64().unwrap_or(1)).sum();
    let metadata = &object["metadata"];
    vec![metadata["name"].clone(), json!(tasks.len()), json!(pods), json!(since(&metadata["creationTimestamp"], now))]
}
