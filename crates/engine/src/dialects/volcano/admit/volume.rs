//! Validates the volumes of a job: a mount path each, no two alike, and one claim.

use std::collections::HashSet;

use octoflow_model::volcano::Job;

use crate::{
    admit::{
        Catalog, code,
        findings::{At, Findings},
        shape,
    },
    pod::check::absolute,
};

pub(super) fn check(report: &mut Findings, at: &At<'_>, job: &Job, namespace: &str, others: &dyn Catalog) {
    let mut seen = HashSet::new();
    for (index, volume) in job.spec.volumes.iter().enumerate() {
        let place = at.index(index);
        let path = volume.mount_path.as_str();
        if path.is_empty() {
            report.error(&place.key("mountPath"), code::REQUIRED, || format!("volumes[{index}].mountPath is required"));
        } else {
            absolute(report, &place.key("mountPath"), &|| format!("volumes[{index}].mountPath"), path);
            if !seen.insert(path) {
                report.error(&place.key("mountPath"), code::VOLUME, || {
                    format!("two volumes are mounted at '{}'", shape::short(path))
                });
            }
        }
        let name = volume.volume_claim_name.as_deref().filter(|name| !name.is_empty());
        match (name, &volume.volume_claim) {
            (Some(_), Some(_)) => report.error(&place, code::VOLUME, || {
                format!("volumes[{index}] has both volumeClaimName and volumeClaim; it can have one of them only")
            }),
            (None, None) => {
                report.error(&place, code::VOLUME, || format!("volumes[{index}] needs volumeClaimName or volumeClaim"))
            }
            (Some(name), None) if !others.has_claim(namespace, name) => {
                report.warn(&place.key("volumeClaimName"), code::NOT_LOADED, || {
                    format!(
                        "claim '{}' is not loaded in namespace '{namespace}'; it is made when it is used",
                        shape::short(name)
                    )
                });
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
    }
}
