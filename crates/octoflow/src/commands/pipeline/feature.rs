//! Registering, reading and switching features.

use anyhow::Result;
use octoflow_model::plugin::FEATURE_KIND;
use serde_json::{Value, json};

use super::{payload, place, printed, read_all, trial};
use crate::{
    cli::{FeatureCommand, FeatureFiles, FeatureNames},
    client::Client,
    commands::Context,
    exit::{self, Exit},
    output::table::{Cell, Table},
    source::workflow::{list, text},
};

pub(crate) fn feature(command: &FeatureCommand, context: &Context) -> Result<Exit> {
    let output = &context.output;
    match command {
        FeatureCommand::Register(args) => register(args, context),
        FeatureCommand::List(args) => {
            let found = payload(context.client()?.get(&place(&["features", "list", &args.author]))?)?;
            if printed(output, args.output.as_ref(), &found)? {
                return Ok(Exit::Succeeded);
            }
            match list(&found) {
                [] => output.line("No features found")?,
                features => output.text(&table(features).render(output.paint()))?,
            }
            Ok(Exit::Succeeded)
        }
        FeatureCommand::Get(args) => get(args, context),
        FeatureCommand::Enable(args) => each(args, context, "enabled", |client, name| {
            client.put(&place(&["features", "turn-on", name]), &json!({}))
        }),
        FeatureCommand::Disable(args) => each(args, context, "disabled", |client, name| {
            client.put(&place(&["features", "turn-off", name]), &json!({}))
        }),
        FeatureCommand::Delete(args) => {
            each(args, context, "deleted", |client, name| client.delete(&place(&["features", name])))
        }
        FeatureCommand::Test(args) => trial::trial(args, context),
    }
}

/// Returns a feature as it is posted: a whole object is unpacked.
pub(super) fn posted(object: &Value) -> Value {
    if object["kind"] != FEATURE_KIND {
        return object.clone();
    }
    let mut posted = if object["spec"].is_object() { object["spec"].clone() } else { json!({}) };
    posted["name"] = object["metadata"]["name"].clone();
    posted
}

fn register(args: &FeatureFiles, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    for object in read_all(&args.files)? {
        let feature = posted(&object);
        payload(client.post(&place(&["features"]), &feature)?)?;
        let name = text(&feature, "name");
        let now = payload(client.get(&place(&["features", "detail", name]))?)?;
        let word = if now["enabled"] == true { "enabled" } else { "not enabled" };
        context.output.line(&format!("feature '{name}' registered, {word}"))?;
    }
    Ok(Exit::Succeeded)
}

fn get(args: &FeatureNames, context: &Context) -> Result<Exit> {
    let (client, output) = (context.client()?, &context.output);
    for (at, name) in args.names.iter().enumerate() {
        let found = payload(client.get(&place(&["features", "detail", name]))?)?;
        if printed(output, args.output.as_ref(), &found)? {
            continue;
        }
        if at > 0 {
            output.line("")?;
        }
        for (title, field) in [("Name", "name"), ("Author", "author"), ("Description", "description")] {
            output.line(&format!("{:13}{}", format!("{title}:"), text(&found, field)))?;
        }
        output.line(&format!("{:13}{}", "Enabled:", found["enabled"]))?;
        output.text(&super::plugin::table(list(&found["plugins"])).render(output.paint()))?;
    }
    Ok(Exit::Succeeded)
}

fn each(
    args: &FeatureNames,
    context: &Context,
    word: &str,
    act: impl Fn(&Client, &str) -> Result<Value>,
) -> Result<Exit> {
    let client = context.client()?;
    let mut worst = Exit::Succeeded;
    for name in &args.names {
        match act(&client, name).and_then(payload) {
            Ok(_) => context.output.line(&format!("feature '{name}' {word}"))?,
            Err(error) if args.names.len() == 1 => return Err(error),
            Err(error) => {
                context.output.error(&error);
                worst = worst.worse(exit::of(&error));
            }
        }
    }
    Ok(worst)
}

fn table(features: &[Value]) -> Table {
    let mut table = Table::new(&["NAME", "AUTHOR", "ENABLED", "PLUGINS", "DESCRIPTION"]);
    for feature in features {
        let types = list(&feature["plugins"]).iter().map(|plugin| text(plugin, "pluginType"));
        table.push(vec![
            Cell::new(text(feature, "name")),
            Cell::new(text(feature, "author")),
            Cell::new(feature["enabled"].to_string()),
            Cell::new(types.collect::<Vec<_>>().join(",")),
            Cell::new(text(feature, "description")),
        ]);
    }
    table
}
