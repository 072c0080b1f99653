//! `octoflow wait NAME…`: returns when runs are over, with the worst of their results.

use anyhow::Result;
use octoflow_store::{Filter, RunRow};

use super::{
    Context,
    observe::{Form, deadline, ending, too_late, until_over, verdict},
};
use crate::{cli::Wait, exit::Exit, source::Source};

pub(crate) fn wait(args: &Wait, context: &Context) -> Result<Exit> {
    let source = context.source()?;
    let until = deadline(args.timeout);
    let mut exit = Exit::Succeeded;
    let (rows, missing) = meant(args, &*source, context)?;
    exit = exit.worse(missing);
    for row in &rows {
        match until_over(&*source, row, Form::Wait, until, false, context)? {
            Some(object) => {
                context.output.line(&verdict(&object, context))?;
                exit = exit.worse(ending(&object));
            }
            None => {
                context.output.error(&too_late(&row.name));
                exit = exit.worse(Exit::TimedOut);
            }
        }
    }
    Ok(exit)
}

/// Returns the runs, and the exit code for names that do not exist.
fn meant(args: &Wait, source: &dyn Source, context: &Context) -> Result<(Vec<RunRow>, Exit)> {
    let namespace = args.namespace.or_default();
    if let Some(labels) = &args.selector {
        let filter = Filter { namespace: Some(namespace.to_owned()), labels: labels.0.clone(), ..Filter::default() };
        return Ok((source.list(&filter, usize::MAX)?.0, Exit::Succeeded));
    }
    let mut rows = Vec::new();
    let mut exit = Exit::Succeeded;
    for name in &args.names {
        match source.find(namespace, name) {
            Ok(row) => rows.push(row),
            Err(error) if crate::exit::of(&error) != Exit::NotFound => return Err(error),
            Err(_) if args.ignore_not_found => context.output.talk(&format!("run `{name}` is not there")),
            Err(error) => {
                context.output.error(&error);
                exit = Exit::NotFound;
            }
        }
    }
    Ok((rows, exit))
}
