//! What a case is about: its manifests, read, adjusted and judged exactly as `octoflow run` does.
//! Nothing of the data directory is looked at: a test sees only what its file names.

use anyhow::Result;
use octoflow_control::keyed::{self, KeyedObject};
use octoflow_engine::{
    admit, argo,
    kinds::{
        self, Kind,
        core::{CONFIG_MAP, SECRET},
    },
};
use octoflow_manifest::{Path, Problem, Problems, Severity};
use octoflow_model::submission::Stored;
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

use super::{
    suite::{Case, beside, inline},
    test_document::Located,
};
use crate::{
    cli::span,
    load::{
        self, Loaded,
        adjust::{self, Overrides},
        validate::{self, FileCatalog},
    },
    source::workflow::text,
};

/// The name of a workflow that has none of its own.
const NAMELESS: &str = "w";

/// A run that will be submitted.
pub(crate) struct Entry {
    pub name: String,
    pub namespace: String,
    pub at: Duration,
    pub manifest: Value,
    pub stored: Stored,
}

/// What admission says of one object.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// Where it is told about within the object.
    pub path: Path,
    /// With its place in the text.
    pub problem: Problem,
}

#[derive(Default)]
pub(crate) struct Subject {
    pub entries: Vec<Entry>,
    pub keyed: Vec<KeyedObject>,
    /// Templates that runs make others of, by name.
    pub templates: BTreeMap<String, Value>,
    /// Anything here and nothing runs.
    pub wrong: Vec<Finding>,
    /// What is wrong is submitted all the same.
    unchecked: bool,
    pub warnings: Vec<Finding>,
}

pub(crate) fn subject(case: &Case<'_>) -> Result<Subject> {
    let unchecked = case.get("unchecked").is_some_and(|located| located.value.as_bool() == Some(true));
    let mut subject = Subject { unchecked, ..Subject::default() };
    let loaded = gather(case, &mut subject)?;
    let (others, workflows): (Vec<Loaded>, Vec<Loaded>) =
        loaded.into_iter().partition(|one| one.known().is_some_and(Kind::is_supporting));
    let mut objects = Vec::new();
    for one in &others {
        let kind = one.known().expect("only known kinds stand beside workflows");
        let (mut wrong, warnings) = match kind.is_template {
            true => kind.check(&one.value),
            false => validate::check_beside(kind, one),
        };
        // A template that nobody uses may be as wrong as it likes; whoever uses it hears of it.
        if kind.is_template && !workflows.is_empty() {
            wrong.iter_mut().for_each(|problem| problem.severity = Severity::Warning);
        }
        wrong.into_iter().chain(warnings).for_each(|problem| subject.tell(one, problem));
        if *kind == CONFIG_MAP || *kind == SECRET {
            match keyed::parse(&one.value) {
                Ok(object) => subject.keyed.push(object),
                Err(error) if subject.wrong.is_empty() => {
                    subject.tell(one, Problem::error(octoflow_engine::shape::code::OUT_OF_RANGE, error.to_string()));
                }
                Err(_) => {}
            }
        }
        if kind.make.is_some() {
            subject.templates.insert(given_name(&one.value).to_owned(), one.value.clone());
        }
        objects.push(&one.value);
    }
    let catalog = FileCatalog::new(objects, None);
    for request in overrides(case, &workflows) {
        subject.enter(request, &catalog);
    }
    if subject.entries.is_empty() && subject.wrong.is_empty() && workflows.is_empty() {
        let problem = case.own.problem(
            super::suite::SENSELESS,
            "there is no Workflow, and nothing else that runs, in what is under test",
        );
        subject.wrong.push(Finding { path: Path::root(), problem });
    }
    Ok(subject)
}

/// One run that is asked for.
struct RunRequest<'a> {
    workflow: &'a Loaded,
    overrides: Overrides,
    at: Duration,
}

fn overrides<'a>(case: &Case<'_>, workflows: &'a [Loaded]) -> Vec<RunRequest<'a>> {
    let shared = |own: Option<&Located<'_>>| {
        let mut parameters = Vec::new();
        for located in case.all("parameters").iter().rev().chain(own.and_then(|own| own.get("parameters")).as_ref()) {
            parameters.extend(located.entries().map(|(name, value)| (name.to_owned(), value.text())));
        }
        let said = own.and_then(|own| own.get("entrypoint")).or_else(|| case.get("entrypoint"));
        Overrides { parameters, entrypoint: said.map(|said| said.text()), ..Overrides::default() }
    };
    let Some(runs) = case.get("runs") else {
        return workflows
            .iter()
            .map(|workflow| RunRequest { workflow, overrides: shared(None), at: Duration::ZERO })
            .collect();
    };
    let mut wanted = Vec::new();
    for run in runs.items() {
        let called = run.text_of("workflow");
        let fits = |one: &&Loaded| called.as_deref().is_none_or(|name| given_name(&one.value) == name);
        for workflow in workflows.iter().filter(fits) {
            let overrides = Overrides { name: run.text_of("as"), ..shared(Some(&run)) };
            let at = run.text_of("at").and_then(|text| span::parse(&text).ok()).unwrap_or_default();
            wanted.push(RunRequest { workflow, overrides, at });
        }
    }
    wanted
}

