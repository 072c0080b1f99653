//! Admission of jobs: reports all problems at once, each with its path. It changes nothing.

mod advice;
mod plugin;
mod policy;
mod task;
#[cfg(test)]
mod tests;
mod volume;

pub use advice::advice;

use octoflow_manifest::{Path, Problems};
use octoflow_model::{
    meta::{DEFAULT_NAMESPACE, Metadata},
    submission::Stored,
    volcano::{API_VERSION, Job},
};
use serde_json::Value;

use super::{defaults, fields::JOB, program::MAX_PODS};
use crate::{
    admit::{
        Admitted, Catalog, code,
        findings::{At, Findings},
        shape,
    },
    dialects::argo::duration,
    schedule::spec::ROOT,
};

/// Maximum length of a job's name, and of the names of its pods, which labels hold.
pub const MAX_NAME_LENGTH: usize = 63;
/// Characters that are added to `generateName`.
const SUFFIX_LENGTH: usize = 5;

/// Admits one job, or returns all errors and warnings.
pub fn examine(object: &Value, others: &dyn Catalog) -> Result<Admitted, Problems> {
    let checked = shape::check(object, &JOB);
    let (manifest, broken) = (checked.value, checked.broken);
    let mut report = Findings::new(checked.problems, checked.warnings);
    version(&manifest, &broken, &mut report);
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
    if job.spec.tasks.is_empty() && !is_broken(broken, &at) {
        report.error_with(&at.key("tasks"), code::REQUIRED, || {
            ("a Job needs at least one task".to_owned(), Some("list them under `spec.tasks`".to_owned()))
        });
    }
    sizes(&job, manifest, &at, report);
    if job.spec.queue.as_deref() == Some(ROOT) && others.queue(ROOT).is_none() {
        report.error(&at.key("queue"), code::NOT_USABLE, || {
            format!("queue `{ROOT}` is above all queues, and only leaves take work")
        });
    }
    if let Some(text) = &job.spec.running_estimate {
        is_duration(report, &at.key("runningEstimate"), text);
    }
    policy::check(report, &at.key("policies"), &job.spec.policies, None, broken);
    let namespace = job.metadata.namespace.as_deref().filter(|name| !name.is_empty()).unwrap_or(DEFAULT_NAMESPACE);
    task::check(report, &at.key("tasks"), &Given { job: &job, manifest, broken }, namespace, others);
    plugin::check(report, &at.key("plugins"), &job);
    volume::check(report, &at.key("volumes"), &job, namespace, others);
}

/// A job under admission.
#[derive(Clone, Copy)]
struct Given<'a> {
    job: &'a Job,
    /// As it was written, without what the field check has refused.
    manifest: &'a Value,
    /// Where something was refused.
    broken: &'a [Path],
}

/// Reports whether the field check has refused something at a place or below it.
fn is_broken(broken: &[Path], at: &At<'_>) -> bool {
    !broken.is_empty() && {
        let place = at.path();
        broken.iter().any(|wrong| wrong.starts_with(&place))
    }
}

