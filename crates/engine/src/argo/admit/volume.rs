//! Volumes and their mounts: one source each, names that meet, and no two things at one path.

use std::collections::{HashMap, HashSet};

use octoflow_model::argo::{Volume, template::VolumeMount, workflow::ClaimTemplate};
use serde_json::Value;

use super::{
    Subject,
    book::Entry,
    code, name,
    report::{At, Report},
    template,
};
use crate::{argo::fields::SOURCES, shape::short};

pub(super) fn list(report: &mut Report, at: &At<'_>, volumes: &[Volume], raw: &Value) {
    let mut seen = HashSet::new();
    for (index, volume) in volumes.iter().enumerate() {
        let place = at.index(index);
        let name = volume.name.as_str();
        if name.is_empty() {
            report.error(&place, code::REQUIRED, || format!("volumes[{index}].name is required"));
        } else if !name::has_variables(name) && !seen.insert(name) {
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
            template::absolute(report, &place.key("path"), &|| format!("volume '{name}' hostPath.path"), &host.path);
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

pub(super) fn claims(report: &mut Report, at: &At<'_>, claims: &[ClaimTemplate]) {
    let mut seen = HashSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let place = at.index(index);
        let metadata = place.key("metadata");
        match claim.metadata.name.as_deref().filter(|name| !name.is_empty()) {
            None => report.error(&metadata, code::REQUIRED, || {
                format!("volumeClaimTemplates[{index}].metadata.name is required")
            }),
            Some(name) if !seen.insert(name) => report.error(&metadata.key("name"), code::DUPLICATE_NAME, || {
                format!("volumeClaimTemplates[{index}].metadata.name '{name}' is not unique")
            }),
            Some(_) => {}
        }
    }
}

/// What a container mounts; `at` and `field` say where that container is.
pub(super) fn mounts(
    subject: &Subject<'_>,
    report: &mut Report,
    at: &At<'_>,
    entry: &Entry<'_>,
    field: &str,
    mounts: &[VolumeMount],
) {
    if mounts.is_empty() {
        return;
    }
    let label = &entry.label;
    let spec = &subject.workflow.spec;
    let volumes = || spec.volumes.iter().chain(&entry.template.volumes).map(|volume| volume.name.as_str());
    let claims = || spec.volume_claim_templates.iter().filter_map(|claim| claim.metadata.name.as_deref());
    let own: HashSet<&str> = entry.template.volumes.iter().map(|volume| volume.name.as_str()).collect();
    // A volume whose name holds variables may be any of them.
    let open = subject.open_volumes || own.iter().any(|name| name::has_variables(name));
    let list = at.key("volumeMounts");
    let mut taken: HashMap<&str, String> = HashMap::new();
    for (index, mount) in mounts.iter().enumerate() {
        let place = list.index(index);
        let of = || format!("templates.{label}.{field}.volumeMounts[{index}]");
        if !open
            && !name::has_variables(&mount.name)
            && !own.contains(mount.name.as_str())
            && !subject.volumes.contains(mount.name.as_str())
        {
            report.error_with(&place.key("name"), code::VOLUME, || {
                (
                    format!("{} names the volume '{}', which is not defined", of(), short(&mount.name)),
                    name::suggest(&mount.name, volumes().chain(claims())),
                )
            });
        }
        template::absolute(report, &place.key("mountPath"), &|| format!("{}.mountPath", of()), &mount.mount_path);
        if mount
            .sub_path
            .as_deref()
            .is_some_and(|path| path.starts_with('/') || path.split('/').any(|part| part == ".."))
        {
            report.error(&place.key("subPath"), code::PATH, || format!("{}.subPath must stay inside the volume", of()));
        }
        if let Some(earlier) = taken.get(mount.mount_path.as_str()) {
            report.error(&place.key("mountPath"), code::VOLUME, || {
                format!("{}.mountPath '{}' already mounted in {earlier}", of(), short(&mount.mount_path))
            });
        } else {
            taken.insert(&mount.mount_path, format!("{field}.volumeMounts.{}", mount.name));
        }
    }
    let whole = At::base(&entry.path);
    let inputs = whole.key("inputs");
    let list = inputs.key("artifacts");
    for (index, artifact) in entry.template.inputs.artifacts.iter().enumerate() {
        if let Some((path, earlier)) = artifact.path.as_deref().and_then(|path| Some((path, taken.get(path)?))) {
            let place = list.index(index);
            report.error(&place.key("path"), code::VOLUME, || {
                format!(
                    "templates.{label}.inputs.artifacts[{index}].path '{}' already mounted in {earlier}",
                    short(path)
                )
            });
        }
    }
}
