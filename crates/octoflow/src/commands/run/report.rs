//! Final report of `run`: the result on standard output, and for failures what went wrong and where to look.

use std::collections::HashMap;

use anyhow::Result;
use octoflow_model::{AttemptId, RunId};
use octoflow_runtime::logs::Logs;
use serde_json::Value;

use super::{
    Context, LocalController,
    watch::{Watched, WatchedRun},
};
use crate::{
    cli::{Format, Run},
    commands::logs::tail,
    exit::Exit,
    output::{
        clock,
        colour::{Colour, one_line, phase_colour},
        json::objects,
        nodes::{self, Columns},
        sanitize::Policy,
    },
    source::{
        below,
        workflow::{Node, Workflow, by_id, with_nodes},
    },
};

/// Number of last log lines shown for a failed step.
const LINES: usize = 10;

/// Maximum number of failed steps shown; more are only counted.
const FAILURES: usize = 5;

/// Prints the workflows as they would be submitted, for `--dry-run`.
pub(crate) fn would_run(args: &Run, workflows: Vec<Value>, context: &Context) -> Result<Exit> {
    let format = args.output.as_ref().unwrap_or(&Format::Yaml);
    context.output.data(&objects(format, &workflows, false).unwrap_or_default())?;
    Ok(Exit::Succeeded)
}

pub(crate) fn report(
    args: &Run,
    watched: &Watched,
    finals: &[Value],
    controller: &LocalController,
    context: &Context,
) -> Result<()> {
    for (run, object) in watched.runs.iter().zip(finals) {
        if exit(std::slice::from_ref(object)) != Exit::Succeeded {
            let (object, attempts) = whole(run, object, controller, context)?;
            failures(Workflow::new(&with_nodes(&object)), &attempts, context);
        }
    }
    match &args.output {
        Some(Format::Wide) => {
            for (run, object) in watched.runs.iter().zip(finals) {
                let (object, _) = whole(run, object, controller, context)?;
                let shown = nodes::render(
                    Workflow::new(&with_nodes(&object)),
                    Columns::Wide,
                    true,
                    |_| true,
                    clock::now(),
                    context.output.paint(),
                );
                context.output.text(&shown)?;
            }
        }
        Some(format) => context.output.data(&objects(format, finals, false).unwrap_or_default())?,
        None => {
            for (run, object) in watched.runs.iter().zip(finals) {
                context.output.line(&summary(run, Workflow::new(object), context))?;
            }
        }
    }
    Ok(())
}

/// The attempts of a run whose logs are there, by node, and the name of the run that each belongs to.
type Attempts = HashMap<String, (AttemptId, String)>;

/// Returns a run with the nodes of the runs it has made, and the attempts of all of them.
fn whole(
    run: &WatchedRun,
    object: &Value,
    controller: &LocalController,
    context: &Context,
) -> Result<(Value, Attempts)> {
    let of = |name: &str, run: RunId| -> Result<Vec<(String, (AttemptId, String))>> {
        let attempts = controller.attempts(run)?.into_iter();
        Ok(attempts.map(|(node, attempt)| (node, (attempt, name.to_owned()))).collect())
    };
    let mut attempts: Attempts = of(&run.name, run.id)?.into_iter().collect();
    let Some(row) = controller.row(run.id)?.filter(below::may_have) else { return Ok((object.clone(), attempts)) };
    let (object, source) = (controller.object(run.id)?, context.directory_elsewhere()()?);
    for one in below::runs(&object) {
        let Some(child) = source.look_up(&row.namespace, Some(one.kind), &one.name)? else { continue };
        let own = of(&child.name, child.run)?.into_iter();
        attempts.extend(own.map(|(node, attempt)| (format!("{}/{node}", one.node), attempt)));
    }
    Ok((below::with_nodes_below(&*source, &row, object)?, attempts))
}

/// Returns success only if every run succeeded.
pub(crate) fn exit(finals: &[Value]) -> Exit {
    let good = finals.iter().all(|object| Workflow::new(object).succeeded());
    if good { Exit::Succeeded } else { Exit::Failed }
}

fn summary(run: &WatchedRun, workflow: Workflow<'_>, context: &Context) -> String {
    let phase = context.output.paint().paint(workflow.phase(), phase_colour(workflow.phase()));
    let message = if workflow.message().is_empty() {
        String::new()
    } else {
        format!(": {}", one_line(&workflow.readable(workflow.message())))
    };
    let progress = workflow.status()["progress"].as_str().unwrap_or_default();
    let took = match (run.followed.began, run.followed.ended) {
        (Some(began), Some(ended)) => format!(" in {}", clock::fine(ended.since(began))),
        _ => String::new(),
    };
    format!("{} {phase}{message} ({progress}{took})", workflow.name())
}

