//! Encodes objects and lists in the form a client asked for.

use axum::http::StatusCode;
use octoflow_control::registry::{Kind, RunRow};
use serde_json::{Map, Value, json};

use super::{
    accept::Form,
    table::{self, Include, SummaryCells},
};
use crate::answer::{self, Answer, query::Query};

/// Answers with one object.
pub(super) fn answer(status: StatusCode, form: Form, kind: &Kind, object: Value, query: &Query) -> Answer {
    answer::with_status(status, &one(form, Include::of(query), kind, object, true))
}

/// Encodes one object; `heads` adds the column definitions to a table.
pub(super) fn one(form: Form, include: Include, kind: &Kind, object: Value, heads: bool) -> Value {
    match form {
        Form::Whole => object,
        Form::Metadata(version) => partial(&object, version),
        Form::Table(version) => {
            let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            let row = table::row(kind, object, include, version);
            table::table(version, heads.then(|| table::heads(kind)), metadata, vec![row])
        }
    }
}

/// Encodes the objects of a list.
pub(super) fn list(form: Form, include: Include, kind: &Kind, metadata: Value, items: Vec<Value>) -> Value {
    let items = items.into_iter().map(|object| item(form, include, kind, object)).collect();
    match form {
        Form::Whole => whole(kind, metadata, items),
        Form::Metadata(version) => partials(version, metadata, items),
        Form::Table(version) => table::table(version, Some(table::heads(kind)), metadata, items),
    }
}

/// One object as it stands in a list.
pub(super) fn item(form: Form, include: Include, kind: &Kind, object: Value) -> Value {
    match form {
        Form::Whole => object,
        Form::Metadata(version) => partial(&object, version),
        Form::Table(version) => table::row(kind, object, include, version),
    }
}

/// Encodes a table of runs from their rows alone.
pub(super) fn rows(
    cells: SummaryCells,
    version: &str,
    include: Include,
    kind: &Kind,
    metadata: Value,
    rows: &[RunRow],
) -> Value {
    let rows = rows.iter().map(|row| table::run(cells, row, include, version)).collect();
    table::table(version, Some(table::heads(kind)), metadata, rows)
}

pub(super) fn partial(object: &Value, version: &str) -> Value {
    partial_with(object["metadata"].clone(), version)
}

/// Encodes the metadata that a run's row has: enough to identify the run.
pub(super) fn partial_of_run(row: &RunRow, version: &str) -> Value {
    let mut metadata = Map::new();
    for (field, text) in [("name", &row.name), ("namespace", &row.namespace), ("uid", &row.uid)] {
        metadata.insert(field.to_owned(), json!(text));
    }
    metadata.insert("creationTimestamp".to_owned(), json!(row.created.to_string()));
    metadata.insert("resourceVersion".to_owned(), json!(row.revision.to_string()));
    if !row.labels.is_empty() {
        metadata.insert("labels".to_owned(), json!(row.labels));
    }
    partial_with(Value::Object(metadata), version)
}

fn partial_with(metadata: Value, version: &str) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": format!("meta.k8s.io/{version}"), "metadata": metadata})
}

fn partials(version: &str, metadata: Value, items: Vec<Value>) -> Value {
    json!({
        "kind": "PartialObjectMetadataList", "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": metadata, "items": items,
    })
}

fn whole(kind: &Kind, metadata: Value, items: Vec<Value>) -> Value {
    json!({
        "kind": format!("{}List", kind.name), "apiVersion": kind.api_version(), "metadata": metadata, "items": items,
    })
}
