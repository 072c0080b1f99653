//! Attempt logs: one file per attempt, a sequence of frames with stream, time and bytes, exactly as written. Owns the
//! format and the reader; the spawner writes, through `writer`. Never formats lines for people; that is the caller's
//! part.

mod writer;

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use octoflow_model::{
    ids::{AttemptId, RunId},
    time::Time,
};

pub(crate) use self::writer::{Pressure, Writer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
    /// A message of octoflow itself, e.g. that the log was truncated here.
    Note,
}

impl Stream {
    fn code(self) -> u8 {
        match self {
            Self::Stdout => 1,
            Self::Stderr => 2,
            Self::Note => 3,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Stdout,
            2 => Self::Stderr,
            3 => Self::Note,
            _ => return None,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub stream: Stream,
    pub at: Time,
    /// Container that wrote the bytes, if it is not the main one.
    pub container: Option<Box<str>>,
    pub bytes: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the log {} could not be read", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the log {} is damaged at byte {at}", path.display())]
    Damaged { path: PathBuf, at: u64 },
    #[error("the logs in {} could not be deleted", path.display())]
    Delete { path: PathBuf, source: io::Error },
}

/// Length of a header: stream, microseconds since the epoch, length.
const HEADER: usize = 1 + 8 + 4;

/// Flag in the stream's number: the bytes begin with the length and the name of a container.
const OF_CONTAINER: u8 = 0x10;

/// Limit of a frame, so that a reader's memory is bounded.
pub(crate) const MAX_FRAME: usize = 1 << 20;

/// Limit of a container's name with its length.
const MAX_NAME: usize = 128;

pub(crate) fn header(stream: Stream, at: Time, length: usize) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[0] = stream.code();
    bytes[1..9].copy_from_slice(&at.0.to_le_bytes());
    bytes[9..].copy_from_slice(&u32::try_from(length).expect("a frame is small").to_le_bytes());
    bytes
}

/// All logs of a data directory.
#[derive(Clone, Debug)]
pub struct Logs {
    dir: PathBuf,
    /// Shared by all readers of this handle.
    expected: Arc<RwLock<Sizes>>,
}

/// Sizes that the logs of ended attempts must have. Logs are not synced before an end is reported, so after a crash of
/// the machine one may be shorter, or missing; its reader then says so.
pub type Sizes = Arc<HashMap<AttemptId, u64>>;

impl Logs {
    pub fn new(data_dir: &Path) -> Self {
        Self { dir: data_dir.join("logs"), expected: Arc::default() }
    }

    /// Returns a handle to the same logs that expects no sizes.
    pub fn without_expected_sizes(&self) -> Self {
        Self { dir: self.dir.clone(), expected: Arc::default() }
    }

    /// Makes readers of this handle and its clones report what is missing of these sizes.
    pub fn expect(&self, sizes: &Sizes) {
        *self.expected.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(sizes);
    }

    pub fn path(&self, attempt: AttemptId) -> PathBuf {
        self.run_dir(attempt.run).join(format!("{}-{}.log", attempt.task, attempt.attempt))
    }

    fn run_dir(&self, run: RunId) -> PathBuf {
        self.dir.join(run.to_string())
    }

    /// Returns a reader of the frames written so far; after the end of the iterator, calling `next` again returns what
    /// was written meanwhile. An attempt that wrote nothing has no file and gives no frames.
    pub fn read(&self, attempt: AttemptId) -> Reader {
        Reader {
            path: self.path(attempt),
            attempt,
            expected: Arc::clone(&self.expected),
            reported_missing: false,
            last: Time(0),
            found: false,
            at: 0,
            buffer: Vec::new(),
            begin: 0,
        }
    }

    /// Deletes the logs of a whole run; a run without logs is no error.
    pub fn delete(&self, run: RunId) -> Result<(), Error> {
        let path = self.run_dir(run);
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::Delete { path, source }),
            _ => Ok(()),
        }
    }

    /// Returns the last `most` bytes of the main container's standard output, and whether there was more before them.
    pub(crate) fn tail_of_stdout(&self, attempt: AttemptId, most: usize) -> Result<(Vec<u8>, bool), Error> {
        let mut reader = self.read(attempt);
        let (mut tail, mut cut) = (Vec::new(), false);
        while let Some(Head { stream, marked, length, .. }) = reader.next_header()? {
            if stream != Stream::Stdout || marked {
                reader.skip_frame(length);
                continue;
            }
            let bytes = reader.body(length)?;
            tail.extend_from_slice(&bytes);
            // Trimmed in large steps, so that the cost stays linear.
            if tail.len() > most * 2 {
                tail.drain(..tail.len() - most);
                cut = true;
            }
        }
        if tail.len() > most {
            tail.drain(..tail.len() - most);
            cut = true;
        }
        Ok((tail, cut))
    }
}

