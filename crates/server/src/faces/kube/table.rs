//! Tables for `kubectl get`: column definitions of every kind, and rows of cells.

use octoflow_control::{
    now,
    registry::{Kind, RunRow, Summary, kinds::Column},
};
use octoflow_model::Time;
use serde_json::{Value, json};

use super::form;
use crate::answer::query::Query;

/// What to include beside the cells of a row.
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

/// Returns the column definitions of a kind.
pub(super) fn heads(kind: &Kind) -> Value {
    let head = |column: &Column| {
        json!({
            "name": column.name, "type": column.kind, "format": if column.name == "Name" { "name" } else { "" },
            "description": column.about, "priority": i32::from(column.wide),
        })
    };
    kind.columns.iter().map(head).collect()
}

pub(super) fn row(kind: &Kind, object: Value, include: Include, version: &str) -> Value {
    let cells = (kind.cells)(&object, now());
    let beside = match include {
        Include::Nothing => return json!({"cells": cells}),
        Include::Metadata => form::partial(&object, version),
        Include::Object => object,
    };
    json!({"cells": cells, "object": beside})
}

/// Renders cells from the run index, for kinds whose columns need no more.
pub(super) type SummaryCells = fn(&Summary<'_>, Time) -> Vec<Value>;

/// Renders the row of a run that was not read whole.
pub(super) fn run(cells: SummaryCells, run: &RunRow, include: Include, version: &str) -> Value {
    let summary = Summary {
        name: &run.name,
        phase: &run.phase,
        message: &run.message,
        progress: &run.progress,
        priority: run.priority,
        created: run.created,
        started: run.started,
        finished: run.finished,
    };
    let cells = cells(&summary, now());
    match include {
        Include::Nothing => json!({"cells": cells}),
        Include::Metadata | Include::Object => json!({"cells": cells, "object": form::partial_of_run(run, version)}),
    }
}

pub(super) fn table(version: &str, heads: Option<Value>, metadata: Value, rows: Vec<Value>) -> Value {
    let mut table =
        json!({"kind": "Table", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": metadata, "rows": rows});
    // In a watch only the first table has them; the client remembers.
    table["columnDefinitions"] = heads.unwrap_or(Value::Null);
    table
}
