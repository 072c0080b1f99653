//! Admission of anything that runs, whatever its dialect: the one door through which a manifest becomes something the
//! engine may run.

use octoflow_manifest::{Problem, Problems, Severity};
use octoflow_model::submission::Stored;
use serde_json::Value;

use crate::{argo::admit::Surroundings, dialect};

/// Something that may run. Only admission makes one.
#[derive(Debug, Clone)]
pub struct Admitted {
    pub manifest: Value,
    /// Copies of everything it refers to; they belong to the submission.
    pub stored: Stored,
    pub warnings: Vec<Problem>,
}

/// Judges one object.
pub fn admit(object: &Value, others: &dyn Surroundings) -> Result<Admitted, Problems> {
    examine(object, others)
        .map_err(|found| Problems(found.into_iter().filter(|problem| problem.severity == Severity::Error).collect()))
}

/// Judges one object, and tells of one that is not let in everything there is to tell, warnings too.
pub fn examine(object: &Value, others: &dyn Surroundings) -> Result<Admitted, Problems> {
    (dialect::of(object).examine)(object, others)
}
