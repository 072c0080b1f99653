//! `octoflow explain NAME [NODE]`: explains why a node waits or what happened to it; `octoflow explain OF1003`:
//! explains an error code.

use anyhow::Result;
use serde_json::{Value, json};

use super::Context;
use crate::{
    cli::{Explain, Format},
    exit::{Exit, Failure},
    load::names,
    output::{
        Output, clock,
        colour::{one_line, phase_colour},
        json::objects,
        pages,
        table::{Cell, Table},
    },
    source::{
        Waiting,
        workflow::{Node, Workflow, with_nodes},
    },
};

pub(crate) fn explain(args: &Explain, context: &Context) -> Result<Exit> {
    if pages::is_code(&args.what) {
        return page(&args.what, context);
    }
    let source = context.source()?;
    let row = source.find(args.namespace.or_default(), &args.what)?;
    let object = source.object(&row)?;
    print(&object, &source.waiting(&row)?, args.node.as_deref(), args.output.as_ref(), &context.output)
}

/// Explains a run, whatever its source.
pub(crate) fn print(
    object: &Value,
    waiting: &[Waiting],
    node: Option<&str>,
    format: Option<&Format>,
    output: &Output,
) -> Result<Exit> {
    let object = with_nodes(object);
    let workflow = Workflow::new(&object);
    let found = reasons(workflow, waiting, node)?;
    if let Some(text) = format.and_then(|format| objects(format, &as_json(&found), true)) {
        output.data(&text)?;
        return Ok(Exit::Succeeded);
    }
    let message = if workflow.message().is_empty() {
        String::new()
    } else {
        format!(": {}", one_line(&workflow.readable(workflow.message())))
    };
    output.line(&format!("{} {} is {}{message}", workflow.noun(), workflow.name(), workflow.phase_in_words()))?;
    if !found.is_empty() {
        let mut table = Table::new(&["NODE", "PHASE", "WHY"]);
        for one in &found {
            table.push(vec![
                Cell::new(&one.node),
                Cell::coloured(&one.phase, phase_colour(&one.phase)),
                Cell::new(&one.why),
            ]);
        }
        output.text(&table.render(output.paint()))?;
    }
    Ok(Exit::Succeeded)
}

fn page(code: &str, context: &Context) -> Result<Exit> {
    let code = code.to_uppercase();
    let Some(text) = pages::page(&code) else {
        let failure = Failure::not_found(format!("there is no page for error code {code}"));
        return Err(match names::suggestion(&code, pages::codes()) {
            Some(help) => failure.help(help).into(),
            None => failure.into(),
        });
    };
    context.output.data(text)?;
    Ok(Exit::Succeeded)
}

#[derive(Debug, PartialEq, Eq)]
struct Reason {
    node: String,
    phase: String,
    why: String,
    wait: Value,
}

/// Waiting nodes come first, then those that did not succeed. A requested node is always reported.
fn reasons(workflow: Workflow<'_>, waiting: &[Waiting], wanted: Option<&str>) -> Result<Vec<Reason>> {
    let nodes = workflow.nodes();
    let is_meant = |names: &[&str]| wanted.is_none_or(|wanted| names.contains(&wanted));
    let mut found: Vec<Reason> = waiting
        .iter()
        .filter(|one| is_meant(&[&one.node]))
        .map(|one| Reason {
            node: one.node.clone(),
            phase: one.phase.clone(),
            why: one.why.clone(),
            wait: one.wait.clone(),
        })
        .collect();
    let told_all = workflow.dialect().is_some_and(|dialect| dialect.view.explains_all());
    let mut over: Vec<&Node<'_>> = nodes
        .iter()
        .filter(|node| {
            !matches!(node.phase(), "Pending" | "Waiting" | "Running")
                && is_meant(&[node.display(), node.name(), node.id()])
        })
        .filter(|node| wanted.is_some() || did_not_succeed(**node))
        // For some kinds `waiting` already covers every open node.
        .filter(|node| !told_all || !waiting.iter().any(|one| one.node == node.display()))
        .collect();
    over.sort_by_key(|node| (node.finished(), node.name()));
    found.extend(over.into_iter().map(|node| reason_of(workflow, *node)));
    match wanted {
        Some(wanted) if found.is_empty() => {
            let failure =
                Failure::not_found(format!("{} `{}` has no node `{wanted}`", workflow.noun(), workflow.name()));
            let known = nodes.iter().map(|node| node.display()).chain(waiting.iter().map(|one| one.node.as_str()));
            let help = names::suggestion(wanted, known);
            Err(failure
                .help(help.unwrap_or_else(|| format!("see its nodes with: octoflow get {}", workflow.name())))
                .into())
        }
        _ => Ok(found),
    }
}

