//! `octoflow logs NAME [NODE]`: lines of all nodes merged by time, or the bytes of one node.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use octoflow_control::{
    lines::{Line, Source as Lines},
    read::lines::{MAIN, Stream},
};
use octoflow_engine::view::{GROUP, PodNames, RunBelow};
use octoflow_model::{AttemptId, Time};
use octoflow_runtime::logs::Logs as Files;
use octoflow_store::{Filter, RunRow};

use super::Context;
use crate::{
    cli::Logs,
    exit::{Exit, Failure},
    load::names,
    output::{
        Output, To, clock,
        colour::{Colour, Paint, one_line, stable},
        sanitize::{self, Policy, Sanitizer},
    },
    source::{
        LogQuery, Source, below,
        workflow::{Node, Workflow, with_nodes},
    },
};

/// Time between two looks for runs that were made meanwhile.
const POLL: Duration = Duration::from_millis(300);

/// Type of a node that is one container of a set.
const CONTAINER: &str = "Container";

pub(crate) fn logs(args: &Logs, context: &Context) -> Result<Exit> {
    let source = context.source()?;
    let namespace = args.namespace.or_default();
    let Some(labels) = &args.selector else {
        let row = source.find(namespace, args.name.as_deref().unwrap_or_default())?;
        if args.output.is_some() {
            return raw(args, context, &*source, &row);
        }
        if let Some(exit) = of_runs_below(args, context, &*source, &row)? {
            return Ok(exit);
        }
        print(&*source, &row, &LogOptions::of(args, None), &context.output)?;
        return Ok(Exit::Succeeded);
    };
    let labels = labels.0.clone();
    let filter = Filter { namespace: Some(namespace.to_owned()), labels, ..Filter::default() };
    let (mut rows, _) = source.list(&filter, usize::MAX)?;
    if rows.is_empty() {
        return Err(Failure::not_found("no run has these labels").help("see all with: octoflow list -A").into());
    }
    rows.reverse();
    let options = |row: &RunRow| LogOptions::of(args, (rows.len() > 1).then(|| row.name.clone()));
    if !args.follow || rows.len() == 1 {
        rows.iter().try_for_each(|row| print(&*source, row, &options(row), &context.output))?;
        return Ok(Exit::Succeeded);
    }
    // Each run is followed independently, with a source of its own.
    thread::scope(|scope| {
        let one = |row| move || print(&*context.source()?, row, &options(row), &context.output);
        let threads: Vec<_> = rows.iter().map(|row| scope.spawn(one(row))).collect();
        let ended = threads.into_iter().map(|thread| thread.join().expect("printing lines does not panic"));
        ended.collect::<Vec<_>>().into_iter().collect::<Result<Vec<()>>>()
    })?;
    Ok(Exit::Succeeded)
}

/// Prints the logs of the runs that a run has made, each with its name before the lines; `None` if it makes none. A node
/// may name one of them.
fn of_runs_below(args: &Logs, context: &Context, source: &dyn Source, row: &RunRow) -> Result<Option<Exit>> {
    if !below::may_have(row) {
        return Ok(None);
    }
    let options = LogOptions::of(args, None);
    print_runs_below(source, &|| context.source(), row, &options, &context.output)?;
    Ok(Some(Exit::Succeeded))
}

/// Prints the log of a run, or those of the runs it has made if it consists of such.
pub(crate) fn print_whole(
    source: &dyn Source,
    elsewhere: &(dyn Fn() -> Result<Box<dyn Source>> + Sync),
    row: &RunRow,
    options: &LogOptions,
    output: &Output,
) -> Result<()> {
    if below::may_have(row) {
        print_runs_below(source, elsewhere, row, options, output)
    } else {
        print(source, row, options, output)
    }
}

