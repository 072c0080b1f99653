//! Assembles the frames of attempts' logs into lines in order of time. Memory is bounded: long logs are read on demand,
//! only small ones are held whole.

use octoflow_model::{AttemptId, Time};
use octoflow_runtime::logs::{Error, Frame, Logs, Reader, Stream};

mod merged;

pub(crate) use merged::{LogSource, MergedLog};

/// Longer lines are split here.
const MAX_LINE_BYTES: usize = 1 << 20;

/// One line of one source, without its line break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub at: Time,
    /// Number of the source.
    pub source: usize,
    pub stream: Stream,
    /// Container that wrote it, if it is not the main one.
    pub container: Option<Box<str>>,
    pub bytes: Vec<u8>,
}

/// Assembles lines from the fragments in which they were written.
#[derive(Debug, Default)]
struct Assembler {
    /// Unfinished line of each stream of each container.
    unfinished: Vec<Unfinished>,
    last: Time,
}

#[derive(Debug)]
struct Unfinished {
    container: Option<Box<str>>,
    stream: Stream,
    bytes: Vec<u8>,
}

impl Assembler {
    /// Returns the next complete line of a frame from this byte on. The rest of the frame is kept as an unfinished
    /// line.
    fn cut(&mut self, source: usize, frame: &Frame, from: &mut usize) -> Option<Line> {
        let Frame { stream, at, container, bytes } = frame;
        self.last = *at;
        let rest = &bytes[*from..];
        let line = |bytes: Vec<u8>| Line { at: *at, source, stream: *stream, container: container.clone(), bytes };
        if rest.is_empty() {
            return None;
        }
        if *stream == Stream::Note {
            *from = bytes.len();
            return Some(line(rest.strip_suffix(b"\n").unwrap_or(rest).to_vec()));
        }
        let known = self
            .unfinished
            .iter()
            .position(|unfinished| unfinished.stream == *stream && unfinished.container == *container);
        let place = known.unwrap_or_else(|| {
            self.unfinished.push(Unfinished { container: container.clone(), stream: *stream, bytes: Vec::new() });
            self.unfinished.len() - 1
        });
        let unfinished = &mut self.unfinished[place].bytes;
        let room = MAX_LINE_BYTES - unfinished.len();
        let end = rest.iter().take(room).position(|byte| *byte == b'\n');
        let taken = end.map_or(rest.len().min(room), |end| end + 1);
        *from += taken;
        unfinished.extend_from_slice(&rest[..taken]);
        if end.is_none() && unfinished.len() < MAX_LINE_BYTES {
            return None;
        }
        let mut bytes = std::mem::take(unfinished);
        if end.is_some() {
            bytes.pop();
            if bytes.ends_with(b"\r") {
                bytes.pop();
            }
        }
        Some(line(bytes))
    }

    /// Returns unfinished lines at the end of the log.
    fn finish(&mut self, source: usize) -> Option<Line> {
        while let Some(Unfinished { container, stream, bytes }) =
            (!self.unfinished.is_empty()).then(|| self.unfinished.remove(0))
        {
            if !bytes.is_empty() {
                return Some(Line { at: self.last, source, stream, container, bytes });
            }
        }
        None
    }
}

/// Lines of one attempt, also while it is being written.
pub struct Source {
    number: usize,
    reader: Reader,
    assembler: Assembler,
    /// Current frame, and the position in it.
    frame: Option<(Frame, usize)>,
}

impl Source {
    pub fn open(number: usize, logs: &Logs, attempt: AttemptId) -> Self {
        Self { number, reader: logs.read(attempt), assembler: Assembler::default(), frame: None }
    }

    /// Returns the complete lines that were written since the last call.
    pub fn new_lines(&mut self) -> Result<Vec<Line>, Error> {
        self.all(false)
    }

    /// Returns the rest of a finished attempt's log.
    pub fn finish(mut self) -> Result<Vec<Line>, Error> {
        self.all(true)
    }

    fn all(&mut self, over: bool) -> Result<Vec<Line>, Error> {
        let mut lines = Vec::new();
        while let Some(line) = self.next(over)? {
            lines.push(line);
        }
        Ok(lines)
    }

