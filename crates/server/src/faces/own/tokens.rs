//! Tokens over HTTP: listing, creating and deleting them, and the admin's password.

use axum::http::{Method, StatusCode};
use octoflow_control::now;
use octoflow_model::Time;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ROOT;
use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::operation::{Content, refer},
    gate::{
        access::{Entry, NewToken, Privileges, Scope},
        area::Area,
    },
    route::{Need, Table},
};

pub(super) fn routes(table: &mut Table) {
    let (all, one, admin) = (format!("{ROOT}/tokens"), format!("{ROOT}/tokens/{{id}}"), format!("{ROOT}/tokens/admin"));
    let token = || Content::json(refer("octoflow.Token"));
    let privileges = json!({"type": "array", "items": refer("octoflow.Privilege")});
    let page = json!({
        "type": "object", "required": ["items"],
        "properties": {"items": {"type": "array", "items": refer("octoflow.Token")}},
    });
    // The token book enforces the caller's namespaces itself.
    let shared = Area::Shared;
    table
        .get(&all, Need::ReadToken, list)
        .within(shared)
        .about("All tokens, without their secrets")
        .gives(Content::json(page));
    let wanted = json!({
        "type": "object", "required": ["forwho", "privileges"], "additionalProperties": false,
        "properties": {
            "forwho": {"type": "string", "minLength": 1}, "privileges": privileges, "note": {"type": "string"},
            "namespaces": {"type": "array", "items": {"type": "string"}},
            "expires": {"type": ["string", "null"], "format": "date-time"},
            "expiresInSeconds": {"type": ["integer", "null"], "minimum": 0},
        },
    });
    table
        .add(Method::POST, &all, Need::WriteToken, create)
        .within(shared)
        .about("Creates a token; its secret is in this answer only")
        .takes(Content::json(wanted))
        .gives_as(201, token());
    table.get(&one, Need::ReadToken, get).within(shared).about("One token").gives(token());
    let changed = json!({
        "type": "object", "required": ["privileges"], "additionalProperties": false,
        "properties": {
            "privileges": privileges, "namespaces": {"type": ["array", "null"], "items": {"type": "string"}},
        },
    });
    table
        .add(Method::PUT, &one, Need::WriteToken, change)
        .within(shared)
        .about("Gives a token other privileges")
        .takes(Content::json(changed))
        .gives(token());
    table.add(Method::DELETE, &one, Need::WriteToken, delete).within(shared).about("Deletes a token").gives(token());
    table.get(&admin, Need::ReadToken, get_admin).about("What is known of the admin").gives(token());
    let chosen = json!({
        "type": "object", "required": ["token"], "additionalProperties": false,
        "properties": {"token": {"type": "string"}},
    });
    let done = json!({
        "type": "object", "required": ["id", "name", "defaultPassword"],
        "properties": {"warnings": {"type": "array", "items": {"type": "string"}}},
    });
    for path in [admin.clone(), format!("{ROOT}/admin")] {
        table
            .add(Method::PUT, path, Need::Admin, set_admin)
            .about("Gives the admin another password")
            .takes(Content::json(chosen.clone()))
            .gives(Content::json(done.clone()));
    }
    table
        .add(Method::DELETE, &admin, Need::WriteToken, keep_admin)
        .about("Always refused: the admin cannot be deleted")
        .gives_as(409, Content::json(refer("octoflow.Error")));
}

