//! Validates the containers and volumes of a pod, in any dialect: unique names, one source each, absolute paths.

use std::collections::HashSet;

use octoflow_model::podspec::{PodContainer, PodSpec, Volume};
use serde_json::Value;

use super::fields::volume::SOURCES;
use crate::{
    admit::{
        code,
        findings::{At, Findings},
        shape::short,
    },
    expr::nearest,
};

/// Pod fields that the pods of every dialect with pod templates have a value for.
pub(crate) const POD_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.podIP",
    "status.hostIP",
];

/// Checks the containers of a pod; `whose` names its role or task in messages.
pub(crate) fn containers(report: &mut Findings, at: &At<'_>, spec: &PodSpec, whose: &str) {
    if spec.containers.is_empty() {
        report.error(&at.key("containers"), code::REQUIRED, || {
            format!("{whose} needs a container in template.spec.containers")
        });
    }
    let mut names = HashSet::new();
    for (field, list) in [("initContainers", &spec.init_containers), ("containers", &spec.containers)] {
        let list_at = at.key(field);
        for (index, one) in list.iter().enumerate() {
            container(report, &list_at.index(index), spec, whose, one, &mut names);
        }
    }
}

pub(crate) fn volumes(report: &mut Findings, at: &At<'_>, volumes: &[Volume], raw: &Value) {
    let mut seen = HashSet::new();
    for (index, volume) in volumes.iter().enumerate() {
        let place = at.index(index);
        let name = volume.name.as_str();
        if name.is_empty() {
            report.error(&place, code::REQUIRED, || format!("volumes[{index}].name is required"));
        } else if !has_variables(name) && !seen.insert(name) {
            report.error(&place.key("name"), code::DUPLICATE_NAME, || {
                format!("volumes[{index}].name '{name}' is not unique")
            });
        }
        let fields = raw.get(index).and_then(Value::as_object);
        let sources = fields.map_or(1, |fields| fields.keys().filter(|key| *key != "name").count());
        if sources != 1 {
            report.error(&place, code::VOLUME, || {
                format!("volume '{}' must have exactly one source, one of: {}", short(name), SOURCES.join(", "))
            });
        }
        if let Some(host) = &volume.host_path {
            let place = place.key("hostPath");
            absolute(report, &place.key("path"), &|| format!("volume '{name}' hostPath.path"), &host.path);
        }
        let claim = volume.persistent_volume_claim.as_ref().is_some_and(|claim| claim.claim_name.is_empty());
        let secret = volume.secret.as_ref().is_some_and(|secret| secret.secret_name.is_empty());
        let map = volume.config_map.as_ref().is_some_and(|map| map.name.is_empty());
        for (nameless, field) in
            [(claim, "persistentVolumeClaim.claimName"), (secret, "secret.secretName"), (map, "configMap.name")]
        {
            if nameless {
                report.error(&place, code::REQUIRED, || format!("volume '{}' {field} is required", short(name)));
            }
        }
    }
}

/// Checks that a path is absolute, so that it does not depend on the working directory, and has no `..`.
pub(crate) fn absolute(report: &mut Findings, at: &At<'_>, of: &dyn Fn() -> String, path: &str) {
    if has_variables(path) {
        return;
    }
    if !path.starts_with('/') {
        report.error_with(at, code::PATH, || {
            (
                format!("{} '{}' must be an absolute path", of(), short(path)),
                Some(format!("write `/tmp/{}`, for example", short(path.trim_start_matches("./")))),
            )
        });
    } else if path.split('/').any(|part| part == "..") {
        report.error(at, code::PATH, || format!("{} '{}' must not contain '..'", of(), short(path)));
    }
}

/// Reports whether the text contains variables, which are only known at run time.
pub(crate) fn has_variables(text: &str) -> bool {
    text.contains("{{")
}

fn container<'s>(
    report: &mut Findings,
    at: &At<'_>,
    spec: &'s PodSpec,
    whose: &str,
    one: &'s PodContainer,
    names: &mut HashSet<&'s str>,
) {
    let container = &one.container;
    let name = container.name.as_deref().unwrap_or(super::MAIN);
    if !names.insert(name) {
        report.error(&at.key("name"), code::DUPLICATE_NAME, || {
            format!("two containers of {whose} are called '{}'", short(name))
        });
    }
    if container.image.is_empty() && container.command.is_empty() {
        report.error(at, code::REQUIRED, || {
            format!("container '{}' has neither image nor command, so there is nothing to run", short(name))
        });
    }
    let list = at.key("volumeMounts");
    let volumes = || spec.volumes.iter().map(|volume| volume.name.as_str());
    for (index, mount) in container.volume_mounts.iter().enumerate() {
        let place = list.index(index);
        if !volumes().any(|volume| volume == mount.name) {
            report.error_with(&place.key("name"), code::VOLUME, || {
                let message =
                    format!("volumeMounts[{index}] names the volume '{}', which is not defined", short(&mount.name));
                (message, nearest(&mount.name, volumes()).map(|near| format!("did you mean `{near}`?")))
            });
        }
        absolute(report, &place.key("mountPath"), &|| format!("volumeMounts[{index}].mountPath"), &mount.mount_path);
    }
    if let Some(path) = one.termination_message_path.as_deref().filter(|path| !path.is_empty()) {
        absolute(report, &at.key("terminationMessagePath"), &|| "terminationMessagePath".to_owned(), path);
    }
}
