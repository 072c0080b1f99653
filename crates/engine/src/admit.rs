//! Admission of anything that runs, whatever its dialect: the one entry point through which a manifest becomes something the
//! engine may run.

use octoflow_manifest::{Problem, Problems, Severity};
use octoflow_model::submission::Stored;
use serde_json::Value;

use crate::kinds;

pub use crate::argo::refer::Reach;

/// Something that may run. Only admission makes one.
#[derive(Debug, Clone)]
pub struct Admitted {
    pub manifest: Value,
    /// Copies of everything it refers to; they belong to the submission.
    pub stored: Stored,
    pub warnings: Vec<Problem>,
}

/// What else is there. A missing ConfigMap, Secret or claim is only warned of: it may be optional, or arrive later.
pub trait Catalog {
    fn has_config_map(&self, namespace: &str, name: &str) -> bool;
    fn has_secret(&self, namespace: &str, name: &str) -> bool;
    fn has_claim(&self, namespace: &str, name: &str) -> bool;
    /// Whether a ConfigMap that is there has this key; believed where nobody looks inside.
    fn has_config_key(&self, namespace: &str, name: &str, key: &str) -> bool {
        let _ = (namespace, name, key);
        true
    }
    /// Whether a Secret that is there has this key.
    fn has_secret_key(&self, namespace: &str, name: &str, key: &str) -> bool {
        let _ = (namespace, name, key);
        true
    }
    /// The ConfigMap as it was given, where somebody can look inside.
    fn config_map(&self, namespace: &str, name: &str) -> Option<Value> {
        let _ = (namespace, name);
        None
    }
    /// The PodGroup of this name, as it was given.
    fn pod_group(&self, namespace: &str, name: &str) -> Option<Value> {
        let _ = (namespace, name);
        None
    }
    /// Whether this path of the machine may be mounted where the run would be; else why not, and what to do.
    fn host_path(&self, path: &str) -> Result<(), String> {
        let _ = path;
        Ok(())
    }
    /// The WorkflowTemplate or ClusterWorkflowTemplate of this name, as it was given.
    fn template(&self, reach: Reach, namespace: &str, name: &str) -> Option<Value>;
    fn template_names(&self, reach: Reach, namespace: &str) -> Vec<String>;
}

/// Judges one object.
pub fn admit(object: &Value, others: &dyn Catalog) -> Result<Admitted, Problems> {
    examine(object, others)
        .map_err(|found| Problems(found.into_iter().filter(|problem| problem.severity == Severity::Error).collect()))
}

/// Judges one object, and tells of one that is not let in everything there is to tell, warnings too.
pub fn examine(object: &Value, others: &dyn Catalog) -> Result<Admitted, Problems> {
    (kinds::dialect_of(object)?.examine)(object, others)
}
