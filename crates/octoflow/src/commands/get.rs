//! `octoflow get NAME…`: a run with the tree of its nodes, or its object.

use anyhow::Result;
use serde_json::Value;

use super::Context;
use crate::{
    cli::{Format, Get, selector::Fields},
    exit::Exit,
    output::{
        Output, clock, header,
        json::objects,
        nodes::{self, Columns},
    },
    source::{
        below,
        workflow::{Workflow, with_nodes},
    },
};

pub(crate) fn get(args: &Get, context: &Context) -> Result<Exit> {
    let source = context.source()?;
    let mut found = Vec::new();
    let for_people = args.output.as_ref().is_none_or(|format| matches!(format, Format::Wide | Format::Short));
    for name in &args.names {
        let row = source.find(args.namespace.or_default(), name)?;
        let object = source.object(&row)?;
        found.push(if for_people { below::with_nodes_below(&*source, &row, object)? } else { object });
    }
    let nodes = args.node_field_selector.clone().or_else(|| args.status.as_deref().map(Fields::phase));
    let view = View { output: args.output.as_ref(), nodes, no_headers: args.no_headers };
    print(&found, &view, &context.output)
}

/// Display options of runs.
#[derive(Debug, Default)]
pub(crate) struct View<'a> {
    pub output: Option<&'a Format>,
    /// Only these nodes.
    pub nodes: Option<Fields>,
    pub no_headers: bool,
}

/// Prints runs as `get` does, whatever their source.
pub(crate) fn print(found: &[Value], view: &View<'_>, output: &Output) -> Result<Exit> {
    match view.output.and_then(|format| objects(format, found, false)) {
        Some(text) => output.data(&text)?,
        None => output.text(&found.iter().map(|object| shown(object, view, output)).collect::<Vec<_>>().join("\n"))?,
    }
    Ok(Exit::Succeeded)
}

fn shown(object: &Value, view: &View<'_>, output: &Output) -> String {
    let object = with_nodes(object);
    let workflow = Workflow::new(&object);
    let columns = match view.output {
        Some(Format::Wide) => Columns::Wide,
        Some(Format::Short) => Columns::Short,
        _ => Columns::Usual,
    };
    let (now, paint) = (clock::now(), output.paint());
    let wanted =
        |node: &crate::source::workflow::Node<'_>| view.nodes.as_ref().is_none_or(|selector| selector.matches(*node));
    let tree = nodes::render(workflow, columns, !view.no_headers, wanted, now, paint);
    if columns == Columns::Short {
        return tree;
    }
    let head = header::render(workflow, now, &clock::local_zone(), paint);
    if tree.is_empty() { head } else { format!("{head}\n{tree}") }
}
