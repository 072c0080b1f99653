//! Answers of plugins: what a response means to the stage that asked. Pure; it decides nothing about the walk.

mod strict;

use std::time::Duration;

use octoflow_model::{
    Time,
    plugin::{Factor, Factors, PluginType, increment::Increment},
    request::{Answer, HttpResponse},
    submitted::{GateVerdict, WalkFact},
};
use serde_json::{Map, Value};

use super::edit;
use crate::{
    admit::shape::short,
    plugins::increment::{self, Mode},
};

/// Largest answer of a plugin, as text.
pub const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// Largest sum of all factors of a job, as text: every later plugin is sent all of them.
const MAX_FACTORS: usize = 4 * 1024 * 1024;
/// Longest reason of a gate that is kept.
const MAX_REASON: usize = 4096;
/// The longest time that a gate may ask for until it is asked again.
const MAX_RECHECK: Duration = Duration::from_secs(366 * 24 * 3600);

/// Why a call brought nothing that can be used. The reason never holds what the plugin wrote, but for the word of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    pub why: String,
    /// True if another try may bring more.
    pub passing: bool,
}

impl CallError {
    fn fatal(why: impl Into<String>) -> Self {
        Self { why: why.into(), passing: false }
    }
}

/// Returns the document that a plugin answered with.
pub fn document(answer: Answer, builtin: bool) -> Result<Value, CallError> {
    match answer {
        Answer::Http(response) => of_response(&response),
        Answer::Object(value) => Ok(value),
        // What a built-in plugin refuses it refuses again; a connection may come about the next time.
        Answer::Refused(why) | Answer::Failed(why) => Err(CallError { why, passing: !builtin }),
        Answer::Stopped => Err(CallError { why: "the call was broken off".to_owned(), passing: true }),
        Answer::Listing(_) | Answer::Probed => Err(CallError::fatal("it answered something else than was asked")),
    }
}

fn of_response(response: &HttpResponse) -> Result<Value, CallError> {
    let status = response.status;
    match status {
        200..=299 => {}
        300..=399 => {
            let why = format!("it answered {status}, a redirect, which is not followed: what is sent is for it alone");
            return Err(CallError::fatal(why));
        }
        _ => return Err(CallError { why: format!("it answered {status}"), passing: status >= 500 }),
    }
    if response.body.len() > MAX_ANSWER {
        return Err(CallError::fatal(format!("its answer is larger than {MAX_ANSWER} bytes")));
    }
    strict::read(&response.body).map_err(|why| CallError::fatal(format!("its answer is no JSON document: {why}")))
}

/// What a stage knows when it reads an answer.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub stage: PluginType,
    /// The job as it was sent.
    pub job: &'a Value,
    pub factors: &'a Factors,
    /// Earlier increments, with the keys of the plugins that made them, in order.
    pub earlier: &'a [(&'a str, &'a Increment)],
    /// The shortest time until a gate is asked again.
    pub least_recheck: Duration,
    pub now: Time,
}

/// Returns what an answer decides; on error, what is wrong with it.
pub fn read(asked: &Asked<'_>, answer: Value) -> Result<WalkFact, String> {
    let at = asked.now;
    match asked.stage {
        PluginType::TemplateTranslator => match answer {
            Value::Object(_) => Ok(WalkFact::Translated { at, job: answer }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(format!("its answer is {}, and a job is an object", noun(&answer)))
            }
        },
        PluginType::FactorGenerator => Ok(WalkFact::Advised { at, factors: factors(asked, answer)? }),
        PluginType::AccessGate => verdict(asked, &answer),
        PluginType::TemplateDecorator => extended(asked, &answer, Mode::Decorate),
        PluginType::SchedulerBinder => extended(asked, &answer, Mode::Bind),
        PluginType::LifeHook => Err("a life hook has no turn in the walk".to_owned()),
    }
}

fn noun(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Reads one factor, or several in an array. Those without a topic or an advice say nothing.
fn factors(asked: &Asked<'_>, answer: Value) -> Result<Vec<Factor>, String> {
    let items = if let Value::Array(items) = answer { items } else { vec![answer] };
    let mut found = Vec::new();
    for item in items {
        let Value::Object(fields) = item else {
            return Err(format!("its answer has {}, and a factor is an object", noun(&item)));
        };
        let factor =
            Factor { topic: text(&fields, "topic"), advice: text(&fields, "advice"), reason: text(&fields, "reason") };
        if !factor.topic.is_empty() && !factor.advice.is_empty() {
            found.push(factor);
        }
    }
    let size = |factor: &Factor| factor.topic.len() + factor.advice.len() + factor.reason.len();
    let all: usize = asked.factors.values().flatten().chain(&found).map(size).sum();
    if all > MAX_FACTORS {
        return Err(format!("with its answer the factors of the job are larger than {MAX_FACTORS} bytes"));
    }
    Ok(found)
}

/// Returns a field as text; numbers, truth values, lists and objects as JSON.
fn text(fields: &Map<String, Value>, name: &str) -> String {
    match fields.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => other.to_string(),
    }
}

fn verdict(asked: &Asked<'_>, answer: &Value) -> Result<WalkFact, String> {
    let Value::Object(fields) = answer else {
        return Err(format!("its answer is {}, and a decision is an object", noun(answer)));
    };
    let word = text(fields, "decision");
    let Some(verdict) = GateVerdict::ALL.into_iter().find(|verdict| verdict.word() == word) else {
        let words = GateVerdict::ALL.map(GateVerdict::word).join(", ");
        return Err(match word.as_str() {
            "" => format!("its answer has no decision, which is one of {words}"),
            word => format!("its decision `{}` is none: it is one of {words}", short(word)),
        });
    };
    let mut reason = text(fields, "reason");
    if reason.len() > MAX_REASON {
        let end = (0..=MAX_REASON).rev().find(|end| reason.is_char_boundary(*end)).unwrap_or_default();
        reason.truncate(end);
        reason.push('…');
    }
    let recheck = match (verdict, fields.get("recheckAfter")) {
        (GateVerdict::Suspend, Some(after)) if !after.is_null() => {
            let seconds = after.as_f64().filter(|seconds| *seconds > 0.0 && *seconds <= MAX_RECHECK.as_secs_f64());
            let seconds = seconds.ok_or_else(|| {
                format!("its recheckAfter is no number of seconds from 1 to {}", MAX_RECHECK.as_secs())
            })?;
            Some(asked.now.saturating_add(Duration::from_secs_f64(seconds).max(asked.least_recheck)))
        }
        (GateVerdict::Pass | GateVerdict::Suspend | GateVerdict::Stop, _) => None,
    };
    Ok(WalkFact::Judged { at: asked.now, verdict, reason, recheck })
}

fn extended(asked: &Asked<'_>, answer: &Value, mode: Mode) -> Result<WalkFact, String> {
    match increment::check(asked.job, answer, mode) {
        Ok(added) => Ok(WalkFact::Extended { at: asked.now, edits: edit::between(asked.job, answer), added }),
        Err(conflict) => {
            let setter = increment::blame(&conflict.path, asked.earlier);
            let setter = setter.map(|key| format!("; {key} had set it")).unwrap_or_default();
            Err(format!("its answer does not only add to the job: {}{setter}", conflict.message))
        }
    }
}
