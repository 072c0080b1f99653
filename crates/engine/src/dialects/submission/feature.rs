//! Features as stored objects: their check, which compiles them whole, and their table cells.

use octoflow_manifest::{Path, Problem};
use octoflow_model::{
    Time,
    plugin::{FeatureSecrets, FeatureSpec},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::fields::FEATURE;
use crate::{
    admit::shape,
    kinds::{ErrorsAndWarnings, since, text},
    plugins::feature,
};

/// Fields that are written and never read.
const CREDENTIALS: [&str; 2] = ["authorization", "secret"];

/// Validates a feature: its fields, then everything that its compiler checks.
pub(super) fn check(object: &Value) -> ErrorsAndWarnings {
    let checked = shape::check(object, &FEATURE);
    let (mut errors, warnings) = (checked.problems, checked.warnings);
    if !errors.is_empty() {
        return (errors, warnings);
    }
    let mut spec = if object["spec"].is_null() { json!({}) } else { object["spec"].clone() };
    // Whoever stores a feature takes its credentials out and judges them.
    for field in CREDENTIALS {
        spec.as_object_mut().and_then(|spec| spec.remove(field));
    }
    match FeatureSpec::deserialize(&spec) {
        Ok(spec) => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let found = feature::compile(name, &spec, &FeatureSecrets::default()).err().unwrap_or_default();
            errors.extend(found.into_iter().map(placed));
        }
        Err(error) => {
            let message = format!("the feature cannot be read: {error}");
            errors.push(Problem::error(shape::code::WRONG_TYPE, message).path(Path::root().join("spec")));
        }
    }
    (errors, warnings)
}

/// Moves a problem to its place in the object: the compiler knows the name and the specification only.
fn placed(mut problem: Problem) -> Problem {
    let root = Path::root();
    problem.path = problem.path.map(|path| match path == root.join("name") {
        true => root.join("metadata").join("name"),
        false => root.join("spec").concat(&path),
    });
    problem
}

pub(super) fn cells(object: &Value, now: Time) -> Vec<Value> {
    let (metadata, spec) = (&object["metadata"], &object["spec"]);
    let plugins = spec["plugins"].as_array().map_or(&[][..], Vec::as_slice);
    let types: Vec<&str> = plugins.iter().filter_map(|plugin| plugin["pluginType"].as_str()).collect();
    vec![
        metadata["name"].clone(),
        text(&spec["author"]),
        json!(spec["enabled"].as_bool().unwrap_or_default()),
        json!(plugins.len()),
        json!(since(&metadata["creationTimestamp"], now)),
        json!(types.join(",")),
        text(&spec["description"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_is_judged_whole_and_problems_have_their_places_in_the_object() {
        let object = json!({
            "apiVersion": "octoflow.io/v1alpha1", "kind": "Feature", "metadata": {"name": "a/b"},
            "spec": {
                "author": "all", "jobSelector": {"expression": "a &&"},
                "plugins": [{"pluginType": "Foo", "callAddress": "http://x"}],
            },
        });
        let (errors, _) = check(&object);
        let places: Vec<String> =
            errors.iter().filter_map(|problem| problem.path.as_ref().map(ToString::to_string)).collect();
        for place in ["metadata.name", "spec.author", "spec.plugins[0].pluginType"] {
            assert!(places.iter().any(|known| known == place), "{place} is not among {places:?}");
        }
    }
}
