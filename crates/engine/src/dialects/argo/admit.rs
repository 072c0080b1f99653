//! Admits Workflows: the only way a manifest becomes something the engine may run.
//! Reports all problems at once, each with its path, and never changes the manifest's meaning.

mod ancestry;
mod argument;
mod binding;
mod call;
mod cron;
mod dag;
mod expression;
mod hook;
mod index;
mod item;
mod lock;
mod memo;
mod meter;
mod name;
mod output;
mod passed;
mod pod;
mod recursion;
pub(crate) mod references;
mod request;
mod scope;
mod spec;
mod standin;
mod tag;
mod template;
mod unused;
mod variable;
mod volume;
mod workflow_template;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};

use octoflow_manifest::{Path, Problem, Problems, Segment, Severity};
use octoflow_model::{argo::Workflow, submission::Stored};
use serde::Deserialize;
use serde_json::{Map, Value};

use self::{
    dag::TaskGraph,
    findings::{At, Findings},
    index::{ReferencedTemplate, TemplateIndex},
};
use super::{
    fields::{API_VERSION, WORKFLOW, WORKFLOW_TEMPLATE},
    merge,
    refer::{self, Reach, ResolvedReferences},
};
pub use crate::admit::Catalog;
use crate::{
    admit::{findings, shape},
    expr::nearest,
    kinds::dialect_of,
};

pub use crate::admit::code;

pub use self::{
    binding::examine_binding, cron::examine_cron, name::MAX_WORKFLOW_NAME_LENGTH, unused::unused,
    workflow_template::examine_template,
};

/// A workflow that may run. Only [`admit`] and [`examine`] make one.
#[derive(Debug, Clone)]
pub struct AdmittedWorkflow {
    workflow: Workflow,
    manifest: Value,
    stored: Stored,
    warnings: Vec<Problem>,
}

impl AdmittedWorkflow {
    /// Returns the workflow merged with its WorkflowTemplate.
    pub fn workflow(&self) -> &Workflow {
        &self.workflow
    }

    /// Returns the manifest as given, without meaningless nulls, labelled with the template it comes from.
    pub fn manifest(&self) -> &Value {
        &self.manifest
    }

    /// Returns copies of all objects that it refers to. They become part of the submission.
    pub fn stored(&self) -> &Stored {
        &self.stored
    }

    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// Splits into the manifest and the copies that are submitted with it.
    pub fn into_parts(self) -> (Value, Stored) {
        (self.manifest, self.stored)
    }
}

/// Checks a Workflow and reports errors only.
pub fn admit(object: &Value, others: &dyn Catalog) -> Result<AdmittedWorkflow, Problems> {
    examine(object, others)
        .map_err(|found| Problems(found.into_iter().filter(|problem| problem.severity == Severity::Error).collect()))
}

/// Checks a Workflow; if it is refused, reports warnings beside the errors.
pub fn examine(object: &Value, others: &dyn Catalog) -> Result<AdmittedWorkflow, Problems> {
    kind(object)?;
    let mended = with_version(object);
    let checked = shape::check(mended.as_ref().map_or(object, |(_, object)| object), &WORKFLOW);
    let (mut manifest, broken) = (checked.value, checked.broken);
    let mut report = Findings::new(checked.problems, checked.warnings);
    version(&manifest, &broken, &mut report);
    if let Some((key, _)) = &mended {
        report.warn(&At::base(&Path::root().join(key.as_str())), shape::code::UNKNOWN_FIELD, || {
            format!("`{key}` is read as `apiVersion`")
        });
    }
    label(&mut manifest);
    let read = check_workflow(&manifest, &broken, AdmitAs::Run, others, &mut report);
    report.verdict().map(|warnings| {
        let (workflow, stored) = read.expect("a manifest that cannot be read has a problem");
        AdmittedWorkflow { workflow, manifest, stored, warnings }
    })
}

/// The role in which a workflow spec is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AdmitAs {
    /// A workflow that runs as it is.
    Run,
    /// A WorkflowTemplate, whose users add arguments, labels and outputs.
    Template,
}

