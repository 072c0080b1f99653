//! Submission of workflows and TaskSets to the controller: new ones under their names, an interrupted one resumed.

use anyhow::Result;
use octoflow_model::RunId;

use super::{Context, LocalController, controller::Facts, prepare::Prepared};
use crate::{
    cli::Run,
    exit::Failure,
    load::adjust,
    source::{LocalSource, Source, workflow::text},
};

/// Number of tries when a generated name is taken.
const NAME_TRIES: usize = 8;

/// Run that this process is responsible for.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub id: RunId,
    pub namespace: String,
    pub kind: String,
    pub name: String,
    pub facts: Facts,
    /// True for a resumed run, whose earlier facts are not news.
    pub resumed: bool,
}

pub(crate) fn submit(prepared: Prepared, controller: &LocalController) -> Result<Vec<Submitted>> {
    for object in prepared.objects {
        controller.put_object(object)?;
    }
    let mut runs = Vec::new();
    for ready in prepared.workflows {
        let drawn = text(&ready.manifest["metadata"], "name").is_empty();
        let mut submitted = None;
        let mut last = String::new();
        for _ in 0..if drawn { NAME_TRIES } else { 1 } {
            last = adjust::name(&ready.manifest)?.expect("what has no name at all was not admitted");
            if let Some((id, facts)) = controller.submit(&last, &ready)? {
                let (namespace, name) = (ready.namespace.clone(), last.clone());
                let kind = text(&ready.manifest, "kind").to_owned();
                submitted = Some(Submitted { id, namespace, kind, name, facts, resumed: false });
                break;
            }
        }
        runs.push(submitted.ok_or_else(|| taken(&ready.namespace, &last))?);
    }
    Ok(runs)
}

fn taken(namespace: &str, name: &str) -> Failure {
    let place = if namespace == "default" { String::new() } else { format!(" in namespace `{namespace}`") };
    Failure::conflict(format!("there is a run called `{name}`{place} already"))
        .help(format!("choose another name with --name or --generate-name, or delete it with: octoflow delete {name}"))
}

/// Resumes a run whose process was interrupted.
pub(crate) fn resume(name: &str, args: &Run, controller: &LocalController, context: &Context) -> Result<Submitted> {
    let row =
        LocalSource::open(context.data_dir.clone(), None, context.output)?.find(args.namespace.or_default(), name)?;
    if row.archived {
        let text = format!("run `{}` is over ({}), there is nothing to resume", row.name, row.phase);
        return Err(Failure::conflict(text).help(format!("look at it with: octoflow get {}", row.name)).into());
    }
    let facts = controller.restore_run(row.run)?;
    let (namespace, kind, name) = (row.namespace, row.kind, row.name);
    Ok(Submitted { id: row.run, namespace, kind, name, facts, resumed: true })
}
