//! Health of the server and identity of the caller, for `octoflow doctor` and for people.

use octoflow_control::now;
use serde_json::json;

use super::ROOT;
use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::operation::Content,
    route::{Need, Table},
};

pub(super) fn routes(table: &mut Table) {
    let health_fields = json!({"type": "object", "required": ["version", "uptimeSeconds", "caller"]});
    table
        .get(format!("{ROOT}/health"), Need::Token, health)
        .about("How the server is")
        .gives(Content::json(health_fields));
    let caller = json!({"type": "object", "required": ["id", "name", "privileges"]});
    table.get(format!("{ROOT}/whoami"), Need::Token, whoami).about("Who asks").gives(Content::json(caller));
}

async fn whoami(call: Call) -> Result<Answer, Fault> {
    Ok(answer::json(&json!({
        "id": call.caller.id, "name": call.caller.name, "privileges": call.caller.privileges.words(),
        "namespaces": call.caller.scope.names(),
    })))
}

async fn health(call: Call) -> Result<Answer, Fault> {
    let (gauges, revision, space) = call
        .work(|registry| {
            registry.probe()?;
            let space = crate::space::of(registry.controller().store().data_dir());
            Ok::<_, octoflow_control::registry::Fault>((registry.gauges()?, registry.revision()?, space))
        })
        .await?;
    let (free, total) = space.unzip();
    let mut health = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "time": now().timestamp().to_string(),
        "uptimeSeconds": call.app.started.elapsed().as_secs(),
        "revision": revision.0,
        "runsOpen": gauges.runs_open,
        "slots": gauges.slots, "slotsUsed": gauges.slots_used, "tasksWaiting": gauges.tasks_waiting,
        "watches": call.app.streams.open(), "connections": call.app.meter.connections(),
        "diskFreeBytes": free, "diskTotalBytes": total,
        "defaultPassword": call.app.access.credentials.has_default(),
        "defaultPasswordOverTcp": call.app.access.credentials.default_admits_everybody(),
        "caller": {
            "name": call.caller.name, "privileges": call.caller.privileges.words(),
            "namespaces": call.caller.scope.names(),
        },
    });
    if !call.caller.scope.is_all() {
        // Activity of others is not shown to confined callers.
        let numbers = ["revision", "runsOpen", "slotsUsed", "tasksWaiting", "watches", "connections"];
        health
            .as_object_mut()
            .into_iter()
            .for_each(|fields| fields.retain(|name, _| !numbers.contains(&name.as_str())));
    }
    Ok(answer::json(&health))
}
