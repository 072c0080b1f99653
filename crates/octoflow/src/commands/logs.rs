//! `octoflow logs NAME [NODE]`: what the steps wrote, lines of all nodes merged by time, or one node byte by byte.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use octoflow_control::lines::{Line, Merged, Source};
use octoflow_model::{AttemptId, Time};
use octoflow_runtime::logs::{Frame, Logs as Files, Stream};
use octoflow_store::RunRow;
use regex::bytes::Regex;
use serde_json::Value;

use super::Context;
use crate::{
    cli::Logs,
    exit::{Exit, Failure},
    local::Local,
    names,
    output::{
        Output, clock,
        colour::{Colour, stable},
    },
    workflow::{Node, Workflow},
};

/// How often a log that is being followed is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// What a step's own container is called.
const MAIN: &str = "main";

/// The type of a node that is one container of a set.
const CONTAINER: &str = "Container";

/// A pattern may take this much memory when compiled.
const LARGEST_PATTERN: usize = 1 << 20;

pub(crate) fn logs(args: &Logs, context: &Context) -> Result<Exit> {
    let (local, row) = Local::find_in(&context.data_dir, args.namespace.or_default(), &args.name)?;
    if args.output.is_some() {
        return raw(args, context, &local, &row);
    }
    let mut printer = Printer::new(args, context.output)?;
    if args.follow {
        follow(args, &local, row, &mut printer)?
    } else {
        print(args, &local, &row, &mut printer)?
    }
    printer.container_was_there()?;
    Ok(Exit::Succeeded)
}

fn print(args: &Logs, local: &Local, row: &RunRow, printer: &mut Printer) -> Result<()> {
    let object = local.object(row)?;
    let steps = steps(args, local, row, &object)?;
    printer.know(&steps);
    printer.narrow(Workflow::new(&object), args.node.as_deref());
    let files = local.logs();
    if let Some(tail) = args.tail {
        let mut kept = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            let mut lines = Source::open(number, &files, step.attempt).finish()?;
            lines.retain(|line| printer.wants(line));
            kept.extend(last(lines.into_iter(), tail));
        }
        kept.sort_by_key(|line| line.at);
        return kept.iter().try_for_each(|line| printer.print(line));
    }
    let sources: Vec<(Time, AttemptId)> = steps.iter().map(|step| (step.began, step.attempt)).collect();
    let mut merged = Merged::new(&files, &sources);
    while let Some(line) = merged.next_line()? {
        if printer.wants(&line) {
            printer.print(&line)?;
        }
    }
    Ok(())
}

fn last(lines: impl Iterator<Item = Line>, count: usize) -> VecDeque<Line> {
    let mut kept = VecDeque::new();
    for line in lines {
        kept.push_back(line);
        if kept.len() > count {
            kept.pop_front();
        }
    }
    kept
}

/// Goes on until the run is over and everything it wrote has been seen.
fn follow(args: &Logs, local: &Local, mut row: RunRow, printer: &mut Printer) -> Result<()> {
    let files = local.logs();
    let mut sources: HashMap<AttemptId, Source> = HashMap::new();
    let mut known: Vec<Step> = Vec::new();
    let mut first = true;
    loop {
        // Asked before reading: whatever was written before the end is then seen by this look.
        let over = row.archived;
        let object = local.object(&row)?;
        // A node may not exist yet; that is no mistake while the run goes on.
        let now = match steps(args, local, &row, &object) {
            Err(error) if !over && crate::exit::of(&error) == Exit::NotFound => Vec::new(),
            other => other?,
        };
        for step in now {
            if !known.iter().any(|old| old.attempt == step.attempt) {
                sources.insert(step.attempt, Source::open(known.len(), &files, step.attempt));
                known.push(step);
            }
        }
        printer.know(&known);
        printer.narrow(Workflow::new(&object), args.node.as_deref());
        let mut lines = Vec::new();
        for source in sources.values_mut() {
            lines.extend(source.look()?);
        }
        if over {
            for (_, source) in sources.drain() {
                lines.extend(source.finish()?);
            }
        }
        lines.retain(|line| printer.wants(line));
        lines.sort_by_key(|line| line.at);
        if let Some(tail) = args.tail.filter(|_| first) {
            lines = last(lines.into_iter(), tail).into();
        }
        first = false;
        lines.iter().try_for_each(|line| printer.print(line))?;
        if over {
            return Ok(());
        }
        thread::sleep(LOOK);
        row = local.find(&row.namespace, &row.name)?;
    }
}

