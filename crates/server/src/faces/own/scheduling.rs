//! What the Kubernetes-style face has no verb for: opening and closing queues, draining nodes.

use axum::http::Method;
use serde_json::json;

use super::ROOT;
use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::operation::Content,
    route::{Need, Table},
};

pub(super) fn add_to(table: &mut Table) {
    let object = || Content::json(json!({"type": "object"}));
    table
        .add(Method::POST, format!("{ROOT}/queues/{{name}}/open"), Need::Admin, |call| set_closed(call, false))
        .about("Opens a queue: it takes work again")
        .gives(object());
    table
        .add(Method::POST, format!("{ROOT}/queues/{{name}}/close"), Need::Admin, |call| set_closed(call, true))
        .about("Closes a queue: it takes nothing new, and what is there goes on")
        .gives(object());
    table
        .add(Method::POST, format!("{ROOT}/nodes/{{name}}/drain"), Need::Admin, drain)
        .about("Ends what runs on a node; it waits again")
        .gives(object());
}

async fn set_closed(call: Call, closed: bool) -> Result<Answer, Fault> {
    let name = call.param("name").to_owned();
    let queue = call.work(move |registry| registry.set_queue_closed(&name, closed)).await?;
    Ok(answer::json(&queue))
}

async fn drain(call: Call) -> Result<Answer, Fault> {
    let name = call.param("name").to_owned();
    call.work(move |registry| registry.drain_node(&name)).await?;
    Ok(answer::json(&json!({})))
}
