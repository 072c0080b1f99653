//! Admission of runs of every dialect: the only way a manifest becomes something the engine may run.

pub mod capacity;
pub mod code;
pub(crate) mod findings;
mod references;
pub mod shape;

use octoflow_manifest::{Problem, Problems, Severity};
use octoflow_model::submission::Stored;
use serde_json::Value;

use crate::{
    dialects::dialect::Program,
    kinds::{
        self, Kind,
        core::{CONFIG_MAP, SECRET, VOLUME_CLAIM},
        scheduling::QueueState,
    },
    schedule::spec::{NodeSpec, QueueSpec},
};

pub use crate::dialects::argo::refer::Reach;

/// An admitted manifest. Only admission creates one.
#[derive(Debug, Clone)]
pub struct Admitted {
    pub manifest: Value,
    /// Copies of the objects it refers to; they become part of the submission.
    pub stored: Stored,
    pub warnings: Vec<Problem>,
    /// The manifest compiled, if admission had to.
    pub program: Option<Program>,
}

/// The objects that a manifest may refer to. A missing ConfigMap, Secret or claim is only a warning: it may be
/// optional, or be created later.
pub trait Catalog {
    /// Reports whether there is such a ConfigMap, Secret or claim.
    fn has_object(&self, kind: &'static Kind, namespace: &str, name: &str) -> bool;
    fn has_config_map(&self, namespace: &str, name: &str) -> bool {
        self.has_object(&CONFIG_MAP, namespace, name)
    }
    fn has_secret(&self, namespace: &str, name: &str) -> bool {
        self.has_object(&SECRET, namespace, name)
    }
    fn has_claim(&self, namespace: &str, name: &str) -> bool {
        self.has_object(&VOLUME_CLAIM, namespace, name)
    }
    /// Reports whether an existing ConfigMap has this key; assumed where the content is not available.
    fn has_config_key(&self, namespace: &str, name: &str, key: &str) -> bool {
        let _ = (namespace, name, key);
        true
    }
    /// Reports whether an existing Secret has this key; assumed where the content is not available.
    fn has_secret_key(&self, namespace: &str, name: &str, key: &str) -> bool {
        let _ = (namespace, name, key);
        true
    }
    /// Returns the ConfigMap as it was given, where the content is available.
    fn config_map(&self, namespace: &str, name: &str) -> Option<Value> {
        let _ = (namespace, name);
        None
    }
    /// Returns the PodGroup of this name, as it was given.
    fn pod_group(&self, namespace: &str, name: &str) -> Option<Value> {
        let _ = (namespace, name);
        None
    }
    /// Returns the JobTemplate of this name, as it was given, where it is worth a look at the Jobs that will be made of it.
    fn job_template(&self, namespace: &str, name: &str) -> Option<Value> {
        let _ = (namespace, name);
        None
    }
    /// Returns whether a queue takes work; `None` where queues are not available.
    fn queue(&self, name: &str) -> Option<QueueState> {
        let _ = name;
        None
    }
    /// Returns the queue of runs in a namespace that name none.
    fn queue_of_namespace(&self, namespace: &str) -> Option<String> {
        let _ = namespace;
        None
    }
    /// Returns a queue as it was declared, and those above it.
    fn queue_path(&self, name: &str) -> Vec<QueueSpec> {
        let _ = name;
        Vec::new()
    }
    /// Returns the nodes that tasks may run on; `None` where they are not known.
    fn nodes(&self) -> Option<Vec<NodeSpec>> {
        None
    }
    fn queue_names(&self) -> Vec<String> {
        Vec::new()
    }
    /// Reports whether a PriorityClass exists; `None` where classes are not available.
    fn has_class(&self, name: &str) -> Option<bool> {
        let _ = name;
        None
    }
    fn class_names(&self) -> Vec<String> {
        Vec::new()
    }
    /// Checks whether this host path may be mounted; on error returns why not, and what to do.
    fn host_path(&self, path: &str) -> Result<(), String> {
        let _ = path;
        Ok(())
    }
    /// Returns the WorkflowTemplate or ClusterWorkflowTemplate of this name, as it was given.
    fn template(&self, reach: Reach, namespace: &str, name: &str) -> Option<Value> {
        let _ = (reach, namespace, name);
        None
    }
    fn template_names(&self, reach: Reach, namespace: &str) -> Vec<String> {
        let _ = (reach, namespace);
        Vec::new()
    }
}

/// Returns what is wrong with the queue and the classes that an object names which is no run, such as a PodGroup.
pub fn check_references(object: &Value, others: &dyn Catalog) -> Vec<Problem> {
    references::check(object, None, others).0
}

/// Returns the same as warnings, for an object from which runs are made later: by then there may be what is missing now.
pub fn advise_on_references(object: &Value, others: &dyn Catalog) -> Vec<Problem> {
    let (problems, warnings) = references::check(object, None, others);
    let milder = |problem| Problem { severity: Severity::Warning, ..problem };
    problems.into_iter().map(milder).chain(warnings).collect()
}

/// Joins problems into one line, each with its path.
pub fn listed(problems: &[Problem]) -> String {
    let line = |problem: &Problem| match &problem.path {
        Some(path) => format!("{path}: {}", problem.message),
        None => problem.message.clone(),
    };
    problems.iter().map(line).collect::<Vec<_>>().join("; ")
}

/// Admits one object, or returns all errors.
pub fn admit(object: &Value, others: &dyn Catalog) -> Result<Admitted, Problems> {
    examine(object, others)
        .map_err(|found| Problems(found.into_iter().filter(|problem| problem.severity == Severity::Error).collect()))
}

/// Admits one object, or returns all errors and warnings.
pub fn examine(object: &Value, others: &dyn Catalog) -> Result<Admitted, Problems> {
    let mut examined = (kinds::dialect_of(object)?.examine)(object, others);
    let stored = examined.as_ref().ok().map(|admitted| &admitted.stored);
    let (mut problems, mut warnings) = references::check(object, stored, others);
    if let Ok(admitted) = &mut examined {
        let (too_large, larger) = capacity::check(object, admitted, others);
        problems.extend(too_large);
        warnings.extend(larger);
    }
    match examined {
        Ok(admitted) if problems.is_empty() => {
            let warnings = admitted.warnings.into_iter().chain(warnings).collect();
            Ok(Admitted { warnings, ..admitted })
        }
        Ok(admitted) => Err(Problems(problems.into_iter().chain(admitted.warnings).chain(warnings).collect())),
        Err(found) => Err(Problems(found.0.into_iter().chain(problems).chain(warnings).collect())),
    }
}
