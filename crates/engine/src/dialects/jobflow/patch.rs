//! Patches of a template's job: which parts of a specification are merged, and by what. The template itself is untouched.

use serde_json::{Map, Value};

/// Fields that are replaced as a whole.
const REPLACED: [&str; 8] =
    ["policies", "affinity", "securityContext", "livenessProbe", "readinessProbe", "startupProbe", "command", "args"];

/// Lists whose items are merged by the value of a field. An item without it is added. The directories of a job have no
/// names but paths.
const KEYED: [(&str, &[&str]); 8] = [
    ("tasks", &["name"]),
    ("volumes", &["name", "mountPath"]),
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("env", &["name"]),
    ("ports", &["containerPort"]),
    ("tolerations", &["key"]),
    ("hostAliases", &["ip"]),
];

/// Returns a specification with a patch: scalars replace, mappings are merged by key, lists as the tables above say, and
/// every other list is replaced. What the patch does not name, or leaves empty, stays.
pub fn patched(spec: &Value, patch: &Value) -> Value {
    let mut result = spec.clone();
    merge("", &mut result, patch);
    result
}

fn merge(field: &str, into: &mut Value, patch: &Value) {
    match patch {
        Value::Null => {}
        _ if REPLACED.contains(&field) => *into = patch.clone(),
        Value::Object(change) => match into {
            Value::Object(fields) => merge_fields(fields, change),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                *into = patch.clone()
            }
        },
        Value::Array(change) => match (into, KEYED.iter().find(|(name, _)| *name == field)) {
            (Value::Array(items), Some((_, keys))) => merge_items(field, items, change, keys),
            (into, _) => *into = patch.clone(),
        },
        Value::Bool(_) | Value::Number(_) | Value::String(_) => *into = patch.clone(),
    }
}

fn merge_fields(fields: &mut Map<String, Value>, change: &Map<String, Value>) {
    for (name, value) in change.iter().filter(|(_, value)| !value.is_null()) {
        match fields.get_mut(name) {
            Some(old) => merge(name, old, value),
            None => {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
}

fn merge_items(field: &str, items: &mut Vec<Value>, change: &[Value], keys: &[&str]) {
    let key = |item: &Value| keys.iter().find_map(|key| item.get(*key).filter(|key| !key.is_null()).cloned());
    for item in change {
        let known = key(item).and_then(|wanted| items.iter().position(|old| key(old).as_ref() == Some(&wanted)));
        match known {
            // A variable is one value: a new one must not stand beside the source of the old one.
            Some(at) if field == "env" => items[at] = item.clone(),
            Some(at) => merge("", &mut items[at], item),
            None => items.push(item.clone()),
        }
    }
}
