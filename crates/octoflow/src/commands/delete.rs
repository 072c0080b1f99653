//! `octoflow delete NAME…`: deletes runs with their logs, and artifacts according to their strategy. Open runs are not
//! deleted.

use anyhow::Result;
use octoflow_store::RunRow;

use super::{Context, list::shared_filter};
use crate::{
    cli::Delete,
    exit::{Exit, Failure},
    output::{clock, reader_left},
    source::kind_of,
};

pub(crate) fn delete(args: &Delete, context: &Context) -> Result<Exit> {
    let source = context.source()?;
    let mut exit = Exit::Succeeded;
    let mut chosen = Vec::new();
    for name in &args.names {
        match source.find(args.namespace.or_default(), name) {
            Ok(row) => chosen.push(row),
            Err(error) if crate::exit::of(&error) == Exit::NotFound => {
                context.output.error(&Failure::not_found(format!("Workflow '{name}' not found")).into());
                exit = exit.worse(Exit::NotFound);
            }
            Err(error) => return Err(error),
        }
    }
    let named = chosen.len();
    if args.names.is_empty() {
        let filter = shared_filter(&args.which, Some(args.namespace.or_default().to_owned()), clock::now());
        chosen = source.list(&filter, usize::MAX)?.0;
        if chosen.is_empty() {
            context.output.line("No workflows found")?;
        }
    }
    let (over, open): (Vec<RunRow>, Vec<RunRow>) = chosen.into_iter().partition(|row| row.archived || args.force);
    for row in &open {
        let text = format!("{} '{}' is not finished", kind_of(row).name, row.name);
        let help =
            format!("stop it with: octoflow stop {0}, or delete it anyway with: octoflow delete --force {0}", row.name);
        if named > 0 {
            context.output.error(&Failure::conflict(text).help(help).into());
            exit = exit.worse(Exit::Conflict);
        } else {
            context.output.talk(&format!("{text}, it is kept"));
        }
    }
    let over = source.with_owned(over)?;
    if args.dry_run {
        over.iter().try_for_each(|row| {
            context.output.line(&format!("{} '{}' would be deleted", kind_of(row).name, row.name))
        })?;
    } else if !over.is_empty() {
        source.delete(&over, &mut |row| {
            let told = context
                .output
                .line(&format!("{} '{}' deleted", kind_of(row).name, row.name))
                .map_err(anyhow::Error::from);
            // Deleting continues when standard output is closed.
            told.or_else(|error| if reader_left(&error) { Ok(()) } else { Err(error) })
        })?;
    }
    Ok(exit)
}
