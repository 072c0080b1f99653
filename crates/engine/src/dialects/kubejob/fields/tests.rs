//! The table keeps its own rules, and agrees with the types that read what it lets through.

use std::collections::HashSet;

use octoflow_model::kubejob::Job;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::*;
use crate::admit::shape::{self, Support};

/// Every shape that can be reached, each once.
fn shapes() -> Vec<&'static Shape> {
    let mut found: Vec<&'static Shape> = vec![&JOB];
    let mut seen: HashSet<*const Shape> = HashSet::new();
    let mut next = 0;
    while next < found.len() {
        let shape = found[next];
        next += 1;
        if !seen.insert(std::ptr::from_ref(shape)) {
            continue;
        }
        match shape {
            Shape::Object(_) => found.extend(shape.fields().map(|field| field.shape)),
            Shape::List(inner) | Shape::Map(inner) => found.push(inner),
            Shape::Either(short, full) => found.extend([*short, *full]),
            _ => {}
        }
    }
    found
}

#[test]
fn every_field_is_named_once_and_described_in_one_sentence() {
    let mut fields = 0;
    for shape in shapes() {
        let mut names = HashSet::new();
        for field in shape.fields() {
            fields += 1;
            assert!(names.insert(field.name), "`{}` stands twice in one object", field.name);
            let about = field.about;
            assert!(about.starts_with(|c: char| c.is_ascii_uppercase()), "{}: {about}", field.name);
            assert!(!about.ends_with('.') && about.len() > 5, "{}: {about}", field.name);
        }
    }
    assert!(fields > 150, "only {fields} fields were reached");
}

/// A value with every supported field, at the edge of what is allowed.
fn filled(shape: &Shape, largest: bool) -> Value {
    match shape {
        Shape::Object(_) => {
            let known = shape.fields().filter(|field| field.support == Support::Yes);
            Value::Object(known.map(|field| (field.name.to_owned(), filled(field.shape, largest))).collect())
        }
        Shape::List(inner) => json!([filled(inner, largest)]),
        Shape::Map(inner) => Value::Object(Map::from_iter([("key".to_owned(), filled(inner, largest))])),
        Shape::Text | Shape::IntOrText | Shape::Any | Shape::Scalar => json!("text"),
        Shape::Word(words) => json!(words[0]),
        // What is false may as well be left out, so only what is true shows that it is read.
        Shape::Bool => json!(true),
        Shape::Int { least, most } => json!(if largest { most } else { least }),
        Shape::Quantity => json!("1Gi"),
        Shape::Either(short, full) => filled(if largest { full } else { short }, largest),
        Shape::Like { noun, .. } => unreachable!("no manifest of the dialect has {noun}"),
    }
}

/// The places of one value that are missing in another, or say something else there.
fn missing(path: &str, given: &Value, read: &Value, found: &mut Vec<String>) {
    match (given, read) {
        (Value::Object(given), _) => {
            for (key, value) in given {
                missing(&format!("{path}.{key}"), value, &read[key], found);
            }
        }
        (Value::Array(given), _) => {
            for (at, value) in given.iter().enumerate() {
                missing(&format!("{path}[]"), value, &read[at], found);
            }
        }
        (given, read) if given != read => found.push(path.to_owned()),
        _ => {}
    }
}

/// Fields that are true of a run without being read from its manifest, or that only say how the rest is written.
const READ_ELSEWHERE: &[&str] = &[
    ".apiVersion",
    ".kind",
    // The version a field's path is written for changes nothing about it.
    ".spec.template.spec.containers[].env[].valueFrom.fieldRef.apiVersion",
    ".spec.template.spec.initContainers[].env[].valueFrom.fieldRef.apiVersion",
];

#[test]
fn the_types_read_whatever_the_table_lets_through_and_drop_nothing() {
    for largest in [false, true] {
        let value = filled(&JOB, largest);
        let checked = shape::check(&value, &JOB);
        assert!(checked.problems.is_empty(), "{:?}", checked.problems);
        assert_eq!(checked.value, value);
        let set = Job::deserialize(&checked.value).unwrap();
        let mut found = Vec::new();
        missing("", &value, &serde_json::to_value(&set).unwrap(), &mut found);
        found.retain(|path| !READ_ELSEWHERE.contains(&path.as_str()));
        assert_eq!(found, [] as [&str; 0], "these are supported, and nobody reads them");
    }
}
