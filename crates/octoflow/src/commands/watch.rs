//! `octoflow watch NAME`: follows the progress of a run until it is over. The exit code is the run's.

use anyhow::Result;

use super::{
    Context,
    observe::{Form, deadline, ending, too_late, until_over, verdict},
};
use crate::{cli::Watch, exit::Exit};

pub(crate) fn watch(args: &Watch, context: &Context) -> Result<Exit> {
    let source = context.source()?;
    let row = source.find(args.namespace.or_default(), &args.name)?;
    match until_over(&*source, &row, Form::Watch, deadline(args.timeout), false, context)? {
        Some(object) => {
            context.output.line(&verdict(&object, context))?;
            Ok(ending(&object))
        }
        None => Err(too_late(&row.name)),
    }
}
