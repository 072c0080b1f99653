//! `octoflow hook …`: what life hooks of a server have heard and have not.

use anyhow::Result;
use serde_json::{Value, json};

use super::Context;
use crate::{
    cli::{Format, HookCommand, HookReplay},
    client::{Address, Client},
    exit::{self, Exit},
    output::{
        json::objects,
        table::{Cell, Table},
    },
    source::workflow::{list, text},
};

pub(crate) fn hook(command: &HookCommand, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    match command {
        HookCommand::List(args) => match &args.job {
            None => {
                let found = list(&client.get(&place(&[]))?["items"]).to_vec();
                show(&found, args.output.as_ref(), "No life hooks found", hooks, context)
            }
            Some(job) => {
                let found = deliveries(&client, |address| address.with("job", job))?;
                show(&found, args.output.as_ref(), "Every life hook has heard everything of it", events, context)
            }
        },
        HookCommand::Dead(args) => {
            let found = deliveries(&client, |address| {
                let address = address.with("dead", true).with_some("plugin", args.plugin.as_ref());
                address.with_some("job", args.job.as_ref())
            })?;
            show(&found, args.output.as_ref(), "No dead letters found", events, context)
        }
        HookCommand::Replay(args) => replay(args, context),
        HookCommand::Drop(args) => {
            each(&args.events, "deleted", context, |client, event| client.delete(&place(&["deliveries", event])))
        }
    }
}

fn place(more: &[&str]) -> Address {
    Address::of(&[&["api", "octoflow", "v1", "hooks"], more].concat())
}

/// Reads all pages of deliveries.
fn deliveries(client: &Client, choose: impl Fn(Address) -> Address) -> Result<Vec<Value>> {
    let (mut found, mut after) = (Vec::new(), None::<String>);
    loop {
        let address = choose(place(&["deliveries"])).with("limit", 1000).with_some("continue", after.as_ref());
        let page = client.get(&address)?;
        found.extend(list(&page["items"]).iter().cloned());
        match page["continue"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => return Ok(found),
        }
    }
}

fn replay(args: &HookReplay, context: &Context) -> Result<Exit> {
    let Some(plugin) = &args.plugin else {
        return each(&args.events, "is sent again", context, |client, event| {
            client.post(&place(&["deliveries", event, "replay"]), &json!({}))
        });
    };
    let answer = context.client()?.post(&place(&["replay"]).with("plugin", plugin), &json!({}))?;
    context.output.line(&format!("{} events are sent again", answer["replayed"]))?;
    Ok(Exit::Succeeded)
}

fn each(
    events: &[String],
    done: &str,
    context: &Context,
    act: impl Fn(&Client, &str) -> Result<Value>,
) -> Result<Exit> {
    let (client, mut worst) = (context.client()?, Exit::Succeeded);
    for event in events {
        match act(&client, event) {
            Ok(_) => context.output.line(&format!("event '{event}' {done}"))?,
            Err(error) if events.len() == 1 => return Err(error),
            Err(error) => {
                context.output.error(&error);
                worst = worst.worse(exit::of(&error));
            }
        }
    }
    Ok(worst)
}

fn show(
    found: &[Value],
    format: Option<&Format>,
    nothing: &str,
    table: impl Fn(&[Value]) -> Table,
    context: &Context,
) -> Result<Exit> {
    let output = &context.output;
    if let Some(text) = format.and_then(|format| objects(format, found, true)) {
        output.data(&text)?;
    } else if found.is_empty() {
        output.line(nothing)?;
    } else {
        output.text(&table(found).render(output.paint()))?;
    }
    Ok(Exit::Succeeded)
}

fn hooks(found: &[Value]) -> Table {
    let mut table = Table::new(&["PLUGIN", "ENABLED", "STATES", "PENDING", "DEAD", "DELIVERED", "ADDRESS"]);
    for one in found {
        let states: Vec<&str> = list(&one["states"]).iter().filter_map(Value::as_str).collect();
        let enabled = one["enabled"].as_bool().map_or_else(|| "gone".to_owned(), |enabled| enabled.to_string());
        table.push(vec![
            Cell::new(text(one, "plugin")),
            Cell::new(enabled),
            Cell::new(states.join(",")),
            Cell::new(one["pending"].to_string()),
            Cell::new(one["dead"].to_string()),
            Cell::new(one["delivered"].to_string()),
            Cell::new(text(one, "callAddress")),
        ]);
    }
    table
}

fn events(found: &[Value]) -> Table {
    let mut table = Table::new(&["EVENT", "PLUGIN", "JOB", "STATE", "TRIES", "DEAD", "CREATED", "REASON"]);
    for one in found {
        table.push(vec![
            Cell::new(text(one, "event")),
            Cell::new(text(one, "plugin")),
            Cell::new(text(one, "job")),
            Cell::new(text(one, "state")),
            Cell::new(one["tries"].to_string()),
            Cell::new(one["dead"].to_string()),
            Cell::new(text(one, "created")),
            Cell::new(text(one, "reason")),
        ]);
    }
    table
}