/// Runs every check that involves more than one field. The manifest must have the shape of a Workflow.
fn check_workflow(
    manifest: &Value,
    broken: &[Path],
    admit_as: AdmitAs,
    others: &dyn Catalog,
    report: &mut Findings,
) -> Option<(Workflow, Stored)> {
    let references = refer::resolve_references(manifest, others);
    let mut whole = merge::effective(manifest, &references.stored);
    let defaults = whole["spec"].get("templateDefaults").cloned();
    let filled = |template: &Value| match &defaults {
        Some(defaults) => merge::with_defaults(template, defaults),
        None => template.clone(),
    };
    if defaults.is_some()
        && let Some(templates) = whole.to_mut().pointer_mut("/spec/templates").and_then(Value::as_array_mut)
    {
        templates.iter_mut().for_each(|template| *template = filled(template));
    }
    let workflow = match Workflow::deserialize(&*whole) {
        Ok(workflow) => workflow,
        Err(error) => {
            // The field table and the types can disagree only where a problem was reported already. Should they ever
            // disagree elsewhere, the manifest is still refused.
            let root = Path::root();
            report.error(&At::base(&root), shape::code::WRONG_TYPE, || format!("the manifest cannot be read: {error}"));
            return None;
        }
    };
    let borrowed: Vec<ReferencedTemplate> = references
        .stored
        .templates
        .iter()
        .map(|(key, template)| ReferencedTemplate {
            key: key.clone(),
            place: references.places[key].clone(),
            template: filled(template),
        })
        .collect();
    let index = TemplateIndex::open(templates(&whole), &borrowed, broken);
    let graphs: Vec<Option<TaskGraph<'_>>> = index.entries.iter().map(TaskGraph::of).collect();
    let mut subject = Subject::new(&workflow, &whole, broken, &index, &graphs);
    subject.open = references.open;
    subject.partial = references.open || references.partial;
    subject.admit_as = admit_as;
    spec::check(&subject, report);
    for at in 0..index.entries.len() {
        template::check(&subject, at, report);
    }
    meter::check(&subject, report);
    passed::check(&subject, report);
    variable::check(&subject, report);
    recursion::check(&subject, report);
    references::check(&subject, others, report);
    standin::check(&subject, others, report);
    relocate(manifest, &references, report);
    let stored = references.stored;
    report.absorb(references.problems, references.warnings);
    Some((workflow, stored))
}

/// Returns the name of an object that others refer to, and reports a malformed one. `noun` names the object in
/// messages.
fn own_name<'v>(object: &'v Value, noun: &str, report: &mut Findings) -> &'v str {
    let metadata = Path::root().join("metadata");
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if !name::is_object_name(name) {
        report.error(&At::base(&metadata).key("name"), code::NAME, || {
            format!("a {noun} needs a name of lower-case letters, digits, '-' and '.', not '{}'", shape::short(name))
        });
    }
    name
}

/// Checks the shape and the names of a WorkflowTemplate or ClusterWorkflowTemplate. Problems that depend on its users
/// are found when a workflow uses it. Returns problems and warnings.
pub fn admit_template(object: &Value) -> (Vec<Problem>, Vec<Problem>) {
    let checked = shape::check(object, &WORKFLOW_TEMPLATE);
    let mut report = Findings::new(checked.problems, Vec::new());
    version(&checked.value, &checked.broken, &mut report);
    own_name(&checked.value, "template", &mut report);
    let list = Path(vec!["spec".into(), "templates".into()]);
    let names = templates(&checked.value).iter().map(|template| template["name"].as_str().unwrap_or_default());
    name::list(&mut report, &At::base(&list), &|| "spec.templates".to_owned(), name::NameRule::Field, names);
    match report.verdict() {
        Ok(_) => (Vec::new(), checked.warnings),
        Err(problems) => (problems.0, checked.warnings),
    }
}

/// Labels the run with the WorkflowTemplate it comes from.
fn label(manifest: &mut Value) {
    let reference = &manifest["spec"]["workflowTemplateRef"];
    let Some(name) = reference["name"].as_str().filter(|name| !name.is_empty()).map(str::to_owned) else { return };
    let reach = Reach::of(reference["clusterScope"] == true);
    let Some(fields) = manifest.as_object_mut() else { return };
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else { return };
    let labels = metadata.entry("labels").or_insert_with(|| Value::Object(Map::new()));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(reach.label().to_owned(), Value::String(name));
    }
}

