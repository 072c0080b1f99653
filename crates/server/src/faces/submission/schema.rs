//! Schemas of this face for the OpenAPI document.

use serde_json::{Map, Value, json};

use super::outcome::Code;
use crate::faces::openapi::operation::{Content, refer};

/// The answer without a payload.
pub(super) fn done() -> Content {
    Content::json(refer("submission.Answer"))
}

/// The answer with this payload, or the code that says why there is none.
pub(super) fn with(payload: Value) -> Content {
    let whole = json!({"type": "object", "properties": {"payload": payload}});
    Content::json(json!({"allOf": [refer("submission.Answer"), whole]}))
}

pub(super) fn list(item: Value) -> Value {
    json!({"type": "array", "items": item})
}

/// A body with these fields; which of them are needed is told by the codes.
pub(super) fn body(fields: Value) -> Content {
    Content::json(json!({"type": "object", "properties": fields}))
}

pub(super) fn text() -> Value {
    json!({"type": "string"})
}

pub(crate) fn all() -> Vec<(&'static str, Value)> {
    let codes = Code::ALL.map(Code::word);
    let answer = json!({
        "type": "object", "required": ["code", "msg"],
        "properties": {"code": {"type": "string", "enum": codes}, "msg": text()},
    });
    let object = |required: &[&str], fields: Value| json!({"type": "object", "required": required, "properties": fields.as_object().cloned().unwrap_or_else(Map::new)});
    let selector = object(
        &[],
        json!({
            "conditions": list(object(&[], json!({"name": text(), "key": text(), "expect": text()}))),
            "expression": text(), "states": list(text()),
        }),
    );
    let plugin = object(
        &["key", "pluginType", "callAddress", "description", "jobSelector", "sequence"],
        json!({
            "key": text(), "pluginType": text(), "callAddress": text(), "description": text(),
            "jobSelector": refer("submission.Selector"), "sequence": {"type": "integer"},
            "feature": text(), "enabled": {"type": "boolean"},
        }),
    );
    let feature = object(
        &["name", "author", "description", "enabled", "authorization", "jobSelector", "plugins"],
        json!({
            "name": text(), "author": text(), "description": text(), "enabled": {"type": "boolean"},
            "authorization": {"type": "string", "description": "Always empty: it is written and never read"},
            "jobSelector": refer("submission.Selector"), "plugins": list(refer("submission.Plugin")),
        }),
    );
    vec![
        ("submission.Answer", answer),
        ("submission.Selector", selector),
        ("submission.Plugin", plugin),
        ("submission.Feature", feature),
    ]
}
