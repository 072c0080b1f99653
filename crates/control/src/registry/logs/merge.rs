//! Lines of several pods in order of time, read as they are asked for. A pod's log is opened when its time has come and
//! closed at its end; short ones are held whole so that thousands of them do not need thousands of open files.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashSet, VecDeque},
    fs,
    sync::Arc,
};

use octoflow_model::{AttemptId, Time};
use octoflow_runtime::logs::{Error as Damage, Stream};
use regex::bytes::Regex;

use super::{LogQuery, Scope, Written, podded};
use crate::{
    lines::{Line, Source},
    registry::{Fault, Registry},
};

/// Logs up to this size are read at once.
const SMALL: u64 = 16 * 1024;

/// A batch holds no more bytes than this, beside its last line.
const BATCH: usize = 256 * 1024;

/// One line of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub pod: Arc<str>,
    pub container: Arc<str>,
    pub at: Time,
    /// Without its line break; as it was written, so it need not be text.
    pub content: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct LogBatch {
    pub lines: Vec<LogLine>,
    /// There is nothing more, and there will not be. While this is not so and there are no lines, ask again after
    /// [`super::LOOK_AGAIN`].
    pub finished: bool,
}

pub struct LogReader {
    scope: Scope,
    grep: Option<Regex>,
    known: HashSet<AttemptId>,
    pods: Vec<Pod>,
    /// Not yet opened: when each began, and its number; the first to begin is last.
    waiting: Vec<(Time, usize)>,
    /// The next line of each open pod. Equal times keep the order of the pods.
    heads: BinaryHeap<Reverse<(Time, usize)>>,
    /// Open pods that had nothing more to tell when they were asked.
    idle: Vec<usize>,
    /// The pods were looked up for the last time.
    settled: bool,
    finished: bool,
    sent: u64,
}

struct Pod {
    written: Written,
    main: Arc<str>,
    flow: Flow,
    head: Option<Line>,
    /// So many of its lines are not told.
    skip: usize,
}

enum Flow {
    Closed,
    Held(VecDeque<Line>),
    Read(Box<Source>),
}

impl LogReader {
    pub(super) fn open(registry: &Registry, query: LogQuery) -> Result<Self, Fault> {
        Self::over(Scope::open(registry, query)?)
    }

    pub(super) fn over(scope: Scope) -> Result<Self, Fault> {
        let grep = scope.grep()?;
        Ok(Self {
            scope,
            grep,
            known: HashSet::new(),
            pods: Vec::new(),
            waiting: Vec::new(),
            heads: BinaryHeap::new(),
            idle: Vec::new(),
            settled: false,
            finished: false,
            sent: 0,
        })
    }

    /// At most `max` lines of what is there now.
    pub fn read(&mut self, max: usize) -> Result<LogBatch, Fault> {
        let mut batch = LogBatch { lines: Vec::new(), finished: self.finished };
        if self.finished {
            return Ok(batch);
        }
        // While lines that were found are still untold, looking for more would only cost.
        if !self.settled && self.heads.is_empty() && self.waiting.is_empty() {
            self.look()?;
        }
        let mut bytes = 0;
        while batch.lines.len() < max.max(1) && bytes < BATCH {
            let Some(line) = self.next()? else { break };
            bytes += line.content.len() + 64;
            batch.lines.push(line);
            if self.scope.query.limit_bytes.is_some_and(|limit| self.sent >= limit) {
                self.finished = true;
                break;
            }
        }
        self.finished |= self.settled && self.heads.is_empty() && self.waiting.is_empty() && self.idle.is_empty();
        batch.finished = self.finished;
        Ok(batch)
    }

