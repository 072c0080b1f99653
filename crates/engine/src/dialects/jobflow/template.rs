//! JobTemplates: their admission, which is that of the Jobs made from them, and how a Job is made of one. The template is
//! never changed.

use octoflow_manifest::{Path, Problem, Severity};
use octoflow_model::{
    jobflow::{API_VERSION, FIRST_API_VERSION},
    request::MakeRequest,
    volcano,
};
use serde_json::{Value, json};

use super::patch::patched;
use crate::{
    admit::{Catalog, code, shape},
    dialects::volcano::admit as job,
    expr::digest::sha256,
    kinds::{ErrorsAndWarnings, Kind},
};

/// Longest value of a label.
const MAX_LABEL: usize = 63;

/// Validates a template with what it refers to: as the Job that would be made of it.
pub(super) fn examine(object: &Value, others: &dyn Catalog) -> ErrorsAndWarnings {
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    let version = object["apiVersion"].as_str().unwrap_or_default();
    if ![API_VERSION, FIRST_API_VERSION].contains(&version) {
        let message = match version {
            "" => "apiVersion is required".to_owned(),
            version => format!("apiVersion `{}` is not known for this kind JobTemplate", shape::short(version)),
        };
        let problem = Problem::error(code::KIND, message).path(Path::root().join("apiVersion"));
        errors.push(problem.help(format!("write `apiVersion: {API_VERSION}`")));
    }
    let mut job = object.clone();
    if let Some(fields) = job.as_object_mut() {
        fields.insert("apiVersion".to_owned(), json!(volcano::API_VERSION));
        fields.insert("kind".to_owned(), json!(volcano::KIND));
    }
    let found = match job::examine(&job, others) {
        Ok(admitted) => admitted.warnings,
        Err(problems) => problems.0,
    };
    let (bad, mild): (Vec<Problem>, Vec<Problem>) =
        found.into_iter().partition(|problem| problem.severity == Severity::Error);
    errors.extend(bad);
    warnings.extend(mild);
    (errors, warnings)
}

/// Validates a template by itself, as if everything it refers to existed.
pub(super) fn check(object: &Value) -> ErrorsAndWarnings {
    examine(object, &Everything)
}

struct Everything;

impl Catalog for Everything {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        true
    }
}

/// Makes the manifest of a Job from a template and what is asked for.
pub(super) fn make(template: &Value, asked: &MakeRequest) -> Value {
    let spec = match &asked.patch {
        Some(patch) => patched(&template["spec"], patch),
        None => template["spec"].clone(),
    };
    json!({
        "apiVersion": volcano::API_VERSION,
        "kind": volcano::KIND,
        "metadata": {
            "name": asked.name,
            "namespace": asked.namespace,
            "labels": asked.labels,
            "annotations": asked.annotations,
            "ownerReferences": [asked.owner],
        },
        "spec": spec,
    })
}

/// Returns the value of a label for a name that may be longer than a label: such a one is cut, with a digest of the whole.
pub fn label(value: &str) -> String {
    if value.len() <= MAX_LABEL {
        return value.to_owned();
    }
    let digest = &sha256(value.as_bytes())[..8];
    let end = (0..MAX_LABEL - 9).rev().find(|end| value.is_char_boundary(*end)).unwrap_or_default();
    format!("{}-{digest}", value[..end].trim_end_matches(['.', '-']))
}

/// Returns the label of the Jobs that were made from a template.
pub(super) fn label_of(namespace: &str, name: &str) -> String {
    label(&format!("{namespace}.{name}"))
}

/// Returns the status of a template from which these Jobs were made and are still there.
pub(super) fn status(jobs: Vec<String>) -> Value {
    json!({"jobDependsOnList": jobs})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_long_names_are_cut_and_stay_apart() {
        let (one, other) = (format!("default.{}a", "x".repeat(80)), format!("default.{}b", "x".repeat(80)));
        assert_eq!(label("default.a"), "default.a");
        assert!(label(&one).len() <= MAX_LABEL && label(&one) != label(&other));
    }
}
