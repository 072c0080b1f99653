//! Preparation: reads files, applies overrides, and admits workflows and TaskSets before anything is stored. Reports
//! all problems of all files at once.

use std::{
    collections::BTreeSet,
    path::{Path as FilePath, PathBuf},
};

use anyhow::Result;
use octoflow_engine::{
    admit::admit,
    kinds::{self, Kind},
    schedule::spec::NodeSpec,
};
use octoflow_manifest::{Problem, Problems, Severity};
use octoflow_model::submission::Stored;
use octoflow_store::Reader;
use serde_json::Value;

use super::Context;
use crate::{
    cli::Run,
    config::node,
    exit::Failure,
    load::{
        self, Loaded,
        adjust::{self, Overrides},
        validate::{self, FileCatalog, NoObjects, ObjectSource},
    },
    source::workflow::text,
};

#[derive(Debug)]
pub(crate) struct Prepared {
    /// ConfigMaps, Secrets, claims, PodGroups and templates; with a server also objects that start workflows there.
    pub objects: Vec<Value>,
    pub workflows: Vec<Ready>,
}

/// Admitted workflow or TaskSet.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub namespace: String,
    pub manifest: Value,
    /// Copies of the templates it refers to.
    pub stored: Stored,
    /// Warnings already reported, each in one line; a server finds them too.
    pub warned: BTreeSet<String>,
}

impl Ready {
    /// Passes on what a server warned of and nobody has reported yet.
    pub(crate) fn report_warnings(&self, warnings: Vec<String>, context: &Context) {
        let news = warnings.into_iter().filter(|text| !self.warned.contains(text));
        news.for_each(|text| context.output.warn(&text));
    }
}

/// Returns `None` if the manifests have problems, which are then already reported.
pub(crate) fn prepare(args: &Run, context: &Context) -> Result<Option<Prepared>> {
    let places: Vec<_> = args.manifests.iter().chain(&args.files).cloned().collect();
    let overrides = Overrides {
        name: args.naming.name.clone(),
        generate_name: args.naming.generate_name.clone(),
        ..args.override_args.overrides(args.namespace.namespace.as_deref())
    };
    prepare_with(
        &places,
        overrides,
        args.override_args.parameter_file.as_deref(),
        Some(stored_objects(context)),
        Some(vec![node::this_node(&args.execution.node, args.execution.parallelism, context)?]),
        false,
        context,
    )
}

/// Returns the objects in the data directory. One that does not exist yet has none, so that a manifest is judged the same
/// before and after the first run. A directory that cannot be read is reported when it is opened.
pub(crate) fn stored_objects(context: &Context) -> Box<dyn ObjectSource> {
    match Reader::open(&context.data_dir) {
        Ok(reader) => Box::new(reader),
        Err(_) => Box::new(NoObjects),
    }
}

/// Prepares manifests for `run`, `plan` or `submit`; objects that are not in the files are looked up in `source`, and tasks
/// are judged by `nodes`. With `keeps`, objects that start workflows are stored too, as on a server.
pub(crate) fn prepare_with(
    places: &[PathBuf],
    mut overrides: Overrides,
    parameter_file: Option<&FilePath>,
    source: Option<Box<dyn ObjectSource>>,
    nodes: Option<Vec<NodeSpec>>,
    keeps: bool,
    context: &Context,
) -> Result<Option<Prepared>> {
    let loaded = match load::load(places)? {
        Ok(loaded) => loaded,
        Err(problems) => return report_all(&problems, context),
    };
    if let Some(file) = parameter_file {
        match load::parameters(file)? {
            // Parameters of the command line come last and win.
            Ok(parameters) => drop(overrides.parameters.splice(..0, parameters)),
            Err(problems) => return report_all(&problems, context),
        }
    }

    let (kept, loaded): (Vec<Loaded>, Vec<Loaded>) =
        loaded.into_iter().partition(|one| keeps && one.known().is_some_and(|kind| kind.starts_runs));
    let (beside, workflows): (Vec<Loaded>, Vec<Loaded>) =
        loaded.into_iter().partition(|one| one.known().is_some_and(Kind::is_supporting));
    if workflows.is_empty() {
        let templates = beside.iter().filter_map(|one| Some((one.known().filter(|kind| kind.is_template)?, one)));
        let wrong =
            templates.flat_map(|(kind, one)| kind.check(&one.value).0.into_iter().map(|found| one.locate(found)));
        let wrong: Vec<Problem> = wrong.collect();
        if !wrong.is_empty() {
            return report_all(&Problems(wrong), context);
        }
        let runs: Vec<&str> = kinds::of_runs().map(|kind| kind.word).collect();
        return Err(Failure::new(
            crate::exit::Exit::InvalidManifest,
            format!("there is no {} in what was given", runs.join(" and no ")),
        )
        .into());
    }
    if workflows.len() > 1 && overrides.name.is_some() {
        let text = format!("--name can name one run, and there are {}", workflows.len());
        return Err(Failure::usage(text).help("use --generate-name, or run them one by one").into());
    }
    let without = |one: &Loaded| Some(one.known()?.dialect()?).filter(|dialect| !dialect.takes_arguments);
    let none_takes_them = workflows.iter().all(|one| without(one).is_some());
    if none_takes_them && (!overrides.parameters.is_empty() || overrides.entrypoint.is_some()) {
        // With other runs that take parameters, they are meant for those.
        let noun = workflows.first().and_then(without).map_or(kinds::UNKNOWN.noun, |dialect| dialect.kind.noun);
        let text = format!("a {noun} has neither parameters nor an entrypoint, and nothing else is given");
        return Err(Failure::usage(text).help("write values into the `env` of its containers").into());
    }
    let known = Known { source, nodes };
    admit_all(beside, kept, workflows, &overrides, known, context)
}

