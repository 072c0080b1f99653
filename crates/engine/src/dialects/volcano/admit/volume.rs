//! Validates the volumes of a job: a mount path each, no two alike, and how each gets its claim.

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
            (Some(name), Some(_)) => report.warn(&place, code::VOLUME, || {
                let name = shape::short(name);
                format!(
                    "volumes[{index}] has both volumeClaimName and volumeClaim, which Volcano refuses; claim '{name}' is made \
                     unless there is one"
                )
            }),
            (None, None) => report.warn(&place, code::VOLUME, || {
                format!(
                    "volumes[{index}] has neither volumeClaimName nor volumeClaim, which Volcano refuses; each pod gets an \
                     empty directory"
                )
            }),
            (Some(name), None) if !others.has_claim(namespace, name) => {
                report.warn(&place.key("volumeClaimName"), code::NOT_LOADED, || {
                    format!(
                        "claim '{}' is not loaded in namespace '{namespace}'; the Job creates no pod until it is there",
                        shape::short(name)
                    )
                });
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
    }
}
