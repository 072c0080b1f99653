//! Information about the server and the caller.

use axum::http::Method;
use serde_json::json;

use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::{operation::Content, shapes::empty},
    route::{Need, Table},
};

pub(super) fn routes(table: &mut Table) {
    let object = |required: &[&str]| Content::json(json!({"type": "object", "required": required}));
    table
        .get("/api/v1/info", Need::Token, info)
        .about("What user interfaces of Argo Server ask for")
        .gives(object(&["managedNamespace", "links"]));
    table.get("/api/v1/version", Need::Token, version).about("The version").gives(object(&["version", "platform"]));
    table.get("/api/v1/userinfo", Need::Token, user).about("Who asks").gives(object(&["issuer", "subject"]));
    table
        .add(Method::POST, "/api/v1/tracking/event", Need::Token, tracking)
        .about("Takes clicks of a user interface, and forgets them")
        .may_take(Content::json(json!({"type": "object"})))
        .gives(Content::json(empty()));
    for foreign in ["/api/v1/event-sources/{*rest}", "/api/v1/sensors/{*rest}"] {
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE] {
            table.add(method, foreign, Need::Token, foreign_events).refuses();
        }
    }
    for foreign in ["/api/v1/stream/event-sources/{*rest}", "/api/v1/stream/sensors/{*rest}"] {
        table.get(foreign, Need::Token, foreign_events).refuses();
    }
}

async fn info(_: Call) -> Result<Answer, Fault> {
    Ok(answer::json(&json!({
        "managedNamespace": "", "links": [], "columns": [], "navColor": "",
        "modals": {"feedback": false, "firstTimeUser": false, "newVersion": false},
    })))
}

/// Clients insist on every one of these being a string.
async fn version(_: Call) -> Result<Answer, Fault> {
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    Ok(answer::json(&json!({
        "version": version, "buildDate": "1970-01-01T00:00:00Z", "gitCommit": "", "gitTag": version,
        "gitTreeState": "clean", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })))
}

async fn user(call: Call) -> Result<Answer, Fault> {
    Ok(answer::json(&json!({
        "issuer": "octoflow", "subject": call.caller.name, "groups": [], "name": call.caller.name, "email": "",
        "emailVerified": false, "serviceAccountName": "", "serviceAccountNamespace": "",
    })))
}

/// Accepts and ignores the user interface's usage events.
async fn tracking(_: Call) -> Result<Answer, Fault> {
    Ok(answer::json(&json!({})))
}

async fn foreign_events(_: Call) -> Result<Answer, Fault> {
    Err(Fault::not_implemented("event sources and sensors are of another project; here events come to /api/v1/events"))
}
