//! Admission of submitted jobs: reports all problems at once, each with its path. What plugins and the run that comes out
//! have to say is not asked here. It changes nothing.

use octoflow_manifest::{Path, Problem, Problems, Severity};
use octoflow_model::{
    meta::Metadata,
    plugin::API_VERSION,
    submission::Stored,
    submitted::{SubmittedJob, SubmittedSpec},
};
use serde::Deserialize;
use serde_json::Value;

use super::{fields::SUBMITTED_JOB, kinds::SUBMITTED_JOB as KIND};
use crate::{
    admit::{
        Admitted, Catalog, code,
        findings::{At, Findings},
        shape,
    },
    dialects::volcano::admit::is_subdomain,
};

/// Longest name of a submitted job: that of the TaskSet that comes out.
pub const MAX_NAME_LENGTH: usize = 63;
/// Characters that are added to `generateName`.
const SUFFIX_LENGTH: usize = 5;

/// Admits one submitted job, or returns all errors and warnings.
pub fn examine(object: &Value, _: &dyn Catalog) -> Result<Admitted, Problems> {
    let checked = shape::check(object, &SUBMITTED_JOB);
    let (manifest, broken) = (checked.value, checked.broken);
    let mut report = Findings::new(checked.problems, checked.warnings);
    version(&manifest, &broken, &mut report);
    look(&manifest, &broken, &mut report);
    report.verdict().map(|warnings| Admitted { manifest, stored: Stored::default(), warnings, program: None })
}

/// Returns the warnings about a submitted job.
pub fn advice(object: &Value) -> Vec<Problem> {
    match examine(object, &Nothing) {
        Ok(admitted) => admitted.warnings,
        Err(problems) => problems.0.into_iter().filter(|problem| problem.severity == Severity::Warning).collect(),
    }
}

/// Nothing else is asked for.
struct Nothing;

impl Catalog for Nothing {
    fn has_object(&self, _: &'static crate::kinds::Kind, _: &str, _: &str) -> bool {
        false
    }
}

/// Writes into a manifest who submits the job.
pub(super) fn sign(manifest: &mut Value, author: &str) {
    if manifest["spec"].is_object() {
        manifest["spec"]["submittedBy"] = author.into();
    }
}

fn look(manifest: &Value, broken: &[Path], report: &mut Findings) {
    let job = match SubmittedJob::deserialize(manifest) {
        Ok(job) => job,
        // The field check has reported what is wrong; if it has not, the manifest is refused all the same.
        Err(_) if !broken.is_empty() => return,
        Err(error) => {
            let root = Path::root();
            report.error(&At::base(&root), shape::code::WRONG_TYPE, || {
                format!("the {} cannot be read: {error}", KIND.name)
            });
            return;
        }
    };
    metadata(&job.metadata, broken, report);
    let place = Path::root().join("spec");
    let at = At::base(&place);
    let is_broken = |field: &str| broken.iter().any(|path| place.join(field).starts_with(path));
    let spec = &job.spec;
    for (field, value) in [("userID", &spec.user_id), ("jobName", &spec.job_name), ("jobKind", &spec.job_kind)] {
        if value.is_empty() && !is_broken(field) {
            report.error(&at.key(field), code::REQUIRED, || format!("a submitted job needs its {field}"));
        }
    }
    if !is_broken("job") {
        content(spec, &at, report);
    }
}

fn content(spec: &SubmittedSpec, at: &At<'_>, report: &mut Findings) {
    let (job, place) = (&spec.job, at.key("job"));
    if job.is_null() {
        return report.error(&place, code::REQUIRED, || "a submitted job needs its job".to_owned());
    }
    match job["kind"].as_str() {
        Some(kind) if kind == spec.job_kind || kind.is_empty() && spec.job_kind.is_empty() => {}
        Some(kind) if !kind.is_empty() => report.warn(&at.key("jobKind"), code::KIND, || {
            let (named, kind) = (shape::short(&spec.job_kind), shape::short(kind));
            format!("the jobKind is `{named}` and the job's kind `{kind}`: plugins are selected by the former")
        }),
        Some(_) | None => {
            report.error(&place.key("kind"), code::KIND, || "the job needs a kind, which is a text".to_owned());
        }
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
            version => format!("apiVersion `{}` is not known for this kind {}", shape::short(version), KIND.name),
        };
        (message, Some(format!("write `apiVersion: {API_VERSION}`")))
    });
}

fn metadata(metadata: &Metadata, broken: &[Path], report: &mut Findings) {
    let place = Path::root().join("metadata");
    let at = At::base(&place);
    let given = metadata.name.as_deref().filter(|name| !name.is_empty());
    let prefix = metadata.generate_name.as_deref().filter(|name| !name.is_empty());
    match (given, prefix) {
        (Some(name), _) => name_of(report, &at.key("name"), "metadata.name", name),
        (None, Some(beginning)) => {
            let example = format!("{beginning}{}", "a".repeat(SUFFIX_LENGTH));
            name_of(report, &at.key("generateName"), "metadata.generateName", &example);
        }
        (None, None) if broken.iter().any(|path| path.starts_with(&place)) => {}
        (None, None) => report.error_with(&at, code::REQUIRED, || {
            (
                "metadata.name or metadata.generateName is required".to_owned(),
                Some("write `generateName: job-` to get a new id for every job".to_owned()),
            )
        }),
    }
}

fn name_of(report: &mut Findings, at: &At<'_>, of: &str, name: &str) {
    if name.len() > MAX_NAME_LENGTH {
        report.error(at, code::NAME, || {
            format!("{of} '{}' has {} characters, and {MAX_NAME_LENGTH} are the most", shape::short(name), name.len())
        });
    } else if !is_subdomain(name) {
        report.error_with(at, code::NAME, || {
            let message = format!("{of} '{}' is invalid", shape::short(name));
            let help = "use lower-case letters, digits and `-`, beginning and ending with a letter or digit";
            (message, Some(help.to_owned()))
        });
    }
}
