//! `octoflow stop|terminate|suspend|resume NAME…`: sends a command to whatever process runs the workflow or TaskSet.

use anyhow::Result;
use octoflow_store::{Filter, RunRow};

use super::Context;
use crate::{
    cli::Target,
    exit::Exit,
    source::{Source, remote::Request, workflow::noun},
};

pub(crate) fn steer(target: &Target, request: &Request, context: &Context) -> Result<Exit> {
    let source = context.source()?;
    each(target, &*source, context, |row| {
        match source.steer(row, request) {
            // Of many runs, some may end at this moment.
            Err(error) if target.selector.is_some() && crate::exit::of(&error) == Exit::Conflict => {
                context.output.talk(&format!("{} {} is left as it is: {error:#}", noun(&row.kind), row.name));
                return Ok(());
            }
            done => done?,
        }
        Ok(context.output.line(&format!("{} {} {}", noun(&row.kind), row.name, done(request)))?)
    })
}

/// Applies an action to every selected run. With several runs, one failure does not stop the others.
pub(crate) fn each(
    target: &Target,
    source: &dyn Source,
    context: &Context,
    mut act: impl FnMut(&RunRow) -> Result<()>,
) -> Result<Exit> {
    let namespace = target.namespace.or_default();
    if let Some(labels) = &target.selector {
        let open = ["", "Pending", "Waiting", "Running"].map(str::to_owned).to_vec();
        return selected(namespace, labels.0.clone(), open, source, context, act);
    }
    let mut exit = Exit::Succeeded;
    for name in &target.names {
        match source.find(namespace, name).and_then(|row| act(&row)) {
            Ok(()) => {}
            Err(error) if target.names.len() == 1 => return Err(error),
            Err(error) => {
                context.output.error(&error);
                exit = exit.worse(crate::exit::of(&error));
            }
        }
    }
    Ok(exit)
}

/// Applies an action to runs with these labels, in any of these phases.
pub(crate) fn selected(
    namespace: &str,
    labels: Vec<octoflow_store::LabelTest>,
    phases: Vec<String>,
    source: &dyn Source,
    context: &Context,
    mut act: impl FnMut(&RunRow) -> Result<()>,
) -> Result<Exit> {
    let filter = Filter { namespace: Some(namespace.to_owned()), labels, phases, ..Filter::default() };
    let (rows, _) = source.list(&filter, usize::MAX)?;
    if rows.is_empty() {
        context.output.line("No workflows found")?;
    }
    let mut exit = Exit::Succeeded;
    for row in &rows {
        if let Err(error) = act(row) {
            context.output.error(&error);
            exit = exit.worse(crate::exit::of(&error));
        }
    }
    Ok(exit)
}

fn done(request: &Request) -> &'static str {
    match request {
        Request::Stop { selector: Some(_), .. } => "has the chosen nodes ended",
        Request::Stop { .. } => "is being stopped",
        Request::Terminate => "is being terminated",
        Request::Suspend => "suspended",
        Request::Resume { .. } => "resumed",
    }
}
