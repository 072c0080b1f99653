//! Field validation: unknown fields are refused, reported or dropped.

use octoflow_control::registry::{self, Kind, Unknown, ineffective_fields, prune};
use serde_json::Value;

use super::options::Validation;

/// Drops unknown fields, unless they are to be refused. Returns warnings for the author of the object.
pub(super) fn check_unknown_fields(
    kind: &'static Kind,
    object: &mut Value,
    validation: Validation,
) -> Result<Vec<String>, registry::Fault> {
    let unknown = prune(kind, object);
    if validation == Validation::Strict && !unknown.is_empty() {
        let told: Vec<String> = unknown.iter().map(told).collect();
        return Err(registry::Fault::BadRequest(format!(
            "{name} in version \"{version}\" cannot be handled as a {name}: strict decoding error: {all}",
            name = kind.name,
            version = kind.version,
            all = told.join(", "),
        )));
    }
    if validation == Validation::Ignore {
        return Ok(Vec::new());
    }
    let mut warnings: Vec<String> = unknown.iter().map(told).collect();
    warnings.extend(ineffective_fields(kind, object));
    Ok(warnings)
}

/// Returns the warnings that admission must not repeat: those already told, and those that nobody wants to hear.
pub(super) fn known_warnings(
    kind: &'static Kind,
    object: &Value,
    told: &[String],
    validation: Validation,
) -> Vec<String> {
    if kind.runs() && validation == Validation::Ignore { ineffective_fields(kind, object) } else { told.to_vec() }
}

/// Adds what admission found to what is told already.
pub(super) fn merge(mut told: Vec<String>, found: Vec<String>, known: &[String]) -> Vec<String> {
    told.extend(found.into_iter().filter(|text| !known.contains(text)));
    told
}

fn told(unknown: &Unknown) -> String {
    match unknown.meant {
        Some(meant) => format!("unknown field \"{}\" (did you mean {meant}?)", unknown.path),
        None => format!("unknown field \"{}\"", unknown.path),
    }
}
