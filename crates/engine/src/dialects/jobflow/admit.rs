//! Admission of flows: reports all problems at once, each with its path, in time linear to the graph. It changes nothing.

mod entry;
mod jobs;

use octoflow_manifest::{Path, Problem, Problems, Severity};
use octoflow_model::{
    jobflow::{API_VERSION, FIRST_API_VERSION, JobFlow},
    meta::{DEFAULT_NAMESPACE, Metadata},
    submission::Stored,
};
use serde::Deserialize;
use serde_json::Value;

use super::{fields::JOB_FLOW, kinds::JOB_TEMPLATE, program::MAX_ENTRIES};
use crate::{
    admit::{
        Admitted, Catalog, code,
        findings::{At, Findings},
        shape,
    },
    dialects::volcano::admit::{MAX_NAME_LENGTH, is_label, is_subdomain},
    graph,
    kinds::Kind,
};

/// Characters that are added to `generateName`.
const SUFFIX_LENGTH: usize = 5;

/// Admits one flow, or returns all errors and warnings. Templates are read when their jobs are made, so a missing one is no
/// error.
pub fn examine(object: &Value, others: &dyn Catalog) -> Result<Admitted, Problems> {
    let checked = shape::check(object, &JOB_FLOW);
    let (manifest, broken) = (checked.value, checked.broken);
    let mut report = Findings::new(checked.problems, checked.warnings);
    version(&manifest, &broken, &mut report);
    look(&manifest, &broken, &mut report);
    templates(&manifest, others, &mut report);
    jobs::check(&manifest, others, &mut report);
    report.verdict().map(|warnings| Admitted { manifest, stored: Stored::default(), warnings, program: None })
}

fn look(manifest: &Value, broken: &[Path], report: &mut Findings) {
    let flow = match JobFlow::deserialize(manifest) {
        Ok(flow) => flow,
        // The field check has reported what is wrong; if it has not, the manifest is refused all the same.
        Err(_) if !broken.is_empty() => return,
        Err(error) => {
            let root = Path::root();
            report.error(&At::base(&root), shape::code::WRONG_TYPE, || format!("the JobFlow cannot be read: {error}"));
            return;
        }
    };
    metadata(&flow.metadata, broken, report);
    let place = Path::root().join("spec");
    let at = At::base(&place);
    let spec = &flow.spec;
    if let (Some(one), Some(other)) = (spec.job_retain_policy, spec.first_retain_policy)
        && one != other
    {
        report.error(&at.key("JobRetainPolicy"), code::POLICY, || {
            "jobRetainPolicy and JobRetainPolicy are the same field and contradict each other".to_owned()
        });
    }
    let place = at.key("flows");
    if spec.flows.len() > MAX_ENTRIES {
        report.error(&place, shape::code::OUT_OF_RANGE, || {
            format!("{} entries are more than a JobFlow may have, which is {MAX_ENTRIES}", spec.flows.len())
        });
        return;
    }
    if spec.flows.is_empty() && !broken.iter().any(|path| path.starts_with(&Path::root().join("spec"))) {
        report.error_with(&place, code::REQUIRED, || {
            ("a JobFlow needs at least one entry".to_owned(), Some("list them under `spec.flows`".to_owned()))
        });
    }
    let mut numbers = entry::Entries::new();
    for (number, entry) in spec.flows.iter().enumerate() {
        let retries = entry.retry.as_ref().map_or(0, |retry| retry.max_retries);
        let (first, _) = *numbers.entry(&entry.name).or_insert((number, retries));
        if first != number && !entry.name.is_empty() {
            report.error_with(&place.index(number).key("name"), code::DUPLICATE_NAME, || {
                let message = format!("'{}' is already the name of flows[{first}]", shape::short(&entry.name));
                (message, Some("a template appears once in a flow; store a copy under another name".to_owned()))
            });
        }
    }
    let longest = longest_name(&flow.metadata);
    for (number, one) in spec.flows.iter().enumerate() {
        entry::check(report, &place.index(number), one, longest.as_deref(), &numbers, broken);
    }
    let needs: Vec<Vec<usize>> =
        spec.flows.iter().enumerate().map(|(at, one)| entry::needs(at, one, &numbers)).collect();
    for cycle in graph::find_cycles(&needs) {
        let names: Vec<&str> = cycle.iter().map(|at| spec.flows[*at].name.as_str()).collect();
        let first = cycle.first().copied().unwrap_or_default();
        report.error(&place.index(first).key("dependsOn").key("targets"), code::CYCLE, || {
            format!("entries wait for each other in a circle: {}", graph::show_cycle(&names))
        });
    }
}

/// Warns of templates that are not there. Their jobs are made once they come.
fn templates(manifest: &Value, others: &dyn Catalog, report: &mut Findings) {
    let namespace = manifest["metadata"]["namespace"].as_str().filter(|name| !name.is_empty());
    let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
    let place = Path::root().join("spec").join("flows");
    for (index, entry) in manifest["spec"]["flows"].as_array().into_iter().flatten().enumerate().take(MAX_ENTRIES) {
        let Some(name) = entry["name"].as_str().filter(|name| is_label(name)) else { continue };
        if !others.has_object(&JOB_TEMPLATE, namespace, name) {
            let place = place.clone().join(index).join("name");
            report.warn(&At::base(&place), code::NOT_LOADED, || {
                let name = shape::short(name);
                format!(
                    "JobTemplate '{name}' is not loaded in namespace '{namespace}'; its job is made once it is there"
                )
            });
        }
    }
}

/// Returns the warnings about a flow, assuming that everything it refers to exists.
pub fn advice(object: &Value) -> Vec<Problem> {
    match examine(object, &Everything) {
        Ok(admitted) => admitted.warnings,
        Err(problems) => problems.0.into_iter().filter(|problem| problem.severity == Severity::Warning).collect(),
    }
}

struct Everything;

impl Catalog for Everything {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        true
    }
}

fn version(manifest: &Value, broken: &[Path], report: &mut Findings) {
    let place = Path::root().join("apiVersion");
    let version = manifest["apiVersion"].as_str().unwrap_or_default();
    if [API_VERSION, FIRST_API_VERSION].contains(&version) || broken.contains(&place) {
        return;
    }
    report.error_with(&At::base(&place), code::KIND, || {
        let message = match version {
            "" => "apiVersion is required".to_owned(),
            version => format!("apiVersion `{}` is not known for this kind JobFlow", shape::short(version)),
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
        (Some(name), _) => name_of(report, &at.key("name"), "metadata.name", name, is_subdomain),
        (None, Some(beginning)) => {
            let example = format!("{beginning}{}", "a".repeat(SUFFIX_LENGTH));
            name_of(report, &at.key("generateName"), "metadata.generateName", &example, is_subdomain);
        }
        (None, None) if broken.iter().any(|path| path.starts_with(&place)) => {}
        (None, None) => report.error_with(&at, code::REQUIRED, || {
            (
                "metadata.name or metadata.generateName is required".to_owned(),
                Some("write `generateName: flow-` to get a new name for every run".to_owned()),
            )
        }),
    }
}

/// Returns the longest name that the flow may get.
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

/// Checks the name of an entry, which is part of the names of its jobs.
fn entry_name(report: &mut Findings, at: &At<'_>, name: &str, broken: &[Path]) {
    entry::required(report, at, !name.is_empty(), "an entry needs the name of its template", broken);
    if !name.is_empty() {
        name_of(report, at, "the entry's name", name, is_label);
    }
}
