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
    lines::{Found, Merged},
};

/// Memory limit of a compiled pattern.
const LARGEST_PATTERN: usize = 1 << 20;

/// Rendering a growing run may take one part in this many of the time.
const SHARE: u32 = 10;

/// Selection of nodes and lines.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Nodes of these names and their descendants; of a TaskSet roles, replicas or pods. Empty selects all.
    pub names: Vec<String>,
    /// Only the last lines of each node, at most this many.
    pub tail: Option<usize>,
    /// Continue until the run is over.
    pub follow: bool,
}

/// Receiver of log lines.
pub trait Listener {
    /// Returns whether the line matches; others do not count towards the tail.
    fn wants(&mut self, line: &Line) -> bool;
    /// Receives a line of a node, by id, with its number from 0: the same line has the same number however often a log
    /// is read.
    fn hear(&mut self, node: &str, number: u64, line: &Line) -> ControlFlow<()>;
    /// Called when there is nothing new. Waits, or breaks off.
    fn pause(&mut self) -> ControlFlow<()>;
}

/// Filter for lines. Also collects the containers seen.
#[derive(Debug, Default)]
pub struct Sieve {
    pub container: Option<String>,
    /// Only lines written at this time or later.
    pub since: Option<Time>,
    grep: Option<Regex>,
    heard: BTreeSet<String>,
}

impl Sieve {
    /// Compiles the filter; the error says what is wrong with the pattern.
    pub fn new(container: Option<String>, since: Option<Time>, grep: Option<&str>) -> Result<Self, String> {
        let compiled = grep.map(|pattern| RegexBuilder::new(pattern).size_limit(LARGEST_PATTERN).build());
        let grep = compiled.transpose().map_err(|error| error.to_string())?;
        Ok(Self { container, since, grep, heard: BTreeSet::new() })
    }

    pub fn wants(&mut self, line: &Line) -> bool {
        let container = line.container.as_deref().unwrap_or(MAIN);
        if !self.heard.contains(container) {
            self.heard.insert(container.to_owned());
        }
        self.container.as_deref().is_none_or(|wanted| wanted == container) && self.passes(line)
    }

    /// Checks everything but the container.
    pub(crate) fn passes(&self, line: &Line) -> bool {
        self.since.is_none_or(|since| line.at >= since)
            && self.grep.as_ref().is_none_or(|grep| grep.is_match(&line.bytes))
    }

    /// Returns the containers that wrote anything, matching or not.
    pub fn heard(&self) -> &BTreeSet<String> {
        &self.heard
    }
}

pub fn lines(
    reader: &Reader,
    logs: &Logs,
    run: RunId,
    wanted: &Wanted,
    listener: &mut dyn Listener,
) -> Result<(), Error> {
    // The expected sizes set here must not affect other readers.
    let logs = logs.apart();
    let mut merged = Merged::new(logs.clone(), wanted.tail);
    let mut ids: HashMap<AttemptId, String> = HashMap::new();
    let mut order: Vec<AttemptId> = Vec::new();
    let mut found: Vec<Found> = Vec::new();
    let mut seen = None;
    let mut next_look = Instant::now();
    loop {
        // Checked before reading, so that everything written before the end is read in this pass.
        let settled = !wanted.follow || is_over(reader, run)?;
        let revision = reader.run_revision(run)?;
        if settled || (revision != seen && Instant::now() >= next_look) {
            let begin = Instant::now();
            found.clear();
            logs.expect(&Arc::new(super::log_sizes(reader, run)?));
            for (id, one) in steps(reader, run, wanted)? {
                if ids.insert(one.attempt, id).is_none() {
                    order.push(one.attempt);
                }
                found.push(one);
            }
            seen = revision;
            next_look = begin + begin.elapsed() * SHARE;
        }
        merged.find(&found, settled, &mut |line| listener.wants(line))?;
        while let Some((number, line)) = merged.next_line(&mut |line| listener.wants(line))? {
            if listener.hear(&ids[&order[line.source]], number, &line).is_break() {
                return Ok(());
            }
        }
        if merged.is_scanning() {
            continue;
        }
        if merged.is_over() || listener.pause().is_break() {
            return Ok(());
        }
    }
}

/// Reads the frames of one node's log as they were written. Calls `hear` with `None` when there are no more and the run
/// is not over.
pub fn frames(
    reader: &Reader,
    logs: &Logs,
    run: RunId,
    node: &str,
    follow: bool,
    hear: &mut dyn FnMut(Option<Frame>) -> ControlFlow<()>,
) -> Result<(), Error> {
    let attempt = super::attempts(reader, run)?.into_iter().find(|(id, _)| id == node);
    let Some((_, attempt)) = attempt else { return Ok(()) };
    // The expected sizes set here must not affect other readers.
    let logs = logs.apart();
    let mut frames = logs.read(attempt);
    loop {
        let over = !follow || is_over(reader, run)?;
        if over {
            logs.expect(&Arc::new(super::log_sizes(reader, run)?));
        }
        while let Some(frame) = frames.next_frame()? {
            if hear(Some(frame)).is_break() {
                return Ok(());
            }
        }
        if over || hear(None).is_break() {
            return Ok(());
        }
    }
}

/// Returns whether a run is over. A deleted one is over too.
fn is_over(reader: &Reader, run: RunId) -> Result<bool, Error> {
    Ok(reader.run(run)?.is_none_or(|row| row.archived))
}

fn steps(reader: &Reader, run: RunId, wanted: &Wanted) -> Result<Vec<(String, Found)>, Error> {
    let attempts = super::attempts(reader, run)?;
    Ok(steps_of(&super::object(reader, run)?, &attempts, wanted))
}

/// Returns the parts of a run that have logs, by id.
pub(crate) fn steps_of(object: &Value, attempts: &[(String, AttemptId)], wanted: &Wanted) -> Vec<(String, Found)> {
    // Of kinds unknown to this version only the record is known.
    let Ok(dialect) = dialect::of(object) else { return Vec::new() };
    let parts = dialect.view.log_parts(object, attempts, &wanted.names).into_iter();
    parts.map(|part| (part.id, Found { attempt: part.attempt, began: part.began, over: false })).collect()
}

/// Poll interval for callers that have nothing better to wait for.
pub const MOMENT: Duration = Duration::from_millis(100);
