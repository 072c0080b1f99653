//! External events that may start workflows.

use axum::http::Method;
use octoflow_control::events::{Dispatched, EventOutcome};
use octoflow_model::meta::DEFAULT_NAMESPACE;
use serde_json::{Value, json};

use super::namespace;
use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::{operation::Content, shapes::empty},
    route::{Need, Table},
};

pub(super) fn routes(table: &mut Table) {
    for path in
        ["/api/v1/events/{namespace}", "/api/v1/events/{namespace}/", "/api/v1/events/{namespace}/{discriminator}"]
    {
        table
            .add(Method::POST, path, Need::WriteJob, receive)
            .about("Hands in an event, of which bindings may make workflows")
            .may_take(Content::json(json!({})))
            .gives(Content::json(empty()));
    }
}

/// Accepts an event. The sender does not learn what came of it, unless the controller failed.
async fn receive(mut call: Call) -> Result<Answer, Fault> {
    let namespace = namespace(&call)?.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    let discriminator = call.optional_param("discriminator").unwrap_or_default().to_owned();
    let payload: Value = call.json().await?;
    let mut metadata: Vec<(String, Vec<String>)> = Vec::new();
    for (name, value) in &call.headers {
        let Ok(text) = value.to_str() else { continue };
        match metadata.iter_mut().find(|(known, _)| known == name.as_str()) {
            Some((_, values)) => values.push(text.to_owned()),
            None => metadata.push((name.as_str().to_owned(), vec![text.to_owned()])),
        }
    }
    let told = call.work(move |registry| registry.dispatch(&namespace, &discriminator, payload, metadata)).await?;
    let mut failure = None;
    for Dispatched { binding, outcome } in told {
        match outcome {
            EventOutcome::NoMatch | EventOutcome::Submitted(_) => {}
            EventOutcome::Malformed(why) => tracing::warn!(binding, why, "an event could not be bound"),
            EventOutcome::Failed(fault) => failure = Some(Fault::from(fault)),
        }
    }
    match failure {
        None => Ok(answer::json(&json!({}))),
        Some(fault) => Err(fault),
    }
}