/// Request for a new token. Field names are those of the submission pipeline.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateRequest {
    #[serde(alias = "name", alias = "who")]
    forwho: String,
    privileges: Vec<String>,
    /// Empty for all namespaces.
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default)]
    note: String,
    /// RFC 3339.
    expires: Option<String>,
    /// Alternative to `expires`: seconds from now.
    #[serde(rename = "expiresInSeconds")]
    expires_in: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeRequest {
    privileges: Vec<String>,
    /// Unchanged if left out.
    namespaces: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PasswordRequest {
    token: String,
}

async fn list(call: Call) -> Result<Answer, Fault> {
    let items: Vec<Value> = call.app.access.credentials.all(&call.caller).iter().map(|entry| shown(entry)).collect();
    Ok(answer::json(&json!({"items": items})))
}

async fn get(call: Call) -> Result<Answer, Fault> {
    Ok(answer::json(&shown(&*call.app.access.credentials.get(call.param("id"), &call.caller)?)))
}

async fn create(mut call: Call) -> Result<Answer, Fault> {
    let wanted: CreateRequest = read(&mut call).await?;
    let expires =
        match (&wanted.expires, wanted.expires_in) {
            (None, None) => None,
            (Some(text), None) => Some(Time::parse(text).ok_or_else(|| {
                Fault::bad_request(format!("expires: `{text}` is no time such as 2030-01-31T12:00:00Z"))
            })?),
            (None, Some(seconds)) => Some(now().saturating_add(std::time::Duration::from_secs(seconds))),
            (Some(_), Some(_)) => return Err(Fault::bad_request("give expires or expiresInSeconds, not both")),
        };
    let privileges = privileges(&wanted.privileges)?;
    let scope = scope(&wanted.namespaces)?;
    let wish = NewToken { who: wanted.forwho, note: wanted.note, privileges, scope, expires };
    let (app, caller) = (call.app.clone(), call.caller.clone());
    let (entry, text) = call.work(move |_| app.access.credentials.create(wish, &caller)).await?;
    let mut body = shown(&entry);
    body["token"] = json!(text);
    Ok(answer::with_status(StatusCode::CREATED, &body))
}

async fn change(mut call: Call) -> Result<Answer, Fault> {
    let changed: ChangeRequest = read(&mut call).await?;
    let privileges = privileges(&changed.privileges)?;
    let scope = changed.namespaces.as_deref().map(scope).transpose()?;
    let (app, caller, id) = (call.app.clone(), call.caller.clone(), call.param("id").to_owned());
    let entry = call.work(move |_| app.access.credentials.change(&id, privileges, scope, &caller)).await?;
    Ok(answer::json(&shown(&entry)))
}

async fn delete(call: Call) -> Result<Answer, Fault> {
    let (app, caller, id) = (call.app.clone(), call.caller.clone(), call.param("id").to_owned());
    let entry = call.work(move |_| app.access.credentials.delete(&id, &caller)).await?;
    Ok(answer::json(&shown(&entry)))
}

async fn get_admin(call: Call) -> Result<Answer, Fault> {
    let default = call.app.access.credentials.has_default();
    let words = Privileges::ALL.words();
    Ok(answer::json(&json!({"id": "admin", "name": "admin", "privileges": words, "defaultPassword": default,
        "defaultPasswordOverTcp": call.app.access.credentials.default_admits_everybody()})))
}

async fn set_admin(mut call: Call) -> Result<Answer, Fault> {
    let chosen: PasswordRequest = read(&mut call).await?;
    let app = call.app.clone();
    let advice = call.work(move |_| app.access.credentials.set_admin(&chosen.token)).await?;
    let warnings: Vec<String> = advice.into_iter().collect();
    Ok(answer::json(&json!({"id": "admin", "name": "admin", "defaultPassword": false, "warnings": warnings})))
}

async fn keep_admin(_: Call) -> Result<Answer, Fault> {
    Err(Fault::conflict("the admin's token cannot be deleted, only changed (PUT)"))
}

/// Reads a body of exactly this type. The error does not repeat the body, which may hold a secret.
async fn read<T: for<'de> Deserialize<'de>>(call: &mut Call) -> Result<T, Fault> {
    let value = call.json().await?;
    serde_json::from_value(value).map_err(|error| {
        let text = error.to_string();
        let known = ["missing field", "unknown field"].iter().any(|start| text.starts_with(start));
        let why =
            if known { text.split(", expected").next().unwrap_or_default() } else { "a value has the wrong type" };
        Fault::bad_request(format!("the body is not what is expected here: {why}"))
    })
}

fn privileges(words: &[String]) -> Result<Privileges, Fault> {
    Privileges::read(words.iter().map(String::as_str)).map_err(|word| {
        let known = Privileges::ALL.words().join(", ");
        Fault::bad_request(format!("`{word}` is no privilege; there are {known}, and admin for all of them"))
    })
}

fn scope(names: &[String]) -> Result<Scope, Fault> {
    Scope::of(names.iter().map(String::as_str)).map_err(|why| Fault::bad_request(format!("namespaces: {why}")))
}

fn shown(entry: &Entry) -> Value {
    let token = &entry.token;
    json!({
        "id": token.id, "name": token.who, "note": token.note, "privileges": entry.privileges.words(),
        "namespaces": entry.scope.names(),
        "created": token.created.to_string(), "expires": token.expires.map(|at| at.to_string()),
    })
}
