//! Jobs: submitting, listing and steering them, and what is known of them.

use std::path::Path;

use anyhow::Result;
use octoflow_manifest::to_yaml;
use serde_json::{Value, json};

use super::{payload, place, printed, read_all, trial};
use crate::{
    cli::{JobCommand, JobDetail, JobFile, JobList, JobOrder, JobSubmit, JobTrace},
    commands::Context,
    exit::{Exit, Failure},
    load::names,
    output::table::{Cell, Table},
    source::workflow::{list as items, text},
};

pub(crate) fn job(command: &JobCommand, context: &Context) -> Result<Exit> {
    match command {
        JobCommand::Submit(args) => submit(args, context),
        JobCommand::List(args) => list(args, context),
        JobCommand::Detail(args) => detail(args, context),
        JobCommand::Stop(args) => steer("stop", &args.id, args.reason.as_deref(), false, "stopped", context),
        JobCommand::Resume(args) => steer("resume", &args.id, args.reason.as_deref(), args.recheck, "resumed", context),
        JobCommand::Trace(args) => trace(args, context),
    }
}

/// Reads a submission: the file may be one, or the job alone.
pub(super) fn submission(args: &JobFile) -> Result<Value> {
    let mut read = read_all(std::slice::from_ref(&args.file))?;
    if read.len() != 1 {
        let text = format!("`{}` holds {} documents; a submission is one", args.file.display(), read.len());
        return Err(Failure::new(Exit::InvalidManifest, text).into());
    }
    let given = read.remove(0);
    let whole = given["job"].is_object();
    let mut submission = if whole { given } else { json!({"job": given}) };
    let job = submission["job"].clone();
    let mut default = |field: &str, chosen: Option<&str>, otherwise: &str| {
        if let Some(chosen) = chosen {
            submission[field] = json!(chosen);
        } else if submission[field].is_null() && !otherwise.is_empty() {
            submission[field] = json!(otherwise);
        }
    };
    let user = std::env::var("USER").unwrap_or_default();
    default("userID", args.user.as_deref(), &user);
    default("jobName", args.name.as_deref(), name_of(&job, &args.file));
    default("jobKind", None, text(&job, "kind"));
    default("cluster", args.cluster.as_deref(), "");
    default("jobNameSpace", args.namespace.namespace.as_deref(), text(&job["metadata"], "namespace"));
    for (name, value) in &args.header {
        submission["header"][name] = json!(value);
    }
    Ok(submission)
}

fn name_of<'a>(job: &'a Value, file: &'a Path) -> &'a str {
    match text(&job["metadata"], "name") {
        "" => file.file_stem().and_then(|stem| stem.to_str()).filter(|stem| *stem != "-").unwrap_or("job"),
        name => name,
    }
}

fn submit(args: &JobSubmit, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let submission = submission(&args.job)?;
    if args.dry_run {
        let plan = payload(client.post(&place(&["job"]).with("dryRun", true), &submission)?)?;
        trial::show(&plan, context)?;
        return Ok(trial::verdict(&plan));
    }
    let made = payload(client.create(&place(&["job"]), &submission, &names::key()?)?)?;
    context.output.line(text(&made, "jobID"))?;
    Ok(Exit::Succeeded)
}

