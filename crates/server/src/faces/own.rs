//! Our own routes: health, version and metrics, runs, logs, tokens.

use std::{
    sync::PoisonError,
    time::{Duration, Instant},
};

mod lines;
mod retry;
mod runs;
mod scheduling;

use octoflow_control::registry::Registry;
use serde_json::json;

use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::operation::Content,
    route::{Face, Need, Table},
};

mod audit;
mod health;
mod hooks;
pub(crate) mod metrics;
mod tokens;

/// Prefix of our own routes.
const ROOT: &str = "/api/octoflow/v1";

/// A thread that has been busy with one thing for so long is stuck. The slowest disks sync within seconds, and the
/// event loop works in slices.
const STALLED: Duration = Duration::from_secs(60);

/// Time for which a successful write probe is cached.
const STAYS_READY: Duration = Duration::from_secs(5);

pub(crate) fn routes() -> Table {
    let mut table = Table::new(Face::Own);
    table.get("/livez", Need::Nothing, live).about("Whether the server lives").gives(Content::text());
    table.get("/readyz", Need::Nothing, ready).about("Whether the server can decide and write").gives(Content::text());
    table
        .get("/version", Need::Nothing, version)
        .about("The version, in the words of the Kubernetes API")
        .gives(Content::json(json!({"type": "object", "required": ["major", "minor", "gitVersion", "platform"]})));
    runs::add_to(&mut table);
    lines::add_to(&mut table);
    retry::add_to(&mut table);
    scheduling::add_to(&mut table);
    metrics::routes(&mut table);
    health::routes(&mut table);
    tokens::routes(&mut table);
    audit::routes(&mut table);
    hooks::routes(&mut table);
    table
}

/// Liveness: every thread is running, and none is stuck. Never blocks.
async fn live(call: Call) -> Result<Answer, Fault> {
    match call.app.registry.controller().stalled(STALLED) {
        None => Ok(answer::text("ok")),
        Some(why) => Err(not("alive", &why)),
    }
}

fn not(what: &str, why: &str) -> Fault {
    let status = axum::http::StatusCode::SERVICE_UNAVAILABLE;
    Fault { retry_after: Some(1), ..Fault::new(status, "ServiceUnavailable", format!("not {what}: {why}")) }
}

/// Readiness: decisions are made and durable, and the server is not shutting down.
async fn ready(call: Call) -> Result<Answer, Fault> {
    if call.app.closing.is_cancelled() {
        return Err(Fault::closing());
    }
    if call.app.progress().is_pending() {
        return Err(Fault::starting(call.app.progress()));
    }
    if let Some(why) = call.app.registry.not_ready_reason(STALLED) {
        *call.app.ready.lock().unwrap_or_else(PoisonError::into_inner) = None;
        return Err(not("ready", &why));
    }
    let last = *call.app.ready.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_none_or(|last| last.elapsed() > STAYS_READY) {
        let probed = call.work(Registry::probe).await;
        if let Err(fault) = probed {
            *call.app.ready.lock().unwrap_or_else(PoisonError::into_inner) = None;
            return Err(not("ready", &fault.message));
        }
        *call.app.ready.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
    Ok(answer::text("ok"))
}

async fn version(_: Call) -> Result<Answer, Fault> {
    let version = env!("CARGO_PKG_VERSION");
    Ok(answer::json(&json!({
        "major": "1", "minor": "33", "gitVersion": format!("v1.33.0+octoflow-{version}"), "gitCommit": "",
        "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })))
}
