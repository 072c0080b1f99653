//! What becomes of fields that a kind does not know: refused, told, or left out.

use octoflow_control::registry::{self, Kind, Unknown, idle, prune};
use serde_json::Value;

use super::options::Validation;

/// Leaves unknown fields out, unless that is to be refused. The answer are sentences for whoever wrote the object.
pub(super) fn settle(
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
    warnings.extend(idle(kind, object));
    Ok(warnings)
}

fn told(unknown: &Unknown) -> String {
    match unknown.meant {
        Some(meant) => format!("unknown field \"{}\" (did you mean {meant}?)", unknown.path),
        None => format!("unknown field \"{}\"", unknown.path),
    }
}