fn failures(workflow: Workflow<'_>, attempts: &Attempts, context: &Context) {
    let output = &context.output;
    let failed = failed_steps(workflow);
    let logs = Logs::new(&context.data_dir);
    // The end of a log is an excerpt, so it is sanitized for pipes as well.
    let policy = if output.talk_paint().is_on() { Policy::Colours } else { Policy::Plain };
    for node in failed.iter().take(FAILURES) {
        let icon = output.talk_paint().paint("✖", Colour::Red);
        let message = if node.message().is_empty() { node.phase() } else { node.message() };
        output.talk(&format!("\n{icon} {}: {}", one_line(node.display()), one_line(message)));
        if !node.is_pod() {
            continue;
        }
        // An unreadable log must not hide the failure itself.
        let attempt = attempts.get(node.id());
        let lines =
            attempt.map(|(attempt, _)| tail(&logs, *attempt, LINES, policy).unwrap_or_default()).unwrap_or_default();
        for line in &lines {
            output.talk(&format!("    {line}"));
        }
        let owner = attempt.map_or(workflow.name(), |(_, owner)| owner);
        let more = format!("  all of it: octoflow logs {owner} {}", quoted(node.display()));
        output.talk(&output.talk_paint().paint(&more, Colour::Dim));
    }
    if failed.len() > FAILURES {
        output.talk(&format!(
            "\nand {} more failed steps: octoflow get {} --status Failed",
            failed.len() - FAILURES,
            workflow.name()
        ));
    }
}

/// Returns the steps that made the run fail: no groups, and of a retried step only the last attempt if that failed too.
fn failed_steps<'a>(workflow: Workflow<'a>) -> Vec<Node<'a>> {
    let nodes = workflow.nodes();
    let ids = by_id(&nodes);
    let mut superseded = vec![false; nodes.len()];
    for retry in nodes.iter().filter(|node| node.kind() == "Retry") {
        let attempts: Vec<usize> = retry.children().filter_map(|child| ids.get(child).copied()).collect();
        let last = if retry.is_bad() { attempts.iter().rposition(|at| nodes[*at].is_bad()) } else { None };
        for (place, at) in attempts.iter().enumerate() {
            superseded[*at] = Some(place) != last;
        }
    }
    let is_step = |node: &Node<'_>| matches!(node.kind(), "Pod" | "Suspend" | "Skipped");
    let mut failed: Vec<Node<'a>> = nodes
        .iter()
        .enumerate()
        .filter(|(at, node)| node.is_bad() && is_step(node) && !superseded[*at])
        .map(|(_, node)| *node)
        .collect();
    failed.sort_by_key(|node| (node.finished(), node.id()));
    failed
}

fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/' | ':');
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_made_the_run_fail_is_reported() {
        let object = json!({"metadata": {"name": "w"}, "status": {"phase": "Failed", "nodes": {
            "w": {"id": "w", "type": "DAG", "phase": "Failed"},
            "good": {"id": "good", "type": "Retry", "phase": "Succeeded", "children": ["g0", "g1"]},
            "g0": {"id": "g0", "type": "Pod", "phase": "Failed"},
            "g1": {"id": "g1", "type": "Pod", "phase": "Succeeded"},
            "bad": {"id": "bad", "type": "Retry", "phase": "Failed", "children": ["b0", "b1", "hook"]},
            "b0": {"id": "b0", "type": "Pod", "phase": "Failed"},
            "b1": {"id": "b1", "type": "Pod", "phase": "Failed"},
            "hook": {"id": "hook", "type": "Pod", "phase": "Succeeded"},
            "plain": {"id": "plain", "type": "Pod", "phase": "Error"}}}});
        let ids: Vec<&str> = failed_steps(Workflow::new(&object)).iter().map(|node| node.id()).collect();
        assert_eq!(ids, ["b1", "plain"]);
        assert_eq!(exit(std::slice::from_ref(&object)), Exit::Failed);
        assert_eq!(exit(&[json!({"status": {"phase": "Succeeded"}})]), Exit::Succeeded);
    }

    #[test]
    fn names_are_quoted_for_the_shell_where_they_must_be() {
        assert_eq!(quoted("step-a"), "step-a");
        assert_eq!(quoted("fan(0:it's)"), r"'fan(0:it'\''s)'");
    }
}
