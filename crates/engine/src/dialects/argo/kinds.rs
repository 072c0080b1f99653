//! Defines the kinds of the Argo dialect: their rows in the table of kinds, and their table columns.

use octoflow_model::Time;
use serde_json::{Value, json};

use super::{
    admit::{admit_template, examine_binding, examine_cron, examine_template},
    dialect::DIALECT,
    fields::{
        CRON_WORKFLOW as CRON_FIELDS, EVENT_BINDING as BINDING_FIELDS, WORKFLOW as FIELDS,
        WORKFLOW_TEMPLATE as TEMPLATE_FIELDS,
    },
    schedule::SCHEDULE,
};
use crate::{
    dialects::dialect::Summary,
    kinds::{AGE, Column, Kind, NAME, Rows, Storage, human, joined, number, short, since, text, text_column, wide},
};

pub static ROWS: Rows = Rows {
    kinds: &[&WORKFLOW, &WORKFLOW_TEMPLATE, &CLUSTER_TEMPLATE, &CRON_WORKFLOW, &EVENT_BINDING],
    refused: &["WorkflowTaskSet", "WorkflowTaskResult", "WorkflowArtifactGCTask"],
};

const fn argo(
    name: &'static str,
    plural: &'static str,
    singular: &'static str,
    short: &'static [&'static str],
) -> Kind {
    let schema_prefix = "io.argoproj.workflow.v1alpha1.";
    Kind { plural, singular, short, categories: &["argo"], schema_prefix, ..Kind::new("argoproj.io", "v1alpha1", name) }
}

pub static WORKFLOW: Kind = Kind {
    noun: "workflow",
    storage: Storage::Run(&DIALECT),
    categories: &["all", "argo"],
    shape: Some(&FIELDS),
    has_status: true,
    columns: &[
        NAME,
        text_column("Status", "The phase of the workflow"),
        text_column("Progress", "Tasks that are done, of all that are known"),
        text_column("Duration", "How long it has run, or ran"),
        AGE,
        text_column("Message", "Why it is in this phase"),
        wide(number("Priority", "The higher one goes first")),
        wide(text_column("Finished", "How long ago it ended")),
    ],
    cells: workflow,
    ..argo("Workflow", "workflows", "workflow", &["wf"])
};

const TEMPLATE: &[Column] = &[
    NAME,
    text_column("Entrypoint", "The template workflows begin with"),
    number("Templates", "How many templates there are"),
    AGE,
];

pub static WORKFLOW_TEMPLATE: Kind = Kind {
    shape: Some(&TEMPLATE_FIELDS),
    is_template: true,
    not_run: Some(("a WorkflowTemplate does not run by itself", "run a Workflow that refers to it")),
    check: Some(admit_template),
    examine: Some(examine_template),
    columns: TEMPLATE,
    cells: template,
    ..argo("WorkflowTemplate", "workflowtemplates", "workflowtemplate", &["wftmpl"])
};

pub static CLUSTER_TEMPLATE: Kind = Kind {
    namespaced: false,
    shape: Some(&TEMPLATE_FIELDS),
    is_template: true,
    not_run: Some(("a ClusterWorkflowTemplate does not run by itself", "run a Workflow that refers to it")),
    check: Some(admit_template),
    examine: Some(examine_template),
    columns: TEMPLATE,
    cells: template,
    ..argo("ClusterWorkflowTemplate", "clusterworkflowtemplates", "clusterworkflowtemplate", &["clusterwftmpl", "cwft"])
};

pub static CRON_WORKFLOW: Kind = Kind {
    categories: &["all", "argo"],
    shape: Some(&CRON_FIELDS),
    has_status: true,
    starts_runs: true,
    schedule: Some(&SCHEDULE),
    not_run: Some((
        "a CronWorkflow runs on its schedule, not by itself",
        "give it to a server; `octoflow cron preview` shows when it would run",
    )),
    examine: Some(examine_cron),
    columns: &[
        NAME,
        text_column("Schedule", "When workflows are started"),
        wide(text_column("Timezone", "Whose clock the schedule means")),
        text_column("Suspend", "Whether no workflows are started for now"),
        number("Active", "Workflows that have not ended"),
        text_column("Last", "How long ago a workflow was last started"),
        AGE,
        wide(text_column("Concurrency", "What happens when the last workflow has not ended")),
    ],
    cells: cron,
    ..argo("CronWorkflow", "cronworkflows", "cronworkflow", &["cwf", "cronwf"])
};

