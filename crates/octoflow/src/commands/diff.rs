//! `octoflow diff RUN1 RUN2`: differences in inputs, results and durations. Durations are shown, but do not count as a
//! difference.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use serde_json::{Value, json};

use super::Context;
use crate::{
    cli::Diff,
    exit::Exit,
    output::{
        clock,
        colour::one_line,
        json::objects,
        table::{Cell, Table},
    },
    source::{
        ExportFile, Source,
        workflow::{Node, Workflow, named_values, plain, with_nodes},
    },
};

/// Longer texts are cut in the table; `-o json` has them whole.
const MAX_WIDTH: usize = 60;

pub(crate) fn diff(args: &Diff, context: &Context) -> Result<Exit> {
    let (one, other) = (look(&args.one, args, context)?, look(&args.other, args, context)?);
    let (one, other) = (with_nodes(&one), with_nodes(&other));
    let found = differences(Workflow::new(&one), Workflow::new(&other));
    let differs = found.iter().any(|one| one.counts());
    let exit = if differs { Exit::Failed } else { Exit::Succeeded };
    if let Some(format) = &args.output {
        let told: Vec<Value> = found
            .iter()
            .map(|it| json!({"kind": it.kind, "what": it.what, "one": it.one, "other": it.other}))
            .collect();
        context.output.data(&objects(format, &told, true).unwrap_or_default())?;
        return Ok(exit);
    }
    if !differs {
        context.output.line("the runs do not differ")?;
    }
    if !found.is_empty() {
        let names = [Workflow::new(&one).name().to_owned(), Workflow::new(&other).name().to_owned()];
        let mut table = Table::new(&["KIND", "WHAT", &names[0], &names[1]]);
        for it in &found {
            table.push(vec![
                Cell::new(it.kind),
                Cell::new(&it.what),
                cell(it.one.as_deref()),
                cell(it.other.as_deref()),
            ]);
        }
        context.output.text(&table.render(context.output.paint()))?;
    }
    Ok(exit)
}

/// Reads a run by name, or from an export file.
fn look(name: &str, args: &Diff, context: &Context) -> Result<Value> {
    if Path::new(name).is_file() {
        let file = ExportFile::read(Path::new(name))?;
        return file.object(file.row());
    }
    let source = context.source()?;
    source.object(&source.find(args.namespace.or_default(), name)?)
}

fn cell(value: Option<&str>) -> Cell {
    let Some(value) = value else { return Cell::new("-") };
    let line = one_line(value);
    if line.chars().count() <= MAX_WIDTH {
        return Cell::new(line);
    }
    Cell::new(format!("{}…", line.chars().take(MAX_WIDTH - 1).collect::<String>()))
}

#[derive(Debug, PartialEq, Eq)]
struct Difference {
    kind: &'static str,
    what: String,
    one: Option<String>,
    other: Option<String>,
}

impl Difference {
    fn counts(&self) -> bool {
        self.kind != "duration"
    }
}

fn differences(one: Workflow<'_>, other: Workflow<'_>) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut compare = |kind: &'static str, one: BTreeMap<String, String>, other: BTreeMap<String, String>| {
        let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            if one.get(name) != other.get(name) {
                let (one, other) = (one.get(name).cloned(), other.get(name).cloned());
                found.push(Difference { kind, what: name.clone(), one, other });
            }
        }
    };
    let named = |pairs: Vec<(&str, String)>| -> BTreeMap<String, String> {
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    };
    compare("spec", leaves(one.spec()), leaves(other.spec()));
    compare("parameter", named(one.parameters()), named(other.parameters()));
    let ending = |run: Workflow<'_>| BTreeMap::from([("workflow".to_owned(), run.phase().to_owned())]);
    compare("phase", ending(one), ending(other));
    compare(
        "phase",
        of_nodes(one, |node| Some(node.phase().to_owned())),
        of_nodes(other, |node| Some(node.phase().to_owned())),
    );
    compare("output", outputs(one), outputs(other));
    compare("duration", of_nodes(one, took), of_nodes(other, took));
    found
}

