//! `octoflow plan FILE…`: what would run, in which order, as far as that can be known beforehand. Nothing is run or
//! stored; the data directory is only read, for templates and for durations of earlier runs.

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::Result;
use octoflow_control::registry::{EXPECTED_START, expected_start_text};
use octoflow_engine::{
    Program,
    admit::capacity::{StaticUnit, units},
    dialect, kinds,
    plan::{PlanBounds, longest_path},
};
use serde_json::{Value, json};

use super::{
    Context, address,
    run::prepare::{Ready, prepare_with, stored_objects},
    submit::OfServer,
};
use crate::{
    cli::{Plan, PlanFormat, span},
    client::Client,
    config::node,
    exit::{Exit, Failure},
    load::{self, names, validate::ObjectSource},
    output::{json::pretty, plan as show},
    source::workflow::Workflow,
};

pub(crate) fn plan(args: &Plan, context: &Context) -> Result<Exit> {
    let overrides = args.override_args.overrides(args.namespace.namespace.as_deref());
    let file = args.override_args.parameter_file.as_deref();
    let server = context.named_server()?;
    // A server judges by its own nodes, queues and templates.
    let nodes = match &server {
        Some(_) => None,
        None => Some(vec![node::this_node(&args.node, None, context)?]),
    };
    let objects: Box<dyn ObjectSource> = match &server {
        Some(client) => Box::new(OfServer(client.clone())),
        None => stored_objects(context),
    };
    let prepared = prepare_with(&args.manifests, overrides, file, Some(objects), nodes, false, context)?;
    let Some(prepared) = prepared else { return Ok(Exit::InvalidManifest) };
    let took =
        args.durations.as_deref().map(|source| durations(source, args, context)).transpose()?.unwrap_or_default();
    let bounds = PlanBounds { items: args.lines.max(1), of_a_loop: args.rounds.max(1) };
    let mut objects = Vec::new();
    for ready in prepared.workflows {
        let known = dialect::of(&ready.manifest).map_err(|why| Failure::new(Exit::InvalidManifest, why))?;
        let title = title_of(&ready.manifest);
        let Ok(plan) = known.plan else {
            let units = units_of(&ready)?;
            if let (Err(why), true) = (known.plan, units.is_empty()) {
                return Err(Failure::usage(why).help("check it with: octoflow lint FILE").into());
            }
            let start = server.as_ref().map(|client| expected_start(client, &ready, context)).transpose()?;
            match args.output {
                PlanFormat::Pretty => {
                    context.output.text(&show::units(&title, &units))?;
                    context.output.line(&show::start(start.as_deref()))?;
                }
                PlanFormat::Json => {
                    let mut object = show::units_json(&title, &units);
                    object["expectedStart"] = json!(start.as_deref().unwrap_or("now"));
                    objects.push(object);
                }
            }
            continue;
        };
        let found = plan(&ready.manifest, &ready.stored, bounds)
            .map_err(|why| Failure::new(Exit::InvalidManifest, format!("cannot plan it: {why}")))?;
        let sum = longest_path(&found, &|template| took.get(template).copied());
        let start = server.as_ref().map(|client| expected_start(client, &ready, context)).transpose()?;
        match args.output {
            PlanFormat::Pretty => {
                context.output.text(&show::pretty(&title, &found, &sum, context.output.paint()))?;
                context.output.line(&show::start(start.as_deref()))?;
            }
            PlanFormat::Json => {
                let mut object = show::json(&title, &found, &sum);
                object["expectedStart"] = json!(start.as_deref().unwrap_or("now"));
                objects.push(object);
            }
        }
    }
    if args.output == PlanFormat::Json {
        let value = if objects.len() == 1 { objects.remove(0) } else { Value::Array(objects) };
        context.output.data(&pretty(&value))?;
    }
    Ok(Exit::Succeeded)
}

fn title_of(manifest: &Value) -> String {
    match Workflow::new(manifest).name() {
        "" => manifest["metadata"]["generateName"].as_str().unwrap_or_default().to_owned(),
        name => name.to_owned(),
    }
}

/// Returns what starts at once of a run that has no tree of steps.
fn units_of(ready: &Ready) -> Result<Vec<StaticUnit>> {
    let program = Program::compile(&ready.manifest, &ready.stored)
        .map_err(|why| Failure::new(Exit::InvalidManifest, format!("cannot plan it: {why}")))?;
    Ok(units(&program, &ready.manifest, None))
}

/// Asks a server when the workflow could start; one that could never is refused.
fn expected_start(client: &Client, ready: &Ready, context: &Context) -> Result<String> {
    let kind =
        kinds::of_manifest(&ready.manifest).map_err(|problem| Failure::new(Exit::InvalidManifest, problem.message))?;
    let address = address(kind, Some(&ready.namespace), None).with("dryRun", "All");
    let (made, mut warnings) = client.create_with_warnings(&address, &ready.manifest, &names::key()?)?;
    let start = made["metadata"]["annotations"][EXPECTED_START].as_str().unwrap_or("unknown").to_owned();
    // The start is part of the plan.
    let said = expected_start_text(&start);
    warnings.retain(|text| *text != said);
    ready.report_warnings(warnings, context);
    Ok(start)
}

/// Returns task durations by template: from a file, or the average of an earlier run.
fn durations(source: &str, args: &Plan, context: &Context) -> Result<BTreeMap<String, Duration>> {
    if Path::new(source).is_file() {
        let Ok(listed) = load::parameters(Path::new(source))? else {
            return Err(Failure::usage(format!("`{source}` is no list of durations"))
                .help("write one `template: 90s` a line")
                .into());
        };
        let read = |(name, text): (String, String)| match span::parse(&text) {
            Ok(span) => Ok((name, span)),
            Err(why) => Err(Failure::usage(format!("{source}: {name}: {why}")).into()),
        };
        return listed.into_iter().map(read).collect();
    }
    let runs = context.source()?;
    let object = runs.object(&runs.find(args.namespace.or_default(), source)?)?;
    let mut sums: BTreeMap<String, (Duration, u32)> = BTreeMap::new();
    for node in Workflow::new(&object).nodes().into_iter().filter(|node| node.kind() == "Pod") {
        if let (Some(began), Some(ended)) = (node.started(), node.finished()) {
            let sum = sums.entry(node.template_short().to_owned()).or_default();
            *sum = (sum.0 + ended.since(began), sum.1 + 1);
        }
    }
    Ok(sums.into_iter().map(|(template, (sum, count))| (template, sum / count)).collect())
}
