//! Warnings about a TaskSet that depend on no other object, for API handlers that do not look up references.

use octoflow_manifest::{Problem, Severity};
use serde_json::{Value, json};

use super::examine;
use crate::{dialects::argo::admit::Catalog, kinds::Kind};

/// Returns the warnings about a TaskSet, assuming that everything it refers to exists.
pub fn advice(object: &Value) -> Vec<Problem> {
    match examine(object, &Everything) {
        Ok(admitted) => admitted.warnings,
        Err(problems) => problems.0.into_iter().filter(|problem| problem.severity == Severity::Warning).collect(),
    }
}

struct Everything;

impl Catalog for Everything {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        true
    }

    fn pod_group(&self, _: &str, _: &str) -> Option<Value> {
        Some(json!({}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undecidable_policy_is_told_and_nothing_that_may_be_there() {
        let object = json!({
            "apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet", "metadata": {"name": "t"},
            "spec": {"roles": [{
                "name": "a", "replicas": 3, "completionPolicy": {"maxFailed": 3, "minSucceeded": 2},
                "template": {
                    "metadata": {"annotations": {"scheduling.k8s.io/group-name": "g"}},
                    "spec": {"containers": [{"name": "m", "image": "busybox", "envFrom": [{"configMapRef": {"name": "c"}}]}]},
                },
            }]},
        });
        let places: Vec<String> =
            advice(&object).iter().filter_map(|problem| problem.path.as_ref().map(ToString::to_string)).collect();
        assert_eq!(places, ["spec.roles[0].completionPolicy"]);
    }
}
