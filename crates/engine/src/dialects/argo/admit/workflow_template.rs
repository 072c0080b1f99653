//! Admits a WorkflowTemplate by itself, as `lint` does: everything that does not depend on its users. Arguments without
//! values, and variables that users may bring, are accepted.

use octoflow_manifest::{Problem, Severity};
use serde_json::{Value, json};

use super::{AdmitAs, Catalog, check_workflow, code, findings::Findings, own_name, version};
use crate::{
    admit::shape,
    dialects::argo::{
        fields::{API_VERSION, WORKFLOW_TEMPLATE},
        refer::Reach,
    },
};

/// Checks a WorkflowTemplate or ClusterWorkflowTemplate completely. Returns problems and warnings.
pub fn examine_template(object: &Value, others: &dyn Catalog) -> (Vec<Problem>, Vec<Problem>) {
    let checked = shape::check(object, &WORKFLOW_TEMPLATE);
    let mut report = Findings::new(checked.problems, checked.warnings);
    version(&checked.value, &checked.broken, &mut report);
    let own = own_name(&checked.value, "template", &mut report);
    // Its spec is checked as the spec of a workflow, with the same paths.
    let mut manifest = json!({"apiVersion": API_VERSION, "kind": "Workflow", "metadata": {"name": own}});
    if let Some(namespace) = checked.value["metadata"].get("namespace") {
        manifest["metadata"]["namespace"] = namespace.clone();
    }
    manifest["spec"] = checked.value.get("spec").filter(|spec| spec.is_object()).cloned().unwrap_or_else(|| json!({}));
    check_workflow(&manifest, &checked.broken, AdmitAs::Template, others, &mut report);
    let mut found = match report.verdict() {
        Ok(warnings) => warnings,
        Err(problems) => problems.0,
    };
    if object["kind"] == Reach::Cluster.kind() {
        // A cluster-scoped template has no namespace: its references are resolved in the namespace of the workflow that
        // uses it.
        for problem in &mut found {
            if problem.code == code::UNKNOWN_TEMPLATE && problem.message.contains("is not loaded in namespace") {
                problem.severity = Severity::Warning;
            }
        }
    }
    found.into_iter().partition(|problem| problem.severity == Severity::Error)
}
