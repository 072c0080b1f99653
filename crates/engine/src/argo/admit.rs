//! Admission of a Workflow: the one door through which a manifest becomes something the engine may run.
//! It finds everything that is wrong at once, each with its place, and changes nothing.

mod ancestry;
mod argument;
mod book;
mod call;
pub mod code;
mod cycle;
mod dag;
mod endless;
mod expression;
mod hook;
mod item;
mod loaded;
mod lock;
mod name;
mod output;
mod report;
mod scope;
mod spec;
mod tag;
mod template;
mod variable;
mod volume;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use octoflow_manifest::{Path, Problem, Problems, Severity};
use octoflow_model::argo::Workflow;
use serde::Deserialize;
use serde_json::Value;

use self::{
    book::Book,
    dag::Graph,
    report::{At, Report},
};
use super::fields::{API_VERSION, OTHER_KINDS, WORKFLOW};
use crate::{expr::nearest, shape};

pub use self::{item::MOST_ITEMS, name::LONGEST_WORKFLOW_NAME};

/// A workflow that may run. Only [`admit`] makes one.
#[derive(Debug, Clone)]
pub struct Admitted {
    workflow: Workflow,
    manifest: Value,
    warnings: Vec<Problem>,
}

impl Admitted {
    pub fn workflow(&self) -> &Workflow {
        &self.workflow
    }

    /// The object as it was given, without the nulls that mean nothing.
    pub fn manifest(&self) -> &Value {
        &self.manifest
    }

    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    pub fn into_parts(self) -> (Workflow, Value, Vec<Problem>) {
        (self.workflow, self.manifest, self.warnings)
    }
}

/// What else is there. Whatever is missing is only warned of: it may be optional, or arrive later.
pub trait Surroundings {
    fn has_config_map(&self, namespace: &str, name: &str) -> bool;
    fn has_secret(&self, namespace: &str, name: &str) -> bool;
    fn has_claim(&self, namespace: &str, name: &str) -> bool;
}

/// Judges one object.
pub fn admit(object: &Value, others: &dyn Surroundings) -> Result<Admitted, Problems> {
    examine(object, others)
        .map_err(|found| Problems(found.into_iter().filter(|problem| problem.severity == Severity::Error).collect()))
}

/// Judges one object, and tells of one that is not let in everything there is to tell, warnings too.
pub fn examine(object: &Value, others: &dyn Surroundings) -> Result<Admitted, Problems> {
    kind(object)?;
    let mended = with_version(object);
    let checked = shape::check(mended.as_ref().map_or(object, |(_, object)| object), &WORKFLOW);
    let (manifest, broken) = (checked.value, checked.broken);
    let mut report = Report::new(checked.problems, checked.warnings);
    version(&manifest, &broken, &mut report);
    if let Some((key, _)) = &mended {
        report.warn(&At::base(&Path::root().join(key.as_str())), shape::code::UNKNOWN_FIELD, || {
            format!("`{key}` is read as `apiVersion`")
        });
    }
    let workflow = match Workflow::deserialize(&manifest) {
        Ok(workflow) => workflow,
        Err(error) => {
            // The table and the types disagree only where a problem was told already; should they ever disagree
            // elsewhere, the manifest is still not let in.
            let root = Path::root();
            report.error(&At::base(&root), shape::code::WRONG_TYPE, || format!("the manifest cannot be read: {error}"));
            return Err(report.verdict().err().unwrap_or_default());
        }
    };
    let book = Book::open(templates(&manifest), &broken);
    let graphs: Vec<Option<Graph<'_>>> = book.entries.iter().map(Graph::of).collect();
    let subject = Subject::new(&workflow, &manifest, &broken, &book, &graphs);
    spec::check(&subject, &mut report);
    for index in 0..book.entries.len() {
        template::check(&subject, index, &mut report);
    }
    variable::check(&subject, &mut report);
    endless::check(&subject, &mut report);
    loaded::check(&subject, others, &mut report);
    report.verdict().map(|warnings| Admitted { workflow, manifest, warnings })
}

