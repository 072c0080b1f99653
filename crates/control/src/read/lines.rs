//! Log lines of a run's tasks in order of time, also while they are being written. The run says which nodes have logs;
//! formatting belongs to the caller.

use std::{
    collections::{BTreeSet, HashMap},
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

use octoflow_engine::dialect;
pub use octoflow_engine::view::MAIN;
use octoflow_model::{AttemptId, RunId, Time};
pub use octoflow_runtime::logs::{Frame, Logs, Stream};
use octoflow_store::Reader;
use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;

pub use crate::lines::Line;
use crate::{
    Error,
    lines::{LogSource, MergedLog},
};

/// Memory limit of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Rendering a growing run may take one part in this many of the time.
const READ_TIME_SHARE: u32 = 10;

/// Selection of nodes and lines.
#[derive(Clone, Debug, Default)]
pub struct LineQuery {
    /// Nodes of these names and their descendants; of a TaskSet roles, replicas or pods. Empty selects all.
    pub names: Vec<String>,
    /// Only the last lines of each node, at most this many.
    pub tail: Option<usize>,
    /// Continue until the run is over.
    pub follow: bool,
}

/// Receiver of log lines.
pub trait LineSink {
    /// Returns whether the line matches; others do not count towards the tail.
    fn matches(&mut self, line: &Line) -> bool;
    /// Receives a line of a node, by id, with its number from 0: the same line has the same number however often a log
    /// is read.
    fn line(&mut self, node: &str, number: u64, line: &Line) -> ControlFlow<()>;
    /// Called when there is nothing new. Waits, or breaks off.
    fn idle(&mut self) -> ControlFlow<()>;
}

/// Filter for lines. Also collects the containers seen.
#[derive(Debug, Default)]
pub struct LineFilter {
    pub container: Option<String>,
    /// Only lines written at this time or later.
    pub since: Option<Time>,
    grep: Option<Regex>,
    containers_seen: BTreeSet<String>,
}

impl LineFilter {
    /// Compiles the filter; the error says what is wrong with the pattern.
    pub fn new(container: Option<String>, since: Option<Time>, grep: Option<&str>) -> Result<Self, String> {
        let compiled = grep.map(|pattern| RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build());
        let grep = compiled.transpose().map_err(|error| error.to_string())?;
        Ok(Self { container, since, grep, containers_seen: BTreeSet::new() })
    }

    pub fn matches(&mut self, line: &Line) -> bool {
        let container = line.container.as_deref().unwrap_or(MAIN);
        if !self.containers_seen.contains(container) {
            self.containers_seen.insert(container.to_owned());
        }
        self.container.as_deref().is_none_or(|query| query == container) && self.passes(line)
    }

    /// Checks everything but the container.
    pub(crate) fn passes(&self, line: &Line) -> bool {
        self.since.is_none_or(|since| line.at >= since)
            && self.grep.as_ref().is_none_or(|grep| grep.is_match(&line.bytes))
    }

    /// Returns the containers that wrote anything, matching or not.
    pub fn containers_seen(&self) -> &BTreeSet<String> {
        &self.containers_seen
    }
}

pub fn lines(
    reader: &Reader,
    logs: &Logs,
    run: RunId,
    query: &LineQuery,
    sink: &mut dyn LineSink,
) -> Result<(), Error> {
    // The expected sizes set here must not affect other readers.
    let logs = logs.without_expected_sizes();
    let mut merged = MergedLog::new(logs.clone(), query.tail);
    let mut ids: HashMap<AttemptId, String> = HashMap::new();
    let mut order: Vec<AttemptId> = Vec::new();
    let mut found: Vec<LogSource> = Vec::new();
    let mut seen = None;
    let mut next_look = Instant::now();
    loop {
        // Checked before reading, so that everything written before the end is read in this pass.
        let settled = !query.follow || is_over(reader, run)?;
        let revision = reader.run_revision(run)?;
        if settled || (revision != seen && Instant::now() >= next_look) {
            let begin = Instant::now();
            found.clear();
            logs.expect(&Arc::new(super::log_sizes(reader, run)?));
            for (id, one) in steps(reader, run, query)? {
                if ids.insert(one.attempt, id).is_none() {
                    order.push(one.attempt);
                }
                found.push(one);
            }
            seen = revision;
            next_look = begin + begin.elapsed() * READ_TIME_SHARE;
        }
        merged.add(&found, settled, &mut |line| sink.matches(line))?;
        while let Some((number, line)) = merged.next_line(&mut |line| sink.matches(line))? {
            if sink.line(&ids[&order[line.source]], number, &line).is_break() {
                return Ok(());
            }
        }
        if merged.is_scanning() {
            continue;
        }
        if merged.is_over() || sink.idle().is_break() {
            return Ok(());
        }
    }
}

/// Reads the frames of one node's log as they were written. Calls `on_frame` with `None` when there are no more and the run
/// is not over.
pub fn frames(
    reader: &Reader,
    logs: &Logs,
    run: RunId,
    node: &str,
    follow: bool,
    on_frame: &mut dyn FnMut(Option<Frame>) -> ControlFlow<()>,
) -> Result<(), Error> {
    let attempt = super::attempts(reader, run)?.into_iter().find(|(id, _)| id == node);
    let Some((_, attempt)) = attempt else { return Ok(()) };
    // The expected sizes set here must not affect other readers.
    let logs = logs.without_expected_sizes();
    let mut frames = logs.read(attempt);
    loop {
        let over = !follow || is_over(reader, run)?;
        if over {
            logs.expect(&Arc::new(super::log_sizes(reader, run)?));
        }
        while let Some(frame) = frames.next_frame()? {
            if on_frame(Some(frame)).is_break() {
                return Ok(());
            }
        }
        if over || on_frame(None).is_break() {
            return Ok(());
        }
    }
}

/// Returns whether a run is over. A deleted one is over too.
fn is_over(reader: &Reader, run: RunId) -> Result<bool, Error> {
    Ok(reader.run(run)?.is_none_or(|row| row.archived))
}

fn steps(reader: &Reader, run: RunId, query: &LineQuery) -> Result<Vec<(String, LogSource)>, Error> {
    let attempts = super::attempts(reader, run)?;
    Ok(steps_of(&super::object(reader, run)?, &attempts, query))
}

/// Returns the parts of a run that have logs, by id.
pub(crate) fn steps_of(
    object: &Value,
    attempts: &[(String, AttemptId)],
    query: &LineQuery,
) -> Vec<(String, LogSource)> {
    // Of kinds unknown to this version only the record is known.
    let Ok(dialect) = dialect::of(object) else { return Vec::new() };
    let parts = dialect.view.log_parts(object, attempts, &query.names).into_iter();
    parts.map(|part| (part.id, LogSource { attempt: part.attempt, began: part.began, over: false })).collect()
}

/// Poll interval for callers that have nothing better to wait for.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);
