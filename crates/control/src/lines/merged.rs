//! Merges the lines of several attempts in order of time, on demand, also while they are being written. A log is opened
//! when its first line may be next and closed at its end; short ones are held whole so that thousands of them do not
//! need thousands of open files. The caller provides the attempts and the filter.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque},
    fs,
};

use octoflow_model::{AttemptId, Time};
use octoflow_runtime::logs::{Error, Logs};

use super::{Line, Source};

/// Logs up to this size are read at once.
const MAX_HELD_BYTES: u64 = 16 * 1024;

/// Maximum bytes of non-matching lines scanned per call, so that the caller can do other work in between.
const MAX_SCAN_BYTES: usize = 4 << 20;

/// Attempt that has or will have a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSource {
    pub attempt: AttemptId,
    /// Earliest time of its first line.
    pub began: Time,
    /// True if it writes nothing more.
    pub over: bool,
}

/// Filter for lines.
pub(crate) type LineTest<'w> = dyn FnMut(&Line) -> bool + 'w;

pub(crate) struct MergedLog {
    logs: Logs,
    /// Number of last lines to return of each source, counted at the first call.
    tail: Option<usize>,
    tail_counted: bool,
    numbers: HashMap<AttemptId, usize>,
    sources: Vec<SourceState>,
    /// Sources not yet opened, by start time; the earliest is last.
    waiting: Vec<(Time, usize)>,
    /// Next line of each open source. Equal times keep the order of the sources.
    heads: BinaryHeap<Reverse<(Time, usize)>>,
    /// Open sources that had no more lines when last read.
    idle: Vec<usize>,
    /// Open sources that were interrupted while scanning non-matching lines.
    scanning: Vec<usize>,
    /// True if no more attempts will appear.
    settled: bool,
}

struct SourceState {
    attempt: AttemptId,
    over: bool,
    tail: Option<usize>,
    read_state: ReadState,
    head: Option<(Line, u64)>,
    /// Number of lines read.
    count: u64,
    /// Number of matching lines to skip.
    skip: usize,
}

enum ReadState {
    Closed,
    /// Counting lines for a tail before any is returned.
    Counted(Box<Source>, usize),
    Held(VecDeque<Line>),
    Read(Box<Source>),
}

impl MergedLog {
    pub(crate) fn new(logs: Logs, tail: Option<usize>) -> Self {
        Self {
            logs,
            tail,
            tail_counted: false,
            numbers: HashMap::new(),
            sources: Vec::new(),
            waiting: Vec::new(),
            heads: BinaryHeap::new(),
            idle: Vec::new(),
            scanning: Vec::new(),
            settled: false,
        }
    }

    /// Returns true if all found lines were returned, so that looking for more attempts is worth it.
    pub(crate) fn is_drained(&self) -> bool {
        !self.settled && self.heads.is_empty() && self.waiting.is_empty() && self.scanning.is_empty()
    }

    /// Returns true if there is more to read now, although no line matched yet.
    pub(crate) fn is_scanning(&self) -> bool {
        !self.scanning.is_empty()
    }

    /// Returns true if every line was returned and no more will come.
    pub(crate) fn is_over(&self) -> bool {
        let open = !self.waiting.is_empty() || !self.idle.is_empty() || !self.scanning.is_empty();
        self.settled && self.heads.is_empty() && !open
    }

    /// Adds attempts, numbered in order of first appearance. The caller determined `over` and `settled` before anything
    /// is read, so everything written before those ends is read.
    pub(crate) fn add(&mut self, found: &[LogSource], settled: bool, matches: &mut LineTest<'_>) -> Result<(), Error> {
        self.settled = settled;
        for one in found {
            if let Some(number) = self.numbers.get(&one.attempt) {
                self.sources[*number].over = one.over;
                continue;
            }
            let number = self.sources.len();
            self.numbers.insert(one.attempt, number);
            self.waiting.push((one.began, number));
            let tail = self.tail.filter(|_| !self.tail_counted);
            let (attempt, over) = (one.attempt, one.over);
            self.sources.push(SourceState {
                attempt,
                over,
                tail,
                read_state: ReadState::Closed,
                head: None,
                count: 0,
                skip: 0,
            });
        }
        self.tail_counted = true;
        self.waiting.sort_by_key(|(began, number)| Reverse((*began, *number)));
        for number in std::mem::take(&mut self.idle) {
            self.advance(number, matches)?;
        }
        Ok(())
    }