/// Prints the logs of the runs that a run has made, each with its name before the lines. A node may name one of them.
/// Following goes on until the run is over, with those that are made meanwhile; each is followed with a source of its own.
fn print_runs_below(
    source: &dyn Source,
    elsewhere: &(dyn Fn() -> Result<Box<dyn Source>> + Sync),
    row: &RunRow,
    all: &LogOptions,
    output: &Output,
) -> Result<()> {
    let follow = all.query.follow;
    let wanted = |one: &RunBelow| all.node.as_deref().is_none_or(|node| [&*one.label, &*one.name].contains(&node));
    let options = |one: &RunBelow| LogOptions { node: None, owner: Some(all.owned(&one.label)), ..all.clone() };
    let mut told: BTreeSet<String> = BTreeSet::new();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        loop {
            let now = source.look_up(&row.namespace, Some(&row.kind), &row.name).ok().flatten();
            let over = now.is_none_or(|now| now.archived);
            let made = below::runs(&source.object(row)?);
            for one in made.into_iter().filter(|one| wanted(one)) {
                if !told.insert(one.name.clone()) {
                    continue;
                }
                let Some(child) = source.look_up(&row.namespace, Some(one.kind), &one.name)? else { continue };
                // One that is over is printed as a whole, before those that came after it.
                if follow && !child.archived {
                    let options = options(&one);
                    threads.push(scope.spawn(move || print(&*elsewhere()?, &child, &options, output)));
                } else {
                    print(source, &child, &options(&one), output)?;
                }
            }
            if over || !follow {
                break;
            }
            thread::sleep(POLL);
        }
        threads.into_iter().try_for_each(|thread| thread.join().expect("printing lines does not panic"))
    })?;
    match all.node.as_deref().filter(|_| told.is_empty()) {
        Some(node) => {
            let made = below::runs(&source.object(row)?);
            let known = made.iter().map(|one| one.label.as_str());
            let help = names::suggestion(node, known)
                .unwrap_or_else(|| format!("see what it has made with: octoflow get {}", row.name));
            Err(Failure::not_found(format!("run `{}` has made nothing called `{node}`", row.name)).help(help).into())
        }
        None => Ok(()),
    }
}

/// Selection and format of lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogOptions {
    /// Run name before each line.
    pub owner: Option<String>,
    pub node: Option<String>,
    pub query: LogQuery,
    pub timestamps: bool,
    pub no_prefix: bool,
    /// True if standard output is used for an object.
    pub to_stderr: bool,
    /// True if control sequences may reach a terminal.
    pub raw: bool,
}

impl LogOptions {
    fn of(args: &Logs, owner: Option<String>) -> Self {
        let since = args
            .since
            .map(|span| Time(clock::now().0.saturating_sub(i64::try_from(span.as_micros()).unwrap_or(i64::MAX))));
        let query = LogQuery {
            names: Vec::new(),
            container: args.container.clone(),
            since,
            grep: args.grep.clone(),
            tail: args.tail,
            follow: args.follow,
        };
        let (node, timestamps, no_prefix) = (args.node.clone(), args.timestamps, args.no_prefix);
        Self { owner, node, query, timestamps, no_prefix, to_stderr: false, raw: args.raw }
    }

    fn owned(&self, label: &str) -> String {
        self.owner.as_ref().map_or_else(|| label.to_owned(), |owner| format!("{owner}/{label}"))
    }
}

/// Prefix of a node's lines.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    text: String,
    mark: &'static str,
}

impl Label {
    pub(crate) fn step(text: String) -> Self {
        Self { text, mark: ":" }
    }

    pub(crate) fn replica(text: String) -> Self {
        Self { text, mark: " |" }
    }
}

/// Prints the log of a run, whatever its source.
pub(crate) fn print(source: &dyn Source, row: &RunRow, options: &LogOptions, output: &Output) -> Result<()> {
    let object = source.object(row)?;
    let workflow = Workflow::new(&object);
    let node = options.node.as_deref();
    if let Some(names) = pod_names(workflow) {
        return by_pods(source, row, workflow, names, options, output);
    }
    let mut labels = match Labels::of(workflow, node) {
        // A node may not exist yet; that is no error while the run continues.
        Err(error) if options.query.follow && !row.archived && crate::exit::of(&error) == Exit::NotFound => {
            Labels::default()
        }
        labels => labels?,
    };
    let container = options.query.container.clone().or_else(|| container_named(workflow, node));
    let query = LogQuery { names: labels.names.clone(), container: container.clone(), ..options.query.clone() };
    let heard = source.lines(row, &query, &mut |id, _, line| {
        if !labels.known.contains_key(id) {
            labels = Labels::of(Workflow::new(&source.object(row)?), node).unwrap_or_default();
        }
        // Still unknown: a node that was not selected.
        let Some(label) = labels.known.entry(id.to_owned()).or_default() else { return Ok(()) };
        let label = options.owned(label);
        say(line, &Label::step(label), options, output)
    })?;
    match container.as_deref().filter(|name| *name != MAIN && !heard.contains(*name)) {
        Some(name) => Err(no_container(name, &heard)),
        None => Ok(()),
    }
}

fn say(line: &Line, label: &Label, options: &LogOptions, output: &Output) -> Result<()> {
    let to = if options.to_stderr { To::Err } else { To::Out };
    let look = LineStyle::of(output, to, options.raw);
    let bytes = rendered(line, label, !options.no_prefix, options.timestamps, look);
    output.step_output(to, &bytes).context("cannot print")
}

