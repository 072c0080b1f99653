//! `octoflow template|cluster-template|cron …`: creates, reads, changes and deletes stored objects of a server. All
//! kinds share the code; `columns` defines what lists show.

mod columns;

use anyhow::Result;
use octoflow_engine::kinds::{self, Kind};
use octoflow_manifest::{Problems, Severity};
use serde_json::{Value, json};

use super::{Context, submit::OfServer};
use crate::{
    cli::{Format, StoredCommand, StoredDelete, StoredFiles, StoredList, StoredNames},
    client::{Address, Client, selector},
    exit::{self, Exit, Failure},
    load::{
        self, Loaded, adjust,
        validate::{FileCatalog, validate},
    },
    output::json::objects,
    source::workflow::{list, text},
};

pub(crate) fn stored(command: &StoredCommand, kind: &'static Kind, context: &Context) -> Result<Exit> {
    match command {
        StoredCommand::Create(args) => files(args, kind, Verb::Create, context),
        StoredCommand::Update(args) => files(args, kind, Verb::Update, context),
        StoredCommand::Lint(args) => files(args, kind, Verb::Lint, context),
        StoredCommand::Get(args) => get(args, kind, context),
        StoredCommand::List(args) => list_all(args, kind, context),
        StoredCommand::Delete(args) => delete(args, kind, context),
    }
}

/// Returns the address of a kind in the Kubernetes-style API: all objects, those of a namespace, or one.
pub(crate) fn address(kind: &'static Kind, namespace: Option<&str>, name: Option<&str>) -> Address {
    let mut parts: Vec<&str> =
        if kind.group.is_empty() { vec!["api", kind.version] } else { vec!["apis", kind.group, kind.version] };
    if let Some(namespace) = namespace.filter(|_| kind.namespaced) {
        parts.extend(["namespaces", namespace]);
    }
    parts.push(kind.plural);
    parts.extend(name);
    Address::of(&parts)
}

/// Creates the object, or replaces the existing one.
pub(crate) fn put(client: &Client, object: &Value, dry_run: bool) -> Result<Value> {
    match send(client, object, Verb::Create, dry_run) {
        Err(error) if exit::of(&error) == Exit::Conflict => send(client, object, Verb::Update, dry_run),
        done => done,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Update,
    Lint,
}

fn send(client: &Client, object: &Value, verb: Verb, dry_run: bool) -> Result<Value> {
    let kind = kinds::of_manifest(object).map_err(|problem| Failure::new(Exit::InvalidManifest, problem.message))?;
    let name = text(&object["metadata"], "name");
    let namespace = Some(adjust::namespace(object));
    let dry = |address: Address| if dry_run { address.with("dryRun", "All") } else { address };
    match verb {
        Verb::Create | Verb::Lint => client.post(&dry(address(kind, namespace, None)), object),
        Verb::Update => client.put(&dry(address(kind, namespace, Some(name))), object),
    }
}

pub(super) fn files(args: &StoredFiles, kind: &'static Kind, verb: Verb, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let loaded = match load::load(&args.manifests)? {
        Ok(loaded) => loaded,
        Err(problems) => return Ok(refuse(&problems, context)),
    };
    let (mut ours, others): (Vec<Loaded>, Vec<Loaded>) = loaded.into_iter().partition(|one| one.known() == Some(kind));
    for other in &others {
        context.output.warn(&format!("{}: a {} is no {}, it is left alone", other.place(), other.kind(), kind.name));
    }
    if ours.is_empty() {
        let text = format!("there is no {} in what was given", kind.name);
        return Err(Failure::new(Exit::InvalidManifest, text).into());
    }
    if kind.namespaced {
        ours.iter_mut().for_each(|one| adjust::adjust_namespace(&mut one.value, args.namespace.namespace.as_deref()));
    }
    let catalog = FileCatalog::new(ours.iter().map(|one| &one.value), Some(Box::new(OfServer(client.clone()))));
    let problems = Problems(ours.iter().flat_map(|one| validate(one, &catalog).0).collect());
    if problems.has_errors() {
        return Ok(refuse(&problems, context));
    }
    for warning in problems.iter().filter(|problem| problem.severity == Severity::Warning) {
        context.output.talk(warning.render(context.output.talk_paint().is_on()).trim_end());
    }
    if verb == Verb::Lint {
        context.output.line("no linting errors found!")?;
        return Ok(Exit::Succeeded);
    }
    let mut made = Vec::new();
    for one in &ours {
        let done = send(&client, &one.value, verb, false)?;
        if args.output.is_none() {
            let word = if verb == Verb::Create { "created" } else { "updated" };
            context.output.line(&format!("{} '{}' {word}", kind.name, text(&done["metadata"], "name")))?;
        }
        made.push(done);
    }
    if let Some(format) = &args.output {
        context.output.data(&objects(format, &made, false).unwrap_or_default())?;
    }
    Ok(Exit::Succeeded)
}

