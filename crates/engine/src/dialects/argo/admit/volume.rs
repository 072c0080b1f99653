//! Checks volumes and mounts: one source each, mounts of existing volumes, and no two mounts at one path.

use std::collections::{HashMap, HashSet};

use super::{
    Subject, code,
    findings::{At, Findings},
    index::TemplateEntry,
    name,
    template::absolute,
};
use crate::admit::shape::short;
use octoflow_model::podspec::{ClaimTemplate, VolumeMount};

pub(super) use crate::pod::check::volumes as list;

pub(super) fn claims(report: &mut Findings, at: &At<'_>, claims: &[ClaimTemplate]) {
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

/// Checks the mounts of a container; `at` and `field` say where that container is.
pub(super) fn mounts(
    subject: &Subject<'_>,
    report: &mut Findings,
    at: &At<'_>,
    entry: &TemplateEntry<'_>,
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
    // A volume whose name contains variables may have any name.
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
        absolute(report, &place.key("mountPath"), &|| format!("{}.mountPath", of()), &mount.mount_path);
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
