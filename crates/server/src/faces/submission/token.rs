//! Tokens as the pipeline's clients know them: named by their text, which is found by its hash. The same credentials as
//! `/api/octoflow/v1/tokens`.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    add,
    outcome::{Outcome, Refused},
    schema,
};
use crate::{
    answer::fault::Fault,
    call::Call,
    gate::{
        access::{Entry, NewToken, Privileges, Scope},
        area::Area,
    },
    route::{Need, Table},
};

pub(super) fn routes(table: &mut Table) {
    // The credentials enforce the caller's namespaces themselves.
    let shared = Area::Shared;
    let words = || schema::list(schema::text());
    let shown = json!({"type": "object", "required": ["id", "forwho", "privileges"], "properties": {
        "id": schema::text(), "forwho": schema::text(), "note": schema::text(), "privileges": words(),
        "namespaces": words(), "createdAt": schema::text(),
    }});
    add(table, Method::GET, "/tokens", Need::ReadToken, list)
        .within(shared)
        .about("All tokens, without their texts")
        .gives(schema::with(schema::list(shown)));
    let token = json!({"type": "object", "required": ["token"], "properties": {"token": schema::text()}});
    add(table, Method::POST, "/tokens", Need::WriteToken, create)
        .within(shared)
        .about("Creates a token; its text is in this answer only")
        .takes(schema::body(json!({
            "privileges": words(), "forwho": schema::text(), "note": schema::text(), "namespaces": words(),
        })))
        .gives(schema::with(token));
    add(table, Method::PUT, "/tokens/normal", Need::WriteToken, change)
        .within(shared)
        .about("Gives a token other privileges")
        .takes(schema::body(json!({"token": schema::text(), "privileges": words()})))
        .gives(schema::done());
    add(table, Method::DELETE, "/tokens", Need::WriteToken, delete)
        .within(shared)
        .about("Deletes a token")
        .takes(schema::body(json!({"token": schema::text()})))
        .gives(schema::done());
    add(table, Method::PUT, "/tokens/admin", Need::Admin, set_admin)
        .about("Gives the admin another password")
        .takes(schema::body(json!({"token": schema::text()})))
        .gives(schema::done());
}

async fn list(call: Call) -> Outcome {
    let all = call.app.access.credentials.all(&call.caller);
    Ok(Some(all.iter().map(|entry| shown(entry)).collect()))
}

fn shown(entry: &Entry) -> Value {
    let token = &entry.token;
    json!({
        "id": token.id, "forwho": token.who, "note": token.note, "privileges": entry.privileges.words(),
        "namespaces": entry.scope.names(), "createdAt": token.created.to_string(),
    })
}

async fn create(mut call: Call) -> Outcome {
    let body = call.json().await?;
    let wanted = wanted(&body).map_err(|refused| refused.with_status(StatusCode::BAD_REQUEST))?;
    let (app, caller) = (call.app.clone(), call.caller.clone());
    let (_, text) = call.work(move |_| app.access.credentials.create(wanted, &caller)).await.map_err(admin_apart)?;
    Ok(Some(json!({"token": text})))
}

fn wanted(body: &Value) -> Result<NewToken, Refused> {
    let [who] = super::outcome::texts(body, ["forwho"])?;
    let note = match &body["note"] {
        Value::Null => String::new(),
        Value::String(note) => note.clone(),
        _ => return Err(Refused::wrong("note is a text")),
    };
    let names = match &body["namespaces"] {
        Value::Null => Vec::new(),
        names => words(names, "namespaces")?,
    };
    let scope = Scope::of(names.iter().map(String::as_str));
    let scope = scope.map_err(|why| Refused::wrong(format!("namespaces: {why}")))?;
    Ok(NewToken { who, note, privileges: privileges(body)?, scope, expires: None })
}

/// Whatever is asked of the admin's token or under its name cannot be done; the request itself is understood.
fn admin_apart(fault: Fault) -> Refused {
    match fault.message.contains("there is one admin") {
        true => Refused::unsupported(fault.message),
        false => fault.into(),
    }
}

async fn change(mut call: Call) -> Outcome {
    let body = call.json().await?;
    let read = || Ok((super::outcome::texts(&body, ["token"])?, privileges(&body)?));
    let ([text], privileges) = read().map_err(|refused: Refused| refused.with_status(StatusCode::BAD_REQUEST))?;
    let (app, caller) = (call.app.clone(), call.caller.clone());
    let change = move |_: &octoflow_control::registry::Registry| {
        let credentials = &app.access.credentials;
        let id = credentials.id_of(&text, &caller)?;
        let id = id.ok_or_else(|| Fault::not_found("there is no such token"))?;
        credentials.change(&id, privileges, None, &caller)
    };
    call.work(change).await?;
    Ok(None)
}

async fn delete(mut call: Call) -> Outcome {
    let body = call.json().await?;
    let read = super::outcome::texts(&body, ["token"]);
    let [text] = read.map_err(|refused| refused.with_status(StatusCode::BAD_REQUEST))?;
    let (app, caller) = (call.app.clone(), call.caller.clone());
    let delete = move |_: &octoflow_control::registry::Registry| {
        let credentials = &app.access.credentials;
        match credentials.id_of(&text, &caller)? {
            Some(id) => credentials.delete(&id, &caller).map(drop),
            // It is gone, which is what was asked for.
            None => Ok(()),
        }
    };
    call.work(delete).await?;
    Ok(None)
}

async fn set_admin(mut call: Call) -> Outcome {
    let body = call.json().await?;
    let [text] = match super::outcome::texts(&body, ["token"]) {
        Err(Refused::Business(_, why)) => return Err(Refused::wrong(why)),
        read => read?,
    };
    let app = call.app.clone();
    let set = call.work(move |_| app.access.credentials.set_admin(&text)).await;
    set.map_err(|fault| match fault.status {
        StatusCode::BAD_REQUEST => Refused::wrong(fault.message),
        _ => fault.into(),
    })?;
    Ok(None)
}

fn privileges(body: &Value) -> Result<Privileges, Refused> {
    let words = words(&body["privileges"], "privileges")?;
    let read = Privileges::read(words.iter().map(String::as_str)).map_err(|word| {
        let known = Privileges::ALL.words().join(", ");
        Refused::wrong(format!("`{word}` is no privilege; there are {known}, and admin for all of them"))
    })?;
    if read.is_empty() { Err(Refused::wrong("privileges names at least one privilege")) } else { Ok(read) }
}

fn words(list: &Value, field: &str) -> Result<Vec<String>, Refused> {
    let items = list.as_array().map(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
    items.flatten().ok_or_else(|| Refused::wrong(format!("{field} is a list of texts")))
}
