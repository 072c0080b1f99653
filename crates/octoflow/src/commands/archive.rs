//! `octoflow archive …`: finished runs of a server by uid, which stays valid when the name is reused.

use anyhow::Result;
use serde_json::{Value, json};

use super::{
    Context,
    get::{self, View},
    observe::handed_over,
};
use crate::{
    cli::{ArchiveCommand, ArchiveList, ArchiveRerun, Format},
    client::{Address, selector},
    exit::{self, Exit},
    load::names,
    output::{
        clock,
        colour::phase_colour,
        json::objects,
        table::{Cell, Table},
    },
    source::{
        without_nulls,
        workflow::{Workflow, list, text},
    },
};

/// Page size of a list.
const PAGE: usize = 200;

pub(crate) fn archive(command: &ArchiveCommand, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    match command {
        ArchiveCommand::List(args) => list_all(args, context),
        ArchiveCommand::Get(args) => {
            let object = client.get(&one(&args.uid, &[]))?;
            let view = View { output: args.output.as_ref(), ..View::default() };
            get::print(std::slice::from_ref(&object), &view, &context.output)
        }
        ArchiveCommand::Delete(args) => {
            let mut worst = Exit::Succeeded;
            for uid in &args.uids {
                match client.delete(&one(uid, &[])) {
                    Ok(_) => context.output.line(&format!("Archived workflow '{uid}' deleted"))?,
                    Err(error) if args.uids.len() == 1 => return Err(error),
                    Err(error) => {
                        context.output.error(&error);
                        worst = worst.worse(exit::of(&error));
                    }
                }
            }
            Ok(worst)
        }
        ArchiveCommand::Retry(args) => rerun(args, "retry", "is being retried", context),
        ArchiveCommand::Resubmit(args) => rerun(args, "resubmit", "submitted", context),
    }
}

fn one(uid: &str, more: &[&str]) -> Address {
    Address::of(&[&["api", "v1", "archived-workflows", uid], more].concat())
}

fn rerun(args: &ArchiveRerun, verb: &str, done: &str, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let parameters: Vec<String> = args.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut made = Vec::new();
    for uid in &args.uids {
        let namespace = text(&client.get(&one(uid, &[]))?["metadata"], "namespace").to_owned();
        let body = if verb == "retry" {
            json!({"restartSuccessful": args.restart_successful, "nodeFieldSelector": args.node_field_selector})
        } else {
            json!({"memoized": args.memoized})
        };
        let mut body = without_nulls(body);
        body["uid"] = json!(uid);
        body["namespace"] = json!(namespace);
        body["parameters"] = json!(parameters);
        made.push(client.change(&one(uid, &[verb]), &body, &names::key()?)?);
    }
    handed_over(&made, done, &args.after, args.output.as_ref(), context)
}

fn list_all(args: &ArchiveList, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let namespace = (!args.all_namespaces).then(|| args.namespace.or_default());
    let mut found: Vec<Value> = Vec::new();
    let mut after: Option<String> = None;
    while found.len() < limit {
        let labels = args.selector.as_ref().map(|labels| selector(&labels.0));
        let address = Address::of(&["api", "v1", "archived-workflows"])
            .with("listOptions.limit", (limit - found.len()).min(PAGE))
            .with_some("listOptions.labelSelector", labels)
            .with_some("listOptions.continue", after.take())
            .with_some("namePrefix", args.prefix.as_ref())
            .with_some("namespace", namespace);
        let answer = client.get(&address)?;
        found.extend(list(&answer["items"]).iter().cloned());
        after = Some(text(&answer["metadata"], "continue").to_owned()).filter(|next| !next.is_empty());
        if after.is_none() || list(&answer["items"]).is_empty() {
            break;
        }
    }
    found.truncate(limit);
    match &args.output {
        Some(format @ (Format::Json | Format::Yaml | Format::Name | Format::JsonPath(_))) => {
            context.output.data(&objects(format, &found, true).unwrap_or_default())?;
        }
        _ if found.is_empty() => context.output.line("No archived workflows found")?,
        _ => context.output.text(&table(&found, args).render(context.output.paint()))?,
    }
    Ok(Exit::Succeeded)
}

fn table(found: &[Value], args: &ArchiveList) -> Table {
    let mut titles = vec!["NAME", "STATUS", "AGE", "DURATION", "UID"];
    if args.all_namespaces {
        titles.insert(0, "NAMESPACE");
    }
    let now = clock::now();
    let mut table = Table::new(&titles).without_header(args.no_headers);
    for object in found {
        let workflow = Workflow::new(object);
        let took = match (workflow.started(), workflow.finished()) {
            (Some(began), Some(ended)) => clock::short(ended.since(began)),
            _ => String::new(),
        };
        let age = workflow.created().map(|created| clock::short(now.since(created))).unwrap_or_default();
        let mut cells = vec![
            Cell::new(workflow.name()),
            Cell::coloured(workflow.phase(), phase_colour(workflow.phase())),
            age.into(),
            took.into(),
            Cell::new(text(&object["metadata"], "uid")),
        ];
        if args.all_namespaces {
            cells.insert(0, Cell::new(workflow.namespace()));
        }
        table.push(cells);
    }
    table
}
