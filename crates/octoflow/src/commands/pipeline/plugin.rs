//! Plugins: their list and their order.

use anyhow::Result;
use octoflow_model::plugin::PluginType;
use serde_json::{Value, json};

use super::{payload, place, printed};
use crate::{
    cli::{PluginCommand, PluginList, PluginOrder},
    commands::Context,
    exit::{Exit, Failure},
    output::table::{Cell, Table},
    source::workflow::text,
};

pub(crate) fn plugin(command: &PluginCommand, context: &Context) -> Result<Exit> {
    match command {
        PluginCommand::List(args) => list(args, context),
        PluginCommand::Order(args) => order(args, context),
        PluginCommand::Trace(args) => super::job::trace(args, context),
    }
}

fn list(args: &PluginList, context: &Context) -> Result<Exit> {
    let (client, output) = (context.client()?, &context.output);
    let types = args.plugin_type.map_or_else(|| PluginType::ALL.to_vec(), |one| vec![one]);
    let mut found = Vec::new();
    for plugin_type in types {
        let mut plugins = payload(client.get(&place(&["plugins", "list", plugin_type.word()]))?)?;
        found.append(plugins.as_array_mut().unwrap_or(&mut Vec::new()));
    }
    if printed(output, args.output.as_ref(), &json!(found))? {
        return Ok(Exit::Succeeded);
    }
    if found.is_empty() {
        output.line("No plugins found")?;
    } else {
        output.text(&table(&found).render(output.paint()))?;
    }
    Ok(Exit::Succeeded)
}

fn order(args: &PluginOrder, context: &Context) -> Result<Exit> {
    let word = args.before.split('.').next().unwrap_or_default();
    if PluginType::of_word(word).is_none() {
        let text = format!("`{}` is no key of a plugin", args.before);
        return Err(Failure::usage(text).help("keys are TYPE.FEATURE.AUTHOR; see: octoflow plugin list").into());
    }
    let body = json!({"beforeKey": args.before, "afterKey": args.after, "pluginType": word});
    payload(context.client()?.put(&place(&["plugins", "sequence"]), &body)?)?;
    context.output.line(&format!("{} runs before {}", args.before, args.after))?;
    Ok(Exit::Succeeded)
}

pub(super) fn table(plugins: &[Value]) -> Table {
    let mut table = Table::new(&["SEQUENCE", "KEY", "ENABLED", "ADDRESS", "EXPRESSION"]);
    for plugin in plugins {
        table.push(vec![
            Cell::new(plugin["sequence"].to_string()),
            Cell::new(text(plugin, "key")),
            Cell::new(plugin["enabled"].to_string()),
            Cell::new(text(plugin, "callAddress")),
            Cell::new(text(&plugin["jobSelector"], "expression")),
        ]);
    }
    table
}
