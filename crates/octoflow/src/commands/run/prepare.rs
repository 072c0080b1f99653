//! From files to workflows and TaskSets that may be submitted: everything is read, adjusted and judged before anything is stored.
//! All problems of all files are told at once.

use std::{
    collections::BTreeSet,
    path::{Path as FilePath, PathBuf},
};

use anyhow::Result;
use octoflow_engine::{
    admit::admit,
    argo::{admit::admit_template, refer::Reach},
};
use octoflow_manifest::{Problem, Problems, Severity};
use octoflow_model::{submission::Stored, taskset};
use octoflow_store::Reader;
use serde_json::Value;

use super::Context;
use crate::{
    adjust::{self, Wishes},
    cli::Run,
    exit::Failure,
    judge::{self, Around, Shelf},
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
pub(crate) fn kept_here(context: &Context) -> Option<Box<dyn Shelf>> {
    Reader::open(&context.data_dir).ok().map(|reader| Box::new(reader) as Box<dyn Shelf>)
}

/// The same for whoever does not run it here; what is not in the files is looked for on the shelf. A server also `keeps`
/// what makes workflows.
pub(crate) fn prepare_with(
    places: &[PathBuf],
    mut wishes: Wishes,
    parameter_file: Option<&FilePath>,
    shelf: Option<Box<dyn Shelf>>,
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
        loaded.into_iter().partition(|one| keeps && judge::is_kept(one.kind()));
    let (beside, workflows): (Vec<Loaded>, Vec<Loaded>) =
        loaded.into_iter().partition(|one| judge::is_beside(one.kind()));
    if workflows.is_empty() {
        let templates = beside.iter().filter(|one| Reach::of_kind(one.kind()).is_some());
        let wrong = templates.flat_map(|one| admit_template(&one.value).0.into_iter().map(|found| one.locate(found)));
        let wrong: Vec<Problem> = wrong.collect();
        if !wrong.is_empty() {
            return tell_all(&Problems(wrong), context);
        }
        return Err(Failure::new(
            crate::exit::Exit::InvalidManifest,
            "there is no Workflow and no TaskSet in what was given",
        )
        .into());
    }
    if workflows.len() > 1 && wishes.name.is_some() {
        let text = format!("--name can name one run, and there are {}", workflows.len());
        return Err(Failure::usage(text).help("use --generate-name, or run them one by one").into());
    }
    let only_sets = workflows.iter().all(|one| one.kind() == taskset::KIND);
    if only_sets && (!wishes.parameters.is_empty() || wishes.entrypoint.is_some()) {
        // Beside workflows they are meant for those.
        let text = "a TaskSet has neither parameters nor an entrypoint, and nothing else is given";
        return Err(Failure::usage(text).help("write values into the `env` of its containers").into());
    }
    admit_all(beside, kept, workflows, &wishes, shelf, context)
}

fn admit_all(
    beside: Vec<Loaded>,
    kept: Vec<Loaded>,
    workflows: Vec<Loaded>,
    wishes: &Wishes,
    shelf: Option<Box<dyn Shelf>>,
    context: &Context,
) -> Result<Option<Prepared>> {
    let mut told = Told::new(context);
    let mut problems = Problems::default();
    let mut objects = Vec::new();
    let mut unusable = Vec::new();
    for mut one in beside {
        if Reach::of_kind(one.kind()) != Some(Reach::Cluster) {
            adjust::adjust_namespace(&mut one.value, wishes.namespace.as_deref());
        }
        if Reach::of_kind(one.kind()).is_some() {
            // A template that nobody uses may be as wrong as it likes; whoever uses it hears of it.
            let (wrong, warnings) = admit_template(&one.value);
            let list = if wrong.is_empty() { &mut objects } else { &mut unusable };
            list.push(one.value.clone());
            for mut problem in wrong.into_iter().chain(warnings) {
                problem.severity = Severity::Warning;
                told.warning(&one.locate(problem));
            }
            continue;
        }
        let found = judge::check_beside(&one);
        problems.extend(found.0.into_iter().map(|problem| one.locate(problem)));
        found.1.into_iter().for_each(|warning| told.warning(&one.locate(warning)));
        objects.push(one.value);
    }
    let surroundings = Around::new(objects.iter().chain(&unusable), shelf);
    let mut makers = Vec::new();
    for mut one in kept {
        adjust::adjust_namespace(&mut one.value, wishes.namespace.as_deref());
        problems.extend(judge::judge(&one, &surroundings));
        makers.push(one.value);
    }
    let mut ready = Vec::new();
    for mut one in workflows {
        for warning in adjust::adjust(&mut one.value, wishes) {
            told.plain(&format!("{}: {warning}", one.place()));
        }
        match admit(&one.value, &surroundings) {
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
