//! Encodes objects and lists in the form a client asked for.

use axum::http::StatusCode;
use octoflow_control::registry::{Kind, RunRow};
use serde_json::{Map, Value, json};

use super::{
    accept::Form,
    table::{self, Include},
};
use crate::answer::{self, Answer, query::Query};

/// Answers with one object.
pub(super) fn answer(status: StatusCode, form: Form, kind: &Kind, object: Value, query: &Query) -> Answer {
    answer::with_status(status, &one(form, Include::of(query), kind, object, true))
}

/// Encodes one object; `heads` adds the column definitions to a table.
pub(super) fn one(form: Form, include: Include, kind: &Kind, object: Value, heads: bool) -> Value {
    let object = in_group(kind, object);
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
    let object = in_group(kind, object);
    match form {
        Form::Whole => object,
        Form::Metadata(version) => partial(&object, version),
        Form::Table(version) => table::row(kind, object, include, version),
    }
}

/// Gives a run that was asked for in its other group the version of that group: clients compare it with their own.
fn in_group(kind: &Kind, mut object: Value) -> Value {
    if kind.alternate_of.is_some() && object["apiVersion"].is_string() {
        object["apiVersion"] = json!(kind.api_version());
    }
    object
}

/// The text of a list up to its first item, for lists that are sent in pieces.
pub(super) fn before_items(form: Form) -> Vec<u8> {
    format!("{{\"{}\":[", items_field(form)).into_bytes()
}

/// The text of a list after its last item: the place of the next page is known only there.
pub(super) fn after_items(form: Form, include: Include, kind: &Kind, metadata: Value) -> Vec<u8> {
    let mut rest = list(form, include, kind, metadata, Vec::new());
    if let Some(fields) = rest.as_object_mut() {
        fields.remove(items_field(form));
    }
    rest.to_string().replacen('{', "],", 1).into_bytes()
}

fn items_field(form: Form) -> &'static str {
    if matches!(form, Form::Table(_)) { "rows" } else { "items" }
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
