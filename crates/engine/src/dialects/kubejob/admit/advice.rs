//! Warnings about a job that depend on no other object, for API handlers that do not look up references.

use octoflow_manifest::{Problem, Severity};
use serde_json::Value;

use super::examine;
use crate::{admit::Catalog, kinds::Kind};

/// Returns the warnings about a job, assuming that everything it refers to exists.
pub fn advice(object: &Value) -> Vec<Problem> {
    match examine(object, &Everything) {
        Ok(admitted) => admitted.warnings,
        Err(problems) => problems.0.into_iter().filter(|problem| problem.severity == Severity::Warning).collect(),
    }
}

pub(super) struct Everything;

impl Catalog for Everything {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        true
    }
}
