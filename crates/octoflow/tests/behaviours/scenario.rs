//! Scenario files as values with their places, and the comparison of what was expected with what is there.

use std::{fs, path::Path as File};

use octoflow_manifest::{Document, Limits, Path, read};
use serde_json::Value;

use crate::short;

/// Every expectation that was not met, with the place of what was expected.
pub(crate) type Misses = Vec<(Path, String)>;

/// One document of a scenario file.
pub(crate) struct Scenario {
    pub(crate) file: String,
    document: Document,
}

impl Scenario {
    pub(crate) fn all(file: &File) -> Vec<Self> {
        let text = fs::read(file).unwrap();
        let documents = read(&file.display().to_string(), &text, &Limits::default());
        let documents = documents.unwrap_or_else(|problems| panic!("{problems}"));
        documents.into_iter().map(|document| Self { file: short(file), document }).collect()
    }

    pub(crate) fn value(&self) -> &Value {
        &self.document.value
    }

    /// A sentence about a place of the file: the file with its line, what it shows, and where in it.
    pub(crate) fn tell(&self, path: &Path, text: &str) -> String {
        let line = self.document.source_map.value(path).line;
        let name = self.value()["name"].as_str().unwrap_or_default();
        format!("{}:{line} {} ({name}) {path}: {text}", self.file, self.value()["covers"])
    }

    /// Rejects unknown keys: they would be expectations that nothing checks.
    pub(crate) fn knows(&self, path: &Path, words: &[&str]) {
        let mut value = self.value();
        for segment in path.segments() {
            value = match segment {
                octoflow_manifest::Segment::Key(key) => &value[key],
                octoflow_manifest::Segment::Index(index) => &value[*index],
            };
        }
        for key in value.as_object().into_iter().flat_map(|map| map.keys()) {
            assert!(words.contains(&key.as_str()), "{}", self.tell(&path.join(key.as_str()), "nobody knows this word"));
        }
    }
}

/// Compares: what is expected must be present; everything else may be anything. `{contains: …}`, `{lacks: …}` and
/// `{matches: …}` compare texts, and null means absence.
pub(crate) fn differences(expected: &Value, actual: &Value, path: &Path, found: &mut Misses) {
    match expected {
        Value::Object(map)
            if map.keys().all(|key| matches!(&**key, "contains" | "lacks" | "matches")) && !map.is_empty() =>
        {
            let text = actual.as_str().map_or_else(|| actual.to_string(), str::to_owned);
            texts(expected, &text, path, found);
        }
        Value::Object(map) => {
            for (key, expected) in map {
                differences(expected, &actual[key], &path.join(key.as_str()), found);
            }
        }
        Value::Array(list) => {
            if actual.as_array().map(Vec::len) != Some(list.len()) {
                found.push((path.clone(), format!("expected {expected}, actual {actual}")));
                return;
            }
            for (at, expected) in list.iter().enumerate() {
                differences(expected, &actual[at], &path.join(at), found);
            }
        }
        plain if plain != actual => found.push((path.clone(), format!("expected {plain}, actual {actual}"))),
        _ => {}
    }
}

/// A text against fragments: one, a list, or a mapping of comparisons.
pub(crate) fn texts(expected: &Value, actual: &str, path: &Path, found: &mut Misses) {
    let list = |value: &Value| match value {
        Value::Array(list) => list.clone(),
        one => vec![one.clone()],
    };
    let (contains, lacks, matches) = match expected {
        Value::Object(_) => (&expected["contains"], &expected["lacks"], &expected["matches"]),
        fragments => (fragments, &Value::Null, &Value::Null),
    };
    let mut miss = |text: String| found.push((path.clone(), format!("{text}, actual:\n{actual}")));
    for fragment in list(contains).iter().filter_map(Value::as_str) {
        if !actual.contains(fragment) {
            miss(format!("expected to contain {fragment:?}"));
        }
    }
    for fragment in list(lacks).iter().filter_map(Value::as_str) {
        if actual.contains(fragment) {
            miss(format!("expected not to contain {fragment:?}"));
        }
    }
    for pattern in list(matches).iter().filter_map(Value::as_str) {
        if !regex::Regex::new(pattern).unwrap().is_match(actual) {
            miss(format!("expected to match /{pattern}/"));
        }
    }
}
