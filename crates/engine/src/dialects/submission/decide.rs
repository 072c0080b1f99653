//! What follows from a walk as it is: pure, total functions. Nothing here knows who calls plugins.

use std::time::Duration;

use octoflow_model::{
    Time,
    plugin::{PluginType, increment::Increment},
    submitted::BoundPlugin,
    taskset::KIND as TASK_SET,
};
use serde_json::Value;

use super::{
    kinds::SUBMITTED_JOB,
    state::{State, TraceOutcome},
};
use crate::{
    admit::shape::short,
    kinds,
    plugins::{OnFailure, Plugin},
};

/// How long the plugins of a job may take together until it is handed over or suspended. One plugin that is called ten times
/// and answers no call takes five minutes; what takes longer than ten is no check before a start any more.
pub const BUDGET: Duration = Duration::from_secs(600);
/// The pause before the second try of a call; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Returns how long to wait after this number of tries.
pub fn pause(tries: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1u32.checked_shl(tries.saturating_sub(1)).unwrap_or(u32::MAX));
    doubled.min(LONGEST_PAUSE)
}

/// Returns the shortest time until a gate is asked again that was asked so often: a job may wait for months, and every
/// question stays in its journal.
pub fn least_recheck(asks: u32) -> Duration {
    match asks {
        0..60 => Duration::from_secs(1),
        60..2000 => Duration::from_secs(60),
        _ => Duration::from_secs(3600),
    }
}

/// Returns a plugin as a stage calls it.
pub fn bound(plugin: &Plugin) -> BoundPlugin {
    BoundPlugin {
        key: plugin.key.clone(),
        feature: plugin.feature.clone(),
        address: plugin.address.text(),
        timeout_seconds: u32::try_from(plugin.timeout.as_secs()).unwrap_or(u32::MAX),
        tries: plugin.tries,
        concurrency: plugin.concurrency,
        ignored: plugin.on_failure == OnFailure::Ignore,
        options: plugin.options.clone(),
    }
}

fn kind(job: &Value) -> &str {
    job["kind"].as_str().unwrap_or_default()
}

/// Reports whether the job is a TaskSet already, so that no translator is asked.
pub fn needs_no_translator(job: &Value) -> bool {
    kind(job).eq_ignore_ascii_case(TASK_SET)
}

/// Returns why a stage that has bound these plugins cannot begin.
pub fn obstacle(state: &State) -> Option<String> {
    let keys = || state.plugins.iter().map(|plugin| plugin.key.as_str()).collect::<Vec<_>>().join(" and ");
    let several = state.plugins.len() > 1;
    match state.stage? {
        PluginType::TemplateTranslator if several => {
            Some(format!("several translators match the kind `{}`: {}", short(kind(&state.job)), keys()))
        }
        PluginType::SchedulerBinder if several => Some(format!("several scheduler binders match: {}", keys())),
        PluginType::TemplateTranslator
        | PluginType::FactorGenerator
        | PluginType::AccessGate
        | PluginType::TemplateDecorator
        | PluginType::SchedulerBinder
        | PluginType::LifeHook => None,
    }
}

/// Returns why the job cannot go on to the second stage: nothing has made a TaskSet of it, and it does not run as it is.
pub fn untranslated(state: &State) -> Option<String> {
    let kind = kind(&state.job);
    if let Some(translator) = state.plugins.first() {
        let made = short(kind);
        return (kind != TASK_SET).then(|| {
            format!("{} made a job of the kind `{made}`, and a translator makes a {TASK_SET}", translator.key)
        });
    }
    if needs_no_translator(&state.job) {
        return (kind != TASK_SET).then(|| format!("the kind is written {TASK_SET}, and not `{}`", short(kind)));
    }
    match kinds::dialect_of(&state.job) {
        Ok(dialect) if *dialect.kind == SUBMITTED_JOB => {
            Some(format!("a {} cannot be the job of another one", SUBMITTED_JOB.name))
        }
        Ok(_) => None,
        Err(problem) => Some(format!(
            "no plugin translates the kind `{}`, and it does not run as it is: {}",
            short(kind),
            problem.message
        )),
    }
}

/// Returns the increments of the job so far, with the keys of the plugins that made them.
pub fn increments(state: &State) -> Vec<(&str, &Increment)> {
    let made = state.trace.iter().filter_map(|entry| match &entry.outcome {
        Some(TraceOutcome::Added(added)) => Some((entry.plugin.as_str(), added)),
        Some(
            TraceOutcome::Job(_) | TraceOutcome::Factors(_) | TraceOutcome::Verdict { .. } | TraceOutcome::Error(_),
        )
        | None => None,
    });
    made.collect()
}

/// Returns why no further call can be made, if the budget is used up.
pub fn exhausted(state: &State) -> Option<String> {
    let plugin = state.plugin()?;
    (state.spent >= BUDGET).then(|| {
        format!(
            "its plugins have used up the {} minutes that they have for a job; {} was not called",
            BUDGET.as_secs() / 60,
            plugin.key
        )
    })
}

/// Returns the time of the next try, if there is one.
pub fn retry(state: &State, now: Time) -> Option<Time> {
    state.plugin().filter(|plugin| state.tries < plugin.tries)?;
    Some(now.saturating_add(pause(state.tries)))
}
