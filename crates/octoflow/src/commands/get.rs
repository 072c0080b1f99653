//! `octoflow get NAME…`: a run with the tree of its nodes, or its object.

use anyhow::Result;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::Context;
use crate::{
    cli::{Format, Get},
    exit::Exit,
    local::Local,
    output::{
        clock, header,
        json::objects,
        nodes::{self, Columns},
    },
    selector::Fields,
    workflow::Workflow,
};

pub(crate) fn get(args: &Get, context: &Context) -> Result<Exit> {
    let mut found = Vec::new();
    for name in &args.names {
        let (local, row) = Local::find_in(&context.data_dir, args.namespace.or_default(), name)?;
        found.push(local.object(&row)?);
    }
    let text = match &args.output {
        Some(format) => objects(format, &found, false),
        None => None,
    };
    let text = match text {
        Some(text) => text,
        None => found.iter().map(|object| shown(object, args, context)).collect::<Vec<_>>().join("\n"),
    };
    context.output.data(&text)?;
    Ok(Exit::Succeeded)
}

fn shown(object: &Value, args: &Get, context: &Context) -> String {
    let workflow = Workflow::new(object);
    let selector = args.node_field_selector.clone().or_else(|| args.status.as_deref().map(Fields::phase));
    let columns = match &args.output {
        Some(Format::Wide) => Columns::Wide,
        Some(Format::Short) => Columns::Short,
        _ => Columns::Usual,
    };
    let (now, paint) = (clock::now(), context.output.paint());
    let wanted = |node: &crate::workflow::Node<'_>| selector.as_ref().is_none_or(|selector| selector.matches(*node));
    let tree = nodes::render(workflow, columns, !args.no_headers, wanted, now, paint);
    if columns == Columns::Short {
        return tree;
    }
    let head = header::render(workflow, now, &TimeZone::system(), paint);
    if tree.is_empty() { head } else { format!("{head}\n{tree}") }
}