/// The name of a workflow, or the beginning it gives to its runs.
fn given_name(workflow: &Value) -> &str {
    let metadata = &workflow["metadata"];
    match text(metadata, "name") {
        "" => text(metadata, "generateName").trim_end_matches('-'),
        name => name,
    }
}

fn gather(case: &Case<'_>, subject: &mut Subject) -> Result<Vec<Loaded>> {
    let mut loaded = Vec::new();
    for key in ["files", "file"] {
        for located in case.all(key) {
            for name in located.texts() {
                match load::read_file(&beside(case, &name))? {
                    Ok(documents) => loaded.extend(documents.into_iter().flat_map(load::objects)),
                    Err(problems) => subject.wrong.extend(
                        problems
                            .into_iter()
                            .map(|problem| Finding { path: problem.path.clone().unwrap_or_default(), problem }),
                    ),
                }
            }
        }
    }
    for located in case.all("manifests").iter().flat_map(Located::items) {
        let (document, base) = inline(&located);
        loaded.push(Loaded::within(document, base, located.value.clone()));
    }
    for located in case.all("workflow") {
        let (document, base) = inline(&located);
        loaded.push(Loaded::within(document, base, completed(located.value.clone())));
    }
    Ok(loaded)
}

/// What every workflow says in the same way may be left out.
fn completed(mut workflow: Value) -> Value {
    if let Some(fields) = workflow.as_object_mut() {
        fields.entry("apiVersion").or_insert_with(|| json!(argo::fields::API_VERSION));
        fields.entry("kind").or_insert_with(|| json!("Workflow"));
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut().filter(|metadata| !metadata.contains_key("generateName")) {
            metadata.entry("name").or_insert_with(|| json!(NAMELESS));
        }
    }
    workflow
}

/// What is let in: the manifest, what it refers to, and warnings.
type LetIn = (Value, Stored, Vec<Problem>);

/// Judges a manifest. A Workflow is judged by itself: queues and nodes are no matter of a test.
fn examine(object: &Value, catalog: &FileCatalog<'_>) -> Result<LetIn, Problems> {
    if kinds::of_manifest(object).is_ok_and(|kind| *kind != argo::WORKFLOW) {
        let admitted = admit::examine(object, catalog)?;
        return Ok((admitted.manifest, admitted.stored, admitted.warnings));
    }
    let admitted = argo::admit::examine(object, catalog)?;
    Ok((admitted.manifest().clone(), admitted.stored().clone(), admitted.warnings().to_vec()))
}

impl Subject {
    fn enter(&mut self, request: RunRequest<'_>, catalog: &FileCatalog<'_>) {
        let mut one = request.workflow.clone();
        for warning in adjust::adjust(&mut one.value, &request.overrides) {
            self.tell(&one, Problem::warning("", warning));
        }
        let nameless = validate::nameless(&one.value).filter(|_| one.kind() == "Workflow");
        match examine(&one.value, catalog) {
            Ok((manifest, stored, warnings)) => {
                warnings.into_iter().for_each(|warning| self.tell(&one, warning));
                self.submit(manifest, stored, request.at);
            }
            Err(_) if self.unchecked => self.submit(one.value.clone(), Stored::default(), request.at),
            Err(problems) => problems.into_iter().for_each(|problem| self.tell(&one, problem)),
        }
        nameless.into_iter().for_each(|problem| self.tell(&one, problem));
    }

    fn submit(&mut self, manifest: Value, stored: Stored, at: Duration) {
        let name = self.free_name(&manifest);
        let namespace = adjust::namespace(&manifest).to_owned();
        self.entries.push(Entry { name, namespace, at, manifest, stored });
    }

    /// Names are not drawn by chance here: `fetch-` gives `fetch-1`, then `fetch-2`.
    fn free_name(&self, workflow: &Value) -> String {
        let taken = |name: &str| self.entries.iter().any(|entry| entry.name == name);
        let named = text(&workflow["metadata"], "name");
        if !named.is_empty() && !taken(named) {
            return named.to_owned();
        }
        let prefix = given_name(workflow);
        let numbered = (if named.is_empty() { 1 } else { 2 }..).map(|number| format!("{prefix}-{number}"));
        numbered.into_iter().find(|name| !taken(name)).expect("numbers have no end")
    }

    fn tell(&mut self, one: &Loaded, problem: Problem) {
        let path = problem.path.clone().unwrap_or_default();
        let list = if problem.severity == Severity::Error { &mut self.wrong } else { &mut self.warnings };
        list.push(Finding { path, problem: one.locate(problem) });
    }
}