/// Header of a frame.
struct Head {
    stream: Stream,
    /// True if the bytes begin with the name of a container.
    marked: bool,
    at: Time,
    length: usize,
}

/// Reads one attempt's frames, also while they are being written. The file is open only during a read, because many
/// readers may follow runs with many logs.
pub struct Reader {
    path: PathBuf,
    attempt: AttemptId,
    expected: Arc<RwLock<Sizes>>,
    /// True once the missing part was reported.
    reported_missing: bool,
    /// Time of the last frame.
    last: Time,
    /// True if the file was ever found.
    found: bool,
    /// Offset of the next frame in the file.
    at: u64,
    /// Bytes read ahead; those from `begin` on are at offset `at` of the file.
    buffer: Vec<u8>,
    begin: usize,
}

/// Bytes read at a time, so that small frames are read many at once.
const READ_AHEAD: usize = 64 * 1024;

impl Reader {
    /// Passes frames to `each` until `done` says that the attempt is over and everything was passed. Calls `pause`
    /// between reads, which may wait or do other work.
    pub fn follow(
        &mut self,
        mut each: impl FnMut(Frame),
        mut done: impl FnMut() -> bool,
        mut pause: impl FnMut(),
    ) -> Result<(), Error> {
        loop {
            // Checked before reading, so that this read sees whatever was written before the end.
            let last = done();
            while let Some(frame) = self.next_frame()? {
                each(frame);
            }
            if last {
                return Ok(());
            }
            pause();
        }
    }

    pub fn next_frame(&mut self) -> Result<Option<Frame>, Error> {
        let Some(Head { stream, marked, at, length }) = self.next_header()? else { return Ok(self.missing()) };
        self.last = at;
        let damaged = Error::Damaged { path: self.path.clone(), at: self.at };
        let mut bytes = self.body(length)?;
        let mut container = None;
        if marked {
            let name = bytes.first().map(|length| 1..1 + usize::from(*length)).and_then(|range| bytes.get(range));
            let name = name.and_then(|name| std::str::from_utf8(name).ok()).ok_or(damaged)?;
            container = Some(Box::from(name));
            let begin = 1 + name.len();
            bytes.drain(..begin);
        }
        Ok(Some(Frame { stream, at, container, bytes }))
    }

    /// Appends the bytes of the next frame if `wanted` accepts them; returns `false` if there is no frame yet. For
    /// callers that need only the bytes.
    pub fn read_into(
        &mut self,
        to: &mut Vec<u8>,
        mut wanted: impl FnMut(Stream, Option<&str>, Time) -> bool,
    ) -> Result<bool, Error> {
        let Some(Head { stream, marked, at, length }) = self.next_header()? else {
            let missing = self.missing();
            if let Some(note) = missing.as_ref().filter(|note| wanted(note.stream, None, note.at)) {
                to.extend_from_slice(&note.bytes);
            }
            return Ok(missing.is_some());
        };
        self.last = at;
        let body = &self.buffer[self.begin + HEADER..self.begin + HEADER + length];
        let (name, bytes) = match marked {
            false => (None, body),
            true => {
                let damaged = || Error::Damaged { path: self.path.clone(), at: self.at };
                let (length, rest) = body.split_first().ok_or_else(damaged)?;
                let (name, bytes) = rest.split_at_checked(usize::from(*length)).ok_or_else(damaged)?;
                (Some(std::str::from_utf8(name).map_err(|_| damaged())?), bytes)
            }
        };
        if wanted(stream, name, at) {
            to.extend_from_slice(bytes);
        }
        self.skip_frame(length);
        Ok(true)
    }

    /// Returns a note, once, if the log of an ended attempt is shorter than it should be.
    fn missing(&mut self) -> Option<Frame> {
        let expected = self.expected.read().unwrap_or_else(PoisonError::into_inner).get(&self.attempt).copied()?;
        if self.reported_missing || self.at >= expected {
            return None;
        }
        self.reported_missing = true;
        let text = match (self.found, expected - self.at) {
            (false, _) => format!("the log is missing: it had {expected} bytes, and its file is gone\n"),
            (true, lost) => format!(
                "the log is truncated: its last {lost} of {expected} bytes are gone, probably because the machine went \
                 down before they were on disk\n"
            ),
        };
        Some(Frame { stream: Stream::Note, at: self.last, container: None, bytes: text.into_bytes() })
    }