/// Returns the naming of pods, for kinds whose logs are by pod.
fn pod_names(workflow: Workflow<'_>) -> Option<&'static dyn PodNames> {
    workflow.dialect()?.view.pod_names()
}

/// Prints the logs of a run's pods, including those of earlier attempts.
fn by_pods(
    source: &dyn Source,
    row: &RunRow,
    run: Workflow<'_>,
    pods: &dyn PodNames,
    options: &LogOptions,
    output: &Output,
) -> Result<()> {
    let named = |wanted: &String| {
        pods.named(run.object(), wanted).map_err(|unknown| {
            let help = names::suggestion(wanted, unknown.known.iter().map(String::as_str)).unwrap_or(unknown.help);
            Failure::not_found(unknown.message).help(help)
        })
    };
    let names = options.node.iter().map(named).collect::<Result<Vec<_>, _>>()?;
    let container = options.query.container.as_deref().map(|name| pods.container(run.object(), name));
    let query = LogQuery { names, container: container.clone(), ..options.query.clone() };
    let heard = source.lines(row, &query, &mut |pod, _, line| {
        say(line, &Label::replica(options.owned(&pods.label(pod))), options, output)
    })?;
    match container.as_deref().filter(|name| *name != MAIN && !heard.contains(*name)) {
        Some(name) => Err(no_container(name, &heard)),
        None => Ok(()),
    }
}

/// Prefixes of lines by node.
#[derive(Debug, Default)]
struct Labels {
    /// By id; `None` for nodes that are not selected.
    known: HashMap<String, Option<String>>,
    /// Full names of the selected nodes; empty selects all.
    names: Vec<String>,
}

impl Labels {
    fn of(workflow: Workflow<'_>, wanted: Option<&str>) -> Result<Self> {
        let picked = pick(workflow, wanted)?;
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for node in &picked {
            *seen.entry(node.display()).or_default() += 1;
        }
        let mut known: HashMap<String, Option<String>> =
            workflow.nodes().iter().map(|node| (node.id().to_owned(), None)).collect();
        for node in &picked {
            // Nodes with the same display name are distinguished by their full names.
            let label = if seen[node.display()] == 1 { node.display() } else { node.name() };
            known.insert(node.id().to_owned(), Some(label.to_owned()));
        }
        let names = if wanted.is_some() { picked.iter().map(|node| node.name().to_owned()).collect() } else { vec![] };
        Ok(Self { known, names: if names.len() > MAX_NAMES { Vec::new() } else { names } })
    }
}

/// Beyond this many names all lines are requested and filtered here.
const MAX_NAMES: usize = 50;

/// Prints every byte of one node: standard output to standard output, standard error to standard error.
fn raw(args: &Logs, context: &Context, source: &dyn Source, row: &RunRow) -> Result<Exit> {
    let object = source.object(row)?;
    let object = with_nodes(&object);
    let workflow = Workflow::new(&object);
    let node = match args.node.as_deref() {
        // A pod of an earlier attempt no longer has a node.
        Some(name) if pod_names(workflow).is_some_and(|pods| pods.is_pod_of(workflow.object(), name)) => name,
        wanted => {
            let picked = pick(workflow, wanted)?;
            let [node] = picked.as_slice() else {
                let names: Vec<&str> = picked.iter().take(10).map(|node| node.display()).collect();
                let text = format!("-o raw prints one node, and there are {}", picked.len());
                return Err(Failure::usage(text).help(format!("name one of them: {}", names.join(", "))).into());
            };
            node.id()
        }
    };
    let wanted = args.container.clone().or_else(|| container_named(workflow, args.node.as_deref()));
    let wanted = wanted.as_deref().filter(|name| *name != MAIN);
    let mut found = false;
    let sanitizer = |to| Sanitizer::new(context.output.policy(to, args.raw));
    let (mut out, mut err) = (sanitizer(To::Out), sanitizer(To::Err));
    source.frames(row, node, args.follow, &mut |frame| {
        found |= frame.container.as_deref() == wanted;
        match frame.stream {
            Stream::Stdout | Stream::Stderr if frame.container.as_deref() != wanted => Ok(()),
            Stream::Stdout => Ok(context.output.step_output(To::Out, &out.chunk(&frame.bytes))?),
            Stream::Stderr => Ok(context.output.step_output(To::Err, &err.chunk(&frame.bytes))?),
            Stream::Note => {
                context.output.warn(String::from_utf8_lossy(&frame.bytes).trim_end());
                Ok(())
            }
        }
    })?;
    context.output.step_output(To::Out, out.finish().as_bytes())?;
    context.output.step_output(To::Err, err.finish().as_bytes())?;
    match wanted {
        Some(name) if !found => Err(no_container(name, &BTreeSet::new())),
        _ => Ok(Exit::Succeeded),
    }
}

/// Returns the selected pods: all, one, or all below a node.
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
            // A member's name does not contain its group's.
            || above.kind() == GROUP && node.boundary() == above.id()
            || node
                .name()
                .strip_prefix(above.name())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '(']))
    };
    Ok(pods().filter(|node| named.iter().any(|above| below(node, above))).collect())
}

