//! `octoflow describe NAME`: what `get` shows, then every node with inputs, outputs and the path of its log.

use std::{collections::HashMap, fmt::Write};

use anyhow::Result;
use jiff::tz::TimeZone;
use octoflow_model::Time;
use serde_json::Value;

use super::Context;
use crate::{
    cli::Describe,
    exit::Exit,
    output::{
        Output, clock,
        colour::{Paint, icon, one_line},
        header,
        nodes::{self, Columns},
        tree,
    },
    source::workflow::{Node, Workflow, artifacts, named_values, plain, with_nodes},
};

pub(crate) fn describe(args: &Describe, context: &Context) -> Result<Exit> {
    let source = context.source()?;
    for (at, name) in args.names.iter().enumerate() {
        if at > 0 {
            context.output.line("")?;
        }
        let row = source.find(args.namespace.or_default(), name)?;
        print(&source.object(&row)?, &source.log_files(&row)?, &context.output)?;
    }
    Ok(Exit::Succeeded)
}

/// Prints a run as `describe` does, whatever its source.
pub(crate) fn print(object: &Value, logs: &HashMap<String, String>, output: &Output) -> Result<()> {
    let object = with_nodes(object);
    let log = |node: Node<'_>| logs.get(node.id()).cloned();
    let shown = text(Workflow::new(&object), clock::now(), &clock::local_zone(), output.paint(), log);
    Ok(output.text(&shown)?)
}

fn text<'a>(
    workflow: Workflow<'a>,
    now: Time,
    zone: &TimeZone,
    paint: Paint,
    log: impl Fn(Node<'a>) -> Option<String>,
) -> String {
    let mut text = header::render(workflow, now, zone, paint);
    let tree = nodes::render(workflow, Columns::Wide, true, |_| true, now, paint);
    if tree.is_empty() {
        return text;
    }
    text.push('\n');
    text.push_str(&tree);
    text.push_str("\nNodes:\n");
    let all = workflow.nodes();
    let (shapes, roots) = tree::shapes(&all, workflow.name(), |_| true);
    for line in tree::draw(&shapes, &roots) {
        if let Some(at) = line.node {
            node(&mut text, workflow, all[at], zone, now, paint, log(all[at]));
        }
    }
    text
}

fn node(
    text: &mut String,
    workflow: Workflow<'_>,
    node: Node<'_>,
    zone: &TimeZone,
    now: Time,
    paint: Paint,
    log: Option<String>,
) {
    let (icon, colour) = icon(node.phase(), node.waits_for_resume());
    let mut line = |indent: usize, words: String| {
        writeln!(text, "{:indent$}{}", "", words.trim_end()).expect("writing to memory does not fail");
    };
    line(2, format!("{} {}  ({})", paint.paint(icon, colour), one_line(node.name()), node.phase()));
    let mut field = |label: &str, value: &str| {
        if !value.is_empty() {
            line(4, format!("{:<16}{}", format!("{label}:"), one_line(value)));
        }
    };
    field("Id", node.id());
    field("Type", node.kind());
    field("Template", &node.template());
    if node.is_pod() {
        field("Pod", &workflow.pod_name(node));
    }
    for (label, name) in [("Phase", "step"), ("Retries", "retries"), ("Address", "address")] {
        field(label, &node.field(name).unwrap_or_default());
    }
    field("Message", &workflow.readable(node.message()));
    if let Some(started) = node.started() {
        field("Started", &clock::stamp(started, now, zone));
        field("Duration", &clock::long(node.finished().unwrap_or(now).since(started)));
    }
    for (label, side) in [("Input", node.inputs()), ("Output", node.outputs())] {
        for (name, value) in named_values(&side["parameters"]) {
            field(label, &format!("{name} = {value}"));
        }
        for (name, place) in artifacts(&side["artifacts"]) {
            field(label, &format!("artifact {name} {place}"));
        }
    }
    field("Result", &plain(&node.outputs()["result"]));
    field("Exit code", &plain(&node.outputs()["exitCode"]));
    field("Log", &log.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_node_is_shown_with_what_went_in_and_came_out() {
        let object = json!({"kind": "Workflow", "metadata": {"name": "w", "namespace": "default"}, "spec": {}, "status": {"phase": "Failed", "nodes": {
            "w": {"id": "w", "name": "w", "displayName": "w", "type": "Pod", "phase": "Failed", "templateName": "main",
                  "message": "main: Error (exit code 3)",
                  "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:02Z",
                  "inputs": {"parameters": [{"name": "who", "value": "me"}], "artifacts": [{"name": "in", "path": "/tmp/in"}]},
                  "outputs": {"result": "hello", "exitCode": "3"}}}}});
        let now = clock::parse("2026-01-01T00:00:10Z").unwrap();
        let shown =
            text(Workflow::new(&object), now, &TimeZone::UTC, Paint::OFF, |_| Some("/data/logs/1/0-0.log".to_owned()));
        let expected = "
Nodes:
  ✖ w  (Failed)
    Id:             w
    Type:           Pod
    Template:       main
    Pod:            w
    Message:        main: Error (exit code 3)
    Started:        Thu Jan 01 00:00:00 +0000 (10 seconds ago)
    Duration:       2 seconds
    Input:          who = me
    Input:          artifact in /tmp/in
    Result:         hello
    Exit code:      3
    Log:            /data/logs/1/0-0.log
";
        assert!(shown.ends_with(expected), "{shown}");
    }
}
