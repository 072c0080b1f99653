//! A WorkflowTemplate judged by itself, as `lint` sees it: everything that does not depend on who uses it.
//! Arguments without values, and variables its users may bring, are believed.

use octoflow_manifest::{Problem, Severity};
use serde_json::{Value, json};

use super::{Catalog, Standing, code, findings::Findings, look, own_name, version};
use crate::{
    argo::{
        fields::{API_VERSION, WORKFLOW_TEMPLATE},
        refer::Reach,
    },
    shape,
};

/// Judges a WorkflowTemplate or ClusterWorkflowTemplate with everything in it. The answer are problems and warnings.
pub fn examine_template(object: &Value, others: &dyn Catalog) -> (Vec<Problem>, Vec<Problem>) {
    let checked = shape::check(object, &WORKFLOW_TEMPLATE);
    let mut report = Findings::new(checked.problems, checked.warnings);
    version(&checked.value, &checked.broken, &mut report);
    let own = own_name(&checked.value, "template", &mut report);
    // Its specification is that of a workflow, and so are its places.
    let mut manifest = json!({"apiVersion": API_VERSION, "kind": "Workflow", "metadata": {"name": own}});
    if let Some(namespace) = checked.value["metadata"].get("namespace") {
        manifest["metadata"]["namespace"] = namespace.clone();
    }
    manifest["spec"] = checked.value.get("spec").filter(|spec| spec.is_object()).cloned().unwrap_or_else(|| json!({}));
    look(&manifest, &checked.broken, Standing::Template, others, &mut report);
    let mut found = match report.verdict() {
        Ok(warnings) => warnings,
        Err(problems) => problems.0,
    };
    if object["kind"] == Reach::Cluster.kind() {
        // It stands in no namespace: what it refers to in one is looked for in that of the workflow that uses it.
        for problem in &mut found {
            if problem.code == code::UNKNOWN_TEMPLATE && problem.message.contains("is not loaded in namespace") {
                problem.severity = Severity::Warning;
            }
        }
    }
    found.into_iter().partition(|problem| problem.severity == Severity::Error)
}