/// Returns the container, if the named node is one.
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

/// How lines of steps are shown on a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineStyle {
    paint: Paint,
    policy: Policy,
}

impl LineStyle {
    pub(crate) fn of(output: &Output, to: To, raw: bool) -> Self {
        let paint = if to == To::Err { output.talk_paint() } else { output.paint() };
        Self { paint, policy: output.policy(to, raw) }
    }
}

/// Renders one line for people. The workload's part is sanitized by the stream's policy.
pub(crate) fn rendered(line: &Line, label: &Label, prefix: bool, timestamps: bool, look: LineStyle) -> Vec<u8> {
    let LineStyle { paint, policy } = look;
    let mut bytes = Vec::with_capacity(line.bytes.len() + label.text.len() + 40);
    if prefix {
        let container = line.container.as_deref().map(|name| format!(".{name}")).unwrap_or_default();
        let Label { text, mark } = label;
        let name = one_line(&format!("{text}{container}{mark}"));
        bytes.extend(paint.paint(&name, stable(text)).as_bytes());
        bytes.push(b' ');
    }
    if timestamps {
        let stamp = line.at.timestamp().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        bytes.extend(paint.paint(&stamp, Colour::Dim).as_bytes());
        bytes.push(b' ');
    }
    bytes.extend_from_slice(&sanitize::line(&line.bytes, policy));
    bytes.push(b'\n');
    bytes
}

/// Returns the last lines of an attempt, sanitized, for showing a failure.
pub(crate) fn tail(files: &Files, attempt: AttemptId, count: usize, policy: Policy) -> Result<Vec<String>> {
    let lines = last(Lines::open(0, files, attempt).finish()?, count);
    let shown = |line: Line| String::from_utf8_lossy(&sanitize::line(&line.bytes, policy)).into_owned();
    Ok(lines.into_iter().map(shown).collect())
}

fn last(lines: Vec<Line>, count: usize) -> VecDeque<Line> {
    let mut kept = VecDeque::from(lines);
    kept.drain(..kept.len().saturating_sub(count));
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PIPED: LineStyle = LineStyle { paint: Paint::OFF, policy: Policy::Verbatim };
    const SHOWN: LineStyle = LineStyle { paint: Paint::ON, policy: Policy::Colours };

    #[test]
    fn a_line_begins_with_its_node_and_keeps_its_bytes() {
        let line = Line {
            at: Time(1_700_000_000_123_000),
            source: 0,
            stream: Stream::Stdout,
            container: None,
            bytes: b"a\xffb".to_vec(),
        };
        assert_eq!(rendered(&line, &Label::step("step".to_owned()), true, false, PIPED), b"step: a\xffb\n");
        assert_eq!(
            rendered(&line, &Label::step("step".to_owned()), false, true, PIPED),
            b"2023-11-14T22:13:20.123Z a\xffb\n"
        );
        let line = Line { container: Some("side".into()), ..line };
        assert_eq!(rendered(&line, &Label::step("step".to_owned()), true, false, PIPED), b"step.side: a\xffb\n");
        let replica = Label::replica("worker-1".to_owned());
        assert_eq!(rendered(&line, &replica, true, false, PIPED), b"worker-1.side | a\xffb\n");
    }

    #[test]
    fn a_terminal_gets_neither_sequences_nor_names_that_control_it() {
        let bytes = b"\x1b]52;c;AAAA\x07\x1b[32mok\x1b[2J".to_vec();
        let line = Line { at: Time(0), source: 0, stream: Stream::Stdout, container: None, bytes: bytes.clone() };
        let label = Label::step("a\x1b[2J(0:\x1b]0;x\x07)\nb".to_owned());
        let shown = String::from_utf8(rendered(&line, &label, true, false, SHOWN)).unwrap();
        assert!(shown.contains("ma(0:) b:\x1b[0m \x1b[32mok\x1b[0m\n"), "{shown:?}");
        let piped = rendered(&line, &label, false, false, PIPED);
        assert_eq!(piped, [bytes.as_slice(), b"\n"].concat());
    }

    #[test]
    fn a_node_is_found_by_any_of_its_names_and_stands_for_all_below_it() {
        let object = json!({"kind": "Workflow", "metadata": {"name": "w"}, "status": {"nodes": {
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
