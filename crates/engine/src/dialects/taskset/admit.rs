//! Admission of TaskSets: reports all problems at once, each with its path. It changes nothing.

mod advice;
mod gang;
mod pod;
mod role;
#[cfg(test)]
mod tests;

pub use advice::advice;

use octoflow_manifest::{Path, Problems};
use octoflow_model::{
    meta::DEFAULT_NAMESPACE,
    submission::Stored,
    taskset::{API_VERSION, GROUP_ALIAS, TaskSet},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{fields::TASK_SET, program::MAX_REPLICAS};
use crate::{
    admit::{
        Admitted, code,
        findings::{At, Findings},
        shape,
    },
    dialects::argo::admit::Catalog,
};

/// Maximum length of a TaskSet's or role's name. Pod names contain both, and end in numbers.
pub const MAX_NAME_LENGTH: usize = 63;

/// Admits one TaskSet, or returns all errors and warnings.
pub fn examine(object: &Value, others: &dyn Catalog) -> Result<Admitted, Problems> {
    let checked = shape::check(object, &TASK_SET);
    let (mut manifest, broken) = (checked.value, checked.broken);
    let mut report = Findings::new(checked.problems, checked.warnings);
    version(&mut manifest, &broken, &mut report);
    let stored = look(&manifest, &broken, others, &mut report);
    report.verdict().map(|warnings| Admitted { manifest, stored: stored.unwrap_or_default(), warnings, program: None })
}

fn look(manifest: &Value, broken: &[Path], others: &dyn Catalog, report: &mut Findings) -> Option<Stored> {
    let readable = role::complete(manifest, broken, report);
    let set = match TaskSet::deserialize(readable.as_ref().unwrap_or(manifest)) {
        Ok(set) => set,
        // The field check has reported what is wrong; if it has not, the manifest is refused all the same.
        Err(_) if !broken.is_empty() => return None,
        Err(error) => {
            let root = Path::root();
            report.error(&At::base(&root), shape::code::WRONG_TYPE, || format!("the TaskSet cannot be read: {error}"));
            return None;
        }
    };
    metadata(&set, broken, report);
    let place = Path::root().join("spec");
    let at = At::base(&place);
    let roles = at.key("roles");
    if set.spec.roles.is_empty() && !broken.iter().any(|path| path.starts_with(&place)) {
        report.error_with(&roles, code::REQUIRED, || {
            ("a TaskSet needs at least one role".to_owned(), Some("list them under `spec.roles`".to_owned()))
        });
    }
    let all: u64 = set.spec.roles.iter().map(|role| u64::from(role.replicas)).sum();
    if all > u64::from(MAX_REPLICAS) {
        report.error(&roles, shape::code::OUT_OF_RANGE, || {
            format!("{all} replicas in all are more than a TaskSet may have, which is {MAX_REPLICAS}")
        });
    }
    let policy = &set.spec.retry_policy;
    role::retry(report, &at.key("retryPolicy"), policy);
    if policy.retryable_exit_codes.is_some() || !policy.permanent_exit_codes.is_empty() {
        report.error(&at.key("retryPolicy"), code::MISPLACED, || {
            "exit codes are those of replicas; write them under a role's retryPolicy".to_owned()
        });
    }
    role::check(report, &roles, &set, manifest, broken);
    let namespace = set.metadata.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(DEFAULT_NAMESPACE);
    pod::check(report, &roles, &set, manifest, namespace, others);
    let (groups, group_details) = gang::check(report, &roles, &set, namespace, others);
    Some(Stored { groups, group_details, ..Stored::default() })
}

/// Checks `apiVersion`. The name of the CRD is accepted in place of the group.
fn version(manifest: &mut Value, broken: &[Path], report: &mut Findings) {
    let place = Path::root().join("apiVersion");
    let version = manifest["apiVersion"].as_str().unwrap_or_default();
    if version == API_VERSION || broken.contains(&place) {
        return;
    }
    if version == format!("{GROUP_ALIAS}/v1alpha1") {
        manifest["apiVersion"] = json!(API_VERSION);
        return;
    }
    report.error_with(&At::base(&place), code::KIND, || {
        let message = match version {
            "" => "apiVersion is required".to_owned(),
            version => format!("apiVersion `{}` is not known for kind TaskSet", shape::short(version)),
        };
        (message, Some(format!("write `apiVersion: {API_VERSION}`")))
    });
}

fn metadata(set: &TaskSet, broken: &[Path], report: &mut Findings) {
    let place = Path::root().join("metadata");
    let at = At::base(&place);
    let metadata = &set.metadata;
    let given = metadata.name.as_deref().filter(|name| !name.is_empty());
    let beginning = metadata.generate_name.as_deref().filter(|name| !name.is_empty());
    match (given, beginning) {
        (Some(name), _) => name_of(report, &at.key("name"), "metadata.name", name),
        (None, Some(beginning)) => name_of(report, &at.key("generateName"), "metadata.generateName", beginning),
        (None, None) if broken.iter().any(|path| path.starts_with(&place)) => {}
        (None, None) => report.error_with(&at, code::REQUIRED, || {
            (
                "metadata.name or metadata.generateName is required".to_owned(),
                Some("write `generateName: train` to get a new name for every run".to_owned()),
            )
        }),
    }
}

/// Checks a name. Pod names are parsed by their dashes, so no part of them may contain one.
fn name_of(report: &mut Findings, at: &At<'_>, of: &str, name: &str) {
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if name.len() > MAX_NAME_LENGTH {
        report.error(at, code::NAME, || {
            format!("{of} '{}' has {} characters, and {MAX_NAME_LENGTH} are the most", shape::short(name), name.len())
        });
    } else if !plain {
        report.error_with(at, code::NAME, || {
            (
                format!(
                    "{of} '{}' is invalid: it must be 1 to {MAX_NAME_LENGTH} lower-case letters and digits",
                    shape::short(name)
                ),
                Some("leave out dashes, dots and capitals: names of pods are made of it".to_owned()),
            )
        });
    }
}
