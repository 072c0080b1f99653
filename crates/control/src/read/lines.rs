//! What the tasks of a run wrote, as lines in order of time, also while they are being written.
//! Which nodes have logs is read from the run; what a line looks like is the listener's business.

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

/// A pattern may take this much memory when compiled.
const LARGEST_PATTERN: usize = 1 << 20;

/// Looking at a run that grows may take this share of the time at most.
const SHARE: u32 = 10;

/// Whose lines are wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Nodes of these names and whatever belongs to them; of a TaskSet roles, replicas or pods. Empty means all.
    pub names: Vec<String>,
    /// Only the last so many of each node.
    pub tail: Option<usize>,
    /// Go on until the run is over.
    pub follow: bool,
}

/// Whoever reads along.
pub trait Listener {
    /// Whether it wants this line; those it does not want do not count.
    fn wants(&mut self, line: &Line) -> bool;
    /// A line of a node, by its id, and which of its lines it is, from 0: the same line has the same number however often
    /// a log is read.
    fn hear(&mut self, node: &str, number: u64, line: &Line) -> ControlFlow<()>;
    /// Nothing is new. It waits a moment, or leaves.
    fn pause(&mut self) -> ControlFlow<()>;
}

/// Which lines somebody wants, and which containers were heard on the way.
#[derive(Debug, Default)]
pub struct Sieve {
    pub container: Option<String>,
    /// Not written before this.
    pub since: Option<Time>,
    grep: Option<Regex>,
    heard: BTreeSet<String>,
}

impl Sieve {
    /// The text says what is wrong with the pattern.
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

    /// Whether it is wanted if its container is.
    pub(crate) fn passes(&self, line: &Line) -> bool {
        self.since.is_none_or(|since| line.at >= since)
            && self.grep.as_ref().is_none_or(|grep| grep.is_match(&line.bytes))
    }

    /// The containers that wrote something, whether it was wanted or not.
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
    // What others read by the same handle is none of ours.
    let logs = logs.without_expected_sizes();
    let mut merged = Merged::new(logs.clone(), wanted.tail);
    let mut ids: HashMap<AttemptId, String> = HashMap::new();
    let mut order: Vec<AttemptId> = Vec::new();
    let mut found: Vec<Found> = Vec::new();
    let mut seen = None;
    let mut next_look = Instant::now();
    loop {
        // Asked before reading: whatever was written before the end is then seen by this look.
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

/// The frames of one node's log as they were written. `pause` is asked when there are no more and the run is not over.
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
    // What others read by the same handle is none of ours.
    let logs = logs.without_expected_sizes();
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

/// A run that was deleted meanwhile is over too.
fn is_over(reader: &Reader, run: RunId) -> Result<bool, Error> {
    Ok(reader.run(run)?.is_none_or(|row| row.archived))
}

fn steps(reader: &Reader, run: RunId, wanted: &Wanted) -> Result<Vec<(String, Found)>, Error> {
    let attempts = super::attempts(reader, run)?;
    Ok(steps_of(&super::object(reader, run)?, &attempts, wanted))
}

/// The parts of a run that have logs, by their ids.
pub(crate) fn steps_of(object: &Value, attempts: &[(String, AttemptId)], wanted: &Wanted) -> Vec<(String, Found)> {
    // Of a run of a kind that nobody knows here nothing is known but its record.
    let Ok(dialect) = dialect::of(object) else { return Vec::new() };
    let parts = dialect.view.log_parts(object, attempts, &wanted.names).into_iter();
    parts.map(|part| (part.id, Found { attempt: part.attempt, began: part.began, over: false })).collect()
}

/// How long a listener that has nothing better to wait for waits.
pub const MOMENT: Duration = Duration::from_millis(100);