fn refuse(problems: &Problems, context: &Context) -> Exit {
    context.output.talk(problems.render(context.output.talk_paint().is_on()).trim_end());
    let count = problems.len();
    context
        .output
        .talk(&format!("\n{count} {} found; nothing was sent", if count == 1 { "problem" } else { "problems" }));
    Exit::InvalidManifest
}

pub(super) fn get(args: &StoredNames, kind: &'static Kind, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let one = |name: &String| find(&client, kind, args.namespace.or_default(), name);
    let found: Vec<Value> = args.names.iter().map(one).collect::<Result<_>>()?;
    match &args.output {
        Some(format) => context.output.data(&objects(format, &found, false).unwrap_or_default())?,
        None => context.output.text(&columns::described(kind.name, &found))?,
    }
    Ok(Exit::Succeeded)
}

/// Finds the object; the error suggests a similar name.
pub(super) fn find(client: &Client, kind: &'static Kind, namespace: &str, name: &str) -> Result<Value> {
    if let Some(found) = client.find(&address(kind, Some(namespace), Some(name)))? {
        return Ok(found);
    }
    let all = client.get(&address(kind, Some(namespace), None)).unwrap_or_default();
    let known = list(&all["items"]).iter().map(|object| text(&object["metadata"], "name"));
    let failure = Failure::not_found(format!("there is no {} `{name}`", kind.name));
    Err(match load::names::suggestion(name, known) {
        Some(help) => failure.help(help).into(),
        None => failure.into(),
    })
}

pub(super) fn list_all(args: &StoredList, kind: &'static Kind, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let namespace = if args.all_namespaces { None } else { Some(args.namespace.or_default()) };
    let labels = args.selector.as_ref().map(|labels| selector(&labels.0));
    let answer = client.get(&address(kind, namespace, None).with_some("labelSelector", labels))?;
    let found = dressed(kind, list(&answer["items"]));
    match &args.output {
        Some(format @ (Format::Json | Format::Yaml | Format::Name | Format::JsonPath(_))) => {
            context.output.data(&objects(format, &found, true).unwrap_or_default())?;
        }
        _ if found.is_empty() => context.output.line(&format!("No {} found", columns::plural(kind.name)))?,
        _ => {
            let table = columns::table(kind.name, &found, args.all_namespaces, args.no_headers);
            context.output.text(&table.render(context.output.paint()))?;
        }
    }
    Ok(Exit::Succeeded)
}

/// Adds kind and version to list items, which the API leaves out.
fn dressed(kind: &Kind, items: &[Value]) -> Vec<Value> {
    let mut items = items.to_vec();
    for item in &mut items {
        item["apiVersion"] = json!(kind.api_version());
        item["kind"] = json!(kind.name);
    }
    items
}

pub(super) fn delete(args: &StoredDelete, kind: &'static Kind, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let namespace = args.namespace.or_default();
    let mut names = args.names.clone();
    if names.is_empty() {
        let labels = args.selector.as_ref().map(|labels| selector(&labels.0));
        let answer = client.get(&address(kind, Some(namespace), None).with_some("labelSelector", labels))?;
        names = list(&answer["items"]).iter().map(|object| text(&object["metadata"], "name").to_owned()).collect();
        if names.is_empty() {
            context.output.line(&format!("No {} found", columns::plural(kind.name)))?;
        }
    }
    let mut exit = Exit::Succeeded;
    for name in &names {
        match client.delete(&address(kind, Some(namespace), Some(name))) {
            Ok(_) => context.output.line(&format!("{} '{name}' deleted", kind.name))?,
            Err(error) if exit::of(&error) == Exit::NotFound => {
                context.output.error(&Failure::not_found(format!("there is no {} `{name}`", kind.name)).into());
                exit = exit.worse(Exit::NotFound);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(exit)
}