pub static EVENT_BINDING: Kind = Kind {
    shape: Some(&BINDING_FIELDS),
    starts_runs: true,
    not_run: Some(("a WorkflowEventBinding waits for events, it does not run", "give it to a server")),
    examine: Some(examine_binding),
    columns: &[
        NAME,
        text_column("Event", "Which events it is for"),
        text_column("Template", "The workflow template that is submitted"),
        AGE,
    ],
    cells: binding,
    ..argo("WorkflowEventBinding", "workfloweventbindings", "workfloweventbinding", &["wfeb"])
};

fn workflow(object: &Value, now: Time) -> Vec<Value> {
    let (metadata, status) = (&object["metadata"], &object["status"]);
    let time = |value: &Value| value.as_str().and_then(Time::parse);
    let (started, finished) = (time(&status["startedAt"]), time(&status["finishedAt"]));
    let duration = started.map(|start| human(finished.unwrap_or(now).since(start)));
    vec![
        metadata["name"].clone(),
        json!(status["phase"].as_str().filter(|phase| !phase.is_empty()).unwrap_or("Pending")),
        json!(status["progress"].as_str().unwrap_or_default()),
        json!(duration.unwrap_or_default()),
        json!(since(&metadata["creationTimestamp"], now)),
        json!(short(status["message"].as_str().unwrap_or_default())),
        json!(object["spec"]["priority"].as_i64().unwrap_or(0)),
        json!(finished.map(|end| human(now.since(end))).unwrap_or_default()),
    ]
}

/// Renders the table cells of a run from its summary, without reading the whole run.
pub(super) fn summary_cells(row: &Summary<'_>, now: Time) -> Vec<Value> {
    let (phase, progress) = (row.phase, row.progress);
    let duration = row.started.map(|start| human(row.finished.unwrap_or(now).since(start)));
    let finished = row.finished.map(|end| human(now.since(end)));
    let age = human(now.since(row.created));
    vec![
        json!(row.name),
        json!(if phase.is_empty() { "Pending" } else { phase }),
        json!(progress),
        json!(duration.unwrap_or_default()),
        json!(age),
        json!(short(row.message)),
        json!(row.priority),
        json!(finished.unwrap_or_default()),
    ]
}

fn name_and_age(object: &Value, now: Time) -> (Value, Value) {
    let metadata = &object["metadata"];
    (metadata["name"].clone(), json!(since(&metadata["creationTimestamp"], now)))
}

fn template(object: &Value, now: Time) -> Vec<Value> {
    let (name, age) = name_and_age(object, now);
    let templates = object["spec"]["templates"].as_array().map_or(0, Vec::len);
    vec![name, text(&object["spec"]["entrypoint"]), json!(templates), age]
}

fn cron(object: &Value, now: Time) -> Vec<Value> {
    let (name, age) = name_and_age(object, now);
    let (spec, status) = (&object["spec"], &object["status"]);
    let schedules = match spec["schedules"].as_array() {
        Some(several) => json!(joined(several, ";")),
        None => text(&spec["schedule"]),
    };
    let active = status["active"].as_array().map_or(0, Vec::len);
    let suspended = spec["suspend"].as_bool().unwrap_or(false).to_string();
    let last = &status["lastScheduledTime"];
    let last = if last.is_string() { json!(since(last, now)) } else { text(&Value::Null) };
    let (zone, concurrency) = (text(&spec["timezone"]), text(&spec["concurrencyPolicy"]));
    vec![name, schedules, zone, json!(suspended), json!(active), last, age, concurrency]
}

fn binding(object: &Value, now: Time) -> Vec<Value> {
    let (name, age) = name_and_age(object, now);
    let spec = &object["spec"];
    vec![name, text(&spec["event"]["selector"]), text(&spec["submit"]["workflowTemplateRef"]["name"]), age]
}
