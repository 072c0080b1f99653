//! Reader of one pod's log as bytes. Nothing is split into lines unless the query filters or marks lines.

use octoflow_model::RunId;
use octoflow_runtime::logs::{Reader, Stream};

use super::{LogPod, LogQuery, LogReader, Scope, merge::damage};
use crate::registry::{Fault, Registry};

/// Maximum bytes of a chunk, not counting its last frame.
const CHUNK: usize = 64 * 1024;

/// Maximum lines of one chunk.
const LINES: usize = 4096;

/// Maximum frames examined for one chunk, whether they match or not.
const FRAMES: usize = 2048;

#[derive(Debug, Default)]
pub struct LogChunk {
    pub bytes: Vec<u8>,
    /// True if the log is complete: no more bytes will come.
    pub finished: bool,
    /// True if more can be read at once. Otherwise wait until the run or its logs change.
    pub more: bool,
}

pub struct LogBytes(Mode);

enum Mode {
    Raw(Box<Raw>),
    Lines(Box<LogReader>),
}

struct Raw {
    scope: Scope,
    pod: Option<(LogPod, Reader)>,
    /// True if the log is complete on disk.
    over: bool,
    /// True if the last read found nothing more.
    dry: bool,
    finished: bool,
    left: u64,
}

impl LogBytes {
    /// Returns the run whose log this is.
    pub fn run(&self) -> RunId {
        match &self.0 {
            Mode::Raw(raw) => raw.scope.run,
            Mode::Lines(reader) => reader.run(),
        }
    }

    pub(super) fn open(registry: &Registry, query: LogQuery) -> Result<Self, Fault> {
        if query.pod.is_none() {
            return Err(Fault::BadRequest("bytes are read of one pod; name it".to_owned()));
        }
        let plain = query.grep.is_none() && query.tail.is_none() && query.since.is_none() && !query.timestamps;
        let scope = Scope::open(registry, query)?;
        if !plain {
            return Ok(Self(Mode::Lines(Box::new(LogReader::over(scope)?))));
        }
        let left = scope.query.limit_bytes.unwrap_or(u64::MAX);
        let raw = Raw { scope, pod: None, over: false, dry: true, finished: false, left };
        Ok(Self(Mode::Raw(Box::new(raw))))
    }

    /// Reads what is available now, at most a chunk.
    pub fn read(&mut self) -> Result<LogChunk, Fault> {
        match &mut self.0 {
            Mode::Raw(raw) => raw.read(),
            Mode::Lines(reader) => {
                let batch = reader.read(LINES)?;
                let mut bytes = Vec::new();
                for line in batch.lines {
                    bytes.extend_from_slice(&line.content);
                    bytes.push(b'\n');
                }
                Ok(LogChunk { bytes, finished: batch.finished, more: batch.more })
            }
        }
    }
}

impl Raw {
    fn read(&mut self) -> Result<LogChunk, Fault> {
        if self.finished {
            return Ok(LogChunk { bytes: Vec::new(), finished: true, more: false });
        }
        if self.dry && !self.over {
            self.look()?;
        }
        let mut bytes = Vec::new();
        let Some((written, reader)) = &mut self.pod else {
            self.finished = self.over;
            return Ok(LogChunk { bytes, finished: self.finished, more: false });
        };
        let wanted = self.scope.container(written);
        self.dry = false;
        for _ in 0..FRAMES {
            if bytes.len() >= CHUNK || bytes.len() as u64 >= self.left {
                break;
            }
            let read = reader.read_into(&mut bytes, |stream, container, _| {
                stream == Stream::Note || wanted.is_none_or(|wanted| wanted == container.unwrap_or(&written.main))
            });
            if !read.map_err(damage)? {
                self.dry = true;
                break;
            }
        }
        bytes.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= bytes.len() as u64;
        self.finished = self.left == 0 || self.dry && self.over;
        Ok(LogChunk { bytes, finished: self.finished, more: !self.dry })
    }

    /// Called before reading, so that everything written before a reported end is read afterwards.
    fn look(&mut self) -> Result<(), Fault> {
        let Some(look) = self.scope.look()? else { return Ok(()) };
        self.over = look.over || !self.scope.query.follow;
        if let Some(written) = look.pods.into_iter().next() {
            self.over |= written.over;
            if self.pod.is_none() {
                let reader = self.scope.files.read(written.attempt);
                self.pod = Some((written, reader));
            }
        }
        Ok(())
    }
}
