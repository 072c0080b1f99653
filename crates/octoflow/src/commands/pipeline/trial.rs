//! `octoflow feature test`: which plugins a job would meet, and why. Nothing is stored.

use anyhow::Result;
use octoflow_engine::plugins::{JobSelector, feature::compile};
use octoflow_manifest::to_yaml;
use octoflow_model::plugin::{FeatureSecrets, FeatureSpec, PluginType, SelectorSpec};
use serde_json::{Value, json};

use super::{
    feature::posted,
    job::{calls, submission},
    payload, place, printed, read_all,
};
use crate::{
    cli::FeatureTest,
    commands::Context,
    exit::{Exit, Failure},
    source::workflow::{list, text},
};

pub(super) fn trial(args: &FeatureTest, context: &Context) -> Result<Exit> {
    let submission = submission(&args.job)?;
    let features = read_all(&args.files)?;
    if args.call {
        return called(args, &features, &submission, context);
    }
    let plan = if args.files.is_empty() {
        payload(context.client()?.post(&place(&["job"]).with("dryRun", true), &submission)?)?
    } else {
        of_files(&features, &submission)?
    };
    if !printed(&context.output, args.output.as_ref(), &plan)? {
        show(&plan, context)?;
    }
    Ok(verdict(&plan))
}

/// Has the server walk the job through its plugins, or through those of files.
fn called(args: &FeatureTest, features: &[Value], submission: &Value, context: &Context) -> Result<Exit> {
    let output = &context.output;
    let mut body = json!({"job": submission});
    if !args.files.is_empty() {
        body["features"] = features.iter().map(posted).collect();
    }
    let tried = payload(context.client()?.post(&place(&["job", "trial"]), &body)?)?;
    if !printed(output, args.output.as_ref(), &tried)? {
        show(&tried["plan"], context)?;
        output.text(&calls(&tried).render(output.paint()))?;
        match &tried["runs"] {
            Value::Null => output.line(&format!("{}: {}", text(&tried, "state"), text(&tried, "message")))?,
            runs => {
                output.line("this would run:")?;
                output.text(&to_yaml(runs))?;
            }
        }
    }
    Ok(if tried["state"] == "failed" { Exit::Failed } else { Exit::Succeeded })
}

/// Whether the job would get through, as far as that is known.
pub(super) fn verdict(plan: &Value) -> Exit {
    if !list(&plan["problems"]).is_empty() { Exit::Failed } else { Exit::Succeeded }
}

/// The plan for features from files alone, as if they were registered and enabled.
fn of_files(features: &[Value], submission: &Value) -> Result<Value> {
    let mut header = if submission["header"].is_object() { submission["header"].clone() } else { json!({}) };
    for field in ["userID", "jobName", "jobKind", "cluster"] {
        if submission[field].is_string() {
            header[field] = submission[field].clone();
        }
    }
    let mut stages: Vec<(PluginType, Vec<Value>)> = PluginType::ALL.map(|one| (one, Vec::new())).to_vec();
    for object in features {
        let mut feature = posted(object);
        let name = text(&feature, "name").to_owned();
        let refused = |why: String| Failure::new(Exit::InvalidManifest, format!("feature '{name}': {why}"));
        for field in ["name", "authorization", "secret"] {
            feature.as_object_mut().and_then(|fields| fields.remove(field));
        }
        let spec: FeatureSpec = serde_json::from_value(feature).map_err(|error| refused(error.to_string()))?;
        let plugins = compile(&name, &spec, &FeatureSecrets::default())
            .map_err(|problems| refused(octoflow_manifest::Problems(problems).render(false).trim_end().to_owned()))?;
        for plugin in plugins {
            let skipped = plugin.plugin_type == PluginType::TemplateTranslator && is_task_set(submission);
            let matches = plugin.selector.matches(&header);
            let told = json!({
                "key": plugin.key, "callAddress": plugin.address.text(), "enabled": true, "matches": matches,
                "called": matches && !skipped, "expression": plugin.selector_spec.expression,
                "conditions": conditions(&plugin.selector_spec, &header),
            });
            let stage = stages.iter_mut().find(|(stage, _)| *stage == plugin.plugin_type);
            stage.into_iter().for_each(|(_, plugins)| plugins.push(told.clone()));
        }
    }
    let stages: Vec<Value> = stages
        .into_iter()
        .map(|(stage, plugins)| {
            let skipped = stage == PluginType::TemplateTranslator && is_task_set(submission);
            json!({"pluginType": stage.word(), "skipped": skipped, "plugins": plugins})
        })
        .collect();
    Ok(json!({"header": header, "stages": stages, "problems": []}))
}

fn is_task_set(submission: &Value) -> bool {
    text(&submission["job"], "kind").eq_ignore_ascii_case("TaskSet")
}

fn conditions(spec: &SelectorSpec, header: &Value) -> Vec<Value> {
    let one = |condition: &octoflow_model::plugin::ConditionSpec| {
        let expression = condition.name.clone();
        let alone = SelectorSpec { conditions: vec![condition.clone()], expression, states: Vec::new() };
        let holds = JobSelector::compile(&alone, &octoflow_manifest::Path::root()).is_ok_and(|one| one.matches(header));
        json!({"name": condition.name, "key": condition.key, "expect": condition.expect, "holds": holds})
    };
    spec.conditions.iter().map(one).collect()
}

pub(super) fn show(plan: &Value, context: &Context) -> Result<()> {
    let output = &context.output;
    for stage in list(&plan["stages"]) {
        let skipped = if stage["skipped"] == true { " (skipped: the job is a TaskSet)" } else { "" };
        output.line(&format!("{}{skipped}", text(stage, "pluginType")))?;
        for plugin in list(&stage["plugins"]) {
            let word = match (plugin["called"] == true, plugin["enabled"] == true, plugin["matches"] == true) {
                (true, ..) => "called",
                (false, false, _) => "not enabled",
                (false, true, false) => "does not match",
                (false, true, true) => "skipped",
            };
            output.line(&format!("  {}: {word}   ({})", text(plugin, "key"), text(plugin, "expression")))?;
            for condition in list(&plugin["conditions"]) {
                let holds = if condition["holds"] == true { "holds" } else { "does not hold" };
                let (name, key, expect) = (text(condition, "name"), text(condition, "key"), text(condition, "expect"));
                output.line(&format!("    {name}: {key} ~ {expect}   {holds}"))?;
            }
        }
    }
    for problem in list(&plan["problems"]) {
        output.line(&format!("the job would fail: {}", problem.as_str().unwrap_or_default()))?;
    }
    Ok(())
}
