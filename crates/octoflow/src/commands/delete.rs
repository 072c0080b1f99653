//! `octoflow delete NAME…`: forgets runs with their logs, and artifacts as their strategy says. What still runs is left
//! alone.

use anyhow::Result;
use octoflow_control::{self as control, Error, owned, sweep_deleted};
use octoflow_store::{Filter, RunRow, Store};

use super::{Context, list::shared_filter};
use crate::{
    cli::Delete,
    config,
    exit::{Exit, Failure},
    local::{Local, explained},
    output::{clock, reader_left},
};

pub(crate) fn delete(args: &Delete, context: &Context) -> Result<Exit> {
    let Some(local) = Local::open(&context.data_dir)? else {
        return match args.names.first() {
            None => {
                context.output.line("No workflows found")?;
                Ok(Exit::Succeeded)
            }
            Some(name) => Err(Failure::not_found(format!("Workflow '{name}' not found")).into()),
        };
    };
    let mut exit = Exit::Succeeded;
    let mut doomed = Vec::new();
    for name in &args.names {
        match local.find(args.namespace.or_default(), name) {
            Ok(row) => doomed.push(row),
            Err(error) if crate::exit::of(&error) == Exit::NotFound => {
                context.output.error(&Failure::not_found(format!("Workflow '{name}' not found")).into());
                exit = exit.worse(Exit::NotFound);
            }
            Err(error) => return Err(error),
        }
    }
    let named = doomed.len();
    if args.names.is_empty() {
        let filter = shared_filter(&args.which, Some(args.namespace.or_default().to_owned()), clock::now());
        doomed = local.list(&filter, usize::MAX)?.0;
        if doomed.is_empty() {
            context.output.line("No workflows found")?;
        }
    }
    let (over, open): (Vec<RunRow>, Vec<RunRow>) = doomed.into_iter().partition(|row| row.archived || args.force);
    for row in &open {
        let text = format!("Workflow '{}' is not finished", row.name);
        let help =
            format!("stop it with: octoflow stop {0}, or delete it anyway with: octoflow delete --force {0}", row.name);
        if named > 0 {
            context.output.error(&Failure::conflict(text).help(help).into());
            exit = exit.worse(Exit::Conflict);
        } else {
            context.output.talk(&format!("{text}, it is kept"));
        }
    }
    let over = with_owned(over, &local)?;
    if args.dry_run {
        over.iter().try_for_each(|row| context.output.line(&format!("Workflow '{}' would be deleted", row.name)))?;
    } else if !over.is_empty() {
        forget(&over, context)?;
    }
    Ok(exit)
}

/// With the runs that belong to them, which would have no owner afterwards.
fn with_owned(rows: Vec<RunRow>, local: &Local) -> Result<Vec<RunRow>> {
    let mut all = rows;
    let mut next = 0;
    while let Some(owner) = all.get(next).cloned() {
        next += 1;
        let filter = Filter { parent: Some(owner.run), ..Filter::default() };
        for child in local.list(&filter, usize::MAX)?.0 {
            let known = all.iter().any(|row| row.run == child.run);
            if !known && child.archived && owned(&local.object(&child)?, &owner.uid) {
                all.push(child);
            }
        }
    }
    Ok(all)
}

fn forget(rows: &[RunRow], context: &Context) -> Result<()> {
    // Taking the lock proves that nobody is running any of them.
    let store = Store::open(&context.data_dir).map_err(explained)?;
    let policy = config::egress()?;
    for row in rows {
        for warning in control::forget(&store, &context.data_dir, row).map_err(told)?.warnings {
            context.output.warn(&warning);
        }
        let told = context.output.line(&format!("Workflow '{}' deleted", row.name)).map_err(anyhow::Error::from);
        // Deleting goes on when nobody reads the list of it.
        told.or_else(|error| if reader_left(&error) { Ok(()) } else { Err(error) })?;
    }
    for warning in sweep_deleted(&store, &context.data_dir, policy) {
        context.output.warn(&warning);
    }
    store.close().map_err(explained)
}

fn told(error: Error) -> anyhow::Error {
    match error {
        Error::Store(error) => explained(error),
        error => error.into(),
    }
}
