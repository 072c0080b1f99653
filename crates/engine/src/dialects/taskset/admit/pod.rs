//! Validates the pods of roles: containers, volumes and references.

use std::collections::HashSet;

use octoflow_model::taskset::TaskSet;
use serde_json::Value;

use crate::{
    admit::{
        findings::{At, Findings},
        shape,
    },
    dialects::argo::admit::{Catalog, references::ReferenceCheck},
    pod::check::{POD_FIELDS, containers, volumes},
};

pub(super) fn check(
    report: &mut Findings,
    at: &At<'_>,
    set: &TaskSet,
    manifest: &Value,
    namespace: &str,
    others: &dyn Catalog,
) {
    for (index, role) in set.spec.roles.iter().enumerate() {
        let place = at.index(index);
        let template = place.key("template");
        let at = template.key("spec");
        let spec = &role.template.spec;
        let raw = &manifest["spec"]["roles"][index]["template"]["spec"];
        volumes(report, &at.key("volumes"), &spec.volumes, &raw["volumes"]);
        containers(report, &at, spec, &format!("role '{}'", shape::short(&role.name)));
        if spec.restart_policy.as_deref().is_some_and(|policy| policy != "Never") {
            report.warn(&at.key("restartPolicy"), shape::code::IGNORED, || {
                format!(
                    "restartPolicy of role '{}' is read as Never: replicas are tried again by the role's retryPolicy",
                    shape::short(&role.name)
                )
            });
        }
        let mut look = ReferenceCheck { others, namespace, report, fields: POD_FIELDS, reported: HashSet::new() };
        look.volumes(&at.key("volumes"), &spec.volumes);
        for (field, list) in [("initContainers", &spec.init_containers), ("containers", &spec.containers)] {
            let list_at = at.key(field);
            for (index, one) in list.iter().enumerate() {
                look.container(&list_at.index(index), &one.container);
            }
        }
    }
}