fn did_not_succeed(node: Node<'_>) -> bool {
    !matches!(node.phase(), "Succeeded" | "Stopped") && node.kind() != "StepGroup"
}

fn reason_of(workflow: Workflow<'_>, node: Node<'_>) -> Reason {
    let why = match (node.message(), node.started(), node.finished()) {
        ("", Some(started), Some(finished)) if node.phase() == "Succeeded" => {
            format!("ended well after {}", clock::long(finished.since(started)))
        }
        ("", ..) => match node.phase() {
            "Omitted" => "what it depends on can no longer come true".to_owned(),
            "Skipped" => "its condition was false or its loop was empty".to_owned(),
            "Stopped" => "it was ended because it was not needed any more".to_owned(),
            "Failed" | "Error" => "something below it went wrong".to_owned(),
            _ => String::new(),
        },
        (message, ..) => workflow.readable(message),
    };
    Reason { node: node.display().to_owned(), phase: node.phase().to_owned(), why, wait: Value::Null }
}

fn as_json(reasons: &[Reason]) -> Vec<Value> {
    let told = |one: &Reason| {
        let mut told = json!({"node": one.node, "phase": one.phase, "reason": one.why});
        if !one.wait.is_null() {
            told["wait"] = one.wait.clone();
        }
        told
    };
    reasons.iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Value {
        json!({"metadata": {"name": "w"}, "status": {"nodes": {
            "w": {"id": "w", "name": "w", "displayName": "w", "type": "DAG", "phase": "Running"},
            "w-1": {"id": "w-1", "name": "w.a", "displayName": "a", "type": "Pod", "phase": "Succeeded",
                    "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:02Z"},
            "w-2": {"id": "w-2", "name": "w.b", "displayName": "b", "type": "Pod", "phase": "Failed",
                    "message": "main: Error (exit code 1)", "finishedAt": "2026-01-01T00:00:03Z"},
            "w-3": {"id": "w-3", "name": "w.c", "displayName": "c", "type": "Skipped", "phase": "Omitted",
                    "finishedAt": "2026-01-01T00:00:04Z"}}}})
    }

    #[test]
    fn what_waits_and_what_went_wrong_is_told() {
        let object = object();
        let waiting = [Waiting {
            node: "d".to_owned(),
            phase: "Pending".to_owned(),
            why: "waits for b, c".to_owned(),
            wait: Value::Null,
        }];
        let found = reasons(Workflow::new(&object), &waiting, None).unwrap();
        let lines: Vec<(&str, &str)> = found.iter().map(|one| (one.node.as_str(), one.why.as_str())).collect();
        let expected = [
            ("d", "waits for b, c"),
            ("b", "main: Error (exit code 1)"),
            ("c", "what it depends on can no longer come true"),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn one_node_is_told_of_even_when_all_went_well() {
        let object = object();
        let found = reasons(Workflow::new(&object), &[], Some("a")).unwrap();
        assert_eq!(found[0].why, "ended well after 2 seconds");
        let error = reasons(Workflow::new(&object), &[], Some("aa")).unwrap_err();
        assert_eq!(crate::exit::of(&error), Exit::NotFound);
    }
}
