//! Unknown fields and fields without effect, found by the engine's tables and reported by path. It checks nothing else;
//! whether an object makes sense is decided at admission.

use octoflow_engine::{
    Problem,
    expr::nearest,
    shape::{self, Shape, Support},
};
use serde_json::Value;

use super::Kind;

/// Maximum number of unknown fields to report.
const MAX_REPORTED: usize = 20;

/// Field that the kind does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Path, such as `spec.templates[0].nam`.
    pub path: String,
    /// Most similar known field.
    pub meant: Option<&'static str>,
}

/// Removes all unknown fields from an object and returns the first of them.
pub fn prune(kind: &Kind, object: &mut Value) -> Vec<Unknown> {
    let mut found = Vec::new();
    if let Some(shape) = kind.shape {
        walk(object, shape, &mut String::new(), &mut found);
    }
    found
}

/// Returns warnings about fields that are accepted without effect, or with another effect than expected. Fields that
/// only servers write are left out.
pub fn ineffective_fields(kind: &Kind, object: &Value) -> Vec<String> {
    let Some(shape) = kind.shape else { return Vec::new() };
    let warnings = match kind.advise {
        Some(advise) => advise(object),
        None => shape::check(object, shape).warnings,
    };
    advice(warnings)
}

/// Returns warnings as text for the author of an object, each once and without those about fields that only servers write.
pub(super) fn advice(warnings: Vec<Problem>) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for problem in warnings {
        let path = problem.path.as_ref().map(ToString::to_string).unwrap_or_default();
        let authored = ["metadata.annotations", "metadata.labels"].iter().any(|field| path.starts_with(field));
        let ours = path == "status" || path.starts_with("metadata.") && !authored;
        let text = problem.summary();
        if !ours && told.len() < MAX_REPORTED && !told.contains(&text) {
            told.push(text);
        }
    }
    told
}

/// Recursion is bounded by the nesting limit of the reader.
fn walk(value: &mut Value, shape: &Shape, path: &mut String, found: &mut Vec<Unknown>) {
    let length = path.len();
    match (shape, value) {
        (Shape::Object(_), Value::Object(fields)) => {
            fields.retain(|name, value| {
                if length > 0 {
                    path.push('.');
                }
                path.push_str(name);
                let known = shape.field(name);
                match known {
                    Some(field) if field.support == Support::Yes => walk(value, field.shape, path, found),
                    Some(_) => {}
                    None if found.len() < MAX_REPORTED => {
                        let meant = nearest(name, shape.fields().map(|field| field.name));
                        found.push(Unknown { path: path.clone(), meant });
                    }
                    None => {}
                }
                path.truncate(length);
                known.is_some()
            });
        }
        (Shape::Map(inner), Value::Object(entries)) => {
            for (name, value) in entries {
                path.push('.');
                path.push_str(name);
                walk(value, inner, path, found);
                path.truncate(length);
            }
        }
        (Shape::List(inner), Value::Array(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                path.push_str(&format!("[{index}]"));
                walk(item, inner, path, found);
                path.truncate(length);
            }
        }
        (Shape::Either(_, full), value) => walk(value, full, path, found),
        (Shape::Object(_) | Shape::Map(_) | Shape::List(_), _)
        | (Shape::Text | Shape::Word(_) | Shape::Bool | Shape::Int { .. } | Shape::IntOrText, _)
        | (Shape::Scalar | Shape::Quantity | Shape::Like { .. } | Shape::Any, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::kinds;

    #[test]
    fn unknown_fields_are_found_with_their_places_and_taken_out() {
        let mut object = json!({
            "metadata": {"name": "a", "labels": {"any": "thing"}}, "extra": {"deep": 1},
            "spec": {"entrypoin": "m", "templates": [{"name": "m", "container": {"image": "i", "comand": []}}]},
        });
        let found = prune(kinds::of_key("Workflow").unwrap(), &mut object);
        let paths: Vec<&str> = found.iter().map(|unknown| unknown.path.as_str()).collect();
        assert_eq!(paths, ["extra", "spec.entrypoin", "spec.templates[0].container.comand"]);
        assert_eq!(found[1].meant, Some("entrypoint"));
        assert_eq!(object["spec"], json!({"templates": [{"name": "m", "container": {"image": "i"}}]}));
        assert_eq!(object["metadata"]["labels"]["any"], "thing");
        assert!(prune(kinds::of_key("Workflow").unwrap(), &mut object).is_empty());
    }
}
