//! Admission of jobs: reports all problems at once, each with its path. It changes nothing.

mod advice;
mod cron;
mod policy;
#[cfg(test)]
mod tests;

pub use advice::advice;
pub use cron::{check_cron, examine_cron};

use std::collections::HashSet;

use octoflow_manifest::{Path, Problems};
use octoflow_model::{
    kubejob::{API_VERSION, CompletionMode, Job, KIND, mark},
    meta::{DEFAULT_NAMESPACE, Metadata},
    submission::Stored,
};
use serde_json::Value;

use super::{defaults, fields::JOB, program::MAX_PODS};
use crate::{
    admit::{
        Admitted, Catalog, code,
        findings::{At, Findings},
        shape,
    },
    dialects::argo::admit::references::ReferenceCheck,
    pod::check::{POD_FIELDS, containers, volumes},
};

/// Maximum length of a job's name, which labels hold.
pub const MAX_NAME_LENGTH: usize = 63;
/// Characters that are added to `generateName`.
const SUFFIX_LENGTH: usize = 5;
/// The controller that runs jobs unless somebody else does.
const CONTROLLER: &str = "kubernetes.io/job-controller";

/// Admits one job, or returns all errors and warnings.
pub fn examine(object: &Value, others: &dyn Catalog) -> Result<Admitted, Problems> {
    let checked = shape::check(object, &JOB);
    let (manifest, broken) = (checked.value, checked.broken);
    let mut report = Findings::new(checked.problems, checked.warnings);
    version(&manifest, &broken, KIND, &mut report);
    look(&manifest, &broken, others, &mut report);
    report.verdict().map(|warnings| Admitted { manifest, stored: Stored::default(), warnings, program: None })
}

fn look(manifest: &Value, broken: &[Path], others: &dyn Catalog, report: &mut Findings) {
    let job = match defaults::read(manifest) {
        Ok(job) => job,
        // The field check has reported what is wrong; if it has not, the manifest is refused all the same.
        Err(_) if !broken.is_empty() => return,
        Err(error) => {
            let root = Path::root();
            report.error(&At::base(&root), shape::code::WRONG_TYPE, || format!("the Job cannot be read: {error}"));
            return;
        }
    };
    metadata(&job.metadata, broken, report);
    let place = Path::root().join("spec");
    let at = At::base(&place);
    let is_broken = |path: &Path| broken.iter().any(|wrong| wrong.starts_with(path));
    if is_broken(&place) && !manifest["spec"].is_object() {
        return;
    }
    sizes(&job, &at, report);
    policy::check(&job, &at, report);
    selector(&job, &at, report);
    if let Some(by) = job.spec.managed_by.as_deref().filter(|by| *by != CONTROLLER) {
        report.error(&at.key("managedBy"), code::NOT_USABLE, || {
            format!("only `{CONTROLLER}` runs Jobs here, not `{}`", shape::short(by))
        });
    }
    let namespace = job.metadata.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(DEFAULT_NAMESPACE);
    pod(&job, manifest, &at.key("template"), namespace, broken, others, report);
}

/// Checks the numbers of pods against each other.
fn sizes(job: &Job, at: &At<'_>, report: &mut Findings) {
    let spec = &job.spec;
    for (field, count) in [("parallelism", spec.parallelism), ("completions", spec.completions)] {
        if let Some(count) = count.filter(|count| *count > MAX_PODS) {
            report.error(&at.key(field), shape::code::OUT_OF_RANGE, || {
                format!("{field} {count} is more than a Job may have here, which is {MAX_PODS}")
            });
        }
    }
    let indexed = spec.completion_mode == Some(CompletionMode::Indexed);
    if indexed && spec.completions.is_none() {
        report.error_with(&at.key("completions"), code::REQUIRED, || {
            let message = "completions is required when completionMode is Indexed".to_owned();
            (message, Some("write how many indexes there are".to_owned()))
        });
    }
    for (field, given) in [
        ("backoffLimitPerIndex", spec.backoff_limit_per_index.is_some()),
        ("successPolicy", spec.success_policy.is_some()),
    ] {
        if given && !indexed {
            report.error_with(&at.key(field), code::POLICY, || {
                let message = format!("{field} needs pods with indexes");
                (message, Some("write `completionMode: Indexed`".to_owned()))
            });
        }
    }
    match (spec.max_failed_indexes, spec.backoff_limit_per_index) {
        (Some(_), None) => report.error(&at.key("backoffLimitPerIndex"), code::REQUIRED, || {
            "backoffLimitPerIndex is required when maxFailedIndexes is given".to_owned()
        }),
        (Some(most), Some(_)) if spec.completions.is_some_and(|all| most > all) => {
            report.error(&at.key("maxFailedIndexes"), shape::code::OUT_OF_RANGE, || {
                format!("maxFailedIndexes {most} is more than the number of completions")
            });
        }
        (Some(_) | None, _) => {}
    }
    if spec.parallelism == Some(0) && spec.suspend != Some(true) {
        report.warn(&at.key("parallelism"), code::POLICY, || {
            "the Job has no pods until parallelism is raised".to_owned()
        });
    }
}

