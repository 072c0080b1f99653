//! From files to workflows and TaskSets that may be submitted: everything is read, adjusted and judged before anything is stored.
//! All problems of all files are told at once.

use std::{
    collections::BTreeSet,
    path::{Path as FilePath, PathBuf},
};

use anyhow::Result;
use octoflow_engine::{
    admit::admit,
    kinds::{self, Kind},
};
use octoflow_manifest::{Problem, Problems, Severity};
use octoflow_model::submission::Stored;
use octoflow_store::Reader;
use serde_json::Value;

use super::Context;
use crate::{
    adjust::{self, Wishes},
    cli::Run,
    exit::Failure,
    judge::{self, FileCatalog, ObjectSource},
    load::{self, Loaded},
};

#[derive(Debug)]
pub(crate) struct Prepared {
    /// ConfigMaps, Secrets, claims, PodGroups and templates; with a server also what makes workflows there.
    pub objects: Vec<Value>,
    pub workflows: Vec<Ready>,
}

/// A workflow or a TaskSet that was admitted.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub namespace: String,
    pub manifest: Value,
    /// Copies of the templates it refers to.
    pub stored: Stored,
}

/// `None` when something is wrong with the manifests; it has been told then.
pub(crate) fn prepare(args: &Run, context: &Context) -> Result<Option<Prepared>> {
    let places: Vec<_> = args.manifests.iter().chain(&args.files).cloned().collect();
    let wishes = Wishes {
        name: args.naming.name.clone(),
        generate_name: args.naming.generate_name.clone(),
        ..args.wished.wishes(args.namespace.namespace.as_deref())
    };
    prepare_with(&places, wishes, args.wished.parameter_file.as_deref(), kept_here(context), false, context)
}

/// What earlier runs left in the data directory. One that cannot be read is told when it is opened.
pub(crate) fn kept_here(context: &Context) -> Option<Box<dyn ObjectSource>> {
    Reader::open(&context.data_dir).ok().map(|reader| Box::new(reader) as Box<dyn ObjectSource>)
}

/// The same for whoever does not run it here; what is not in the files is looked for in the source. A server also `keeps`
/// what makes workflows.
pub(crate) fn prepare_with(
    places: &[PathBuf],
    mut wishes: Wishes,
    parameter_file: Option<&FilePath>,
    source: Option<Box<dyn ObjectSource>>,
    keeps: bool,
    context: &Context,
) -> Result<Option<Prepared>> {
    let loaded = match load::load(places)? {
        Ok(loaded) => loaded,
        Err(problems) => return tell_all(&problems, context),
    };
    if let Some(file) = parameter_file {
        match load::parameters(file)? {
            // Those of the command line come last and win.
            Ok(parameters) => drop(wishes.parameters.splice(..0, parameters)),
            Err(problems) => return tell_all(&problems, context),
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
            return tell_all(&Problems(wrong), context);
        }
        let runs: Vec<&str> = kinds::of_runs().map(|kind| kind.name).collect();
        return Err(Failure::new(
            crate::exit::Exit::InvalidManifest,
            format!("there is no {} in what was given", runs.join(" and no ")),
        )
        .into());
    }
    if workflows.len() > 1 && wishes.name.is_some() {
        let text = format!("--name can name one run, and there are {}", workflows.len());
        return Err(Failure::usage(text).help("use --generate-name, or run them one by one").into());
    }
    let without = |one: &Loaded| Some(one.known()?.dialect()?).filter(|dialect| !dialect.takes_arguments);
    let none_takes_them = workflows.iter().all(|one| without(one).is_some());
    if none_takes_them && (!wishes.parameters.is_empty() || wishes.entrypoint.is_some()) {
        // Beside runs that take them they are meant for those.
        let noun = workflows.first().and_then(without).map_or(kinds::UNKNOWN.noun, |dialect| dialect.kind.noun);
        let text = format!("a {noun} has neither parameters nor an entrypoint, and nothing else is given");
        return Err(Failure::usage(text).help("write values into the `env` of its containers").into());
    }
    admit_all(beside, kept, workflows, &wishes, source, context)
}

fn admit_all(
    beside: Vec<Loaded>,
    kept: Vec<Loaded>,
    workflows: Vec<Loaded>,
    wishes: &Wishes,
    source: Option<Box<dyn ObjectSource>>,
    context: &Context,
) -> Result<Option<Prepared>> {
    let mut told = Told::new(context);
    let mut problems = Problems::default();
    let mut objects = Vec::new();
    let mut unusable = Vec::new();
    for mut one in beside {
        let kind = one.known().expect("only known kinds stand beside what runs");
        if kind.namespaced {
            adjust::adjust_namespace(&mut one.value, wishes.namespace.as_deref());
        }
        if kind.is_template {
            // A template that nobody uses may be as wrong as it likes; whoever uses it hears of it.
            let (wrong, warnings) = kind.check(&one.value);
            let list = if wrong.is_empty() { &mut objects } else { &mut unusable };
            list.push(one.value.clone());
            for mut problem in wrong.into_iter().chain(warnings) {
                problem.severity = Severity::Warning;
                told.warning(&one.locate(problem));
            }
            continue;
        }
        let found = judge::check_beside(kind, &one);
        problems.extend(found.0.into_iter().map(|problem| one.locate(problem)));
        found.1.into_iter().for_each(|warning| told.warning(&one.locate(warning)));
        objects.push(one.value);
    }
    let catalog = FileCatalog::new(objects.iter().chain(&unusable), source);
    let mut makers = Vec::new();
    for mut one in kept {
        adjust::adjust_namespace(&mut one.value, wishes.namespace.as_deref());
        problems.extend(judge::judge(&one, &catalog));
        makers.push(one.value);
    }
    let mut ready = Vec::new();
    for mut one in workflows {
        for warning in adjust::adjust(&mut one.value, wishes) {
            told.plain(&format!("{}: {warning}", one.place()));
        }
        match admit(&one.value, &catalog) {
            Ok(admitted) => {
                for warning in admitted.warnings {
                    told.warning(&one.locate(warning));
                }
                if let Some(problem) = judge::nameless(&one.value) {
                    problems.push(one.locate(problem));
                }
                let (manifest, stored) = (admitted.manifest, admitted.stored);
                ready.push(Ready { namespace: adjust::namespace(&manifest).to_owned(), manifest, stored });
            }
            Err(found) => problems.extend(found.into_iter().map(|problem| one.locate(problem))),
        }
    }
    if problems.has_errors() {
        return tell_all(&problems, context);
    }
    objects.extend(makers);
    Ok(Some(Prepared { objects, workflows: ready }))
}

/// Shows every problem; the answer is always that there is nothing to run.
fn tell_all(problems: &Problems, context: &Context) -> Result<Option<Prepared>> {
    context.output.talk(problems.render(context.output.talk_paint().is_on()).trim_end());
    let count = problems.len();
    context
        .output
        .talk(&format!("\n{count} {} found; nothing was run", if count == 1 { "problem" } else { "problems" }));
    Ok(None)
}

/// Says each warning once.
struct Told<'a> {
    context: &'a Context,
    said: BTreeSet<String>,
}

impl<'a> Told<'a> {
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
