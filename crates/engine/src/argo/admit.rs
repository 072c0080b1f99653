//! Admission of a Workflow: the one entry point through which a manifest becomes something the engine may run.
//! It finds everything that is wrong at once, each with its place, and changes nothing.

mod alone;
mod ancestry;
mod argument;
mod binding;
mod book;
mod call;
mod cron;
mod dag;
mod endless;
mod expression;
mod handed;
mod hook;
mod item;
pub(crate) mod loaded;
mod lock;
mod memo;
mod meter;
mod name;
mod output;
mod pod;
mod request;
mod scope;
mod spec;
mod standin;
mod tag;
mod template;
mod unused;
mod variable;
mod volume;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};

use octoflow_manifest::{Path, Problem, Problems, Segment, Severity};
use octoflow_model::{argo::Workflow, submission::Stored};
use serde::Deserialize;
use serde_json::{Map, Value};

use self::{
    book::{Book, Borrowed},
    dag::Graph,
    findings::{At, Findings},
};
use super::{
    fields::{API_VERSION, WORKFLOW, WORKFLOW_TEMPLATE},
    merge,
    refer::{self, Gathered, Reach},
};
pub use crate::admit::Catalog;
use crate::{expr::nearest, findings, kinds::dialect_of, shape};

pub use crate::code;

pub use self::{
    alone::examine_template, binding::examine_binding, cron::examine_cron, name::LONGEST_WORKFLOW_NAME, unused::unused,
};

/// A workflow that may run. Only [`admit`] makes one.
#[derive(Debug, Clone)]
pub struct Admitted {
    workflow: Workflow,
    manifest: Value,
    stored: Stored,
    warnings: Vec<Problem>,
}

impl Admitted {
    /// With what its WorkflowTemplate says.
    pub fn workflow(&self) -> &Workflow {
        &self.workflow
    }

    /// The object as it was given, without the nulls that mean nothing, labelled with where it comes from.
    pub fn manifest(&self) -> &Value {
        &self.manifest
    }

    /// Copies of everything it refers to; they belong to the submission.
    pub fn stored(&self) -> &Stored {
        &self.stored
    }

    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The manifest and the copies, for whoever submits them.
    pub fn into_parts(self) -> (Value, Stored) {
        (self.manifest, self.stored)
    }
}

/// Judges one object.
pub fn admit(object: &Value, others: &dyn Catalog) -> Result<Admitted, Problems> {
    examine(object, others)
        .map_err(|found| Problems(found.into_iter().filter(|problem| problem.severity == Severity::Error).collect()))
}

/// Judges one object, and tells of one that is not let in everything there is to tell, warnings too.
pub fn examine(object: &Value, others: &dyn Catalog) -> Result<Admitted, Problems> {
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
    let read = look(&manifest, &broken, Standing::Run, others, &mut report);
    report.verdict().map(|warnings| {
        let (workflow, stored) = read.expect("a manifest that cannot be read has a problem");
        Admitted { workflow, manifest, stored, warnings }
    })
}

/// As what an object is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is to run as it is.
    Run,
    /// A WorkflowTemplate: whoever uses it brings arguments, labels and outputs of its own.
    Template,
}

/// Everything that takes more than one field to judge. The manifest has the shape of a Workflow.
fn look(
    manifest: &Value,
    broken: &[Path],
    standing: Standing,
    others: &dyn Catalog,
    report: &mut Findings,
) -> Option<(Workflow, Stored)> {
    let gathered = refer::gather(manifest, others);
    let mut whole = merge::effective(manifest, &gathered.stored);
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
            // The table and the types disagree only where a problem was told already; should they ever disagree
            // elsewhere, the manifest is still not let in.
            let root = Path::root();
            report.error(&At::base(&root), shape::code::WRONG_TYPE, || format!("the manifest cannot be read: {error}"));
            return None;
        }
    };
    let borrowed: Vec<Borrowed> = gathered
        .stored
        .templates
        .iter()
        .map(|(key, template)| Borrowed {
            key: key.clone(),
            place: gathered.places[key].clone(),
            template: filled(template),
        })
        .collect();
    let book = Book::open(templates(&whole), &borrowed, broken);
    let graphs: Vec<Option<Graph<'_>>> = book.entries.iter().map(Graph::of).collect();
    let mut subject = Subject::new(&workflow, &whole, broken, &book, &graphs);
    subject.open = gathered.open;
    subject.partial = gathered.open || gathered.partial;
    subject.standing = standing;
    spec::check(&subject, report);
    for index in 0..book.entries.len() {
        template::check(&subject, index, report);
    }
    meter::check(&subject, report);
    handed::check(&subject, report);
    variable::check(&subject, report);
    endless::check(&subject, report);
    loaded::check(&subject, others, report);
    standin::check(&subject, others, report);
    elsewhere(manifest, &gathered, report);
    let stored = gathered.stored;
    report.absorb(gathered.problems, gathered.warnings);
    Some((workflow, stored))
}

