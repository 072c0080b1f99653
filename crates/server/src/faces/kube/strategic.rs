//! Strategic merge patches for kinds that Kubernetes has itself: merging that knows which lists are sets or have a key.
//! Other kinds do not support them, like custom resources.

use serde_json::{Map, Value, json};

/// Merge strategy of a list.
enum Lists {
    /// The new list replaces the old one.
    Replace,
    /// Set of plain values.
    Set,
    /// Objects identified by one of their fields.
    Keyed(&'static str),
}

fn lists(field: &str) -> Lists {
    match field {
        "finalizers" => Lists::Set,
        "ownerReferences" => Lists::Keyed("uid"),
        "conditions" => Lists::Keyed("type"),
        "containers" | "initContainers" | "volumes" | "env" | "imagePullSecrets" => Lists::Keyed("name"),
        "volumeMounts" => Lists::Keyed("mountPath"),
        _ => Lists::Replace,
    }
}

const DIRECTIVE: &str = "$patch";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";
const RETAIN: &str = "$retainKeys";

/// Applies a patch to the target. Recursion is bounded by the nesting of the patch.
pub(super) fn merge(target: &mut Value, patch: &Value) -> Result<(), String> {
    let Value::Object(changes) = patch else {
        return Err("a strategic merge patch is an object".to_owned());
    };
    if !target.is_object() {
        *target = json!({});
    }
    match changes.get(DIRECTIVE).map(|word| word.as_str().unwrap_or_default()) {
        None | Some("merge") => {}
        Some("replace") => {
            let kept = changes.iter().filter(|(name, _)| !name.starts_with('$'));
            *target = Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect());
            return Ok(());
        }
        Some("delete") => {
            *target = json!({});
            return Ok(());
        }
        Some(other) => return Err(format!("$patch: {other} is not known; write merge, replace or delete")),
    }
    let Value::Object(fields) = target else { return Ok(()) };
    if let Some(kept) = changes.get(RETAIN) {
        let kept = kept.as_array().ok_or("$retainKeys must be a list of names")?;
        fields.retain(|name, _| kept.iter().any(|one| one == name.as_str()));
    }
    for (name, change) in changes {
        if let Some(list) = name.strip_prefix(DELETE_FROM) {
            let gone = change.as_array().ok_or_else(|| format!("{name} must be a list"))?;
            if let Some(Value::Array(items)) = fields.get_mut(list) {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        // The order of sets has no meaning here.
        if name.starts_with(ORDER) || name == DIRECTIVE || name == RETAIN {
            continue;
        }
        field(fields, name, change)?;
    }
    Ok(())
}

fn field(fields: &mut Map<String, Value>, name: &str, change: &Value) -> Result<(), String> {
    match change {
        Value::Null => {
            fields.remove(name);
        }
        Value::Object(inner) if inner.get(DIRECTIVE).is_some_and(|word| word == "delete") => {
            fields.remove(name);
        }
        Value::Object(_) => merge(fields.entry(name.to_owned()).or_insert(Value::Null), change)?,
        Value::Array(new) => {
            let old = match fields.remove(name) {
                Some(Value::Array(old)) => old,
                _ => Vec::new(),
            };
            let merged = list(old, new, &lists(name)).map_err(|why| format!("{name}: {why}"))?;
            fields.insert(name.to_owned(), Value::Array(merged));
        }
        plain => {
            fields.insert(name.to_owned(), plain.clone());
        }
    }
    Ok(())
}

fn list(mut old: Vec<Value>, new: &[Value], how: &Lists) -> Result<Vec<Value>, String> {
    let directive = |item: &Value| item.get(DIRECTIVE).and_then(Value::as_str).map(str::to_owned);
    let replaced = new.iter().any(|item| directive(item).as_deref() == Some("replace"));
    match how {
        _ if replaced => Ok(new.iter().filter(|item| directive(item).is_none()).cloned().collect()),
        Lists::Replace => Ok(new.to_vec()),
        Lists::Set => {
            for item in new {
                if !old.contains(item) {
                    old.push(item.clone());
                }
            }
            Ok(old)
        }
        Lists::Keyed(key) => {
            for item in new {
                let id = item.get(*key).ok_or_else(|| format!("every entry needs its `{key}`"))?;
                let at = old.iter().position(|known| known.get(*key) == Some(id));
                match (directive(item).as_deref(), at) {
                    (Some("delete"), Some(at)) => drop(old.remove(at)),
                    (Some("delete"), None) => {}
                    (_, Some(at)) => merge(&mut old[at], item)?,
                    (_, None) => old.push(item.clone()),
                }
            }
            Ok(old)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(mut target: Value, patch: &Value) -> Value {
        merge(&mut target, patch).unwrap();
        target
    }

    #[test]
    fn lists_with_a_key_are_merged_and_others_replaced() {
        let target = json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}, {"uid": "2"}],
            "finalizers": ["x", "y"]}, "spec": {"accessModes": ["a", "b"]}});
        let patch = json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "b"}, {"uid": "2", "$patch": "delete"},
            {"uid": "3"}], "$setElementOrder/finalizers": ["y", "z"], "finalizers": ["z"],
            "$deleteFromPrimitiveList/finalizers": ["x"]}, "spec": {"accessModes": ["c"]}});
        assert_eq!(
            merged(target, &patch),
            json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "b"}, {"uid": "3"}],
                "finalizers": ["y", "z"]}, "spec": {"accessModes": ["c"]}})
        );
    }

    #[test]
    fn objects_can_be_replaced_emptied_and_pruned() {
        let target = json!({"data": {"a": "1", "b": "2"}, "other": {"a": 1}, "kept": {"a": 1, "b": 2}});
        let patch = json!({"data": {"$patch": "replace", "c": "3"}, "other": {"$patch": "delete"},
            "kept": {"$retainKeys": ["a"], "a": 5}});
        assert_eq!(merged(target, &patch), json!({"data": {"c": "3"}, "kept": {"a": 5}}));
        assert!(merge(&mut json!({}), &json!({"$patch": "twist"})).is_err());
        assert!(merge(&mut json!({}), &json!({"ownerReferences": [{"name": "a"}]})).is_err());
        assert!(merge(&mut json!({}), &json!([])).is_err());
    }
}