/// Returns every field of a spec by path, except its arguments, which are compared by name.
fn leaves(spec: &Value) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut open = vec![(String::new(), spec)];
    while let Some((path, value)) = open.pop() {
        let joined = |part: &str| if path.is_empty() { part.to_owned() } else { format!("{path}.{part}") };
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                let fields = fields.iter().filter(|(key, _)| !(path.is_empty() && *key == "arguments"));
                open.extend(fields.map(|(key, value)| (joined(key), value)));
            }
            Value::Array(items) if !items.is_empty() => {
                open.extend(items.iter().enumerate().map(|(at, item)| (format!("{path}[{at}]"), item)));
            }
            Value::Null => {}
            other => drop(all.insert(path, plain(other))),
        }
    }
    all
}

/// Maps nodes by a name without the run's, which always differs.
fn of_nodes(run: Workflow<'_>, tell: impl Fn(Node<'_>) -> Option<String>) -> BTreeMap<String, String> {
    let nodes = run.nodes().into_iter().filter(|node| node.kind() != "StepGroup");
    nodes.filter_map(|node| Some((short(run, node), tell(node)?))).collect()
}

fn short(run: Workflow<'_>, node: Node<'_>) -> String {
    if node.id() == run.name() {
        return "(entrypoint)".to_owned();
    }
    // Only nodes of workflows have names that are paths below the run's.
    match node.name().strip_prefix(run.name()) {
        Some(path) if path.starts_with(['.', '[', '(']) => path.trim_start_matches('.').to_owned(),
        _ => node.display().to_owned(),
    }
}

fn took(node: Node<'_>) -> Option<String> {
    if !node.is_pod() {
        return None;
    }
    Some(clock::short(node.finished()?.since(node.started()?)))
}

fn outputs(run: Workflow<'_>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (name, value) in run.output_parameters() {
        all.insert(format!("workflow {name}"), value);
    }
    for node in run.nodes() {
        let name = short(run, node);
        for (parameter, value) in named_values(&node.outputs()["parameters"]) {
            all.insert(format!("{name} {parameter}"), value);
        }
        for field in ["result", "exitCode"] {
            if let Some(value) = node.outputs().get(field) {
                all.insert(format!("{name} {field}"), plain(value));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, image: &str, value: &str, phase: &str, second: u32) -> Value {
        json!({"metadata": {"name": name}, "spec": {"templates": [{"name": "main", "container": {"image": image}}],
                "arguments": {"parameters": [{"name": "p", "value": value}]}},
               "status": {"phase": phase, "nodes": {
                   name: {"id": name, "name": name, "type": "Pod", "phase": phase, "startedAt": "2026-01-01T00:00:00Z",
                          "finishedAt": format!("2026-01-01T00:00:{second:02}Z"), "outputs": {"result": value}}}}})
    }

    #[test]
    fn only_what_differs_is_told() {
        let (one, other) = (run("a", "x", "1", "Succeeded", 2), run("b", "y", "2", "Failed", 4));
        let found = differences(Workflow::new(&one), Workflow::new(&other));
        let told: Vec<(&str, &str)> = found.iter().map(|one| (one.kind, one.what.as_str())).collect();
        let expected = [
            ("spec", "templates[0].container.image"),
            ("parameter", "p"),
            ("phase", "workflow"),
            ("phase", "(entrypoint)"),
            ("output", "(entrypoint) result"),
            ("duration", "(entrypoint)"),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn nodes_that_are_not_named_by_their_run_have_the_names_people_know() {
        let flow = |name: &str, stage: &str| {
            let job = |entry: &str| format!("{name}-{entry}");
            json!({"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": name}, "status": {
                "state": {"phase": "Failed"}, "entries": [{"name": "bad", "job": job("bad"), "stage": stage}]}})
        };
        let (one, other) = (flow("nf", "Failed"), flow("nf2", "Completed"));
        let (one, other) = (with_nodes(&one), with_nodes(&other));
        let found = differences(Workflow::new(&one), Workflow::new(&other));
        assert_eq!(found.iter().map(|one| one.what.as_str()).collect::<Vec<_>>(), ["bad"], "{found:?}");
    }

    #[test]
    fn time_alone_makes_no_difference() {
        let (one, other) = (run("a", "x", "1", "Succeeded", 2), run("b", "x", "1", "Succeeded", 4));
        let found = differences(Workflow::new(&one), Workflow::new(&other));
        assert_eq!(found.len(), 1);
        assert!(!found[0].counts());
    }
}
