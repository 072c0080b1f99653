//! Plugins: reading them, and their order.

use axum::http::Method;
use octoflow_control::registry::{PlacedPlugin, placed};
use octoflow_model::plugin::PluginType;
use serde_json::{Value, json};

use super::{
    add,
    outcome::{Code, Outcome, Refused},
    schema,
};
use crate::{
    call::Call,
    faces::openapi::operation::refer,
    route::{Need, Table},
};

pub(super) fn routes(table: &mut Table) {
    let plugin = || refer("submission.Plugin");
    add(table, Method::PUT, "/plugins/sequence", Need::WriteFeature, sequence)
        .about("Has one plugin run before another of its type")
        .takes(schema::body(
            json!({"beforeKey": schema::text(), "afterKey": schema::text(), "pluginType": schema::text()}),
        ))
        .gives(schema::done());
    add(table, Method::GET, "/plugins/detail/{plugin}", Need::ReadFeature, detail)
        .about("One plugin, by its key")
        .gives(schema::with(plugin()));
    add(table, Method::GET, "/plugins/list/{type}", Need::ReadFeature, list)
        .about("The plugins of a type in the order in which they run")
        .gives(schema::with(schema::list(plugin())));
}

async fn sequence(mut call: Call) -> Outcome {
    let body = call.json().await?;
    let [first, second, word] = super::outcome::texts(&body, ["beforeKey", "afterKey", "pluginType"])?;
    let plugin_type = plugin_type(&word)?;
    if first == second {
        return Err(Refused::wrong("beforeKey and afterKey are the same plugin"));
    }
    let moved = call.work(move |registry| registry.move_plugin(plugin_type, &first, &second)).await;
    moved.map_err(|fault| match fault.about {
        Some((_, unknown)) => Refused::missing(format!("there is no {plugin_type} `{unknown}`")),
        None => fault.into(),
    })?;
    Ok(None)
}

async fn detail(call: Call) -> Outcome {
    let key = call.param("plugin").to_owned();
    let table = call.work(|registry| registry.plugins()).await?;
    let mut all = PluginType::ALL.into_iter().flat_map(|plugin_type| placed(&table, plugin_type));
    let found = all.find(|placed| placed.plugin.key == key);
    found.map(|found| Some(shown(&found))).ok_or_else(|| Refused::missing(format!("there is no plugin `{key}`")))
}

async fn list(call: Call) -> Outcome {
    let plugin_type = plugin_type(call.param("type"))?;
    let table = call.work(|registry| registry.plugins()).await?;
    Ok(Some(placed(&table, plugin_type).map(|placed| shown(&placed)).collect()))
}

fn plugin_type(word: &str) -> Result<PluginType, Refused> {
    PluginType::of_word(word).ok_or_else(|| {
        let known = PluginType::ALL.map(PluginType::word).join(", ");
        let why = format!("`{word}` is no type of plugin; the types are {known}");
        Refused::Business(Code::UnsupportedPluginType, why)
    })
}

pub(super) fn shown(placed: &PlacedPlugin) -> Value {
    let plugin = &placed.plugin;
    json!({
        "key": plugin.key, "pluginType": plugin.plugin_type, "callAddress": plugin.address.text(),
        "description": plugin.description, "jobSelector": plugin.selector_spec, "sequence": placed.sequence,
        "feature": plugin.feature, "enabled": plugin.enabled,
    })
}