fn list(args: &JobList, context: &Context) -> Result<Exit> {
    let (client, output) = (context.client()?, &context.output);
    let joined = |words: Vec<&str>| Some(words.join(",")).filter(|text| !text.is_empty());
    let filtered = |address: crate::client::Address| {
        address
            .with_some("userID", joined(args.user.iter().map(String::as_str).collect()))
            .with_some("state", joined(args.state.iter().map(|state| state.word()).collect()))
            .with_some("kind", args.kind.as_ref())
            .with_some("name", args.name.as_ref())
            .with_some("cluster", args.cluster.as_ref())
    };
    let order = match args.order {
        JobOrder::Asc => "asc",
        JobOrder::Desc => "desc",
    };
    let page = filtered(place(&["job", "list"]).with("pageNumber", args.page).with("pageSize", &args.page_size));
    let found = payload(client.get(&page.with("order", order))?)?;
    if printed(output, args.output.as_ref(), &found)? {
        return Ok(Exit::Succeeded);
    }
    let total = payload(client.get(&filtered(place(&["job", "count"])))?)?["count"].as_u64().unwrap_or_default();
    if items(&found).is_empty() {
        output.line(if total == 0 { "No jobs found" } else { "There is no such page" })?;
        return Ok(Exit::Succeeded);
    }
    let mut table = Table::new(&["ID", "NAME", "KIND", "USER", "STATE", "NAMESPACE", "CREATED", "FINISHED"]);
    for job in items(&found) {
        let fields = ["jobID", "jobName", "jobKind", "userID", "state", "namespace", "createdAt", "finishedAt"];
        table.push(fields.iter().map(|field| Cell::new(text(job, field))).collect());
    }
    output.text(&table.render(output.paint()))?;
    output.talk(&format!("page {} of {total} jobs", args.page));
    Ok(Exit::Succeeded)
}

fn detail(args: &JobDetail, context: &Context) -> Result<Exit> {
    let found = payload(context.client()?.get(&place(&["job", "detail", &args.id]))?)?;
    if !printed(&context.output, args.output.as_ref(), &found)? {
        context.output.text(&to_yaml(&found))?;
    }
    Ok(Exit::Succeeded)
}

fn steer(verb: &str, id: &str, reason: Option<&str>, recheck: bool, done: &str, context: &Context) -> Result<Exit> {
    let address = place(&["job", verb, id]).with_some("recheck", recheck.then_some(true));
    let body = json!({"jobID": id, "reason": reason.unwrap_or_default()});
    payload(context.client()?.put(&address, &body)?)?;
    context.output.line(&format!("job '{id}' {done}"))?;
    Ok(Exit::Succeeded)
}

pub(super) fn trace(args: &JobTrace, context: &Context) -> Result<Exit> {
    let output = &context.output;
    let found = payload(context.client()?.get(&place(&["job", "trace", &args.id]))?)?;
    if printed(output, args.output.as_ref(), &found)? {
        return Ok(Exit::Succeeded);
    }
    output.text(&calls(&found).render(output.paint()))?;
    let state = [text(&found, "state"), text(&found, "stage"), text(&found, "message")];
    output.line(&state.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(": "))?;
    Ok(Exit::Succeeded)
}

/// Lists what each plugin was asked and what came of it.
pub(super) fn calls(found: &Value) -> Table {
    let mut table = Table::new(&["STAGE", "PLUGIN", "TRIES", "STARTED", "FINISHED", "OUTCOME"]);
    for call in items(&found["trace"]) {
        table.push(vec![
            Cell::new(text(call, "stage")),
            Cell::new(text(call, "plugin")),
            Cell::new(call["tries"].to_string()),
            Cell::new(text(call, "startedAt")),
            Cell::new(text(call, "finishedAt")),
            Cell::new(outcome(&call["outcome"])),
        ]);
    }
    table
}

/// What came of a call, in one line.
fn outcome(outcome: &Value) -> String {
    match outcome {
        Value::Null => "under way".to_owned(),
        outcome if outcome["error"].is_string() => format!("failed: {}", text(outcome, "error")),
        outcome if outcome["decision"].is_string() => match text(outcome, "reason") {
            "" => text(outcome, "decision").to_owned(),
            reason => format!("{}: {reason}", text(outcome, "decision")),
        },
        outcome if outcome["factors"].is_array() => {
            let told = items(&outcome["factors"]).iter();
            let told: Vec<String> = told.map(|one| format!("{}={}", text(one, "topic"), text(one, "advice"))).collect();
            if told.is_empty() { "nothing to say".to_owned() } else { told.join(" ") }
        }
        outcome if !outcome["job"].is_null() => format!("translated to {}", text(&outcome["job"], "kind")),
        outcome => match outcome["change"].as_array() {
            Some(changes) if changes.is_empty() => "no change".to_owned(),
            _ => format!("changed {}", outcome["change"]),
        },
    }
}
