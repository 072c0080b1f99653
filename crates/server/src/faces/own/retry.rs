//! Retries for our own client: all options of the engine, and a dry run that returns the plan.

use axum::http::Method;
use octoflow_control::{RerunOptions, RerunPlan};
use serde::Deserialize;
use serde_json::{Value, json};

use super::runs::{KIND, named};
use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::operation::Content,
    route::{Need, Table},
};

pub(super) fn add_to(table: &mut Table) {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let request = json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "nodes": texts, "from": texts, "failed": {"type": "boolean"}, "restartSuccessful": {"type": "boolean"},
            "nodeFieldSelector": {"type": ["string", "null"]}, "parameters": texts, "dryRun": {"type": "boolean"},
        },
    });
    table
        .add(Method::POST, "/api/octoflow/v1/runs/{namespace}/{name}/retry", Need::WriteJob, retry)
        .about("Does what failed in a run again, or says what that would be")
        .query(&[KIND])
        .may_take(Content::json(request))
        .gives(Content::json(json!({"type": "object"})));
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct RetryRequest {
    nodes: Vec<String>,
    from: Vec<String>,
    failed: bool,
    restart_successful: bool,
    node_field_selector: Option<String>,
    /// `name=value`
    parameters: Vec<String>,
    /// Only return the plan.
    dry_run: bool,
}

async fn retry(mut call: Call) -> Result<Answer, Fault> {
    let body = call.json().await?;
    let body = if body.is_null() { json!({}) } else { body };
    let request: RetryRequest = serde_json::from_value(body)
        .map_err(|error| Fault::bad_request(format!("the body is not what is expected here: {error}")))?;
    let parameters = request.parameters.iter().map(|pair| {
        let (name, value) = pair
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| Fault::bad_request(format!("parameters: `{pair}` is not name=value")))?;
        Ok((name.to_owned(), value.to_owned()))
    });
    let options = RerunOptions {
        restart_successful: request.restart_successful,
        selector: request.node_field_selector,
        nodes: request.nodes,
        from: request.from,
        failed: request.failed,
        parameters: parameters.collect::<Result<_, Fault>>()?,
    };
    let found = named(&call).await?;
    let answer = call
        .work(move |registry| -> Result<Value, Fault> {
            let refused = |error: octoflow_control::Error| crate::faces::argo::refused(error.into());
            if request.dry_run {
                return Ok(plan_json(&registry.controller().again_plan(found.run, &options).map_err(refused)?));
            }
            let run = registry.controller().retry(found.run, &options).map_err(refused)?;
            Ok(registry.run_by_number(run)?)
        })
        .await?;
    Ok(answer::json(&answer))
}

fn plan_json(plan: &RerunPlan) -> Value {
    let rerun: Vec<Value> = plan
        .rerun
        .iter()
        .map(|one| json!({"node": one.node, "display": one.display, "why": one.why.to_string()}))
        .collect();
    json!({"rerun": rerun, "reuse": plan.kept().collect::<Vec<_>>()})
}