/// The name of an object that others refer to; it must be a proper one. `noun` is what the object is called.
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

/// Judges a WorkflowTemplate or ClusterWorkflowTemplate by itself: its shape and its names. What depends on who uses it
/// is found when a workflow does. The answer are problems and warnings.
pub fn admit_template(object: &Value) -> (Vec<Problem>, Vec<Problem>) {
    let checked = shape::check(object, &WORKFLOW_TEMPLATE);
    let mut report = Findings::new(checked.problems, Vec::new());
    version(&checked.value, &checked.broken, &mut report);
    own_name(&checked.value, "template", &mut report);
    let list = Path(vec!["spec".into(), "templates".into()]);
    let names = templates(&checked.value).iter().map(|template| template["name"].as_str().unwrap_or_default());
    name::list(&mut report, &At::base(&list), &|| "spec.templates".to_owned(), name::Rule::Field, names);
    match report.verdict() {
        Ok(_) => (Vec::new(), checked.warnings),
        Err(problems) => (problems.0, checked.warnings),
    }
}

/// Says on the run itself which template it comes from.
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

/// What was found in templates that stand elsewhere is told at the places that refer to them.
fn elsewhere(manifest: &Value, gathered: &Gathered, report: &mut Findings) {
    let places: BTreeMap<&Path, &str> = gathered.places.iter().map(|(key, place)| (place, key.as_str())).collect();
    let merged_from = &manifest["spec"]["workflowTemplateRef"];
    let whole = |reach: Reach, name: &str| format!("in {} '{}': ", reach.kind(), shape::short(name));
    let reference = Path(vec!["spec".into(), "workflowTemplateRef".into()]);
    let merged = gathered.stored.spec.is_some();
    report.relocate(|path| {
        let from_template = merged
            && path.segments().first() == Some(&Segment::from("spec"))
            && matches!(path.segments().get(1), Some(Segment::Key(key)) if manifest["spec"].get(&**key).is_none());
        if from_template {
            let reach = Reach::of(merged_from["clusterScope"] == true);
            return Some((reference.clone(), whole(reach, merged_from["name"].as_str().unwrap_or_default())));
        }
        let (place, key) = places.iter().find(|(place, _)| path.starts_with(place))?;
        let home = refer::reference(key);
        let told = home.map(|home| whole(Reach::of(home.cluster_scope), &home.name)).unwrap_or_default();
        Some(((*place).clone(), told))
    });
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
    /// Some of what it refers to is not there or cannot be read; nothing can be said about names then.
    open: bool,
    /// Some template it calls is not there or cannot be read; what that one exports is not known.
    partial: bool,
    standing: Standing,
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
        let (open_volumes, open, standing) = (false, false, Standing::Run);
        let mut subject =
            Self { workflow, manifest, broken, book, graphs, volumes, open_volumes, open, partial: false, standing };
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
}

fn templates(manifest: &Value) -> &[Value] {
    manifest["spec"]["templates"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// An object of another kind has other fields; nothing more can be said about it here.
fn kind(object: &Value) -> Result<(), Problems> {
    let found = dialect_of(object)?.kind;
    if *found == super::WORKFLOW {
        return Ok(());
    }
    Err(Problem::error(code::KIND, format!("a {} is no workflow", found.name)).path(Path::root().join("kind")).into())
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
