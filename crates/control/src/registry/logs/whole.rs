//! Numbered lines of all nodes of a run, and raw frames of one node, for our own client. Read in pieces, so that
//! following needs no thread. The local client (`read::lines`) prints the same lines.

use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
    sync::Arc,
};

use octoflow_model::{AttemptId, NodeIx, RunId};
use octoflow_runtime::logs::{Frame, Logs, Reader};

use super::{merge::damage, snapshot::SharedSnapshot};
use crate::{
    lines::{Line, MergedLog},
    read::lines::{LineFilter, LineQuery, steps_of},
    registry::{Fault, Registry},
};

/// Maximum bytes of a piece, not counting its last line.
const PIECE: usize = 64 * 1024;

/// Line of a node with its number: the same line has the same number however often a log is read.
#[derive(Debug)]
pub struct RunLine {
    /// Node id.
    pub node: Arc<str>,
    pub number: u64,
    pub line: Line,
}

/// Result of one read.
#[derive(Debug)]
pub struct LogPiece<T> {
    pub items: Vec<T>,
    /// True if the log is complete: no more items will come.
    pub finished: bool,
    /// True if more can be read at once. Otherwise wait until the run or its logs change.
    pub more: bool,
}

/// Frame of a node with its number.
#[derive(Debug)]
pub struct RunFrame {
    pub number: u64,
    pub frame: Frame,
}

pub struct RunLines {
    registry: Registry,
    run: RunId,
    query: LineQuery,
    filter: LineFilter,
    shared: Arc<SharedSnapshot>,
    seen: Option<Arc<super::Snapshot>>,
    files: Logs,
    merged: MergedLog,
    ids: HashMap<AttemptId, Arc<str>>,
    /// In order of discovery.
    order: Vec<AttemptId>,
    settled: bool,
}

pub struct RunFrames {
    registry: Registry,
    run: RunId,
    follow: bool,
    shared: Arc<SharedSnapshot>,
    files: Logs,
    reader: Option<Reader>,
    over: bool,
    returned: u64,
}

impl Registry {
    /// Reads the selected and matching lines of a run's nodes, merged by time.
    pub fn run_lines(&self, run: RunId, query: LineQuery, filter: LineFilter) -> RunLines {
        let files = self.log_files();
        let merged = MergedLog::new(files.clone(), query.tail);
        RunLines {
            registry: self.clone(),
            run,
            query,
            filter,
            shared: self.0.snapshots.of(run),
            seen: None,
            files,
            merged,
            ids: HashMap::new(),
            order: Vec::new(),
            settled: false,
        }
    }

    /// Reads the frames of one node's log as they were written; none if the node has no log yet.
    pub fn run_frames(&self, run: RunId, node: &str, follow: bool) -> Result<RunFrames, Fault> {
        let shared = self.0.snapshots.of(run);
        let snapshot = shared.latest(self, run)?;
        let attempt = snapshot.attempts.iter().find(|(id, _)| id == node).map(|(_, attempt)| *attempt);
        let files = self.log_files();
        let reader = attempt.map(|attempt| files.read(attempt));
        Ok(RunFrames { registry: self.clone(), run, follow, shared, files, reader, over: false, returned: 0 })
    }

    /// Returns the directory of all logs and that of one run's logs.
    pub fn log_folders(&self, run: RunId) -> Option<(PathBuf, PathBuf)> {
        let path = self.log_files().path(AttemptId { run, task: NodeIx(0), attempt: 0 });
        let own = path.parent()?;
        Some((own.parent()?.to_owned(), own.to_owned()))
    }

    fn log_files(&self) -> Logs {
        Logs::new(self.handle().store.data_dir())
    }
}

impl RunLines {
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Returns the containers that have written something so far.
    pub fn containers_seen(&self) -> &BTreeSet<String> {
        self.filter.containers_seen()
    }

    /// Reads what is available now, at most a piece.
    pub fn read(&mut self) -> Result<LogPiece<RunLine>, Fault> {
        if self.merged.is_drained() {
            self.look()?;
        }
        let (mut items, mut bytes, mut more) = (Vec::new(), 0, true);
        while bytes < PIECE {
            let filter = &mut self.filter;
            let next = self.merged.next_line(&mut |line| filter.matches(line)).map_err(damage)?;
            let Some((number, line)) = next else {
                more = self.merged.is_scanning();
                break;
            };
            bytes += line.bytes.len() + 64;
            let node = self.ids[&self.order[line.source]].clone();
            items.push(RunLine { node, number, line });
        }
        Ok(LogPiece { items, finished: self.merged.is_over(), more })
    }

    /// Called before reading, so that everything written before a reported end is read afterwards.
    fn look(&mut self) -> Result<(), Fault> {
        let snapshot = self.shared.latest(&self.registry, self.run)?;
        let mut found = Vec::new();
        if self.seen.as_ref().is_none_or(|seen| !Arc::ptr_eq(seen, &snapshot)) {
            self.settled = !self.query.follow || snapshot.is_over();
            self.files.expect(&snapshot.sizes);
            for (id, one) in steps_of(&snapshot.object, &snapshot.attempts, &self.query) {
                if self.ids.insert(one.attempt, id.into()).is_none() {
                    self.order.push(one.attempt);
                }
                found.push(one);
            }
            self.seen = Some(snapshot);
        }
        let filter = &mut self.filter;
        self.merged.add(&found, self.settled, &mut |line| filter.matches(line)).map_err(damage)
    }
}

impl RunFrames {
    pub fn run(&self) -> RunId {
        self.run
    }

    pub fn read(&mut self) -> Result<LogPiece<RunFrame>, Fault> {
        let Some(reader) = &mut self.reader else {
            return Ok(LogPiece { items: Vec::new(), finished: true, more: false });
        };
        if !self.over {
            let snapshot = self.shared.latest(&self.registry, self.run)?;
            self.files.expect(&snapshot.sizes);
            self.over = !self.follow || snapshot.is_over();
        }
        let (mut items, mut bytes) = (Vec::new(), 0);
        while bytes < PIECE {
            let Some(frame) = reader.next_frame().map_err(damage)? else {
                return Ok(LogPiece { items, finished: self.over, more: false });
            };
            bytes += frame.bytes.len() + 64;
            items.push(RunFrame { number: self.returned, frame });
            self.returned += 1;
        }
        Ok(LogPiece { items, finished: false, more: true })
    }
}
