//! Schemas other than those of the kinds: errors, lists, messages and rows. They only describe; nothing is validated
//! against them except in tests.

use octoflow_control::registry::{Kind, schema_name};
use serde_json::{Map, Value, json};

use super::operation::refer;
use crate::{faces::submission, route::Face};

const KUBE_STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

/// Returns the name of a face's error schema.
pub(super) fn fault(face: Face) -> &'static str {
    match face {
        Face::Kube => KUBE_STATUS,
        Face::Argo => "argo.Error",
        Face::Own => "octoflow.Error",
        Face::Submission => "submission.Answer",
    }
}

/// Schema of one object of a kind, in any form a client may ask for.
pub(crate) fn object(kind: &Kind) -> Value {
    json!({"anyOf": [refer(&schema_name(kind)), refer("meta.Table"), refer("meta.PartialObjectMetadata")]})
}

/// Schema of a list of objects of a kind, in any form a client may ask for.
pub(crate) fn list(kind: &Kind) -> Value {
    let whole = json!({
        "type": "object", "required": ["apiVersion", "kind", "metadata", "items"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string", "enum": [format!("{}List", kind.name)]},
            "metadata": refer("meta.ListMeta"), "items": {"type": "array", "items": refer(&schema_name(kind))},
        },
    });
    json!({"anyOf": [whole, refer("meta.Table"), refer("meta.PartialObjectMetadataList")]})
}

/// Schema of a deletion's answer: a success status, or the object while it is terminating.
pub(crate) fn deleted(kind: &Kind) -> Value {
    json!({"anyOf": [refer(KUBE_STATUS), object(kind)]})
}

pub(crate) fn status() -> Value {
    refer(KUBE_STATUS)
}

/// Schema of a list for Argo's clients: an empty one has no items at all.
pub(crate) fn argo_list(kind: &Kind) -> Value {
    json!({
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": refer("meta.ListMeta"),
            "items": {"type": ["array", "null"], "items": refer(&schema_name(kind))},
        },
    })
}

/// Schema of an object with these optional fields.
pub(crate) fn message(fields: Value) -> Value {
    json!({"type": "object", "properties": fields})
}

/// Schema of an empty object.
pub(crate) fn empty() -> Value {
    json!({"type": "object", "maxProperties": 0})
}

/// Returns the schemas that operations of these faces refer to.
pub(super) fn of(faces: &[Face]) -> Map<String, Value> {
    let mut all = vec![("meta.ListMeta", list_meta())];
    for face in faces {
        all.extend(match face {
            Face::Kube => kube(),
            Face::Argo => argo(),
            Face::Own => own(),
            Face::Submission => submission::schemas(),
        });
    }
    all.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn text() -> Value {
    json!({"type": "string"})
}

fn list_meta() -> Value {
    json!({
        "type": "object", "required": ["resourceVersion"],
        "properties": {"resourceVersion": text(), "continue": text()},
    })
}

fn kube() -> Vec<(&'static str, Value)> {
    vec![
        (
            KUBE_STATUS,
            json!({
                "type": "object", "required": ["kind", "apiVersion", "status"],
                "properties": {
                    "kind": {"type": "string", "enum": ["Status"]}, "apiVersion": {"type": "string", "enum": ["v1"]},
                    "metadata": {"type": "object"}, "status": {"type": "string", "enum": ["Success", "Failure"]},
                    "message": text(), "reason": text(), "code": {"type": "integer"}, "details": {"type": "object"},
                },
            }),
        ),
        (
            "meta.Table",
            json!({
                "type": "object", "required": ["kind", "apiVersion", "columnDefinitions", "rows"],
                "properties": {
                    "kind": {"type": "string", "enum": ["Table"]}, "apiVersion": text(), "metadata": {"type": "object"},
                    "columnDefinitions": {"type": "array"}, "rows": {"type": "array"},
                },
            }),
        ),
        (
            "meta.PartialObjectMetadata",
            json!({
                "type": "object", "required": ["kind", "apiVersion", "metadata"],
                "properties": {
                    "kind": {"type": "string", "enum": ["PartialObjectMetadata"]}, "apiVersion": text(),
                    "metadata": {"type": "object"},
                },
            }),
        ),
        (
            "meta.PartialObjectMetadataList",
            json!({
                "type": "object", "required": ["kind", "apiVersion", "items"],
                "properties": {
                    "kind": {"type": "string", "enum": ["PartialObjectMetadataList"]}, "apiVersion": text(),
                    "metadata": refer("meta.ListMeta"),
                    "items": {"type": "array", "items": refer("meta.PartialObjectMetadata")},
                },
            }),
        ),
        (
            "meta.DeleteOptions",
            message(json!({
                "kind": text(), "apiVersion": text(), "dryRun": {"type": "array", "items": {"type": "string", "enum": ["All"]}},
                "gracePeriodSeconds": {"type": "integer", "minimum": 0}, "orphanDependents": {"type": "boolean"},
                "propagationPolicy": {"type": "string", "enum": ["Background", "Foreground", "Orphan"]},
                "preconditions": message(json!({"uid": text(), "resourceVersion": text()})),
            })),
        ),
    ]
}

fn argo() -> Vec<(&'static str, Value)> {
    vec![(
        "argo.Error",
        json!({
            "type": "object", "required": ["code", "message"],
            "properties": {"code": {"type": "integer", "description": "A code of gRPC"}, "message": text()},
        }),
    )]
}

fn own() -> Vec<(&'static str, Value)> {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let maybe = json!({"type": ["string", "null"]});
    let number = json!({"type": "integer"});
    let maybe_number = json!({"type": ["integer", "null"]});
    let cause = json!({
        "type": "object", "required": ["reason", "message", "field"],
        "properties": {"reason": text(), "message": text(), "field": text()},
    });
    vec![
        (
            "octoflow.Error",
            json!({
                "type": "object", "required": ["error"],
                "properties": {"error": {
                    "type": "object", "required": ["code", "reason", "message", "causes"],
                    "properties": {
                        "code": number, "reason": text(), "message": text(), "causes": {"type": "array", "items": cause},
                    },
                }},
            }),
        ),
        (
            "octoflow.Run",
            json!({
                "type": "object", "description": "The row of a run. Times are in microseconds.",
                "required": [
                    "run", "namespace", "kind", "name", "uid", "phase", "message", "progress", "priority", "labels",
                    "created", "started", "finished", "archived",
                ],
                "properties": {
                    "run": number, "namespace": text(), "kind": text(), "name": text(), "uid": text(), "phase": text(),
                    "message": text(), "progress": text(), "priority": number,
                    "labels": {"type": ["object", "array"]}, "created": number, "started": maybe_number,
                    "finished": maybe_number, "archived": {"type": "boolean"},
                },
            }),
        ),
        (
            "octoflow.Token",
            json!({
                "type": "object", "required": ["id", "name", "privileges"],
                "properties": {
                    "id": text(), "name": text(), "note": text(), "privileges": texts, "namespaces": texts, "created": text(), "expires": maybe,
                    "token": {"type": "string", "description": "The secret itself; told once, when it is made"},
                },
            }),
        ),
        (
            "octoflow.Privilege",
            json!({
                "type": "string",
                "enum": crate::gate::access::Privileges::ALL.words().into_iter().chain(["admin"]).collect::<Vec<_>>(),
            }),
        ),
    ]
}
