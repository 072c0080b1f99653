//! How the server is and who asks, for `octoflow doctor` and for people.

use octoflow_control::now;
use serde_json::json;

use super::ROOT;
use crate::{
    answer::{self, Answer},
    call::Call,
    fault::Fault,
    route::{Need, Table},
};

pub(super) fn routes(table: &mut Table) {
    table.get(format!("{ROOT}/health"), Need::Token, health);
    table.get(format!("{ROOT}/whoami"), Need::Token, whoami);
}

async fn whoami(call: Call) -> Result<Answer, Fault> {
    Ok(answer::json(&json!({
        "id": call.caller.id, "name": call.caller.name, "privileges": call.caller.privileges.words(),
    })))
}

async fn health(call: Call) -> Result<Answer, Fault> {
    let (gauges, revision, space) = call
        .work(|registry| {
            registry.probe()?;
            let space = crate::space::of(registry.house().store().data_dir());
            Ok::<_, octoflow_control::registry::Fault>((registry.gauges()?, registry.revision()?, space))
        })
        .await?;
    let (free, total) = space.unzip();
    Ok(answer::json(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "time": now().timestamp().to_string(),
        "uptimeSeconds": call.app.started.elapsed().as_secs(),
        "revision": revision.0,
        "runsOpen": gauges.runs_open,
        "slots": gauges.slots, "slotsUsed": gauges.slots_used, "tasksWaiting": gauges.tasks_waiting,
        "watches": call.app.streams.open(), "connections": call.app.meter.connections(),
        "diskFreeBytes": free, "diskTotalBytes": total,
        "defaultPassword": call.app.access.book.has_default(),
        "defaultPasswordOverTcp": call.app.access.book.default_lets_everybody_in(),
        "caller": {"name": call.caller.name, "privileges": call.caller.privileges.words()},
    })))
}
