//! `octoflow open FILE [get|describe|logs|explain]`: looks at a run somebody else exported.

use std::collections::HashMap;

use anyhow::Result;

use super::{
    Context, describe, explain,
    get::{self, View},
    logs::{self, Telling},
};
use crate::{
    cli::{Open, OpenView},
    exit::Exit,
    source::{Opened, Source},
};

pub(crate) fn open(args: &Open, context: &Context) -> Result<Exit> {
    let file = Opened::read(&args.file)?;
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
            let telling = Telling { node: node.clone(), timestamps: *timestamps, raw: *raw, ..Telling::default() };
            logs::print(&file, row, &telling, &context.output)?;
            Ok(Exit::Succeeded)
        }
        Some(OpenView::Explain) => explain::print(&object, &file.waiting(row)?, None, None, &context.output),
    }
}
