//! Tables as `kubectl get` prints them: the columns of every kind, and rows of cells.

use octoflow_control::{
    now,
    registry::{Kind, RunRow},
};
use serde_json::{Value, json};

use super::{cells, form};
use crate::query::Query;

/// What stands beside the cells of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Include {
    pub(super) fn of(query: &Query) -> Self {
        match query.get("includeObject") {
            Some("None") => Self::Nothing,
            Some("Object") => Self::Object,
            _ => Self::Metadata,
        }
    }
}

/// The head of a column.
struct Column {
    name: &'static str,
    kind: &'static str,
    about: &'static str,
    /// Only shown by `-o wide`.
    wide: bool,
}

const fn text(name: &'static str, about: &'static str) -> Column {
    Column { name, kind: "string", about, wide: false }
}

const fn number(name: &'static str, about: &'static str) -> Column {
    Column { name, kind: "integer", about, wide: false }
}

const fn wide(column: Column) -> Column {
    Column { wide: true, ..column }
}

const NAME: Column = text("Name", "The name of the object");
const AGE: Column = text("Age", "How long ago it was created");

/// Whether the row of a run tells everything that its columns want.
pub(super) fn is_row(kind: &Kind) -> bool {
    kind.name == "Workflow"
}

const TASK_SET: &[Column] = &[
    NAME,
    text("State", "What is to be said of the whole"),
    text("Phase", "How far it is"),
    text("Roles", "Of each role, the replicas that succeeded, of all"),
    number("Retries", "How often it was tried again"),
    AGE,
    wide(text("Message", "Why it is in this state")),
    wide(text("Start", "When a replica ran for the first time")),
    wide(text("Finish", "When it ended")),
];
const POD_GROUP: &[Column] = &[NAME, number("Min-Member", "So many start together"), AGE];

fn columns(kind: &str) -> &'static [Column] {
    const WORKFLOW: &[Column] = &[
        NAME,
        text("Status", "The phase of the workflow"),
        text("Progress", "Tasks that are done, of all that are known"),
        text("Duration", "How long it has run, or ran"),
        AGE,
        text("Message", "Why it is in this phase"),
        wide(number("Priority", "The higher one goes first")),
        wide(text("Finished", "How long ago it ended")),
    ];
    const TEMPLATE: &[Column] = &[
        NAME,
        text("Entrypoint", "The template workflows begin with"),
        number("Templates", "How many templates there are"),
        AGE,
    ];
    const CRON: &[Column] = &[
        NAME,
        text("Schedule", "When workflows are started"),
        wide(text("Timezone", "Whose clock the schedule means")),
        text("Suspend", "Whether no workflows are started for now"),
        number("Active", "Workflows that have not ended"),
        text("Last", "How long ago a workflow was last started"),
        AGE,
        wide(text("Concurrency", "What happens when the last workflow has not ended")),
    ];
    const BINDING: &[Column] = &[
        NAME,
        text("Event", "Which events it is for"),
        text("Template", "The workflow template that is submitted"),
        AGE,
    ];
    const CONFIG_MAP: &[Column] = &[NAME, number("Data", "How many entries it has"), AGE];
    const SECRET: &[Column] =
        &[NAME, text("Type", "What the entries are for"), number("Data", "How many entries it has"), AGE];
    const CLAIM: &[Column] = &[
        NAME,
        text("Status", "Whether it got its room"),
        text("Volume", "What it got"),
        text("Capacity", "How much it got"),
        text("Access Modes", "Who may use it at one time"),
        text("StorageClass", "What kind of storage"),
        AGE,
    ];
    const NAMESPACE: &[Column] = &[NAME, text("Status", "Whether it is in use or on its way out"), AGE];
    const POD: &[Column] = &[
        NAME,
        text("Ready", "Containers that are ready, of all"),
        text("Status", "What it is doing, or how it ended"),
        number("Restarts", "How often containers were started again"),
        AGE,
        wide(text("IP", "Its address")),
        wide(text("Node", "Where it runs")),
        wide(text("Workflow", "Which workflow or TaskSet it is a task of")),
    ];
    const EVENT: &[Column] = &[
        text("Last Seen", "How long ago it happened last"),
        text("Type", "Normal or Warning"),
        text("Reason", "What happened, in a word"),
        text("Object", "To what it happened"),
        wide(text("Source", "Who tells")),
        text("Message", "What happened"),
        wide(text("First Seen", "How long ago it happened first")),
        wide(number("Count", "How often it happened")),
        wide(NAME),
    ];
    const NODE: &[Column] = &[
        NAME,
        text("Status", "Whether it takes tasks"),
        text("Roles", "What it is for"),
        AGE,
        text("Version", "The version of its agent"),
        wide(text("Internal-IP", "Its address")),
        wide(text("OS-Image", "Its system")),
        wide(text("Kernel-Version", "Its kernel")),
        wide(text("Container-Runtime", "How it runs tasks")),
    ];
    match kind {
        "Workflow" => WORKFLOW,
        "TaskSet" => TASK_SET,
        "PodGroup" => POD_GROUP,
        "WorkflowTemplate" | "ClusterWorkflowTemplate" => TEMPLATE,
        "CronWorkflow" => CRON,
        "WorkflowEventBinding" => BINDING,
        "ConfigMap" => CONFIG_MAP,
        "Secret" => SECRET,
        "PersistentVolumeClaim" => CLAIM,
        "Namespace" => NAMESPACE,
        "Pod" => POD,
        "Event" => EVENT,
        "Node" => NODE,
        _ => &[NAME, AGE],
    }
}

/// The definitions of a kind's columns.
pub(super) fn heads(kind: &Kind) -> Value {
    let head = |column: &Column| {
        json!({
            "name": column.name, "type": column.kind, "format": if column.name == "Name" { "name" } else { "" },
            "description": column.about, "priority": i32::from(column.wide),
        })
    };
    columns(kind.name).iter().map(head).collect()
}

pub(super) fn row(kind: &Kind, object: Value, include: Include, version: &str) -> Value {
    let cells = cells::of(kind, &object, now());
    let beside = match include {
        Include::Nothing => return json!({"cells": cells}),
        Include::Metadata => form::partial(&object, version),
        Include::Object => object,
    };
    json!({"cells": cells, "object": beside})
}

/// The row of a run that was not read whole.
pub(super) fn run(run: &RunRow, include: Include, version: &str) -> Value {
    let cells = cells::of_run(run, now());
    match include {
        Include::Nothing => json!({"cells": cells}),
        Include::Metadata | Include::Object => json!({"cells": cells, "object": form::partial_of_run(run, version)}),
    }
}

pub(super) fn table(version: &str, heads: Option<Value>, metadata: Value, rows: Vec<Value>) -> Value {
    let mut table =
        json!({"kind": "Table", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": metadata, "rows": rows});
    // In a watch the first table has them, and the client remembers.
    table["columnDefinitions"] = heads.unwrap_or(Value::Null);
    table
}

#[cfg(test)]
mod tests {
    use octoflow_control::registry::KINDS;

    use super::*;

    #[test]
    fn every_row_has_as_many_cells_as_there_are_columns() {
        for kind in &KINDS {
            let cells = cells::of(kind, &json!({"metadata": {"name": "a"}}), now());
            assert_eq!(cells.len(), columns(kind.name).len(), "{}", kind.name);
        }
    }
}
