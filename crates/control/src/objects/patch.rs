//! Patches of JSON values: merge patches and JSON patches.

use serde_json::{Map, Value};

/// Applies a merge patch: fields replace fields, null removes them, lists are replaced whole. Recursion is bounded by
/// the nesting of the patch.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

/// Maximum number of operations in one patch.
const MAX_OPERATIONS: usize = 10_000;
/// Maximum bytes that one patch may copy: a few copies of copies would fill any memory.
const MAX_COPIED_BYTES: usize = 4 * 1024 * 1024;

/// Why a JSON patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error("a json patch is a list of operations")]
    NotAList,
    #[error("a json patch may have {MAX_OPERATIONS} operations at most")]
    TooManyOperations,
    #[error("a json patch may copy {MAX_COPIED_BYTES} bytes at most")]
    TooMuchCopied,
    #[error("'{0}' is no operation of a json patch")]
    UnknownOperation(String),
    #[error("'{0}' is no path; write /data/key")]
    BadPath(String),
    #[error("there is nothing at {0}")]
    Missing(String),
    #[error("the test of {0} does not hold")]
    TestFailed(String),
}

/// Applies the operations of a JSON patch, all or nothing.
pub fn apply_operations(target: &mut Value, operations: &Value) -> Result<(), PatchError> {
    let list = operations.as_array().ok_or(PatchError::NotAList)?;
    if list.len() > MAX_OPERATIONS {
        return Err(PatchError::TooManyOperations);
    }
    let mut copied = 0;
    let mut changed = target.clone();
    for operation in list {
        let text = |field: &str| operation[field].as_str().unwrap_or_default();
        let (path, value) = (text("path"), &operation["value"]);
        match text("op") {
            "add" => add(&mut changed, path, value.clone())?,
            "replace" => {
                take(&mut changed, path)?;
                add(&mut changed, path, value.clone())?;
            }
            "remove" => drop(take(&mut changed, path)?),
            "test" if changed.pointer(path) == Some(value) => {}
            "test" => return Err(PatchError::TestFailed(path.to_owned())),
            "copy" => {
                let from = changed.pointer(text("from")).ok_or_else(|| missing(text("from")))?;
                copied += from.to_string().len();
                if copied > MAX_COPIED_BYTES {
                    return Err(PatchError::TooMuchCopied);
                }
                let from = from.clone();
                add(&mut changed, path, from)?;
            }
            "move" => {
                let from = take(&mut changed, text("from"))?;
                add(&mut changed, path, from)?;
            }
            other => return Err(PatchError::UnknownOperation(other.to_owned())),
        }
    }
    *target = changed;
    Ok(())
}

fn missing(path: &str) -> PatchError {
    PatchError::Missing(path.to_owned())
}

fn split(path: &str) -> Result<(&str, String), PatchError> {
    let (parent, last) = path.rsplit_once('/').ok_or_else(|| PatchError::BadPath(path.to_owned()))?;
    Ok((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    let (parent, last) = split(path)?;
    match target.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.insert(last, value);
            Ok(())
        }
        Some(Value::Array(items)) => {
            let at = if last == "-" { Some(items.len()) } else { last.parse().ok() };
            let at = at.filter(|at| *at <= items.len()).ok_or_else(|| missing(path))?;
            items.insert(at, value);
            Ok(())
        }
        _ => Err(missing(parent)),
    }
}

fn take(target: &mut Value, path: &str) -> Result<Value, PatchError> {
    let (parent, last) = split(path)?;
    match target.pointer_mut(parent) {
        Some(Value::Object(fields)) => fields.remove(&last).ok_or_else(|| missing(path)),
        Some(Value::Array(items)) => {
            let at = last.parse().ok().filter(|at| *at < items.len()).ok_or_else(|| missing(path))?;
            Ok(items.remove(at))
        }
        _ => Err(missing(path)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merging_replaces_fields_and_removes_nulls() {
        let mut target = json!({"data": {"a": "1", "b": "2"}, "list": [1, 2]});
        merge(&mut target, &json!({"data": {"a": null, "c": "3"}, "list": [3]}));
        assert_eq!(target, json!({"data": {"b": "2", "c": "3"}, "list": [3]}));
    }

    #[test]
    fn operations_are_done_in_order_and_all_or_none() {
        let mut target = json!({"data": {"a/b": "1", "l": [1]}});
        let good = json!([
            {"op": "test", "path": "/data/a~1b", "value": "1"},
            {"op": "replace", "path": "/data/a~1b", "value": "2"},
            {"op": "add", "path": "/data/l/-", "value": 2},
            {"op": "add", "path": "/data/l/0", "value": 0},
            {"op": "copy", "from": "/data/l", "path": "/data/m"},
            {"op": "move", "from": "/data/m", "path": "/n"},
            {"op": "remove", "path": "/data/l"},
        ]);
        apply_operations(&mut target, &good).unwrap();
        assert_eq!(target, json!({"data": {"a/b": "2"}, "n": [0, 1, 2]}));
        let before = target.clone();
        for bad in [
            json!([{"op": "remove", "path": "/n"}, {"op": "test", "path": "/data", "value": 1}]),
            json!([{"op": "replace", "path": "/no", "value": 1}]),
            json!([{"op": "add", "path": "/n/9", "value": 1}]),
            json!([{"op": "twist", "path": "/n"}]),
            json!({"op": "remove"}),
        ] {
            assert!(apply_operations(&mut target, &bad).is_err(), "{bad}");
            assert_eq!(target, before);
        }
    }

    #[test]
    fn copies_of_copies_have_an_end() {
        let mut target = json!({"a": {"text": "0123456789"}});
        let copies: Vec<Value> =
            (0..40).map(|turn| json!({"op": "copy", "from": "/a", "path": format!("/a/{turn}")})).collect();
        assert_eq!(apply_operations(&mut target, &json!(copies)), Err(PatchError::TooMuchCopied));
        assert_eq!(target, json!({"a": {"text": "0123456789"}}));
    }
}
