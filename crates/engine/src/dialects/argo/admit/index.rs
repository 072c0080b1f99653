//! Indexes all templates of a workflow, inline ones included, by name, and resolves their calls.
//! Reports nothing; what cannot be known (a name with variables, a template with broken fields) stays open.

use std::collections::{HashMap, HashSet};

use octoflow_manifest::{Path, Segment};
use octoflow_model::argo::{Artifact, Call, Template, TemplateRef, template::Parameter};
use serde::Deserialize;
use serde_json::Value;

use super::{argument::Needs, name};
pub(super) use crate::admit::findings::CallPosition;

use crate::dialects::argo::{fields::TYPE_NAMES, refer};

pub(super) struct TemplateIndex<'a> {
    pub(super) entries: Vec<TemplateEntry<'a>>,
    names: HashMap<String, usize>,
    /// Number of entries under `spec.templates`.
    pub(super) own: usize,
    /// Number of named entries: the workflow's own and those of WorkflowTemplates. The rest are inline.
    pub(super) listed: usize,
}

/// A template of a WorkflowTemplate, and the path of the field that refers to it.
pub(super) struct ReferencedTemplate {
    pub(super) key: String,
    pub(super) place: Path,
    pub(super) template: Value,
}

pub(super) struct TemplateEntry<'a> {
    pub(super) path: Path,
    pub(super) raw: &'a Value,
    pub(super) template: Template,
    pub(super) kind: TemplateType,
    /// Name in messages: the template's name, or the call that it is inline in.
    pub(super) label: String,
    /// WorkflowTemplate that it belongs to; `None` for the workflow's own.
    pub(super) template_scope: Option<String>,
    /// True if fields of it have the wrong type, so that a missing field proves nothing.
    pub(super) broken: bool,
    /// Inputs that a call must supply.
    pub(super) needs: Needs,
    pub(super) inputs: DeclaredNames,
    pub(super) outputs: DeclaredNames,
    /// Resolved templates of its calls, in the order of [`TemplateEntry::calls`].
    pub(super) callees: Vec<Callee>,
}

/// Declared parameter and artifact names.
pub(super) struct DeclaredNames {
    pub(super) parameters: HashSet<String>,
    pub(super) artifacts: HashSet<String>,
    /// True if some names contain variables, so that any name may exist.
    open: bool,
}

/// The type of a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TemplateType {
    Container,
    Script,
    ContainerSet,
    Steps,
    Dag,
    Suspend,
    Http,
    Resource,
    Data,
    /// An unsupported type, no type, or several types: reported elsewhere.
    Unclear,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Callee {
    Entry(usize),
    /// Not known before the run, or a mistake that is reported elsewhere.
    Open,
}

impl<'a> TemplateIndex<'a> {
    /// Indexes the templates. `broken` are the paths of fields with wrong types.
    pub(super) fn open(templates: &'a [Value], borrowed: &'a [ReferencedTemplate], broken: &[Path]) -> Self {
        let entries = Vec::with_capacity(templates.len() + borrowed.len());
        let mut all = Self { entries, names: HashMap::new(), own: 0, listed: 0 };
        let list = Path(vec!["spec".into(), "templates".into()]);
        for (index, raw) in templates.iter().enumerate() {
            let label = raw.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            all.add(list.join(index), raw, label, None, broken);
        }
        all.own = all.entries.len();
        for index in 0..all.own {
            let name = all.entries[index].template.name.clone();
            all.names.entry(name).or_insert(index);
        }
        for one in borrowed {
            let template_scope = refer::scope_of(&one.key).map(str::to_owned);
            let label = one.key.split_once('/').map_or(one.key.as_str(), |(_, label)| label);
            all.names.insert(one.key.clone(), all.entries.len());
            all.add(one.place.clone(), &one.template, label.to_owned(), template_scope, &[]);
        }
        all.listed = all.entries.len();
        // Resolving appends inline templates, which this loop then visits too.
        let mut next = 0;
        while next < all.entries.len() {
            all.resolve(next, broken);
            next += 1;
        }
        all
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// Resolves a name as a template of this WorkflowTemplate means it.
    pub(super) fn find_from(&self, template_scope: Option<&str>, name: &str) -> Option<usize> {
        match template_scope {
            Some(_) => self.find(&refer::sibling_key(template_scope, name)),
            None => self.find(name),
        }
    }

    /// Resolves a `templateRef`.
    pub(super) fn find_reference(&self, reference: &TemplateRef) -> Option<usize> {
        self.find(&refer::key(reference))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries[..self.own].iter().map(|entry| entry.template.name.as_str())
    }

    fn add(&mut self, path: Path, raw: &'a Value, label: String, template_scope: Option<String>, broken: &[Path]) {
        let broken = broken.iter().any(|place| place.starts_with(&path));
        let (template, broken) = match Template::deserialize(raw) {
            Ok(template) => (template, broken),
            Err(_) => (Template { name: label.clone(), ..Template::default() }, true),
        };
        let kind = TemplateType::of(raw, &template);
        let needs = Needs::of(&template, raw);
        let inputs = DeclaredNames::of(&template.inputs.parameters, &template.inputs.artifacts);
        let outputs = DeclaredNames::of(&template.outputs.parameters, &template.outputs.artifacts);
        self.entries.push(TemplateEntry {
            path,
            raw,
            template,
            kind,
            label,
            template_scope,
            broken,
            needs,
            inputs,
            outputs,
            callees: Vec::new(),
        });
    }

    fn resolve(&mut self, index: usize, broken: &[Path]) {
        let entry = &self.entries[index];
        let raw = entry.raw;
        let mut callees = Vec::new();
        let mut inline = Vec::new();
        for (site, call) in entry.calls() {
            let own = site.find(raw).and_then(|raw| raw.get("inline"));
            callees.push(match (own, &call.template, &call.template_ref) {
                (Some(own), None, None) => {
                    let mut path = entry.path.clone();
                    path.0.extend(site.segments());
                    path.push("inline");
                    inline.push((path, own, format!("{}.{}", entry.label, site.of(&call.name))));
                    Callee::Entry(self.entries.len() + inline.len() - 1)
                }
                (None, Some(name), None) => {
                    self.find_from(entry.template_scope.as_deref(), name).map_or(Callee::Open, Callee::Entry)
                }
                (None, None, Some(reference)) => self.find_reference(reference).map_or(Callee::Open, Callee::Entry),
                _ => Callee::Open,
            });
        }
        let template_scope = entry.template_scope.clone();
        self.entries[index].callees = callees;
        for (path, own, label) in inline {
            self.add(path, own, label, template_scope.clone(), broken);
        }
    }
}

impl TemplateEntry<'_> {
    /// Iterates over its steps or tasks in the order written.
    pub(super) fn calls(&self) -> Box<dyn Iterator<Item = (CallPosition, &Call)> + '_> {
        if self.kind == TemplateType::Steps
            && let Some(groups) = &self.template.steps
        {
            Box::new(groups.iter().enumerate().flat_map(|(group, steps)| {
                steps.iter().enumerate().map(move |(step, call)| (CallPosition::Step { group, step }, call))
            }))
        } else if self.kind == TemplateType::Dag
            && let Some(dag) = &self.template.dag
        {
            Box::new(dag.tasks.iter().enumerate().map(|(at, call)| (CallPosition::Task(at), call)))
        } else {
            Box::new(std::iter::empty())
        }
    }
}