/// Checks the numbers of pods against each other.
fn sizes(job: &Job, manifest: &Value, at: &At<'_>, report: &mut Findings) {
    let spec = &job.spec;
    let all: u64 = spec.tasks.iter().map(|task| u64::from(task.replicas)).sum();
    let least = u64::from(spec.min_available.unwrap_or(0));
    if all > u64::from(MAX_PODS) {
        report.error(&at.key("tasks"), shape::code::OUT_OF_RANGE, || {
            format!("{all} pods in all are more than a Job may have, which is {MAX_PODS}")
        });
    }
    let said = manifest["spec"]["minAvailable"].as_u64().is_some_and(|least| least > 0);
    if said && least > all {
        report.error_with(&at.key("minAvailable"), code::GANG, || {
            let message = format!("minAvailable {least} is more than the {all} pods of all tasks together");
            (message, Some(format!("write at most {all}")))
        });
    }
    if let Some(wanted) = spec.min_success.filter(|wanted| u64::from(*wanted) > all) {
        report.warn(&at.key("minSuccess"), code::POLICY, || {
            format!("minSuccess {wanted} is more than the {all} pods there are, so the Job can only fail")
        });
    }
    if all == 0 && !spec.tasks.is_empty() {
        report.warn(&at.key("tasks"), code::POLICY, || "the Job has no pods: it runs until someone ends it".to_owned());
    }
    let waits = |task: &&octoflow_model::volcano::TaskSpec| {
        task.depends_on.as_ref().is_some_and(|needs| !needs.name.is_empty())
    };
    let free: u64 = spec.tasks.iter().filter(|task| !waits(task)).map(|task| u64::from(task.replicas)).sum();
    if least > free && least <= all && spec.tasks.iter().any(|task| waits(&task)) {
        report.warn(&at.key("minAvailable"), code::GANG, || {
            format!(
                "minAvailable {least} includes pods of tasks that wait for others to run, so only what may start at first \
                 starts together"
            )
        });
    }
}

fn is_duration(report: &mut Findings, at: &At<'_>, text: &str) {
    if duration::units(text).is_none() {
        report.error(at, code::DURATION, || format!("`{}` is not a time such as 10s, 5m or 1h30m", shape::short(text)));
    }
}

fn version(manifest: &Value, broken: &[Path], report: &mut Findings) {
    let place = Path::root().join("apiVersion");
    let version = manifest["apiVersion"].as_str().unwrap_or_default();
    if version == API_VERSION || broken.contains(&place) {
        return;
    }
    report.error_with(&At::base(&place), code::KIND, || {
        let message = match version {
            "" => "apiVersion is required".to_owned(),
            version => format!("apiVersion `{}` is not known for this kind Job", shape::short(version)),
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
        (Some(name), _) => name_of(report, &at.key("name"), "metadata.name", name, is_subdomain),
        (None, Some(beginning)) => {
            let example = format!("{beginning}{}", "a".repeat(SUFFIX_LENGTH));
            name_of(report, &at.key("generateName"), "metadata.generateName", &example, is_subdomain);
        }
        (None, None) if broken.iter().any(|path| path.starts_with(&place)) => {}
        (None, None) => report.error_with(&at, code::REQUIRED, || {
            (
                "metadata.name or metadata.generateName is required".to_owned(),
                Some("write `generateName: train-` to get a new name for every run".to_owned()),
            )
        }),
    }
}

/// Returns the longest name that the job may get.
fn longest_name(metadata: &Metadata) -> Option<String> {
    let given = metadata.name.clone().filter(|name| !name.is_empty());
    let generated = || metadata.generate_name.as_ref().map(|name| format!("{name}{}", "x".repeat(SUFFIX_LENGTH)));
    given.or_else(generated)
}

fn name_of(report: &mut Findings, at: &At<'_>, of: &str, name: &str, fits: fn(&str) -> bool) {
    if name.len() > MAX_NAME_LENGTH {
        report.error(at, code::NAME, || {
            format!("{of} '{}' has {} characters, and {MAX_NAME_LENGTH} are the most", shape::short(name), name.len())
        });
    } else if !fits(name) {
        report.error_with(at, code::NAME, || {
            let message = format!("{of} '{}' is invalid", shape::short(name));
            let help = "use lower-case letters, digits and `-`, beginning and ending with a letter or digit";
            (message, Some(help.to_owned()))
        });
    }
}

/// Reports whether a text is a DNS-1123 label.
pub(crate) fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| inner(*byte));
    text.bytes().all(|byte| inner(byte) || byte == b'-')
        && edge(text.as_bytes().first())
        && edge(text.as_bytes().last())
}

/// Reports whether a text is a DNS-1123 subdomain: labels with dots between.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}
