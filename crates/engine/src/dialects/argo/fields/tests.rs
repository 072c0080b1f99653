//! Checks that the table keeps its own rules and agrees with the types that deserialize what it accepts.

use std::collections::HashSet;

use octoflow_model::argo::{Template, Workflow};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    admit::shape::{self, Support},
    pod::fields::volume::SOURCES,
};

/// Returns every reachable shape, each once.
fn shapes() -> Vec<&'static Shape> {
    let mut found: Vec<&'static Shape> = vec![&WORKFLOW, &WORKFLOW_TEMPLATE, &CONFIG_MAP, &SECRET, &CLAIM];
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
    assert!(fields > 300, "only {fields} fields were reached");
}

#[test]
fn every_template_type_and_volume_source_is_in_the_table() {
    for name in TYPE_NAMES {
        assert!(TEMPLATE.field(name).is_some(), "{name}");
    }
    let volumes = WORKFLOW.field("spec").and_then(|spec| spec.shape.field("volumes")).unwrap();
    let Shape::List(volume) = volumes.shape else { panic!("volumes are a list") };
    for name in SOURCES {
        assert_eq!(volume.field(name).map(|field| field.support), Some(Support::Yes), "{name}");
    }
}

/// Builds a value with every supported field, at the edge of what is allowed.
fn filled(shape: &Shape, largest: bool, depth: usize) -> Value {
    match shape {
        Shape::Object(_) => {
            let known = shape.fields().filter(|field| field.support == Support::Yes);
            // A template inside a template inside a template tests nothing new.
            let fields = known.filter(|field| depth < 12 || field.name != "inline");
            Value::Object(
                fields.map(|field| (field.name.to_owned(), filled(field.shape, largest, depth + 1))).collect(),
            )
        }
        Shape::List(inner) => json!([filled(inner, largest, depth + 1)]),
        Shape::Map(inner) => Value::Object(Map::from_iter([("key".to_owned(), filled(inner, largest, depth + 1))])),
        Shape::Text | Shape::IntOrText | Shape::Any | Shape::Scalar => json!("text"),
        Shape::Word(words) => json!(words[0]),
        Shape::Bool => json!(largest),
        Shape::Int { least, most } => json!(if largest { most } else { least }),
        Shape::Quantity => json!("1Gi"),
        Shape::Either(short, full) => filled(if largest { full } else { short }, largest, depth + 1),
        Shape::Like { noun, .. } => unreachable!("no manifest of the dialect has {noun}"),
    }
}

#[test]
fn the_types_read_whatever_the_table_lets_through() {
    for largest in [false, true] {
        let value = filled(&WORKFLOW, largest, 0);
        let checked = shape::check(&value, &WORKFLOW);
        assert!(checked.problems.is_empty(), "{:?}", checked.problems);
        assert_eq!(checked.value, value);
        let workflow = Workflow::deserialize(&checked.value).unwrap();
        let template = Template::deserialize(&workflow.spec.templates[0]).unwrap();
        assert!(template.container.is_some() && template.dag.is_some() && template.steps.is_some());
    }
}
