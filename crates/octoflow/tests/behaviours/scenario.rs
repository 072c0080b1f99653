//! Scenario files as values, and the comparison of what was expected with what is there.

use std::{fs, path::Path};

use octoflow_manifest::{Limits, read};
use serde_json::Value;

pub(crate) fn documents(file: &Path) -> Vec<Value> {
    let text = fs::read(file).unwrap();
    let documents = read(&file.display().to_string(), &text, &Limits::default());
    documents.unwrap_or_else(|problems| panic!("{problems}")).into_iter().map(|document| document.value).collect()
}

/// What is expected must be there; what is not spoken of may be anything. `{contains: …}`, `{lacks: …}` and
/// `{matches: …}` compare texts, and null means that there is nothing.
pub(crate) fn differences(expected: &Value, actual: &Value, path: &str, found: &mut Vec<String>) {
    match expected {
        Value::Object(map)
            if map.keys().all(|key| matches!(&**key, "contains" | "lacks" | "matches")) && !map.is_empty() =>
        {
            let text = actual.as_str().map_or_else(|| actual.to_string(), str::to_owned);
            texts(expected, &text, path, found);
        }
        Value::Object(map) => {
            for (key, expected) in map {
                differences(expected, &actual[key], &format!("{path}.{key}"), found);
            }
        }
        Value::Array(list) => {
            if actual.as_array().map(Vec::len) != Some(list.len()) {
                found.push(format!("{path}: expected {expected}, actual {actual}"));
                return;
            }
            for (at, expected) in list.iter().enumerate() {
                differences(expected, &actual[at], &format!("{path}[{at}]"), found);
            }
        }
        plain if plain != actual => found.push(format!("{path}: expected {plain}, actual {actual}")),
        _ => {}
    }
}

/// A text against fragments: one, a list, or a mapping of comparisons.
pub(crate) fn texts(expected: &Value, actual: &str, path: &str, found: &mut Vec<String>) {
    let list = |value: &Value| match value {
        Value::Array(list) => list.clone(),
        one => vec![one.clone()],
    };
    let (contains, lacks, matches) = match expected {
        Value::Object(_) => (&expected["contains"], &expected["lacks"], &expected["matches"]),
        fragments => (fragments, &Value::Null, &Value::Null),
    };
    for fragment in list(contains).iter().filter_map(Value::as_str) {
        if !actual.contains(fragment) {
            found.push(format!("{path}: expected to contain {fragment:?}, actual:\n{actual}"));
        }
    }
    for fragment in list(lacks).iter().filter_map(Value::as_str) {
        if actual.contains(fragment) {
            found.push(format!("{path}: expected not to contain {fragment:?}, actual:\n{actual}"));
        }
    }
    for pattern in list(matches).iter().filter_map(Value::as_str) {
        if !regex::Regex::new(pattern).unwrap().is_match(actual) {
            found.push(format!("{path}: expected to match /{pattern}/, actual:\n{actual}"));
        }
    }
}
