//! Which plugins a job would meet, and why. Nothing is stored and nobody is called.

use octoflow_control::registry::{
    WriteOptions, job_kind,
    plugins::{Plugin, PluginTable},
    submission,
};
use octoflow_model::{
    plugin::{LifeState, PluginType},
    submitted::SubmittedSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::{outcome::Refused, selector::conditions};
use crate::call::Call;

pub(super) async fn plan(call: &Call, namespace: String, object: Value) -> Result<Value, Refused> {
    let judged = judged(call, namespace, object).await?;
    let planned = call.work(move |registry| -> Result<Value, octoflow_control::registry::Fault> {
        Ok(of(&registry.plugins()?, &judged))
    });
    Ok(planned.await?)
}

/// Returns the object of a job as it would be accepted.
pub(super) async fn judged(call: &Call, namespace: String, object: Value) -> Result<Value, Refused> {
    let options = WriteOptions { dry_run: true, ..WriteOptions::default() };
    Ok(call.create(job_kind(), namespace, object, options).await?.object)
}

/// Tells which of these plugins a job would meet.
pub(super) fn of(table: &PluginTable, judged: &Value) -> Value {
    let spec = SubmittedSpec::deserialize(&judged["spec"]).unwrap_or_default();
    let header = submission::header(&spec, judged["metadata"]["name"].as_str().unwrap_or_default());
    stages(table, &spec, &header)
}

fn stages(table: &PluginTable, spec: &SubmittedSpec, header: &Value) -> Value {
    let mut problems = Vec::new();
    let mut stages = Vec::new();
    for plugin_type in PluginType::ALL {
        let all = table.of_type(plugin_type);
        let met = all.iter().filter(|plugin| plugin.enabled && plugin.selector.matches(header)).count();
        let skipped = plugin_type == PluginType::TemplateTranslator && is_task_set(spec);
        if !skipped {
            problems.extend(problem(plugin_type, met, spec));
        }
        stages.push(json!({
            "pluginType": plugin_type.word(), "skipped": skipped,
            "plugins": all.iter().map(|plugin| told(plugin, header, skipped)).collect::<Vec<_>>(),
        }));
    }
    let mut header = header.clone();
    if let Some(fields) = header.as_object_mut() {
        // Whoever submits it for good gets another id, unless the job names its own.
        fields.remove("jobID");
    }
    json!({"header": header, "stages": stages, "problems": problems})
}

fn is_task_set(spec: &SubmittedSpec) -> bool {
    spec.job["kind"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("TaskSet"))
}

/// Returns why the job would fail in a stage, if that is certain.
fn problem(plugin_type: PluginType, met: usize, spec: &SubmittedSpec) -> Option<String> {
    match (plugin_type, met) {
        (PluginType::TemplateTranslator, 0) => {
            let kind = spec.job["kind"].as_str().unwrap_or_default();
            let runs = octoflow_control::registry::kinds::of_runs().any(|known| known.name == kind);
            (!runs).then(|| format!("no TemplateTranslator is for this job, and `{kind}` does not run by itself"))
        }
        (PluginType::TemplateTranslator | PluginType::SchedulerBinder, 2..) => {
            Some(format!("{met} plugins of type {plugin_type} are for this job, and one is the most"))
        }
        (
            PluginType::TemplateTranslator
            | PluginType::SchedulerBinder
            | PluginType::FactorGenerator
            | PluginType::AccessGate
            | PluginType::TemplateDecorator
            | PluginType::LifeHook,
            _,
        ) => None,
    }
}

fn told(plugin: &Plugin, header: &Value, skipped: bool) -> Value {
    let matches = plugin.selector.matches(header);
    let mut told = json!({
        "key": plugin.key, "callAddress": plugin.address.text(), "enabled": plugin.enabled, "matches": matches,
        "called": plugin.enabled && matches && !skipped, "expression": plugin.selector_spec.expression,
        "conditions": conditions(&plugin.selector_spec, header),
    });
    if plugin.plugin_type == PluginType::LifeHook {
        told["states"] = plugin.states.iter().map(|state: &LifeState| json!(state.word())).collect();
    }
    told
}