/// What is being judged.
struct Subject<'a> {
    workflow: &'a Workflow,
    manifest: &'a Value,
    broken: &'a [Path],
    book: &'a Book<'a>,
    /// By template: the edges of those that are graphs.
    graphs: &'a [Option<Graph<'a>>],
    /// The names of the workflow's own volumes and claims.
    volumes: HashSet<&'a str>,
    /// Some of these names are not known before the run.
    open_volumes: bool,
}

impl<'a> Subject<'a> {
    fn new(
        workflow: &'a Workflow,
        manifest: &'a Value,
        broken: &'a [Path],
        book: &'a Book<'a>,
        graphs: &'a [Option<Graph<'a>>],
    ) -> Self {
        let claims = workflow.spec.volume_claim_templates.iter().filter_map(|claim| claim.metadata.name.as_deref());
        let volumes: HashSet<&str> =
            workflow.spec.volumes.iter().map(|volume| volume.name.as_str()).chain(claims).collect();
        let mut subject = Self { workflow, manifest, broken, book, graphs, volumes, open_volumes: false };
        subject.open_volumes = subject.volumes.iter().any(|name| name::has_variables(name))
            || subject.broken_at(&["spec", "volumes"])
            || subject.broken_at(&["spec", "volumeClaimTemplates"]);
        subject
    }

    /// Something at or below this place has the wrong type.
    fn broken_at(&self, place: &[&str]) -> bool {
        let place = Path(place.iter().map(|&key| key.into()).collect());
        self.broken.iter().any(|broken| broken.starts_with(&place))
    }

    /// The templates come from elsewhere, which is refused; nothing more can be said about names.
    fn referred(&self) -> bool {
        self.manifest["spec"].get("workflowTemplateRef").is_some()
    }
}

fn templates(manifest: &Value) -> &[Value] {
    manifest["spec"]["templates"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// An object of another kind has other fields; nothing more can be said about it here.
fn kind(object: &Value) -> Result<(), Problems> {
    if !object.is_object() {
        let message = "expected a mapping with `apiVersion`, `kind`, `metadata` and `spec`";
        return Err(Problem::error(shape::code::WRONG_TYPE, message).path(Path::root()).into());
    }
    let kind = object["kind"].as_str().unwrap_or_default();
    let at = Path::root().join("kind");
    if kind == "Workflow" {
        return Ok(());
    }
    if OTHER_KINDS.contains(&kind) {
        return Err(Problem::error(code::KIND, format!("kind {kind} is not supported yet")).path(at).into());
    }
    if kind.is_empty() {
        return Err(Problem::error(code::KIND, "kind is required").path(at).help("write `kind: Workflow`").into());
    }
    let problem = Problem::error(code::KIND, format!("kind `{}` is not known here", shape::short(kind))).path(at);
    let known = ["Workflow", "ConfigMap", "Secret", "PersistentVolumeClaim"];
    let problem = match nearest(kind, known) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem.help(format!("known kinds: {}", known.join(", "))),
    };
    Err(problem.into())
}

/// A misspelt `apiVersion` whose value leaves no doubt is read as what it is meant to be: the object with it put right.
fn with_version(object: &Value) -> Option<(String, Value)> {
    let fields = object.as_object().filter(|fields| !fields.contains_key("apiVersion"))?;
    let misspelt = |(key, value): &(&String, &Value)| {
        value.as_str() == Some(API_VERSION) && nearest(key, ["apiVersion"]).is_some()
    };
    let (key, _) = fields.iter().find(misspelt)?;
    let mut object = object.clone();
    if let Some(version) = object.as_object_mut().and_then(|fields| fields.remove(key)) {
        object["apiVersion"] = version;
    }
    Some((key.clone(), object))
}

fn version(manifest: &Value, broken: &[Path], report: &mut Report) {
    let place = Path::root().join("apiVersion");
    let version = manifest["apiVersion"].as_str().unwrap_or_default();
    if version == API_VERSION || broken.contains(&place) {
        return;
    }
    report.error_with(&At::base(&place), code::KIND, || {
        let message = if version.is_empty() {
            "apiVersion is required".to_owned()
        } else {
            format!("apiVersion `{}` is not known for kind Workflow", shape::short(version))
        };
        (message, Some(format!("write `apiVersion: {API_VERSION}`")))
    });
}