    /// Returns the next matching line and its number in its source, from 0. `None` if there is none now, or if finding
    /// it takes longer ([`Self::is_scanning`]).
    pub(crate) fn next_line(&mut self, matches: &mut LineTest<'_>) -> Result<Option<(u64, Line)>, Error> {
        for number in std::mem::take(&mut self.scanning) {
            self.advance(number, matches)?;
        }
        if self.is_scanning() {
            // Its next line may be earlier than the known ones.
            return Ok(None);
        }
        while let Some((began, number)) = self.waiting.last().copied() {
            if self.heads.peek().is_some_and(|Reverse((at, _))| *at < began) {
                break;
            }
            self.waiting.pop();
            self.start(number)?;
            self.advance(number, matches)?;
            if self.is_scanning() {
                return Ok(None);
            }
        }
        let Some(Reverse((_, number))) = self.heads.pop() else { return Ok(None) };
        let (line, place) = self.sources[number].head.take().expect("a source in the heap has its next line");
        self.advance(number, matches)?;
        Ok(Some((place, line)))
    }

    /// Opens a log.
    fn start(&mut self, number: usize) -> Result<(), Error> {
        let opened = &mut self.sources[number];
        let source = Source::open(number, &self.logs, opened.attempt);
        opened.read_state = match opened.tail {
            Some(_) => ReadState::Counted(Box::new(source), 0),
            None => read_state(&self.logs, opened.attempt, source, opened.over || self.settled)?,
        };
        Ok(())
    }

    /// Finds the next line of a source to return.
    fn advance(&mut self, number: usize, matches: &mut LineTest<'_>) -> Result<(), Error> {
        let opened = &mut self.sources[number];
        let over = opened.over || self.settled;
        let mut passed = 0;
        loop {
            if passed >= MAX_SCAN_BYTES {
                self.scanning.push(number);
                return Ok(());
            }
            let line = match &mut opened.read_state {
                ReadState::Closed => None,
                ReadState::Held(lines) => lines.pop_front(),
                ReadState::Read(source) => source.next(over)?,
                ReadState::Counted(source, count) => match source.next(over)? {
                    Some(line) => {
                        *count += usize::from(matches(&line));
                        passed += line.bytes.len() + 1;
                        continue;
                    }
                    None => {
                        opened.skip = count.saturating_sub(opened.tail.unwrap_or_default());
                        let again = Source::open(number, &self.logs, opened.attempt);
                        opened.read_state = read_state(&self.logs, opened.attempt, again, over)?;
                        continue;
                    }
                },
            };
            let Some(line) = line else { break };
            let place = opened.count;
            opened.count += 1;
            passed += line.bytes.len() + 1;
            if !matches(&line) {
                continue;
            }
            if opened.skip > 0 {
                opened.skip -= 1;
                continue;
            }
            self.heads.push(Reverse((line.at, number)));
            opened.head = Some((line, place));
            return Ok(());
        }
        if over {
            opened.read_state = ReadState::Closed;
        } else {
            self.idle.push(number);
        }
        Ok(())
    }
}

/// Chooses how to read a log: short ones whole, if they are complete.
fn read_state(logs: &Logs, attempt: AttemptId, source: Source, over: bool) -> Result<ReadState, Error> {
    let size = fs::metadata(logs.path(attempt)).map_or(0, |about| about.len());
    Ok(if over && size <= MAX_HELD_BYTES {
        ReadState::Held(source.finish()?.into())
    } else {
        ReadState::Read(Box::new(source))
    })
}
