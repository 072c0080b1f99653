//! Calling plugins from here, for a trial: one after the other, each with what came out before it. It keeps nothing and
//! tries nothing twice; the credentials of features are the server's alone and are not sent.

use std::time::Duration;

use anyhow::Result;
use octoflow_engine::plugins::increment::{Mode, check};
use octoflow_model::plugin::PluginType;
use serde_json::{Map, Value, json};
use ureq::Agent;

use crate::source::workflow::{list, text};

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_ANSWER_BYTES: u64 = 4 << 20;

/// Calls everything that the plan says is called, and returns what was answered.
pub(super) fn all(plan: &Value, submission: &Value) -> Result<Value> {
    let config = Agent::config_builder().timeout_global(Some(TIMEOUT)).http_status_as_error(false).max_redirects(0);
    let agent: Agent = config.build().into();
    let (mut job, mut factors) = (submission["job"].clone(), Map::new());
    let mut calls = Vec::new();
    for stage in list(&plan["stages"]) {
        let Some(plugin_type) = PluginType::of_word(text(stage, "pluginType")) else { continue };
        if plugin_type == PluginType::LifeHook {
            continue;
        }
        for plugin in list(&stage["plugins"]).iter().filter(|plugin| plugin["called"] == true) {
            let body = json!({"factors": factors, "header": plan["header"], "job": job});
            let came = ask(&agent, text(plugin, "callAddress"), &body)
                .and_then(|answer| take(plugin_type, answer, &mut job, &mut factors));
            let stops = !matches!(came, Ok((_, true)));
            calls.push(match came {
                Ok((answer, _)) => json!({"plugin": plugin["key"], "answer": answer}),
                Err(why) => json!({"plugin": plugin["key"], "error": why}),
            });
            if stops {
                return Ok(json!(calls));
            }
        }
    }
    calls.push(json!({"plugin": "the job that comes out", "answer": job}));
    Ok(json!(calls))
}

/// Takes in an answer as the walk does; returns it, and whether the walk goes on.
fn take(
    plugin_type: PluginType,
    answer: Value,
    job: &mut Value,
    factors: &mut Map<String, Value>,
) -> Result<(Value, bool), String> {
    match plugin_type {
        PluginType::TemplateTranslator => *job = answer.clone(),
        PluginType::FactorGenerator => {
            let given = answer.as_array().cloned().unwrap_or_else(|| vec![answer.clone()]);
            for factor in given.into_iter().filter(|one| !text(one, "topic").is_empty()) {
                let topic = text(&factor, "topic").to_owned();
                let of_topic = factors.entry(topic).or_insert_with(|| json!([]));
                of_topic.as_array_mut().into_iter().for_each(|all| all.push(factor.clone()));
            }
        }
        PluginType::AccessGate => {
            let goes_on = match text(&answer, "decision") {
                "pass" => true,
                "suspend" | "stop" => false,
                other => return Err(format!("unrecognized decision `{other}`")),
            };
            return Ok((answer, goes_on));
        }
        PluginType::TemplateDecorator | PluginType::SchedulerBinder => {
            let mode = if plugin_type == PluginType::SchedulerBinder { Mode::Bind } else { Mode::Decorate };
            check(job, &answer, mode).map_err(|conflict| conflict.message)?;
            *job = answer.clone();
        }
        PluginType::LifeHook => {}
    }
    Ok((answer, true))
}

fn ask(agent: &Agent, address: &str, body: &Value) -> Result<Value, String> {
    if address.starts_with("builtin:") {
        return Err(format!("`{address}` is part of the server and is not called from here"));
    }
    let sent = agent.post(address).header("content-type", "application/json").send(body.to_string());
    let mut answer = sent.map_err(|error| error.to_string())?;
    if answer.status() != 200 {
        return Err(format!("it answers with status {}", answer.status().as_u16()));
    }
    let bytes = answer.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_vec();
    let bytes = bytes.map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| format!("its answer is not JSON: {error}"))
}
