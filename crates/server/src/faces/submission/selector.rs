//! Trying a selector on headers. Nothing is stored.

use axum::http::Method;
use octoflow_control::registry::plugins::JobSelector;
use octoflow_model::plugin::SelectorSpec;
use serde_json::{Value, json};

use super::{
    add,
    outcome::{Outcome, Refused, of_problems},
    schema,
};
use crate::{
    call::Call,
    faces::openapi::operation::refer,
    route::{Need, Table},
};

/// Headers that are tried at once.
const MAX_HEADERS: usize = 100;

pub(super) fn routes(table: &mut Table) {
    let condition = json!({"type": "object", "properties": {
        "name": schema::text(), "key": schema::text(), "expect": schema::text(), "holds": {"type": "boolean"},
    }});
    let found = json!({"type": "object", "required": ["matches", "conditions"], "properties": {
        "matches": {"type": "boolean"}, "conditions": schema::list(condition),
    }});
    add(table, Method::POST, "/features/check", Need::ReadFeature, check)
        .about("Which of these headers a selector matches, and which of its conditions hold")
        .takes(schema::body(
            json!({"jobSelector": refer("submission.Selector"), "headers": schema::list(json!({"type": "object"}))}),
        ))
        .gives(schema::with(schema::list(found)));
}

async fn check(mut call: Call) -> Outcome {
    let body = call.json().await?;
    if body["jobSelector"].is_null() {
        return Err(Refused::lacks("jobSelector is what is tried"));
    }
    let spec: SelectorSpec =
        serde_json::from_value(body["jobSelector"].clone()).map_err(|error| Refused::wrong(error.to_string()))?;
    let headers = match &body["headers"] {
        Value::Null => return Err(Refused::lacks("headers is what it is tried on: a list of objects")),
        Value::Array(headers) if headers.len() <= MAX_HEADERS && headers.iter().all(Value::is_object) => headers,
        _ => return Err(Refused::wrong(format!("headers is a list of at most {MAX_HEADERS} objects"))),
    };
    let whole = compile(&spec)?;
    let mut found = Vec::new();
    for header in headers {
        let conditions = conditions(&spec, header);
        found.push(json!({"matches": whole.matches(header), "conditions": conditions}));
    }
    Ok(Some(Value::Array(found)))
}

fn compile(spec: &SelectorSpec) -> Result<JobSelector, Refused> {
    JobSelector::compile(spec, &Default::default()).map_err(|problems| of_problems(&problems))
}

/// Tells which conditions of a selector hold for a header.
pub(super) fn conditions(spec: &SelectorSpec, header: &Value) -> Vec<Value> {
    let one = |condition: &octoflow_model::plugin::ConditionSpec| {
        let expression = condition.name.clone();
        let alone = SelectorSpec { conditions: vec![condition.clone()], expression, states: Vec::new() };
        let holds = compile(&alone).is_ok_and(|selector| selector.matches(header));
        json!({"name": condition.name, "key": condition.key, "expect": condition.expect, "holds": holds})
    };
    spec.conditions.iter().map(one).collect()
}
