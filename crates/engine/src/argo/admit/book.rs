//! All templates of a workflow, inline ones too, found by name and with their calls resolved.
//! It never judges; what cannot be known (a name with variables, a template with broken fields) is left open.

use std::collections::{HashMap, HashSet};

use octoflow_manifest::{Path, Segment};
use octoflow_model::argo::{Artifact, Call, Template, TemplateRef, template::Parameter};
use serde::Deserialize;
use serde_json::Value;

use super::{argument::Needs, name};
pub(super) use crate::findings::Spot;

use crate::argo::{fields::TYPE_NAMES, refer};

pub(super) struct Book<'a> {
    pub(super) entries: Vec<Entry<'a>>,
    names: HashMap<String, usize>,
    /// How many of the entries stand under `spec.templates`.
    pub(super) own: usize,
    /// How many have a name: the own ones and those of WorkflowTemplates. The rest are inline.
    pub(super) listed: usize,
}

/// A template of a WorkflowTemplate, and the place that refers to it.
pub(super) struct Borrowed {
    pub(super) key: String,
    pub(super) place: Path,
    pub(super) template: Value,
}

pub(super) struct Entry<'a> {
    pub(super) path: Path,
    pub(super) raw: &'a Value,
    pub(super) template: Template,
    pub(super) kind: Kind,
    /// What messages call it: its name, or the call it is inline in.
    pub(super) label: String,
    /// The WorkflowTemplate it stands in; nothing for those of the workflow itself.
    pub(super) home: Option<String>,
    /// Fields of it have the wrong type, so that nothing may be concluded from what is missing.
    pub(super) broken: bool,
    /// What a call must hand in.
    pub(super) needs: Needs,
    pub(super) inputs: Names,
    pub(super) outputs: Names,
    /// What each of its calls calls, in the order of [`Entry::calls`].
    pub(super) callees: Vec<Callee>,
}

/// Declared names, for quick answers.
pub(super) struct Names {
    pub(super) parameters: HashSet<String>,
    pub(super) artifacts: HashSet<String>,
    /// Some of them hold variables, so that they may be any.
    open: bool,
}

/// What a template is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Container,
    Script,
    ContainerSet,
    Steps,
    Dag,
    Suspend,
    Http,
    Resource,
    Data,
    /// A known type that is not supported, no type, or several types: told elsewhere.
    Unclear,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Callee {
    Entry(usize),
    /// Not known before it runs, or a mistake that is told elsewhere.
    Open,
}

impl<'a> Book<'a> {
    /// `broken` are the places of wrong types in the manifest.
    pub(super) fn open(templates: &'a [Value], borrowed: &'a [Borrowed], broken: &[Path]) -> Self {
        let entries = Vec::with_capacity(templates.len() + borrowed.len());
        let mut book = Self { entries, names: HashMap::new(), own: 0, listed: 0 };
        let list = Path(vec!["spec".into(), "templates".into()]);
        for (index, raw) in templates.iter().enumerate() {
            let label = raw.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            book.add(list.join(index), raw, label, None, broken);
        }
        book.own = book.entries.len();
        for index in 0..book.own {
            let name = book.entries[index].template.name.clone();
            book.names.entry(name).or_insert(index);
        }
        for one in borrowed {
            let home = refer::home(&one.key).map(str::to_owned);
            let label = one.key.split_once('/').map_or(one.key.as_str(), |(_, label)| label);
            book.names.insert(one.key.clone(), book.entries.len());
            book.add(one.place.clone(), &one.template, label.to_owned(), home, &[]);
        }
        book.listed = book.entries.len();
        // Inline templates are appended as they are met, and met themselves later.
        let mut next = 0;
        while next < book.entries.len() {
            book.resolve(next, broken);
            next += 1;
        }
        book
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// What a template at this home means by a name.
    pub(super) fn find_from(&self, home: Option<&str>, name: &str) -> Option<usize> {
        match home {
            Some(_) => self.find(&refer::neighbour(home, name)),
            None => self.find(name),
        }
    }

    /// What a reference means.
    pub(super) fn find_reference(&self, reference: &TemplateRef) -> Option<usize> {
        self.find(&refer::key(reference))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries[..self.own].iter().map(|entry| entry.template.name.as_str())
    }

    fn add(&mut self, path: Path, raw: &'a Value, label: String, home: Option<String>, broken: &[Path]) {
        let broken = broken.iter().any(|place| place.starts_with(&path));
        let (template, broken) = match Template::deserialize(raw) {
            Ok(template) => (template, broken),
            Err(_) => (Template { name: label.clone(), ..Template::default() }, true),
        };
        let kind = Kind::of(raw, &template);
        let needs = Needs::of(&template, raw);
        let inputs = Names::of(&template.inputs.parameters, &template.inputs.artifacts);
        let outputs = Names::of(&template.outputs.parameters, &template.outputs.artifacts);
        self.entries.push(Entry {
            path,
            raw,
            template,
            kind,
            label,
            home,
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
        for (spot, call) in entry.calls() {
            let own = spot.find(raw).and_then(|raw| raw.get("inline"));
            callees.push(match (own, &call.template, &call.template_ref) {
                (Some(own), None, None) => {
                    let mut path = entry.path.clone();
                    path.0.extend(spot.segments());
                    path.push("inline");
                    inline.push((path, own, format!("{}.{}", entry.label, spot.of(&call.name))));
                    Callee::Entry(self.entries.len() + inline.len() - 1)
                }
                (None, Some(name), None) => {
                    self.find_from(entry.home.as_deref(), name).map_or(Callee::Open, Callee::Entry)
                }
                (None, None, Some(reference)) => self.find_reference(reference).map_or(Callee::Open, Callee::Entry),
                _ => Callee::Open,
            });
        }
        let home = entry.home.clone();
        self.entries[index].callees = callees;
        for (path, own, label) in inline {
            self.add(path, own, label, home.clone(), broken);
        }
    }
}

impl Entry<'_> {
    /// Its steps or tasks in the order written.
    pub(super) fn calls(&self) -> Box<dyn Iterator<Item = (Spot, &Call)> + '_> {
        match (self.kind, &self.template.steps, &self.template.dag) {
            (Kind::Steps, Some(groups), _) => Box::new(groups.iter().enumerate().flat_map(|(group, steps)| {
                steps.iter().enumerate().map(move |(step, call)| (Spot::Step { group, step }, call))
            })),
            (Kind::Dag, _, Some(dag)) => {
                Box::new(dag.tasks.iter().enumerate().map(|(at, call)| (Spot::Task(at), call)))
            }
            _ => Box::new(std::iter::empty()),
        }
    }
}

impl Names {
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

impl Kind {
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

    /// Runs a process.
    pub(super) fn leaf(self) -> bool {
        matches!(self, Self::Container | Self::Script | Self::ContainerSet)
    }

    /// The word of messages.
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

impl Spot {
    /// How messages name the call: `steps[1].b` or `tasks.b`.
    pub(super) fn of(self, name: &str) -> String {
        match self {
            Self::Step { group, .. } => format!("steps[{group}].{name}"),
            Self::Task(_) => format!("tasks.{name}"),
        }
    }

    /// The raw call in its raw template.
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
