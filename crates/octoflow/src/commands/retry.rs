//! `octoflow retry NAME…`: reruns what failed, on a server. With `--dry-run` it only prints the plan, with reasons.

use anyhow::Result;
use octoflow_engine::dialect::PhaseClass;
use octoflow_store::RunRow;
use serde_json::{Value, json};

use super::{Context, observe::handed_over, steer};
use crate::{
    cli::Retry,
    client::{Address, Client},
    exit::{self, Exit, Failure},
    output::{
        json::objects,
        table::{Cell, Table},
    },
    source::{
        kind_of, kind_parameter, phases, stand_of,
        workflow::{Workflow, list, text},
    },
};

pub(crate) fn retry(args: &Retry, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let source = context.source_of_server()?;
    let mut done = Vec::new();
    let act = |row: &RunRow| -> Result<()> {
        if let Some(what) = whole(row).filter(|_| args.dry_run) {
            return said_of_whole(row, what, args, context);
        }
        done.push((row.clone(), ask(&client, row, args)?));
        Ok(())
    };
    let exit = match &args.target.selector {
        Some(labels) => {
            let failed = phases(|stand| stand == PhaseClass::Failed);
            let namespace = args.target.namespace.or_default();
            steer::selected(namespace, labels.0.clone(), failed, &*source, context, act)?
        }
        None => steer::each(&args.target, &*source, context, act)?,
    };
    if args.dry_run {
        for (row, plan) in &done {
            tell(row, plan, &source.object(row)?, args, context)?;
        }
        return Ok(exit);
    }
    let made: Vec<Value> = done.into_iter().map(|(_, object)| object).collect();
    if made.is_empty() {
        return Ok(exit);
    }
    Ok(exit.worse(handed_over(&made, "is being retried", &args.after, args.output.as_ref(), context)?))
}

/// Returns what a retry does, for kinds that are retried as a whole.
fn whole(row: &RunRow) -> Option<&'static str> {
    kind_of(row).dialect()?.reruns.whole()
}

/// Reports a dry run of a whole retry, which needs no plan.
fn said_of_whole(row: &RunRow, what: &str, args: &Retry, context: &Context) -> Result<()> {
    let noun = kind_of(row).noun;
    if args.output.is_some() {
        return Err(Failure::usage(format!("a {noun} is retried as a whole; there is no plan of it to print")).into());
    }
    if stand_of(row) != Some(PhaseClass::Failed) {
        let text = format!("{noun} `{}` is {}, so there is nothing to retry", row.name, row.phase);
        return Err(Failure::conflict(text).into());
    }
    Ok(context.output.line(&format!("{noun} {}: {what}", row.name))?)
}

/// Requests the plan of a dry run, or the retry.
fn ask(client: &Client, row: &RunRow, args: &Retry) -> Result<Value> {
    let parameters: Vec<String> = args.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let body = json!({
        "nodes": args.nodes, "from": args.from, "failed": args.failed, "parameters": parameters,
        "restartSuccessful": args.restart_successful, "nodeFieldSelector": args.node_field_selector,
        "dryRun": args.dry_run,
    });
    let place = Address::of(&["api", "octoflow", "v1", "runs", &row.namespace, &row.name, "retry"])
        .with_some("kind", kind_parameter(row));
    client.post(&place, &body).map_err(|error| {
        // Other refusals say more than that it succeeded.
        let offers = kind_of(row).dialect().is_some_and(|dialect| dialect.reruns.takes_nodes()) && !chooses(args);
        if !offers || stand_of(row) != Some(PhaseClass::Succeeded) || exit::of(&error) != Exit::Conflict {
            return error;
        }
        let text = format!("run `{}` succeeded, so nothing of it has to be done again", row.name);
        Failure::conflict(text)
            .help("name what to do again all the same: --node NODE, or --from NODE with everything after it")
            .into()
    })
}

/// Reports whether it is said what to do again although it succeeded.
fn chooses(args: &Retry) -> bool {
    !args.nodes.is_empty() || !args.from.is_empty() || args.failed || args.restart_successful
}

fn tell(row: &RunRow, plan: &Value, object: &Value, args: &Retry, context: &Context) -> Result<()> {
    if let Some(shown) = args.output.as_ref().and_then(|format| objects(format, std::slice::from_ref(plan), false)) {
        return Ok(context.output.data(&shown)?);
    }
    let again = in_order(list(&plan["rerun"]), Workflow::new(object));
    let kept = list(&plan["reuse"]).len();
    let words = if kept == 1 { "1 result stays".to_owned() } else { format!("{kept} results stay") };
    context.output.line(&format!(
        "{} {}: {} to run again, {words}",
        kind_of(row).noun,
        row.name,
        counted(again.len())
    ))?;
    if again.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["NODE", "WHY"]);
    for one in again {
        table.push(vec![Cell::new(text(one, "display")), Cell::new(text(one, "why"))]);
    }
    Ok(context.output.text(&table.render(context.output.paint()))?)
}

/// Sorts nodes by their previous end; those that never ran come last.
fn in_order<'a>(again: &'a [Value], workflow: Workflow<'_>) -> Vec<&'a Value> {
    let nodes = workflow.nodes();
    let mut sorted: Vec<&Value> = again.iter().collect();
    sorted.sort_by_key(|one| {
        let name = text(one, "node");
        let node = nodes.iter().find(|node| [node.name(), node.id()].contains(&name));
        let had_turn = node.is_some_and(|node| !matches!(node.phase(), "Omitted" | "Skipped"));
        (!had_turn, node.and_then(|node| node.finished()), name.to_owned())
    });
    sorted
}

fn counted(nodes: usize) -> String {
    if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") }
}
