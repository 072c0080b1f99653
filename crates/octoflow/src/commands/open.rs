//! `octoflow open FILE [get|describe|logs|explain]`: inspects an exported run.

use std::collections::HashMap;

use anyhow::Result;

use super::{
    Context, describe, explain,
    get::{self, View},
    logs::{self, LogOptions},
};
use crate::{
    cli::{Open, OpenView},
    exit::Exit,
    source::{ExportFile, Source},
};

pub(crate) fn open(args: &Open, context: &Context) -> Result<Exit> {
    let file = ExportFile::read(&args.file)?;
    let row = file.row();
    let object = file.object(row)?;
    match &args.view {
        None => get::print(std::slice::from_ref(&object), &View::default(), &context.output),
        Some(OpenView::Get { output }) => {
            let view = View { output: output.as_ref(), ..View::default() };
            get::print(std::slice::from_ref(&object), &view, &context.output)
        }
        Some(OpenView::Describe) => {
            describe::print(&object, &HashMap::new(), &context.output)?;
            Ok(Exit::Succeeded)
        }
        Some(OpenView::Logs { node, timestamps, raw }) => {
            let options =
                LogOptions { node: node.clone(), timestamps: *timestamps, raw: *raw, ..LogOptions::default() };
            logs::print(&file, row, &options, &context.output)?;
            Ok(Exit::Succeeded)
        }
        Some(OpenView::Explain) => explain::print(&object, &file.waiting(row)?, None, None, &context.output),
    }
}