impl DeclaredNames {
    fn of(parameters: &[Parameter], artifacts: &[Artifact]) -> Self {
        let parameters: HashSet<String> = parameters.iter().map(|parameter| parameter.name.clone()).collect();
        let artifacts: HashSet<String> = artifacts.iter().map(|artifact| artifact.name.clone()).collect();
        let open = parameters.iter().chain(&artifacts).any(|name| name::has_variables(name));
        Self { parameters, artifacts, open }
    }

    pub(super) fn parameter(&self, name: &str) -> bool {
        self.open || self.parameters.contains(name)
    }

    pub(super) fn artifact(&self, name: &str) -> bool {
        self.open || self.artifacts.contains(name)
    }
}

impl TemplateType {
    fn of(raw: &Value, template: &Template) -> Self {
        if TYPE_NAMES.iter().filter(|name| raw.get(name).is_some()).count() != 1 {
            return Self::Unclear;
        }
        match template {
            Template { container: Some(_), .. } => Self::Container,
            Template { script: Some(_), .. } => Self::Script,
            Template { container_set: Some(_), .. } => Self::ContainerSet,
            Template { steps: Some(_), .. } => Self::Steps,
            Template { dag: Some(_), .. } => Self::Dag,
            Template { suspend: Some(_), .. } => Self::Suspend,
            Template { http: Some(_), .. } => Self::Http,
            Template { resource: Some(_), .. } => Self::Resource,
            Template { data: Some(_), .. } => Self::Data,
            _ => Self::Unclear,
        }
    }

    /// Whether the template runs a process.
    pub(super) fn leaf(self) -> bool {
        matches!(self, Self::Container | Self::Script | Self::ContainerSet)
    }

    /// Returns the type's name in messages.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Container => "Container",
            Self::Script => "Script",
            Self::ContainerSet => "ContainerSet",
            Self::Steps => "Steps",
            Self::Dag => "DAG",
            Self::Suspend => "Suspend",
            Self::Http => "HTTP",
            Self::Resource => "Resource",
            Self::Data => "Data",
            Self::Unclear => "Unknown",
        }
    }
}

impl CallPosition {
    /// Formats the call for messages: `steps[1].b` or `tasks.b`.
    pub(super) fn of(self, name: &str) -> String {
        match self {
            Self::Step { group, .. } => format!("steps[{group}].{name}"),
            Self::Task(_) => format!("tasks.{name}"),
        }
    }

    /// Looks up the raw call in its raw template.
    pub(super) fn find(self, template: &Value) -> Option<&Value> {
        match self {
            Self::Step { group, step } => template.get("steps")?.get(group)?.get(step),
            Self::Task(task) => template.get("dag")?.get("tasks")?.get(task),
        }
    }

    fn segments(self) -> Vec<Segment> {
        match self {
            Self::Step { group, step } => vec!["steps".into(), group.into(), step.into()],
            Self::Task(task) => vec!["dag".into(), "tasks".into(), task.into()],
        }
    }
}