fn selector(job: &Job, at: &At<'_>, report: &mut Findings) {
    let (spec, place) = (&job.spec, at.key("selector"));
    let manual = spec.manual_selector == Some(true);
    match &spec.selector {
        Some(_) if !manual => report.error_with(&place, code::MISPLACED, || {
            let message = "the selector is made for every Job, so that Jobs do not share pods".to_owned();
            (message, Some("leave it out, or write `manualSelector: true`".to_owned()))
        }),
        None if manual => {
            report.error(&place, code::REQUIRED, || "selector is required when manualSelector is true".to_owned())
        }
        Some(selector) => {
            let labels = &spec.template.metadata.labels;
            let wanted = selector["matchLabels"].as_object().into_iter().flatten();
            for (key, value) in wanted.filter(|(key, value)| labels.get(*key).map(String::as_str) != value.as_str()) {
                report.error(&place.key("matchLabels").key(key), code::POLICY, || {
                    format!("no pod has the label {}={value}: template.metadata.labels has not", shape::short(key))
                });
            }
        }
        None => {}
    }
    if !manual {
        let own = [mark::CONTROLLER_UID, mark::OLD_CONTROLLER_UID];
        for key in own.into_iter().filter(|key| spec.template.metadata.labels.contains_key(*key)) {
            report.error(&at.key("template").key("metadata").key("labels").key(key), code::MISPLACED, || {
                format!("the label {key} is made for every Job")
            });
        }
    }
}

fn pod(
    job: &Job,
    manifest: &Value,
    at: &At<'_>,
    namespace: &str,
    broken: &[Path],
    others: &dyn Catalog,
    report: &mut Findings,
) {
    let (place, spec) = (at.key("spec"), &job.spec.template.spec);
    let raw = &manifest["spec"]["template"]["spec"];
    if broken.iter().any(|wrong| wrong.starts_with(&at.path())) && !raw.is_object() {
        return;
    }
    let policy_at = place.key("restartPolicy");
    let said = spec.restart_policy.as_deref().filter(|word| !word.is_empty());
    if said.is_none() && !broken.contains(&policy_at.path()) {
        report.error_with(&policy_at, code::REQUIRED, || {
            let message = "restartPolicy is required, and must be Never or OnFailure".to_owned();
            (message, Some("write `restartPolicy: Never`".to_owned()))
        });
    }
    volumes(report, &place.key("volumes"), &spec.volumes, &raw["volumes"]);
    containers(report, &place, spec, "the Job");
    let mut look = ReferenceCheck { others, namespace, report, fields: POD_FIELDS, reported: HashSet::new() };
    look.volumes(&place.key("volumes"), &spec.volumes);
    for (field, list) in [("initContainers", &spec.init_containers), ("containers", &spec.containers)] {
        let list_at = place.key(field);
        for (index, one) in list.iter().enumerate() {
            look.container(&list_at.index(index), &one.container);
        }
    }
}

fn version(manifest: &Value, broken: &[Path], kind: &str, report: &mut Findings) {
    let place = Path::root().join("apiVersion");
    let version = manifest["apiVersion"].as_str().unwrap_or_default();
    if version == API_VERSION || broken.contains(&place) {
        return;
    }
    report.error_with(&At::base(&place), code::KIND, || {
        let message = match version {
            "" => "apiVersion is required".to_owned(),
            version => format!("apiVersion `{}` is not known for this kind {kind}", shape::short(version)),
        };
        (message, Some(format!("write `apiVersion: {API_VERSION}`")))
    });
}

fn metadata(metadata: &Metadata, broken: &[Path], report: &mut Findings) {
    let place = Path::root().join("metadata");
    let at = At::base(&place);
    let given = metadata.name.as_deref().filter(|name| !name.is_empty());
    let beginning = metadata.generate_name.as_deref().filter(|name| !name.is_empty());
    match (given, beginning) {
        (Some(name), _) => name_of(report, &at.key("name"), "metadata.name", name),
        (None, Some(beginning)) => {
            let example = format!("{beginning}{}", "a".repeat(SUFFIX_LENGTH));
            name_of(report, &at.key("generateName"), "metadata.generateName", &example);
        }
        (None, None) if broken.iter().any(|path| path.starts_with(&place)) => {}
        (None, None) => report.error_with(&at, code::REQUIRED, || {
            (
                "metadata.name or metadata.generateName is required".to_owned(),
                Some("write `generateName: job-` to get a new name for every run".to_owned()),
            )
        }),
    }
}

fn name_of(report: &mut Findings, at: &At<'_>, of: &str, name: &str) {
    if name.len() > MAX_NAME_LENGTH {
        report.error(at, code::NAME, || {
            format!("{of} '{}' has {} characters, and {MAX_NAME_LENGTH} are the most", shape::short(name), name.len())
        });
    } else if !name.split('.').all(is_label) {
        report.error_with(at, code::NAME, || {
            let message = format!("{of} '{}' is invalid", shape::short(name));
            let help = "use lower-case letters, digits and `-`, beginning and ending with a letter or digit";
            (message, Some(help.to_owned()))
        });
    }
}

/// Reports whether a text is a DNS-1123 label.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| inner(*byte));
    text.bytes().all(|byte| inner(byte) || byte == b'-')
        && edge(text.as_bytes().first())
        && edge(text.as_bytes().last())
}