/// Every byte of one node: standard output there, standard error there.
fn raw(args: &Logs, context: &Context, local: &Local, row: &RunRow) -> Result<Exit> {
    let object = local.object(row)?;
    let steps = steps(args, local, row, &object)?;
    let [step] = steps.as_slice() else {
        let names: Vec<&str> = steps.iter().take(10).map(|step| step.label.as_str()).collect();
        let text = format!("-o raw prints one node, and there are {}", steps.len());
        return Err(Failure::usage(text).help(format!("name one of them: {}", names.join(", "))).into());
    };
    let files = local.logs();
    let mut reader = files.read(step.attempt);
    let narrowed = container_named(Workflow::new(&object), args.node.as_deref());
    let wanted = args.container.clone().or(narrowed);
    let wanted = wanted.as_deref().filter(|name| *name != MAIN);
    let mut found = false;
    let print = |frame: Frame| match frame.stream {
        Stream::Stdout | Stream::Stderr if frame.container.as_deref() != wanted => Ok(()),
        Stream::Stdout => context.output.bytes(&frame.bytes),
        Stream::Stderr => context.output.error_bytes(&frame.bytes),
        Stream::Note => {
            context.output.warn(String::from_utf8_lossy(&frame.bytes).trim_end());
            Ok(())
        }
    };
    loop {
        let over = !args.follow || local.find(&row.namespace, &row.name)?.archived;
        while let Some(frame) = reader.next_frame()? {
            found |= frame.container.as_deref() == wanted;
            print(frame)?;
        }
        if over {
            return match wanted {
                Some(name) if !found => Err(no_container(name, &BTreeSet::new())),
                _ => Ok(Exit::Succeeded),
            };
        }
        thread::sleep(LOOK);
    }
}

/// A node that has a log, and what its lines begin with.
#[derive(Clone, Debug)]
struct Step {
    label: String,
    attempt: AttemptId,
    began: Time,
}

fn steps(args: &Logs, local: &Local, row: &RunRow, object: &Value) -> Result<Vec<Step>> {
    let workflow = Workflow::new(object);
    let attempts = local.attempts(row)?;
    let picked = pick(workflow, args.node.as_deref())?;
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for node in &picked {
        *seen.entry(node.display()).or_default() += 1;
    }
    let mut steps: Vec<Step> = picked
        .iter()
        .filter_map(|node| {
            let attempt = *attempts.get(node.id())?;
            // Two nodes of one display name are told apart by their full names.
            let label = if seen[node.display()] == 1 { node.display() } else { node.name() };
            Some(Step { label: label.to_owned(), attempt, began: node.started().unwrap_or(Time(0)) })
        })
        .collect();
    steps.sort_by_key(|step| (step.began, step.attempt));
    Ok(steps)
}

/// The pods that are meant: all, one, or all below a node.
fn pick<'a>(workflow: Workflow<'a>, wanted: Option<&str>) -> Result<Vec<Node<'a>>> {
    let nodes = workflow.nodes();
    let pods = || nodes.iter().copied().filter(|node| node.is_pod());
    let Some(wanted) = wanted else { return Ok(pods().collect()) };
    let named: Vec<Node<'a>> = nodes
        .iter()
        .copied()
        .filter(|node| {
            [node.display(), node.name(), node.id()].contains(&wanted)
                || (node.is_pod() && workflow.pod_name(*node) == wanted)
        })
        .collect();
    if named.is_empty() {
        let text = format!("run `{}` has no node `{wanted}`", workflow.name());
        let known = nodes.iter().map(|node| node.display());
        let help = names::suggestion(wanted, known)
            .unwrap_or_else(|| format!("see its nodes with: octoflow get {}", workflow.name()));
        return Err(Failure::not_found(text).help(help).into());
    }
    let below = |node: &Node<'_>, above: &Node<'_>| {
        // A container's output is in the log of its pod.
        above.kind() == CONTAINER && above.boundary() == node.id()
            || node
                .name()
                .strip_prefix(above.name())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '(']))
    };
    Ok(pods().filter(|node| named.iter().any(|above| below(node, above))).collect())
}

/// The container that is meant when a node that is one is named.
fn container_named(workflow: Workflow<'_>, wanted: Option<&str>) -> Option<String> {
    let wanted = wanted?;
    let nodes = workflow.nodes();
    let mut named = nodes.iter().filter(|node| [node.display(), node.name(), node.id()].contains(&wanted));
    let first = named.next()?;
    (first.kind() == CONTAINER && named.all(|node| node.kind() == CONTAINER)).then(|| first.display().to_owned())
}

fn no_container(name: &str, heard: &BTreeSet<String>) -> anyhow::Error {
    let failure = Failure::not_found(format!("no container `{name}` wrote anything"));
    let others: Vec<&str> = heard.iter().map(String::as_str).collect();
    let help = match names::suggestion(name, others.iter().copied()) {
        Some(help) => help,
        None if others.is_empty() => format!("a step's own container is called `{MAIN}`"),
        None => format!("these did: {}", others.join(", ")),
    };
    failure.help(help).into()
}

/// Turns lines into what is asked for.
struct Printer {
    output: Output,
    labels: Vec<String>,
    since: Option<Time>,
    grep: Option<Regex>,
    timestamps: bool,
    prefix: bool,
    /// Only what this container wrote.
    container: Option<String>,
    /// The containers that wrote something.
    heard: BTreeSet<String>,
}

