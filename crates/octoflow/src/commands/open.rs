//! `octoflow open FILE [get|describe|logs|explain]`: inspects an exported run.

use std::collections::HashMap;

use anyhow::Result;

use super::{
    Context, describe, explain,
    get::{self, View},
    logs::{self, LogOptions},
};
use crate::{
    cli::{Format, Open, OpenView},
    exit::Exit,
    source::{ExportFile, Source, below},
};

pub(crate) fn open(args: &Open, context: &Context) -> Result<Exit> {
    let file = ExportFile::read(&args.file)?;
    let row = file.row();
    let object = file.object(row)?;
    // People see what it has made below it.
    let for_people = |output: Option<&Format>| output.is_none_or(|form| matches!(form, Format::Wide | Format::Short));
    let shown = match &args.view {
        Some(OpenView::Get { output }) if !for_people(output.as_ref()) => object.clone(),
        _ => below::with_nodes_below(&file, row, object.clone())?,
    };
    match &args.view {
        None => get::print(std::slice::from_ref(&shown), &View::default(), &context.output),
        Some(OpenView::Get { output }) => {
            let view = View { output: output.as_ref(), ..View::default() };
            get::print(std::slice::from_ref(&shown), &view, &context.output)
        }
        Some(OpenView::Describe) => {
            describe::print(&object, &HashMap::new(), &context.output)?;
            Ok(Exit::Succeeded)
        }
        Some(OpenView::Logs { node, timestamps, raw }) => {
            let options =
                LogOptions { node: node.clone(), timestamps: *timestamps, raw: *raw, ..LogOptions::default() };
            let again = || Ok(Box::new(ExportFile::read(&args.file)?) as Box<dyn Source>);
            logs::print_whole(&file, &again, row, &options, &context.output)?;
            Ok(Exit::Succeeded)
        }
        Some(OpenView::Explain) => explain::print(&object, &file.waiting(row)?, None, None, &context.output),
    }
}