    /// Returns the next complete line; if the attempt is over, also an unfinished last one.
    pub fn next(&mut self, over: bool) -> Result<Option<Line>, Error> {
        loop {
            if let Some((frame, from)) = &mut self.frame {
                if let Some(line) = self.assembler.cut(self.number, frame, from) {
                    return Ok(Some(line));
                }
                self.frame = None;
            }
            match self.reader.next_frame()? {
                Some(frame) => self.frame = Some((frame, 0)),
                None if over => return Ok(self.assembler.finish(self.number)),
                None => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use octoflow_model::{NodeIx, RunId};
    use tempfile::tempdir;

    use super::*;

    fn attempt(task: u32) -> AttemptId {
        AttemptId { run: RunId(1), task: NodeIx(task), attempt: 0 }
    }

    /// Frames in the format of the log files, which is fixed: stream, microseconds, length, bytes.
    fn write(logs: &Logs, task: u32, frames: &[(u8, i64, &[u8])]) {
        let path = logs.path(attempt(task));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut bytes = Vec::new();
        for (stream, at, text) in frames {
            bytes.push(*stream);
            bytes.extend(at.to_le_bytes());
            bytes.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
            bytes.extend(*text);
        }
        fs::write(path, bytes).unwrap();
    }

    fn all(logs: &Logs, sources: &[(Time, AttemptId)]) -> Vec<(usize, String)> {
        let mut merged = MergedLog::new(logs.clone(), None);
        let found = |(began, attempt): &(Time, AttemptId)| LogSource { attempt: *attempt, began: *began, over: true };
        merged.add(&sources.iter().map(found).collect::<Vec<_>>(), true, &mut |_| true).unwrap();
        let lines = told(&mut merged).into_iter().map(|(source, _, text)| (source, text)).collect();
        assert!(merged.is_over());
        lines
    }

    /// Returns source, number and text of each line.
    fn told(merged: &mut MergedLog) -> Vec<(usize, u64, String)> {
        let mut lines = Vec::new();
        while let Some((number, line)) = merged.next_line(&mut |line| line.bytes != b"-").unwrap() {
            lines.push((line.source, number, String::from_utf8_lossy(&line.bytes).into_owned()));
        }
        lines
    }

    #[test]
    fn a_tail_counts_what_is_wanted_and_leaves_nothing_out_of_what_comes_up_later() {
        let dir = tempdir().unwrap();
        let logs = Logs::new(dir.path());
        let mut merged = MergedLog::new(logs.clone(), Some(1));
        let find = |merged: &mut MergedLog, tasks: &[u32], settled: bool| {
            let found = |task: &u32| LogSource { attempt: attempt(*task), began: Time(0), over: false };
            let found: Vec<LogSource> = tasks.iter().map(found).collect();
            merged.add(&found, settled, &mut |line| line.bytes != b"-").unwrap();
        };
        let line = |source: usize, number: u64, text: &str| (source, number, text.to_owned());
        write(&logs, 0, &[(1, 1, b"a\nb\n-\n")]);
        find(&mut merged, &[0], false);
        assert_eq!(told(&mut merged), [line(0, 1, "b")]);
        assert!(merged.is_drained() && !merged.is_over());
        write(&logs, 0, &[(1, 1, b"a\nb\n-\n"), (1, 5, b"c\nd\n"), (1, 6, b"e")]);
        write(&logs, 1, &[(1, 4, b"x\ny\n")]);
        find(&mut merged, &[0, 1], false);
        assert_eq!(told(&mut merged), [line(1, 0, "x"), line(1, 1, "y"), line(0, 3, "c"), line(0, 4, "d")]);
        find(&mut merged, &[0, 1], true);
        assert_eq!((told(&mut merged), merged.is_over()), (vec![line(0, 5, "e")], true));
    }

    #[test]
    fn lines_of_several_attempts_come_in_order_of_time() {
        let dir = tempdir().unwrap();
        let logs = Logs::new(dir.path());
        write(&logs, 0, &[(1, 10, b"a1\na2\n"), (1, 40, b"a3")]);
        write(&logs, 1, &[(2, 20, b"b1\n"), (1, 30, b"b2\r\n")]);
        let sources = [(Time(0), attempt(0)), (Time(0), attempt(1)), (Time(0), attempt(2))];
        let lines = all(&logs, &sources);
        let expected = [(0, "a1"), (0, "a2"), (1, "b1"), (1, "b2"), (0, "a3")];
        assert_eq!(lines, expected.map(|(source, text)| (source, text.to_owned())));
    }

    #[test]
    fn pieces_become_lines_and_the_streams_do_not_mix() {
        let dir = tempdir().unwrap();
        let logs = Logs::new(dir.path());
        write(&logs, 0, &[(1, 1, b"hel"), (2, 2, b"oops\n"), (1, 3, b"lo\n"), (3, 4, b"the log ends here\n")]);
        let lines = Source::open(0, &logs, attempt(0)).finish().unwrap();
        let texts: Vec<(Stream, &[u8])> = lines.iter().map(|line| (line.stream, line.bytes.as_slice())).collect();
        assert_eq!(
            texts,
            [(Stream::Stderr, &b"oops"[..]), (Stream::Stdout, b"hello"), (Stream::Note, b"the log ends here")]
        );
    }

    #[test]
    fn the_containers_of_one_attempt_do_not_mix() {
        let dir = tempdir().unwrap();
        let logs = Logs::new(dir.path());
        // Bytes of other containers begin with the container's name.
        write(&logs, 0, &[(1, 1, b"ma"), (0x11, 2, b"\x04sidesi"), (1, 3, b"in\n"), (0x11, 4, b"\x04sidede\n")]);
        let lines = Source::open(0, &logs, attempt(0)).finish().unwrap();
        let texts: Vec<(Option<&str>, &[u8])> =
            lines.iter().map(|line| (line.container.as_deref(), line.bytes.as_slice())).collect();
        assert_eq!(texts, [(None, &b"main"[..]), (Some("side"), b"side")]);
    }

    #[test]
    fn a_look_gives_only_whole_lines() {
        let dir = tempdir().unwrap();
        let logs = Logs::new(dir.path());
        write(&logs, 0, &[(1, 1, b"one\ntw")]);
        let mut source = Source::open(0, &logs, attempt(0));
        assert_eq!(source.new_lines().unwrap().len(), 1);
        assert_eq!(source.new_lines().unwrap().len(), 0);
        assert_eq!(source.finish().unwrap()[0].bytes, b"tw");
    }

    #[test]
    fn long_logs_are_read_piece_by_piece_with_the_same_result() {
        let dir = tempdir().unwrap();
        let logs = Logs::new(dir.path());
        let long = b"0123456789abcdef\n".repeat(10_000);
        write(&logs, 0, &[(1, 1, &long)]);
        write(&logs, 1, &[(1, 2, b"after\n")]);
        let lines = all(&logs, &[(Time(0), attempt(0)), (Time(2), attempt(1))]);
        assert_eq!(lines.len(), 10_001);
        assert_eq!(lines.last(), Some(&(1, "after".to_owned())));
    }

    #[test]
    fn what_nobody_wants_is_passed_over_in_steps_and_nothing_is_lost() {
        let dir = tempdir().unwrap();
        let logs = Logs::new(dir.path());
        let unwanted = b"-23456789abcdef\n".repeat(32 * 1024);
        let mut frames: Vec<(u8, i64, &[u8])> = (1..=20).map(|at| (1, at, unwanted.as_slice())).collect();
        frames.push((1, 21, b"one\ntwo\n"));
        write(&logs, 0, &frames);
        write(&logs, 1, &[(1, 2, b"other\n")]);
        for (tail, expected) in [(None, vec!["other", "one", "two"]), (Some(1), vec!["other", "two"])] {
            let mut merged = MergedLog::new(logs.clone(), tail);
            let found = |task: u32| LogSource { attempt: attempt(task), began: Time(0), over: true };
            let mut wants = |line: &Line| !line.bytes.starts_with(b"-");
            merged.add(&[found(0), found(1)], true, &mut wants).unwrap();
            let (mut lines, mut steps) = (Vec::new(), 0);
            while !merged.is_over() {
                match merged.next_line(&mut wants).unwrap() {
                    Some((_, line)) => lines.push(String::from_utf8(line.bytes).unwrap()),
                    None => steps += usize::from(merged.is_scanning()),
                }
            }
            assert_eq!(lines, expected);
            assert!(steps >= 2, "{steps}");
        }
    }
}
