//! Evaluates the two conditions of a CronWorkflow: `when` before each run, `stopStrategy` for good. Both see
//! `cronworkflow.*`.

use octoflow_model::Time;
use serde_json::Value as Json;

use super::decide::CronState;
use crate::{
    dialects::argo::substitute::close_of,
    expr::{
        Meter, OffsetDateTime, Value,
        lang::{Env, EvalContext},
        random::Seed,
        when,
    },
};

/// The variables that the conditions can reference.
pub(super) struct ConditionEnv {
    cron: Value,
    now: Time,
    seed: Seed,
    meter: Meter,
}

impl ConditionEnv {
    pub(super) fn new(object: &Json, state: &CronState<'_>) -> Self {
        let metadata = &object["metadata"];
        let map = |field: &str| metadata[field].as_object().cloned().unwrap_or_default();
        let text = |field: &str| Value::from(metadata[field].as_str().unwrap_or_default());
        // In Argo the annotations include the labels, and manifests may rely on it.
        let mut annotations = map("labels");
        annotations.extend(map("annotations"));
        let count = |count: u64| Value::from(i64::try_from(count).unwrap_or(i64::MAX));
        let last = state.last.map_or(Value::Nil, |last| Value::Date(OffsetDateTime::utc(last.timestamp())));
        let namespace = metadata["namespace"].as_str().filter(|text| !text.is_empty()).unwrap_or("default");
        let cron = [
            ("name", text("name")),
            ("namespace", Value::from(namespace)),
            ("labels", Json::Object(map("labels")).into()),
            ("annotations", Json::Object(annotations).into()),
            ("failed", count(state.failed)),
            ("succeeded", count(state.succeeded)),
            ("lastScheduledTime", last),
        ];
        let cron = cron.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let seed = Seed::of(namespace).with(metadata["name"].as_str().unwrap_or_default()).with(&state.now.to_string());
        Self { cron, now: state.now, seed, meter: Meter::default() }
    }

    /// Evaluates `stopStrategy`: true if no further run may start.
    pub(super) fn stops(&self, expression: &str) -> Result<bool, String> {
        let value = self.meter.evaluate(expression, self);
        let value = value.map_err(|error| format!("stopStrategy cannot be evaluated: {error}"))?;
        value.as_bool().ok_or_else(|| format!("stopStrategy must give true or false, not {}", value.to_json()))
    }

    pub(super) fn runs(&self, condition: &str) -> Result<bool, String> {
        let told = |why: String| format!("`when` cannot be evaluated: {why}");
        let filled = self.fill(condition).map_err(told)?;
        when::evaluate_with(&filled, &|word| self.named(word).or_else(|| Some(Value::from(word))))
            .map_err(|error| told(error.to_string()))
    }

    fn fill(&self, text: &str) -> Result<String, String> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find("{{") {
            let Some(close) = close_of(rest, open) else { break };
            filled.push_str(&rest[..open]);
            let body = rest[open + 2..close].trim();
            let value = match body.strip_prefix('=') {
                Some(source) => {
                    let value = self.meter.evaluate(source, self);
                    value.map_err(|error| error.to_string())?
                }
                None => self.named(body).ok_or_else(|| format!("there is no variable `{body}`"))?,
            };
            filled.push_str(&value.to_text());
            rest = &rest[close + 2..];
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Looks up a variable such as `cronworkflow.labels.tier`.
    fn named(&self, word: &str) -> Option<Value> {
        let mut value = self.cron.clone();
        let mut rest = word.strip_prefix("cronworkflow.")?;
        while !rest.is_empty() {
            let Value::Map(fields) = &value else { return None };
            // A label's name may contain dots.
            let (found, left) = match fields.get(rest) {
                Some(found) => (found.clone(), ""),
                None => {
                    let (first, left) = rest.split_once('.')?;
                    (fields.get(first)?.clone(), left)
                }
            };
            (value, rest) = (found, left);
        }
        // Dates are formatted as everywhere else.
        Some(if let Value::Date(date) = value { Time(date.at.as_microsecond()).to_string().into() } else { value })
    }
}

impl Env for ConditionEnv {
    fn root(&self, name: &str) -> Option<Value> {
        (name == "cronworkflow").then(|| self.cron.clone())
    }

    fn eval_context(&self) -> Option<EvalContext> {
        Some(EvalContext { moment: self.now.timestamp(), seed: self.seed })
    }

    fn names(&self) -> Vec<String> {
        vec!["cronworkflow".to_owned()]
    }
}