/// Moves problems found in referenced templates to the fields that refer to them.
fn relocate(manifest: &Value, references: &ResolvedReferences, report: &mut Findings) {
    let places: BTreeMap<&Path, &str> = references.places.iter().map(|(key, place)| (place, key.as_str())).collect();
    let merged_from = &manifest["spec"]["workflowTemplateRef"];
    let whole = |reach: Reach, name: &str| format!("in {} '{}': ", reach.kind(), shape::short(name));
    let reference = Path(vec!["spec".into(), "workflowTemplateRef".into()]);
    let merged = references.stored.spec.is_some();
    report.relocate(|path| {
        let from_template = merged
            && path.segments().first() == Some(&Segment::from("spec"))
            && matches!(path.segments().get(1), Some(Segment::Key(key)) if manifest["spec"].get(&**key).is_none());
        if from_template {
            let reach = Reach::of(merged_from["clusterScope"] == true);
            return Some((reference.clone(), whole(reach, merged_from["name"].as_str().unwrap_or_default())));
        }
        let (place, key) = places.iter().find(|(place, _)| path.starts_with(place))?;
        let reference = refer::reference(key);
        let prefix = reference.map(|from| whole(Reach::of(from.cluster_scope), &from.name)).unwrap_or_default();
        Some(((*place).clone(), prefix))
    });
}

/// The workflow under admission, and the indexes that the checks share.
struct Subject<'a> {
    workflow: &'a Workflow,
    manifest: &'a Value,
    broken: &'a [Path],
    templates: &'a TemplateIndex<'a>,
    /// Dependency graphs, by template; `None` for templates that are no DAG.
    graphs: &'a [Option<TaskGraph<'a>>],
    /// Names of the workflow's own volumes and claims.
    volumes: HashSet<&'a str>,
    /// True if some volume names are not known before the run.
    open_volumes: bool,
    /// True if something that it refers to is missing or unreadable, so that no name can be called unknown.
    open: bool,
    /// True if a template that it calls is missing or unreadable, so that its exports are unknown.
    partial: bool,
    admit_as: AdmitAs,
}

impl<'a> Subject<'a> {
    fn new(
        workflow: &'a Workflow,
        manifest: &'a Value,
        broken: &'a [Path],
        templates: &'a TemplateIndex<'a>,
        graphs: &'a [Option<TaskGraph<'a>>],
    ) -> Self {
        let claims = workflow.spec.volume_claim_templates.iter().filter_map(|claim| claim.metadata.name.as_deref());
        let volumes: HashSet<&str> =
            workflow.spec.volumes.iter().map(|volume| volume.name.as_str()).chain(claims).collect();
        let (open_volumes, open, admit_as) = (false, false, AdmitAs::Run);
        let mut subject = Self {
            workflow,
            manifest,
            broken,
            templates,
            graphs,
            volumes,
            open_volumes,
            open,
            partial: false,
            admit_as,
        };
        subject.open_volumes = subject.volumes.iter().any(|name| name::has_variables(name))
            || subject.broken_at(&["spec", "volumes"])
            || subject.broken_at(&["spec", "volumeClaimTemplates"]);
        subject
    }

    /// Whether a field at or below this path has the wrong type.
    fn broken_at(&self, place: &[&str]) -> bool {
        let place = Path(place.iter().map(|&key| key.into()).collect());
        self.broken.iter().any(|broken| broken.starts_with(&place))
    }
}

fn templates(manifest: &Value) -> &[Value] {
    manifest["spec"]["templates"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Refuses objects of other kinds. They have other fields, so no further check applies.
fn kind(object: &Value) -> Result<(), Problems> {
    let found = dialect_of(object)?.kind;
    if *found == super::WORKFLOW {
        return Ok(());
    }
    Err(Problem::error(code::KIND, format!("a {} is not a workflow", found.name))
        .path(Path::root().join("kind"))
        .into())
}

/// Corrects a misspelt `apiVersion` key if its value leaves no doubt. Returns the misspelt key and the corrected
/// object.
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

fn version(manifest: &Value, broken: &[Path], report: &mut Findings) {
    let place = Path::root().join("apiVersion");
    let version = manifest["apiVersion"].as_str().unwrap_or_default();
    if version == API_VERSION || broken.contains(&place) {
        return;
    }
    report.error_with(&At::base(&place), code::KIND, || {
        let message = if version.is_empty() {
            "apiVersion is required".to_owned()
        } else {
            format!(
                "apiVersion `{}` is not known for kind {}",
                shape::short(version),
                manifest["kind"].as_str().unwrap_or("Workflow")
            )
        };
        (message, Some(format!("write `apiVersion: {API_VERSION}`")))
    });
}