    /// Returns the next frame's header, once the whole frame is there.
    fn next_header(&mut self) -> Result<Option<Head>, Error> {
        if !self.have(HEADER)? {
            return Ok(None);
        }
        let ahead = &self.buffer[self.begin..];
        let number = |range: std::ops::Range<usize>| &ahead[range];
        let damaged = || Error::Damaged { path: self.path.clone(), at: self.at };
        let stream = Stream::from_code(ahead[0] & !OF_CONTAINER).ok_or_else(damaged)?;
        let marked = ahead[0] & OF_CONTAINER != 0;
        let at = i64::from_le_bytes(number(1..9).try_into().expect("eight bytes"));
        let length = u32::from_le_bytes(number(9..13).try_into().expect("four bytes")) as usize;
        if length > MAX_FRAME {
            return Err(damaged());
        }
        Ok(self.have(HEADER + length)?.then_some(Head { stream, marked, at: Time(at), length }))
    }

    fn body(&mut self, length: usize) -> Result<Vec<u8>, Error> {
        let bytes = self.buffer[self.begin + HEADER..self.begin + HEADER + length].to_vec();
        self.skip_frame(length);
        Ok(bytes)
    }

    fn skip_frame(&mut self, length: usize) {
        self.begin += HEADER + length;
        self.at += (HEADER + length) as u64;
    }

    /// Returns whether `count` bytes are available from `at` on, reading more if needed.
    fn have(&mut self, count: usize) -> Result<bool, Error> {
        let failed = |source| Error::Read { path: self.path.clone(), source };
        if self.buffer.len() - self.begin >= count {
            return Ok(true);
        }
        // Consumed bytes are dropped once for many frames, so that the cost stays linear.
        self.buffer.drain(..self.begin);
        self.begin = 0;
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        self.found = true;
        let from = self.at + self.buffer.len() as u64;
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
        let want = (count - self.buffer.len()).max(READ_AHEAD) as u64;
        file.take(want).read_to_end(&mut self.buffer).map_err(failed)?;
        if self.buffer.is_empty() {
            // A reader that waits for more holds no memory.
            self.buffer = Vec::new();
        }
        Ok(self.buffer.len() >= count)
    }
}

