//! Validation of metadata: writable fields, names, labels, owner references. Every name that becomes a key or part of a
//! path is checked here before anything is stored.

use octoflow_model::{mark::Ownership, plugin::FEATURE_KIND};
use serde_json::{Value, json};

use super::{Cause, Fault, Kind};

/// Metadata fields that only the server sets.
pub(super) const SERVER_FIELDS: [&str; 8] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
];

/// Maximum size of all annotations of one object together.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// Checks the metadata of an object to be created and removes fields that only the server sets.
pub(super) fn check_create(kind: &'static Kind, object: &mut Value) -> Result<(), Fault> {
    let metadata = &mut object["metadata"];
    if metadata["resourceVersion"].as_str().is_some_and(|text| !text.is_empty()) {
        return Err(Fault::BadRequest("resourceVersion should not be set on objects to be created".to_owned()));
    }
    if let Some(fields) = metadata.as_object_mut() {
        SERVER_FIELDS.iter().for_each(|field| drop(fields.remove(*field)));
        fields.retain(|_, value| !value.is_null());
    }
    let name = metadata["name"].as_str().unwrap_or_default();
    let prefix = metadata["generateName"].as_str().unwrap_or_default();
    let mut causes = Vec::new();
    if name.is_empty() && prefix.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else if name.is_empty() {
        // The generated suffix consists of letters and digits.
        if let Err(why) = named(kind, &format!("{prefix}x")) {
            causes.push(Cause::invalid("metadata.generateName", why));
        }
    }
    if let Some(namespace) = metadata["namespace"].as_str()
        && let Err(why) = label_name(namespace)
    {
        causes.push(Cause::invalid("metadata.namespace", why));
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Fault::Invalid { kind, name: name.to_owned(), causes })
}

/// Checks the metadata of a changed object: preconditions must hold, and fields that only the server sets keep their
/// values.
pub(super) fn check_update(kind: &'static Kind, name: &str, before: &Value, after: &mut Value) -> Result<(), Fault> {
    let (was, is) = (&before["metadata"], &mut after["metadata"]);
    if let Some(read) = is["resourceVersion"].as_str().filter(|text| !text.is_empty())
        && was["resourceVersion"] != read
    {
        return Err(Fault::stale(kind, name));
    }
    if let Some(uid) = is["uid"].as_str().filter(|text| !text.is_empty())
        && was["uid"] != uid
    {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", text(&was["uid"]));
        return Err(Fault::Conflict { kind, name: name.to_owned(), why });
    }
    // Managed fields are handled by the caller, which knows the manager; an empty list asks to reset them.
    for field in SERVER_FIELDS.iter().filter(|field| **field != "managedFields") {
        is[*field] = was[*field].clone();
    }
    if let Some(fields) = is.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
        for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
            let empty = |value: &Value| {
                value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
            };
            if fields.get(field).is_some_and(empty) && was[field].is_null() {
                fields.remove(field);
            }
        }
    }
    let causes = wrong(kind, after);
    if !causes.is_empty() {
        return Err(Fault::Invalid { kind, name: name.to_owned(), causes });
    }
    let dying = !was["deletionTimestamp"].is_null();
    let held = |metadata: &Value| metadata["finalizers"].as_array().cloned().unwrap_or_default();
    let added = |one: &&Value| !held(was).contains(one);
    if dying && let Some(new) = held(&after["metadata"]).iter().find(added) {
        let why = format!("no new finalizers can be added if the object is being deleted, found {new}");
        let causes = vec![Cause::invalid("metadata.finalizers", why)];
        return Err(Fault::Invalid { kind, name: name.to_owned(), causes });
    }
    Ok(())
}

/// Returns true if the object is terminating and no finalizer holds it.
pub(super) fn is_released(object: &Value) -> bool {
    let metadata = &object["metadata"];
    !metadata["deletionTimestamp"].is_null() && !is_held(&Ownership::of(metadata))
}

/// Returns true if a finalizer must be removed first. The finalizer for artifact garbage collection never holds a run.
pub(crate) fn is_held(ties: &Ownership) -> bool {
    ties.finalizers.iter().any(|name| name != "workflows.argoproj.io/artifact-gc")
}

