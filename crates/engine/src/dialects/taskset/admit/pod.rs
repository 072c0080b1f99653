//! Validates the pods of roles: containers, volumes and references.

use std::collections::HashSet;

use octoflow_model::{
    podspec::PodContainer,
    taskset::{RoleSpec, TaskSet},
};
use serde_json::Value;

use crate::{
    admit::{
        code,
        findings::{At, Findings},
        shape,
    },
    dialects::argo::admit::{Catalog, references::ReferenceCheck},
    expr::nearest,
    pod::check::{absolute, volumes},
};

/// Pod fields that every replica has a value for.
const POD_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.podIP",
    "status.hostIP",
];

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
        if spec.containers.is_empty() {
            report.error(&at.key("containers"), code::REQUIRED, || {
                format!("role '{}' needs a container in template.spec.containers", shape::short(&role.name))
            });
        }
        let mut names = HashSet::new();
        for (field, list) in [("initContainers", &spec.init_containers), ("containers", &spec.containers)] {
            let list_at = at.key(field);
            for (index, one) in list.iter().enumerate() {
                container(report, &list_at.index(index), role, one, &mut names);
            }
        }
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

fn container<'s>(
    report: &mut Findings,
    at: &At<'_>,
    role: &'s RoleSpec,
    one: &'s PodContainer,
    names: &mut HashSet<&'s str>,
) {
    let container = &one.container;
    let name = container.name.as_deref().unwrap_or(crate::pod::MAIN);
    if !names.insert(name) {
        report.error(&at.key("name"), code::DUPLICATE_NAME, || {
            format!("two containers of role '{}' are called '{}'", shape::short(&role.name), shape::short(name))
        });
    }
    if container.image.is_empty() && container.command.is_empty() {
        report.error(at, code::REQUIRED, || {
            format!("container '{}' has neither image nor command, so there is nothing to run", shape::short(name))
        });
    }
    let list = at.key("volumeMounts");
    let volumes = || role.template.spec.volumes.iter().map(|volume| volume.name.as_str());
    for (index, mount) in container.volume_mounts.iter().enumerate() {
        let place = list.index(index);
        if !volumes().any(|volume| volume == mount.name) {
            report.error_with(&place.key("name"), code::VOLUME, || {
                let message = format!(
                    "volumeMounts[{index}] names the volume '{}', which is not defined",
                    shape::short(&mount.name)
                );
                (message, nearest(&mount.name, volumes()).map(|near| format!("did you mean `{near}`?")))
            });
        }
        absolute(report, &place.key("mountPath"), &|| format!("volumeMounts[{index}].mountPath"), &mount.mount_path);
    }
    if let Some(path) = one.termination_message_path.as_deref().filter(|path| !path.is_empty()) {
        absolute(report, &at.key("terminationMessagePath"), &|| "terminationMessagePath".to_owned(), path);
    }
}