    /// Finds pods that came up since, and asks those again that had nothing.
    fn look(&mut self) -> Result<(), Fault> {
        let look = self.scope.look()?;
        let follow = self.scope.query.follow;
        let one = self.scope.query.pod.is_some();
        self.settled = !follow || look.over || one && !look.pods.is_empty() && look.pods.iter().all(|pod| pod.over);
        for written in look.pods {
            if !self.known.insert(written.attempt) {
                if let Some(pod) = self.pods.iter_mut().find(|pod| pod.written.attempt == written.attempt) {
                    pod.written.over = written.over;
                }
                continue;
            }
            self.waiting.push((written.began, self.pods.len()));
            let main = podded::MAIN.into();
            self.pods.push(Pod { written, main, flow: Flow::Closed, head: None, skip: 0 });
        }
        self.waiting.sort_by_key(|(began, number)| Reverse((*began, *number)));
        for number in std::mem::take(&mut self.idle) {
            if self.settled {
                self.pods[number].written.over = true;
            }
            self.advance(number)?;
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<LogLine>, Fault> {
        while let Some((began, number)) = self.waiting.last().copied() {
            if self.heads.peek().is_some_and(|Reverse((at, _))| *at < began) {
                break;
            }
            self.waiting.pop();
            self.start(number)?;
            self.advance(number)?;
        }
        let Some(Reverse((_, number))) = self.heads.pop() else { return Ok(None) };
        let line = self.pods[number].head.take().expect("a pod in the heap has its next line");
        self.advance(number)?;
        Ok(Some(self.told(number, line)))
    }

    fn told(&mut self, number: usize, line: Line) -> LogLine {
        let pod = &self.pods[number];
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
        let container = line.container.map_or_else(|| pod.main.clone(), Arc::from);
        LogLine { pod: pod.written.pod.clone(), container, at: line.at, content }
    }

    /// Opens a pod's log, and counts what a tail leaves out of it.
    fn start(&mut self, number: usize) -> Result<(), Fault> {
        let pod = &self.pods[number];
        let (attempt, over) = (pod.written.attempt, pod.written.over || self.settled);
        let files = &self.scope.files;
        let size = fs::metadata(files.path(attempt)).map_or(0, |about| about.len());
        let source = Source::open(number, files, attempt);
        let mut skip = 0;
        if let Some(tail) = self.scope.query.tail {
            let mut first = Source::open(number, files, attempt);
            let mut count = 0_usize;
            while let Some(line) = first.next(over).map_err(damage)? {
                count += usize::from(self.wants(number, &line));
            }
            skip = count.saturating_sub(tail);
        }
        let flow = if over && size <= SMALL {
            Flow::Held(source.finish().map_err(damage)?.into())
        } else {
            Flow::Read(Box::new(source))
        };
        let pod = &mut self.pods[number];
        (pod.flow, pod.skip) = (flow, skip);
        Ok(())
    }

    /// Finds the next line of a pod that is to be told.
    fn advance(&mut self, number: usize) -> Result<(), Fault> {
        loop {
            let pod = &mut self.pods[number];
            let over = pod.written.over || self.settled;
            let line = match &mut pod.flow {
                Flow::Closed => None,
                Flow::Held(lines) => lines.pop_front(),
                Flow::Read(source) => source.next(over).map_err(damage)?,
            };
            match line {
                Some(line) => {
                    if !self.wants(number, &line) {
                        continue;
                    }
                    let pod = &mut self.pods[number];
                    if pod.skip > 0 {
                        pod.skip -= 1;
                        continue;
                    }
                    self.heads.push(Reverse((line.at, number)));
                    pod.head = Some(line);
                }
                None if over => pod.flow = Flow::Closed,
                None => self.idle.push(number),
            }
            return Ok(());
        }
    }

    fn wants(&self, number: usize, line: &Line) -> bool {
        let query = &self.scope.query;
        let container = line.container.as_deref().unwrap_or(podded::MAIN);
        let wanted = self.scope.container(&self.pods[number].written);
        (line.stream == Stream::Note || wanted.is_none_or(|wanted| wanted == container))
            && query.since.is_none_or(|since| line.at >= since)
            && self.grep.as_ref().is_none_or(|grep| grep.is_match(&line.bytes))
    }
}

/// A log that cannot be read is the house's trouble.
pub(super) fn damage(error: Damage) -> Fault {
    Fault::House(crate::Error::Log(error))
}
