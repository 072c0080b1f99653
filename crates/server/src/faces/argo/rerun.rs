//! Reruns of finished workflows: retry in place, or resubmit as a new run; by name, or by uid of the archive.

use axum::http::Method;
use octoflow_control::{RerunOptions, ResubmitOptions, registry::Registry};
use octoflow_model::RunId;
use serde_json::{Value, json};

use super::{
    archive::ArchivedRef,
    body::{Message, pairs},
    kind, namespace, one,
    refused::refused,
};
use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::{operation::Content, shapes::message},
    route::{Need, Table},
};

pub(super) fn routes(table: &mut Table) {
    for place in ["/api/v1/workflows/{namespace}/{name}", "/api/v1/archived-workflows/{uid}"] {
        let (text, flag) = (json!({"type": "string"}), json!({"type": "boolean"}));
        let texts = json!({"type": "array", "items": text, "description": "name=value each"});
        let retried = json!({
            "restartSuccessful": flag, "nodeFieldSelector": text, "parameters": texts, "namespace": text, "name": text,
        });
        table
            .add(Method::PUT, format!("{place}/retry"), Need::WriteJob, retry)
            .about("Does what failed in a workflow again")
            .may_take(Content::json(message(retried)))
            .gives(one("Workflow"));
        let resubmitted = json!({"memoized": flag, "parameters": texts, "namespace": text, "name": text});
        table
            .add(Method::PUT, format!("{place}/resubmit"), Need::WriteJob, resubmit)
            .about("Submits a workflow once more as a new one")
            .may_take(Content::json(message(resubmitted)))
            .gives(one("Workflow"));
    }
}

async fn retry(mut call: Call) -> Result<Answer, Fault> {
    let mut message = Message::of(&mut call).await?;
    let options = RerunOptions {
        restart_successful: message.flag("restartSuccessful")?,
        selector: message.text("nodeFieldSelector")?,
        parameters: pairs("parameters", &message.texts("parameters")?)?,
        ..RerunOptions::default()
    };
    plan(call, message, move |registry, run| registry.controller().retry(run, &options)).await
}

async fn resubmit(mut call: Call) -> Result<Answer, Fault> {
    let mut message = Message::of(&mut call).await?;
    let options = ResubmitOptions {
        memoized: message.flag("memoized")?,
        parameters: pairs("parameters", &message.texts("parameters")?)?,
    };
    let claim = call.claim()?;
    plan(call, message, move |registry, run| registry.controller().resubmit_once(run, &options, claim.as_ref())).await
}

/// Reference to the workflow.
enum WorkflowRef {
    Named(String, String),
    Archived(ArchivedRef),
}

/// Finds the workflow, reruns it, and answers with the result.
async fn plan(
    call: Call,
    mut message: Message,
    act: impl FnOnce(&Registry, RunId) -> Result<RunId, octoflow_control::Error> + Send + 'static,
) -> Result<Answer, Fault> {
    let place = match call.optional_param("name") {
        Some(name) => WorkflowRef::Named(namespace(&call)?.unwrap_or_default(), name.to_owned()),
        None => {
            WorkflowRef::Archived(ArchivedRef::of(&call).or_named(message.text("namespace")?, message.text("name")?))
        }
    };
    let object = call
        .work(move |registry| -> Result<Value, Fault> {
            let found = match &place {
                WorkflowRef::Named(namespace, name) => registry.find_run(kind("Workflow"), namespace, name),
                WorkflowRef::Archived(which) => which.find(registry),
            }?;
            let run = act(registry, found.run).map_err(|error| refused(error.into()))?;
            Ok(registry.run_by_number(run)?)
        })
        .await?;
    Ok(answer::json(&object))
}