impl Printer {
    fn new(args: &Logs, output: Output) -> Result<Self> {
        let grep = args.grep.as_deref().map(|pattern| {
            regex::bytes::RegexBuilder::new(pattern)
                .size_limit(LARGEST_PATTERN)
                .build()
                .map_err(|error| Failure::usage(format!("--grep: {error}")))
        });
        let since = args
            .since
            .map(|span| Time(clock::now().0.saturating_sub(i64::try_from(span.as_micros()).unwrap_or(i64::MAX))));
        Ok(Self {
            output,
            labels: Vec::new(),
            since,
            grep: grep.transpose()?,
            timestamps: args.timestamps,
            prefix: !args.no_prefix,
            container: args.container.clone(),
            heard: BTreeSet::new(),
        })
    }

    fn know(&mut self, steps: &[Step]) {
        self.labels = steps.iter().map(|step| step.label.clone()).collect();
    }

    /// Naming a container as a node asks for its output alone.
    fn narrow(&mut self, workflow: Workflow<'_>, node: Option<&str>) {
        if self.container.is_none() {
            self.container = container_named(workflow, node);
        }
    }

    fn wants(&mut self, line: &Line) -> bool {
        let container = line.container.as_deref().unwrap_or(MAIN);
        if !self.heard.contains(container) {
            self.heard.insert(container.to_owned());
        }
        self.container.as_deref().is_none_or(|wanted| wanted == container)
            && self.since.is_none_or(|since| line.at >= since)
            && self.grep.as_ref().is_none_or(|grep| grep.is_match(&line.bytes))
    }

    /// A container that was asked for and that nobody has heard of is a mistake.
    fn container_was_there(&self) -> Result<()> {
        match self.container.as_deref().filter(|name| *name != MAIN && !self.heard.contains(*name)) {
            Some(name) => Err(no_container(name, &self.heard)),
            None => Ok(()),
        }
    }

    fn print(&self, line: &Line) -> Result<()> {
        let label = self.labels.get(line.source).map_or("", String::as_str);
        let bytes = rendered(line, label, self.prefix, self.timestamps, self.output.paint());
        self.output.bytes(&bytes).context("cannot print")
    }
}

/// One line as people read it. The bytes of the workload are left as they are.
pub(crate) fn rendered(
    line: &Line,
    label: &str,
    prefix: bool,
    timestamps: bool,
    paint: crate::output::colour::Paint,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(line.bytes.len() + label.len() + 40);
    if prefix {
        let container = line.container.as_deref().map(|name| format!(".{name}")).unwrap_or_default();
        bytes.extend(paint.paint(&format!("{label}{container}:"), stable(label)).as_bytes());
        bytes.push(b' ');
    }
    if timestamps {
        let stamp = line.at.timestamp().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        bytes.extend(paint.paint(&stamp, Colour::Dim).as_bytes());
        bytes.push(b' ');
    }
    bytes.extend(&line.bytes);
    bytes.push(b'\n');
    bytes
}

/// The last lines of an attempt, for whoever shows a failure.
pub(crate) fn tail(files: &Files, attempt: AttemptId, count: usize) -> Result<Vec<String>> {
    let lines = last(Source::open(0, files, attempt).finish()?.into_iter(), count);
    Ok(lines.into_iter().map(|line| String::from_utf8_lossy(&line.bytes).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::colour::Paint;

    #[test]
    fn a_line_begins_with_its_node_and_keeps_its_bytes() {
        let line = Line {
            at: Time(1_700_000_000_123_000),
            source: 0,
            stream: Stream::Stdout,
            container: None,
            bytes: b"a\xffb".to_vec(),
        };
        assert_eq!(rendered(&line, "step", true, false, Paint::OFF), b"step: a\xffb\n");
        assert_eq!(rendered(&line, "step", false, true, Paint::OFF), b"2023-11-14T22:13:20.123Z a\xffb\n");
        let line = Line { container: Some("side".into()), ..line };
        assert_eq!(rendered(&line, "step", true, false, Paint::OFF), b"step.side: a\xffb\n");
    }

    #[test]
    fn a_node_is_found_by_any_of_its_names_and_stands_for_all_below_it() {
        let object = json!({"metadata": {"name": "w"}, "status": {"nodes": {
            "w": {"id": "w", "name": "w", "type": "Steps"},
            "w-1": {"id": "w-1", "name": "w[0].outer", "displayName": "outer", "type": "DAG"},
            "w-2": {"id": "w-2", "name": "w[0].outer.in", "displayName": "in", "type": "Pod", "templateName": "t"},
            "w-3": {"id": "w-3", "name": "w[0].outermost", "displayName": "outermost", "type": "Pod", "templateName": "t"}}}});
        let workflow = Workflow::new(&object);
        let picked = |wanted: Option<&str>| -> Vec<&str> {
            pick(workflow, wanted).unwrap().iter().map(|node| node.id()).collect()
        };
        assert_eq!(picked(None), ["w-2", "w-3"]);
        assert_eq!(picked(Some("outer")), ["w-2"]);
        assert_eq!(picked(Some("w-3")), ["w-3"]);
        assert_eq!(picked(Some("w[0].outer.in")), ["w-2"]);
        assert_eq!(picked(Some(&workflow.pod_name(workflow.nodes()[2]))), ["w-2"]);
        let error = pick(workflow, Some("outr")).unwrap_err();
        assert_eq!(error.downcast_ref::<Failure>().unwrap().advice(), Some("did you mean `outer`?"));
    }
}