impl Iterator for Reader {
    type Item = Result<Frame, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_frame().transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, sync::Arc};

    use octoflow_model::ids::NodeIx;

    use super::*;

    fn attempt() -> AttemptId {
        AttemptId { run: RunId(3), task: NodeIx(1), attempt: 0 }
    }

    fn writer(path: PathBuf, limit: u64) -> Writer {
        Writer::new(path, limit, Arc::default(), None)
    }

    fn logs() -> (tempfile::TempDir, Logs) {
        let dir = tempfile::tempdir().unwrap();
        let logs = Logs::new(dir.path());
        (dir, logs)
    }

    #[test]
    fn frames_come_back_as_they_were_written() {
        let (_dir, logs) = logs();
        let mut writer = writer(logs.path(attempt()), u64::MAX);
        let big = vec![7; MAX_FRAME + 5];
        writer.append(Stream::Stdout, Time(1), b"one\xff\n");
        writer.append(Stream::Stderr, Time(2), b"two");
        writer.append(Stream::Stdout, Time(3), &big);
        let frames: Vec<Frame> = logs.read(attempt()).collect::<Result<_, _>>().unwrap();
        assert_eq!(
            frames[0],
            Frame { stream: Stream::Stdout, at: Time(1), container: None, bytes: b"one\xff\n".to_vec() }
        );
        assert_eq!(frames[1].stream, Stream::Stderr);
        let rest: Vec<u8> = frames[2..].iter().flat_map(|frame| frame.bytes.clone()).collect();
        assert_eq!(rest, big);
        let (tail, cut) = logs.tail_of_stdout(attempt(), 10).unwrap();
        assert_eq!((tail, cut), (vec![7; 10], true));
    }

    #[test]
    fn what_another_container_says_is_marked_and_never_the_result() {
        let (_dir, logs) = logs();
        let mut writer = writer(logs.path(attempt()), u64::MAX);
        writer.append(Stream::Stdout, Time(1), b"mine");
        writer.append_of(Some("helper"), Stream::Stdout, Time(2), b"other");
        writer.append_of(Some("helper"), Stream::Stderr, Time(3), b"");
        let frames: Vec<Frame> = logs.read(attempt()).collect::<Result<_, _>>().unwrap();
        assert_eq!(frames[0].container, None);
        assert_eq!((frames[1].container.as_deref(), frames[1].bytes.as_slice()), (Some("helper"), &b"other"[..]));
        assert_eq!(frames.len(), 2, "nothing said is nothing written");
        assert_eq!(logs.tail_of_stdout(attempt(), 100).unwrap().0, b"mine");
    }

    #[test]
    fn a_silent_attempt_has_no_file_and_no_frames() {
        let (_dir, logs) = logs();
        assert!(logs.read(attempt()).next().is_none());
        assert!(!logs.path(attempt()).exists());
    }

    #[test]
    fn a_reader_sees_what_is_written_later_and_half_a_frame_is_no_frame() {
        let (_dir, logs) = logs();
        let mut reader = logs.read(attempt());
        assert!(reader.next().is_none());
        let mut writer = writer(logs.path(attempt()), u64::MAX);
        writer.append(Stream::Stdout, Time(1), b"a");
        assert_eq!(reader.next().unwrap().unwrap().bytes, b"a");
        let mut half = header(Stream::Stdout, Time(2), 4).to_vec();
        half.extend_from_slice(b"ab");
        let mut file = File::options().append(true).open(logs.path(attempt())).unwrap();
        file.write_all(&half).unwrap();
        assert!(reader.next().is_none());
        file.write_all(b"cd").unwrap();
        assert_eq!(reader.next().unwrap().unwrap().bytes, b"abcd");
    }

    #[test]
    fn the_limit_cuts_and_says_so() {
        let (_dir, logs) = logs();
        let mut writer = writer(logs.path(attempt()), 20);
        writer.append(Stream::Stdout, Time(1), &[1; 30]);
        writer.append(Stream::Stdout, Time(1), &[2; 30]);
        assert!(writer.truncated());
        let frames: Vec<Frame> = logs.read(attempt()).collect::<Result<_, _>>().unwrap();
        assert_eq!(frames[0].bytes, [1; 20]);
        assert_eq!(frames[1].stream, Stream::Note);
        assert_eq!(frames.len(), 2);
    }

    #[test]
    fn a_log_that_is_shorter_than_it_was_or_gone_says_so_once() {
        let (_dir, logs) = logs();
        let mut whole = writer(logs.path(attempt()), u64::MAX);
        for line in ["one\n", "two\n", "three\n"] {
            whole.append(Stream::Stdout, Time(7), line.as_bytes());
        }
        let length = whole.length();
        let of = |logs: &Logs| logs.read(attempt()).collect::<Result<Vec<Frame>, _>>().unwrap();
        logs.expect(&Arc::new(HashMap::from([(attempt(), length)])));
        assert_eq!(of(&logs).len(), 3, "a whole log has no note");
        let file = File::options().write(true).open(logs.path(attempt())).unwrap();
        for cut in (0..length).rev() {
            file.set_len(cut).unwrap();
            let frames = of(&logs);
            let note = frames.last().unwrap();
            assert_eq!(note.stream, Stream::Note, "cut at {cut}");
            assert!(String::from_utf8_lossy(&note.bytes).starts_with("the log is truncated"));
            let mut poured = Vec::new();
            let mut reader = logs.read(attempt());
            while reader.read_into(&mut poured, |_, _, _| true).unwrap() {}
            assert!(poured.ends_with(&note.bytes));
        }
        fs::remove_file(logs.path(attempt())).unwrap();
        let frames = of(&logs);
        assert!(String::from_utf8_lossy(&frames[0].bytes).starts_with("the log is missing"), "{frames:?}");
        assert_eq!(frames.len(), 1);
        assert!(of(&logs.without_expected_sizes()).is_empty(), "of which nothing is expected");
    }

    #[test]
    fn damage_is_an_error_with_its_place() {
        let (_dir, logs) = logs();
        let mut writer = writer(logs.path(attempt()), u64::MAX);
        writer.append(Stream::Stdout, Time(1), b"ok");
        File::options().append(true).open(logs.path(attempt())).unwrap().write_all(&[9; 40]).unwrap();
        let mut reader = logs.read(attempt());
        assert!(reader.next().unwrap().is_ok());
        assert!(matches!(reader.next(), Some(Err(Error::Damaged { at: 15, .. }))));
    }

    #[test]
    fn follow_gives_everything_and_ends_when_done() {
        let (_dir, logs) = logs();
        let mut writer = writer(logs.path(attempt()), u64::MAX);
        let mut rounds = 0;
        let mut seen = Vec::new();
        let step = std::cell::Cell::new(0_u8);
        logs.read(attempt())
            .follow(
                |frame| seen.extend(frame.bytes),
                || step.get() == 3,
                || {
                    step.set(step.get() + 1);
                    rounds += 1;
                    writer.append(Stream::Stdout, Time(0), &[step.get()]);
                },
            )
            .unwrap();
        assert_eq!((seen, rounds), (vec![1, 2, 3], 3));
    }

    #[test]
    fn deleting_a_run_takes_its_logs_only() {
        let (_dir, logs) = logs();
        let other = AttemptId { run: RunId(4), ..attempt() };
        for attempt in [attempt(), other] {
            writer(logs.path(attempt), u64::MAX).append(Stream::Stdout, Time(0), b"x");
        }
        logs.delete(RunId(3)).unwrap();
        logs.delete(RunId(3)).unwrap();
        assert!(!logs.path(attempt()).exists() && logs.path(other).exists());
    }
}