/// What manifests are judged by beside the files.
struct Known {
    source: Option<Box<dyn ObjectSource>>,
    nodes: Option<Vec<NodeSpec>>,
}

fn admit_all(
    beside: Vec<Loaded>,
    kept: Vec<Loaded>,
    workflows: Vec<Loaded>,
    overrides: &Overrides,
    known: Known,
    context: &Context,
) -> Result<Option<Prepared>> {
    let mut told = WarningReporter::new(context);
    let mut problems = Problems::default();
    let mut objects = Vec::new();
    let mut unusable = Vec::new();
    for mut one in beside {
        let kind = one.known().expect("only known kinds stand beside what runs");
        if kind.namespaced {
            adjust::adjust_namespace(&mut one.value, overrides.namespace.as_deref());
        }
        if kind.is_template {
            // Problems of a template that is not used are only warnings; a run that uses it fails admission.
            let (wrong, warnings) = kind.check(&one.value);
            let list = if wrong.is_empty() { &mut objects } else { &mut unusable };
            list.push(one.value.clone());
            for mut problem in wrong.into_iter().chain(warnings) {
                problem.severity = Severity::Warning;
                told.warning(&one.locate(problem));
            }
            continue;
        }
        let found = validate::check_beside(kind, &one);
        problems.extend(found.0.into_iter().map(|problem| one.locate(problem)));
        found.1.into_iter().for_each(|warning| told.warning(&one.locate(warning)));
        objects.push(one.value);
    }
    let catalog = FileCatalog::new(objects.iter().chain(&unusable), known.source).with_nodes(known.nodes);
    let mut makers = Vec::new();
    for mut one in kept {
        adjust::adjust_namespace(&mut one.value, overrides.namespace.as_deref());
        problems.extend(validate::validate(&one, &catalog));
        makers.push(one.value);
    }
    let mut ready = Vec::new();
    for mut one in workflows {
        for warning in adjust::adjust(&mut one.value, overrides) {
            told.plain(&format!("{}: {warning}", one.place()));
        }
        match admit(&one.value, &catalog) {
            Ok(admitted) => {
                let warned = admitted.warnings.iter().map(Problem::summary).collect();
                for warning in admitted.warnings {
                    told.warning(&one.locate(warning));
                }
                if let Some(problem) = validate::nameless(&one.value) {
                    problems.push(one.locate(problem));
                }
                let (manifest, stored) = (admitted.manifest, admitted.stored);
                ready.push(Ready { namespace: adjust::namespace(&manifest).to_owned(), manifest, stored, warned });
            }
            Err(found) => problems.extend(found.into_iter().map(|problem| one.locate(problem))),
        }
    }
    if problems.has_errors() {
        return report_all(&problems, context);
    }
    objects.extend(makers);
    parents_first(&mut objects);
    Ok(Some(Prepared { objects, workflows: ready }))
}

/// Puts queues before everything else, and parents before their children: a queue is refused while its parent is missing.
fn parents_first(objects: &mut Vec<Value>) {
    let is_queue = |object: &Value| kinds::of_manifest(object).is_ok_and(|kind| *kind == kinds::scheduling::QUEUE);
    let (mut left, others): (Vec<Value>, Vec<Value>) = objects.drain(..).partition(is_queue);
    while !left.is_empty() {
        let names: BTreeSet<String> = left.iter().map(|queue| text(&queue["metadata"], "name").to_owned()).collect();
        let waits = |queue: &Value| names.contains(text(&queue["spec"], "parent"));
        let (later, now): (Vec<Value>, Vec<Value>) = left.into_iter().partition(waits);
        // A cycle is told when they are stored.
        let stuck = now.is_empty();
        objects.extend(now);
        left = later;
        if stuck {
            objects.append(&mut left);
        }
    }
    objects.extend(others);
}

/// Reports every problem; always returns that there is nothing to run.
fn report_all(problems: &Problems, context: &Context) -> Result<Option<Prepared>> {
    context.output.talk(problems.render(context.output.talk_paint().is_on()).trim_end());
    let count = problems.len();
    context
        .output
        .talk(&format!("\n{count} {} found; nothing was run", if count == 1 { "problem" } else { "problems" }));
    Ok(None)
}

/// Reports each warning once.
struct WarningReporter<'a> {
    context: &'a Context,
    said: BTreeSet<String>,
}

impl<'a> WarningReporter<'a> {
    fn new(context: &'a Context) -> Self {
        Self { context, said: BTreeSet::new() }
    }

    fn warning(&mut self, problem: &Problem) {
        if self.said.insert(problem.render(false)) {
            self.context.output.talk(problem.render(self.context.output.talk_paint().is_on()).trim_end());
        }
    }

    fn plain(&mut self, text: &str) {
        if self.said.insert(text.to_owned()) {
            self.context.output.warn(text);
        }
    }
}
