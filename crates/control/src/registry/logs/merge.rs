//! Reader of merged pod logs: batches of lines, filtered, marked and limited as the query wants.

use std::{collections::HashSet, sync::Arc};

use octoflow_model::{AttemptId, RunId, Time};
use octoflow_runtime::logs::{Error as Damage, Stream};

use super::{LogPod, LogQuery, Scope};
use crate::{
    lines::{Line, LogSource, MergedLog},
    read::lines::LineFilter,
    registry::{Fault, Registry},
};

/// Maximum bytes of a batch, not counting its last line.
const BATCH: usize = 64 * 1024;

/// One line of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub pod: Arc<str>,
    pub container: Arc<str>,
    pub at: Time,
    /// Without its line break; raw bytes, which need not be text.
    pub content: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct LogBatch {
    pub lines: Vec<LogLine>,
    /// True if the log is complete: no more lines will come.
    pub finished: bool,
    /// True if more can be read at once. Otherwise wait until the run or its logs change.
    pub more: bool,
}

pub struct LogReader {
    scope: Scope,
    filter: LineFilter,
    merged: MergedLog,
    known: HashSet<AttemptId>,
    /// In order of discovery.
    pods: Vec<LogPod>,
    /// True if no more pods will appear and their logs are complete.
    settled: bool,
    finished: bool,
    sent: u64,
}

impl LogReader {
    pub(super) fn open(registry: &Registry, query: LogQuery) -> Result<Self, Fault> {
        Self::over(Scope::open(registry, query)?)
    }

    pub(super) fn over(scope: Scope) -> Result<Self, Fault> {
        let filter = scope.filter()?;
        let merged = MergedLog::new(scope.files.clone(), scope.query.tail);
        let (known, pods) = (HashSet::new(), Vec::new());
        Ok(Self { scope, filter, merged, known, pods, settled: false, finished: false, sent: 0 })
    }

    /// Reads at most `max` of the lines available now.
    pub fn read(&mut self, max: usize) -> Result<LogBatch, Fault> {
        let mut batch = LogBatch { finished: self.finished, ..LogBatch::default() };
        if self.finished {
            return Ok(batch);
        }
        // While found lines are pending, looking for more pods would be wasted work.
        if self.merged.is_drained() {
            self.look()?;
        }
        let mut bytes = 0;
        while batch.lines.len() < max.max(1) && bytes < BATCH {
            let (scope, filter, pods) = (&self.scope, &self.filter, &self.pods);
            let next = self.merged.next_line(&mut |line| matches(scope, filter, pods, line)).map_err(damage)?;
            let Some((_, line)) = next else {
                batch.more = self.merged.is_scanning();
                return self.ended(batch);
            };
            let line = self.next_log_line(line);
            bytes += line.content.len() + 64;
            batch.lines.push(line);
            if self.scope.query.limit_bytes.is_some_and(|limit| self.sent >= limit) {
                self.finished = true;
                break;
            }
        }
        batch.more = true;
        self.ended(batch)
    }

    fn ended(&mut self, mut batch: LogBatch) -> Result<LogBatch, Fault> {
        self.finished |= self.merged.is_over();
        batch.finished = self.finished;
        Ok(batch)
    }

    /// Returns the run whose log this is.
    pub fn run(&self) -> RunId {
        self.scope.run
    }

    /// Adds pods that appeared since, and checks again those that had nothing.
    fn look(&mut self) -> Result<(), Fault> {
        let mut found = Vec::new();
        if let Some(look) = self.scope.look()? {
            let follow = self.scope.query.follow;
            let one = self.scope.query.pod.is_some();
            let over = one && !look.pods.is_empty() && look.pods.iter().all(|pod| pod.over);
            self.settled = !follow || look.over || over;
            let told = |pod: &LogPod| LogSource { attempt: pod.attempt, began: pod.began, over: pod.over };
            found.extend(look.pods.iter().map(told));
            self.pods.extend(look.pods.into_iter().filter(|pod| self.known.insert(pod.attempt)));
        }
        let settled = self.settled;
        let (scope, filter, pods) = (&self.scope, &self.filter, &self.pods);
        self.merged.add(&found, settled, &mut |line| matches(scope, filter, pods, line)).map_err(damage)
    }

    fn next_log_line(&mut self, line: Line) -> LogLine {
        let mut content = line.bytes;
        if self.scope.query.timestamps {
            let stamp = line.at.timestamp().strftime("%Y-%m-%dT%H:%M:%S%.6fZ ").to_string();
            content.splice(..0, stamp.into_bytes());
        }
        if let Some(limit) = self.scope.query.limit_bytes {
            let room = usize::try_from(limit.saturating_sub(self.sent)).unwrap_or(usize::MAX);
            content.truncate(room);
        }
        self.sent += content.len() as u64 + 1;
        let pod = &self.pods[line.source];
        let container = line.container.map_or_else(|| pod.main.clone(), Arc::from);
        LogLine { pod: pod.pod.clone(), container, at: line.at, content }
    }
}

/// Notes by the controller itself pass whichever container is selected.
fn matches(scope: &Scope, filter: &LineFilter, pods: &[LogPod], line: &Line) -> bool {
    let pod = &pods[line.source];
    let container = line.container.as_deref().unwrap_or(&pod.main);
    let wanted = scope.container(pod);
    (line.stream == Stream::Note || wanted.is_none_or(|wanted| wanted == container)) && filter.passes(line)
}

/// An unreadable log is an error of the installation.
pub(super) fn damage(error: Damage) -> Fault {
    Fault::Controller(crate::Error::Log(error))
}