/// Returns every problem of an object's metadata.
pub(super) fn wrong(kind: &Kind, object: &Value) -> Vec<Cause> {
    let metadata = &object["metadata"];
    let mut causes = Vec::new();
    let mut bad = |field: &str, why: String| causes.push(Cause::invalid(format!("metadata.{field}"), why));
    if let Err(why) = named(kind, text(&metadata["name"])) {
        bad("name", why);
    }
    if kind.namespaced
        && let Err(why) = label_name(text(&metadata["namespace"]))
    {
        bad("namespace", why);
    }
    texts(&metadata["labels"], "labels", &mut bad, |key, value| qualified(key).and_then(|()| label_value(value)));
    let size: usize = metadata["annotations"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| key.len() + text(value).len())
        .sum();
    if size > MAX_ANNOTATION_BYTES {
        bad("annotations", format!("they have {size} bytes, and may have {MAX_ANNOTATION_BYTES}"));
    }
    texts(&metadata["annotations"], "annotations", &mut bad, |key, _| qualified(key));
    match &metadata["finalizers"] {
        Value::Null => {}
        Value::Array(names) => {
            for name in names {
                match name.as_str().map(qualified) {
                    Some(Ok(())) => {}
                    Some(Err(why)) => bad("finalizers", why),
                    None => bad("finalizers", "must be a list of texts".to_owned()),
                }
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            bad("finalizers", "must be a list of texts".to_owned())
        }
    }
    match &metadata["ownerReferences"] {
        Value::Null => {}
        Value::Array(owners) => {
            for (at, owner) in owners.iter().enumerate() {
                for field in ["apiVersion", "kind", "name", "uid"] {
                    if text(&owner[field]).is_empty() {
                        bad(&format!("ownerReferences[{at}].{field}"), "must not be empty".to_owned());
                    }
                }
            }
            if owners.iter().filter(|owner| owner["controller"] == true).count() > 1 {
                bad("ownerReferences", "only one reference can have controller set to true".to_owned());
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            bad("ownerReferences", "must be a list of references".to_owned())
        }
    }
    causes
}

fn texts(
    map: &Value,
    field: &str,
    bad: &mut impl FnMut(&str, String),
    check: impl Fn(&str, &str) -> Result<(), String>,
) {
    match map {
        Value::Null => {}
        Value::Object(entries) => {
            for (key, value) in entries {
                match value.as_str() {
                    Some(value) => {
                        if let Err(why) = check(key, value) {
                            bad(field, why);
                        }
                    }
                    None => bad(&format!("{field}.{key}"), "must be a text".to_owned()),
                }
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            bad(field, "must be a map of texts".to_owned())
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn named(kind: &Kind, name: &str) -> Result<(), String> {
    match kind.key {
        "Namespace" => label_name(name),
        // Checked with the rest of it: people and other programs have named features long before.
        FEATURE_KIND => Ok(()),
        _ => dns_name(name),
    }
}

/// Checks a name as the Kubernetes API takes it: names are part of paths and of file names.
pub(super) fn dns_name(name: &str) -> Result<(), String> {
    if name.len() <= 253 && !name.is_empty() && name.split('.').all(is_label) {
        return Ok(());
    }
    Err(format!(
        "`{}` is no name: at most 253 lower case letters, digits, `-` and `.`, with a letter or digit at both ends",
        shown(name)
    ))
}

/// Checks the name of a namespace.
pub(super) fn label_name(name: &str) -> Result<(), String> {
    if name.len() <= 63 && is_label(name) {
        return Ok(());
    }
    Err(format!(
        "`{}` is no namespace: at most 63 lower case letters, digits and `-`, with a letter or digit at both ends",
        shown(name)
    ))
}

fn is_label(part: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = part.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
}

/// Checks a key, `name` or `prefix/name`, of labels, annotations and finalizers.
fn qualified(key: &str) -> Result<(), String> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let good = prefix.is_none_or(|prefix| dns_name(prefix).is_ok()) && !name.is_empty() && is_word(name);
    if good {
        return Ok(());
    }
    Err(format!(
        "`{}` is no key: at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends, and \
         perhaps a domain and `/` before them",
        shown(key)
    ))
}

pub(crate) fn is_label_value(value: &str) -> bool {
    label_value(value).is_ok()
}

fn label_value(value: &str) -> Result<(), String> {
    if value.is_empty() || is_word(value) {
        return Ok(());
    }
    Err(format!(
        "`{}` is no value of a label: at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
        shown(value)
    ))
}

fn is_word(word: &str) -> bool {
    let bytes = word.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Shortens and escapes a name for a message.
fn shown(name: &str) -> String {
    let short: String = name.chars().take(80).collect();
    json!(short).as_str().map_or_else(String::new, |text| text.escape_debug().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::kinds;

    #[test]
    fn names_that_lead_elsewhere_are_refused_wherever_they_stand() {
        let kind = kinds::of_key("ConfigMap").unwrap();
        for name in
            ["", ".", "..", "a/b", "../a", "a/../b", "a\\b", "a\0", "A", "-a", "a-", "a..b", "ä", &"a".repeat(254)]
        {
            assert!(dns_name(name).is_err(), "{name:?}");
            let object = json!({"metadata": {"name": name, "namespace": "default"}});
            assert_eq!(wrong(kind, &object).len(), 1, "{name:?}");
            let object = json!({"metadata": {"name": "a", "namespace": name}});
            assert_eq!(wrong(kind, &object).len(), 1, "{name:?}");
        }
        assert!(dns_name("a.b-c.d0").is_ok() && label_name("a-0").is_ok() && label_name("a.b").is_err());
        let mut drawn = json!({"metadata": {"generateName": "../", "namespace": "default"}});
        assert!(check_create(kind, &mut drawn).is_err());
    }

    #[test]
    fn labels_and_references_have_a_form() {
        let kind = kinds::of_key("ConfigMap").unwrap();
        let of = |field: &str, value: Value| {
            let mut object = json!({"metadata": {"name": "a", "namespace": "n"}});
            object["metadata"][field] = value;
            wrong(kind, &object).len()
        };
        assert_eq!(of("labels", json!({"a.b/c": "d_1", "e": ""})), 0);
        assert_eq!(of("labels", json!({"a b": "x", "c": "y z", "d": 1})), 3);
        assert_eq!(of("annotations", json!({"a/b": "any text at all"})), 0);
        assert_eq!(of("finalizers", json!(["octoflow.io/x"])) + of("finalizers", json!("x")), 1);
        assert_eq!(of("ownerReferences", json!([{"uid": "u"}])), 3);
    }
}
