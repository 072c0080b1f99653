//! `octoflow token …`: tokens of a server.

use std::io::{self, Read};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::Context;
use crate::{
    cli::{TokenCommand, TokenCreate},
    client::Address,
    exit::{self, Exit, Failure},
    output::{
        json::objects,
        table::{Cell, Table},
    },
    source::{
        without_nulls,
        workflow::{list, text},
    },
};

/// Maximum length of a password; longer input is a mistake.
const MAX_PASSWORD_BYTES: u64 = 4096;

pub(crate) fn token(command: &TokenCommand, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let output = &context.output;
    match command {
        TokenCommand::List { output: format } => {
            let answer = client.get(&place(&[]))?;
            let found = list(&answer["items"]).to_vec();
            if let Some(text) = format.as_ref().and_then(|format| objects(format, &found, true)) {
                output.data(&text)?;
                return Ok(Exit::Succeeded);
            }
            if found.is_empty() {
                output.line("No tokens found")?;
            } else {
                output.text(&table(&found).render(output.paint()))?;
            }
        }
        TokenCommand::Create(args) => return create(args, context),
        TokenCommand::Update(args) => {
            let mut body = json!({"privileges": args.privileges});
            if !args.namespaces.is_empty() {
                body["namespaces"] = json!(args.namespaces);
            }
            let changed = client.put(&place(&[&args.name]), &body)?;
            let now = list(&changed["privileges"]).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",");
            output.line(&format!("token '{}' may {now}", args.name))?;
        }
        TokenCommand::Delete { names } => {
            let mut worst = Exit::Succeeded;
            for name in names {
                match client.delete(&place(&[name])) {
                    Ok(_) => output.line(&format!("token '{name}' deleted"))?,
                    Err(error) if names.len() == 1 => return Err(error),
                    Err(error) => {
                        output.error(&error);
                        worst = worst.worse(exit::of(&error));
                    }
                }
            }
            return Ok(worst);
        }
        TokenCommand::SetAdmin { password } => {
            let address = Address::of(&["api", "octoflow", "v1", "admin"]);
            let set = client.put(&address, &json!({"token": secret(password)?}))?;
            let warnings = set["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
            warnings.for_each(|warning| output.warn(warning));
            output.line("the administrator has another password")?;
        }
    }
    Ok(Exit::Succeeded)
}

fn place(more: &[&str]) -> Address {
    Address::of(&[&["api", "octoflow", "v1", "tokens"], more].concat())
}

fn create(args: &TokenCreate, context: &Context) -> Result<Exit> {
    let body = without_nulls(json!({
        "name": args.name, "privileges": args.privileges, "namespaces": args.namespaces, "note": args.note,
        "expiresInSeconds": args.expires_in.map(|span| span.as_secs()),
    }));
    let made = context.client()?.post(&place(&[]), &body)?;
    match args.output.as_ref().and_then(|format| objects(format, std::slice::from_ref(&made), false)) {
        Some(text) => context.output.data(&text)?,
        None => context.output.line(text(&made, "token"))?,
    }
    Ok(Exit::Succeeded)
}

/// Reads a secret. Command lines are visible to other users, so `-` reads it from standard input.
fn secret(given: &str) -> Result<String> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    io::stdin().lock().take(MAX_PASSWORD_BYTES).read_to_string(&mut text).context("cannot read standard input")?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(Failure::usage("standard input holds no password").into()),
        password => Ok(password.to_owned()),
    }
}

fn table(found: &[Value]) -> Table {
    let mut table = Table::new(&["ID", "NAME", "PRIVILEGES", "NAMESPACES", "CREATED", "EXPIRES", "NOTE"]);
    for one in found {
        let words = |field: &str| list(&one[field]).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",");
        let namespaces = Some(words("namespaces")).filter(|names| !names.is_empty());
        table.push(vec![
            Cell::new(text(one, "id")),
            Cell::new(text(one, "name")),
            Cell::new(words("privileges")),
            Cell::new(namespaces.unwrap_or_else(|| "*".to_owned())),
            Cell::new(text(one, "created")),
            Cell::new(text(one, "expires")),
            Cell::new(text(one, "note")),
        ]);
    }
    table
}
