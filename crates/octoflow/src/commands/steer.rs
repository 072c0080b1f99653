//! `octoflow stop|terminate|suspend|resume NAME…`: tells the process that runs a workflow what to do with it.

use anyhow::Result;
use octoflow_store::RunRow;

use super::Context;
use crate::{
    cli::Target,
    exit::{Exit, Failure},
    local::Local,
    output::Output,
    remote::{self, Message, Request},
};

pub(crate) fn steer(target: &Target, request: &Request, context: &Context) -> Result<Exit> {
    let mut exit = Exit::Succeeded;
    for name in &target.names {
        let outcome = one(target.namespace.or_default(), name, request, context);
        match outcome {
            Ok(name) => context.output.line(&format!("workflow {name} {}", done(request)))?,
            Err(error) if target.names.len() == 1 => return Err(error),
            Err(error) => {
                context.output.error(&error);
                exit = exit.worse(crate::exit::of(&error));
            }
        }
    }
    Ok(exit)
}

fn one(namespace: &str, name: &str, request: &Request, context: &Context) -> Result<String> {
    let (_, row) = Local::find_in(&context.data_dir, namespace, name)?;
    if row.archived {
        let text = format!("cannot {} run `{}`: it is over ({})", request.verb(), row.name, row.phase);
        return Err(Failure::conflict(text).into());
    }
    let message = Message { namespace: row.namespace.clone(), run: row.name.clone(), request: request.clone() };
    match remote::ask(&context.data_dir, &message)? {
        Some(Ok(())) => Ok(row.name),
        Some(Err(refusal)) => Err(Failure::conflict(refusal).into()),
        None => Err(nobody(&row, &context.output).into()),
    }
}

fn nobody(row: &RunRow, output: &Output) -> Failure {
    output.detail("nobody listens on the data directory's socket");
    Failure::conflict(format!("run `{}` was interrupted, no process is running it", row.name)).help(format!(
        "take it up again with: octoflow run --resume {0}, or delete it with: octoflow delete --force {0}",
        row.name
    ))
}

fn done(request: &Request) -> &'static str {
    match request {
        Request::Stop => "is being stopped",
        Request::Terminate => "is being terminated",
        Request::Suspend => "suspended",
        Request::Resume { .. } => "resumed",
    }
}
