//! Life hooks: what each has heard and has not, and sending it again.

use axum::http::Method;
use octoflow_control::hooks::{Delivery, DeliveryFilter, DeliveryStatus, registry::HookSummary};
use serde_json::{Value, json};

use super::ROOT;
use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::operation::{Content, count, text},
    route::{Need, Table},
};

const DEFAULT_PAGE: u64 = 100;

pub(super) fn routes(table: &mut Table) {
    let object = || Content::json(json!({"type": "object"}));
    let list = |more: Value| {
        let mut properties = json!({"items": {"type": "array", "items": {"type": "object"}}});
        if !more.is_null() {
            properties["continue"] = more;
        }
        Content::json(json!({"type": "object", "required": ["items"], "properties": properties}))
    };
    table
        .get(format!("{ROOT}/hooks"), Need::ReadFeature, hooks)
        .about("Life hooks, with the numbers of what waits and of what was given up")
        .gives(list(Value::Null));
    table
        .get(format!("{ROOT}/hooks/deliveries"), Need::ReadFeature, deliveries)
        .about("Events on their way to life hooks, and those given up, oldest first")
        .query(&[
            text("plugin", "Only those of this plugin"),
            text("job", "Only those of this job"),
            text("dead", "`true`: only what was given up; `false`: only what is still sent"),
            count("limit", "At most so many"),
            count("continue", "Where the page before ended"),
        ])
        .gives(list(json!({"type": ["string", "null"]})));
    table
        .add(Method::POST, format!("{ROOT}/hooks/deliveries/{{event}}/replay"), Need::WriteFeature, replay)
        .about("Sends an event again that was given up")
        .gives(object());
    table
        .add(Method::POST, format!("{ROOT}/hooks/replay"), Need::WriteFeature, replay_all)
        .about("Sends all events again that were given up for a plugin")
        .query(&[text("plugin", "The key of the plugin")])
        .gives(object());
    table
        .add(Method::DELETE, format!("{ROOT}/hooks/deliveries/{{event}}"), Need::WriteFeature, drop_one)
        .about("Deletes an event: it is never sent again")
        .gives(object());
}

async fn hooks(call: Call) -> Result<Answer, Fault> {
    let found = call.work(|registry| registry.hooks()).await?;
    let items: Vec<Value> = found.iter().map(summary).collect();
    Ok(answer::json(&json!({"items": items})))
}

fn summary(hook: &HookSummary) -> Value {
    let HookSummary { plugin, enabled, address, states, pending, dead, totals } = hook;
    json!({
        "plugin": plugin, "enabled": enabled, "callAddress": address, "states": states, "pending": pending, "dead": dead,
        "delivered": totals.delivered, "retried": totals.retried, "givenUp": totals.dead,
    })
}

async fn deliveries(call: Call) -> Result<Answer, Fault> {
    let number = |name: &str| {
        let text = call.query.get(name);
        let number = text.map(|text| text.parse::<u64>()).transpose();
        number.map_err(|_| Fault::bad_request(format!("{name} is a number, not `{}`", text.unwrap_or_default())))
    };
    let dead = match call.query.get("dead") {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(other) => return Err(Fault::bad_request(format!("dead is `true` or `false`, not `{other}`"))),
    };
    let text = |name: &str| call.query.get(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let filter = DeliveryFilter { plugin: text("plugin"), job: text("job"), run: None, dead };
    let limit = usize::try_from(number("limit")?.unwrap_or(DEFAULT_PAGE)).unwrap_or(usize::MAX);
    let after = number("continue")?.unwrap_or_default();
    let (found, next) = call.work(move |registry| registry.deliveries(&filter, after, limit)).await?;
    let items: Vec<Value> = found.iter().map(shown).collect();
    Ok(answer::json(&json!({"items": items, "continue": next.map(|next| next.to_string())})))
}

fn shown(delivery: &Delivery) -> Value {
    json!({
        "event": delivery.event, "plugin": delivery.plugin, "job": delivery.job, "namespace": delivery.namespace,
        "uid": delivery.run, "occurrence": delivery.sequence, "state": delivery.state,
        "created": delivery.created.to_string(), "due": delivery.due.to_string(), "tries": delivery.tries,
        "dead": delivery.status == DeliveryStatus::Dead, "reason": delivery.reason,
    })
}

async fn replay(call: Call) -> Result<Answer, Fault> {
    let event = call.param("event").to_owned();
    let asked = event.clone();
    found(call.work(move |registry| registry.replay_delivery(&asked)).await?, "dead letter", &event)
}

async fn replay_all(call: Call) -> Result<Answer, Fault> {
    let Some(plugin) = call.query.get("plugin").filter(|plugin| !plugin.is_empty()).map(str::to_owned) else {
        return Err(Fault::bad_request("plugin is missing: the key of the hook whose dead letters are sent again"));
    };
    let count = call.work(move |registry| registry.replay_dead(&plugin)).await?;
    Ok(answer::json(&json!({"replayed": count})))
}

async fn drop_one(call: Call) -> Result<Answer, Fault> {
    let event = call.param("event").to_owned();
    let asked = event.clone();
    found(call.work(move |registry| registry.drop_delivery(&asked)).await?, "delivery", &event)
}

fn found(found: bool, what: &str, event: &str) -> Result<Answer, Fault> {
    if found { Ok(answer::json(&json!({}))) } else { Err(Fault::not_found(format!("there is no {what} `{event}`"))) }
}
