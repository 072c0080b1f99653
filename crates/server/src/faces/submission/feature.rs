//! Features: registering, reading, switching and deleting them.

use axum::http::Method;
use octoflow_control::registry::{RegisteredFeature, WriteOptions, plugins::feature::compile};
use octoflow_model::plugin::{FeatureSecrets, FeatureSpec};
use serde_json::{Map, Value, json};

use super::{
    add,
    outcome::{Outcome, Refused},
    plugin, schema,
};
use crate::{
    answer::fault::Fault,
    call::Call,
    faces::openapi::operation::refer,
    route::{Need, Table},
};

/// Field manager of what is written here.
const MANAGER: &str = "octoflow-v1";

/// Fields of a feature as it is posted.
const FIELDS: [&str; 8] =
    ["name", "author", "description", "enabled", "jobSelector", "plugins", "authorization", "secret"];

/// What a plugin is shown with and need not be posted with: whoever posts what was read is understood.
const SHOWN_ONLY: [&str; 4] = ["key", "sequence", "feature", "enabled"];

pub(super) fn routes(table: &mut Table) {
    let posted = schema::body(json!({
        "name": schema::text(), "author": schema::text(), "description": schema::text(),
        "enabled": {"type": "boolean", "description": "Counts for a new feature only"},
        "authorization": {"type": "string", "description": "Sent to its plugins as `Authorization: Basic …`; never shown"},
        "secret": {"type": "string", "description": "Key of the signatures of its life hooks' deliveries; never shown"},
        "jobSelector": refer("submission.Selector"), "plugins": schema::list(json!({"type": "object"})),
    }));
    add(table, Method::POST, "/features", Need::WriteFeature, register)
        .about("Registers a feature, or replaces the one of this name")
        .takes(posted)
        .gives(schema::done());
    add(table, Method::DELETE, "/features/{feature}", Need::WriteFeature, delete)
        .about("Deletes a feature with its plugins")
        .gives(schema::done());
    for (word, enabled, about) in [
        ("turn-on", true, "Enables a feature"),
        ("turn-off", false, "Disables a feature from the next stage of every job"),
    ] {
        let path = format!("/features/{word}/{{feature}}");
        add(table, Method::PUT, &path, Need::WriteFeature, move |call| switch(call, enabled))
            .about(about)
            .may_take(schema::body(json!({})))
            .gives(schema::done());
    }
    let feature = || refer("submission.Feature");
    add(table, Method::GET, "/features/detail/{feature}", Need::ReadFeature, detail)
        .about("One feature")
        .gives(schema::with(feature()));
    add(table, Method::GET, "/features/list/{author}", Need::ReadFeature, list)
        .about("The features of an author; of everybody: `all`")
        .gives(schema::with(schema::list(feature())));
}

fn options() -> WriteOptions {
    WriteOptions { manager: MANAGER.to_owned(), ..WriteOptions::default() }
}

async fn register(mut call: Call) -> Outcome {
    let (name, spec) = read(call.json().await?)?;
    call.work(move |registry| registry.put_feature(&name, &spec, &options())).await?;
    Ok(None)
}

/// Reads and checks a posted feature: its name and its specification.
pub(super) fn read(body: Value) -> Result<(String, Value), Refused> {
    let Value::Object(mut fields) = body else {
        return Err(Refused::lacks("a feature is a JSON object with name, author, jobSelector and plugins"));
    };
    fields.retain(|_, value| !value.is_null());
    let is_given = |name: &&str| fields.get(*name).is_some_and(|value| value.as_str() != Some(""));
    let lacking: Vec<&str> = ["name", "author", "jobSelector"].into_iter().filter(|name| !is_given(name)).collect();
    if !lacking.is_empty() {
        return Err(Refused::lacks(format!("a feature needs {}", lacking.join(", "))));
    }
    if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(Refused::wrong(format!("a feature has no `{unknown}`; it has {}", FIELDS.join(", "))));
    }
    let Some(Value::String(name)) = fields.remove("name") else {
        return Err(Refused::wrong("the name of a feature is a text"));
    };
    for plugin in fields.get_mut("plugins").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(plugin) = plugin.as_object_mut() {
            plugin.retain(|field, value| !SHOWN_ONLY.contains(&field.as_str()) && !value.is_null());
        }
    }
    check(&name, &fields)?;
    Ok((name, Value::Object(fields)))
}

fn check(name: &str, fields: &Map<String, Value>) -> Result<(), Refused> {
    let mut public = fields.clone();
    for field in ["authorization", "secret"] {
        if public.remove(field).is_some_and(|value| !value.is_string()) {
            return Err(Refused::wrong(format!("{field} is a text")));
        }
    }
    let spec: FeatureSpec =
        serde_json::from_value(Value::Object(public)).map_err(|error| Refused::wrong(error.to_string()))?;
    let compiled = compile(name, &spec, &FeatureSecrets::default());
    compiled.map(drop).map_err(|problems| super::outcome::of_problems(&problems))
}

async fn delete(call: Call) -> Outcome {
    let name = call.param("feature").to_owned();
    call.work(move |registry| registry.delete_feature(&name)).await?;
    Ok(None)
}

async fn switch(call: Call, enabled: bool) -> Outcome {
    let name = call.param("feature").to_owned();
    call.work(move |registry| registry.switch_feature(&name, enabled, &options())).await?;
    Ok(None)
}

async fn detail(call: Call) -> Outcome {
    let name = call.param("feature").to_owned();
    let found = call.work(move |registry| registry.feature(&name)).await?;
    Ok(Some(shown(&found)))
}

async fn list(call: Call) -> Outcome {
    let author = call.param("author").to_owned();
    let mut found = call.work(|registry| registry.features().map_err(Fault::from)).await?;
    found.retain(|feature| author.eq_ignore_ascii_case("all") || feature.spec.author == author);
    Ok(Some(found.iter().map(shown).collect()))
}

fn shown(feature: &RegisteredFeature) -> Value {
    let RegisteredFeature { name, spec, plugins } = feature;
    json!({
        "name": name, "author": spec.author, "description": spec.description, "enabled": spec.enabled,
        // Written and never read.
        "authorization": "",
        "jobSelector": spec.job_selector, "plugins": plugins.iter().map(plugin::shown).collect::<Vec<_>>(),
    })
}
