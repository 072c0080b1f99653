//! The writing side of a log. Never fails and never waits: what cannot be written is counted and dropped, the log says
//! how much is missing where, and continues when there is space again. Only its size limit ends a log.

use std::{
    fs::{self, File},
    io::{self, Seek, SeekFrom, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use octoflow_model::time::Time;

use super::{MAX_FRAME, MAX_NAME, OF_CONTAINER, Stream, header};

/// Set while less disk space is free than is reserved: logs stop before the disk is really full.
pub(crate) type Pressure = Arc<AtomicBool>;

pub(crate) struct Writer {
    path: PathBuf,
    create: Box<Create>,
    file: Option<Box<dyn LogFile>>,
    /// Spare descriptor, held until the file is opened.
    reserve: Option<OwnedFd>,
    pressure: Pressure,
    /// Bytes of complete frames in the file.
    length: u64,
    limit: u64,
    /// True once the limit was reached: nothing more is written.
    full: bool,
    /// What was dropped since the last frame, and why.
    gap: Option<Gap>,
    /// True if anything was ever dropped.
    truncated: bool,
}

/// The file of a log. A trait, so that tests can make every single call fail.
trait LogFile: Write + Send {
    /// Cuts the file to this length and goes on writing there.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl LogFile for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        let cut = self.set_len(length);
        // If it cannot be cut, it is overwritten.
        self.seek(SeekFrom::Start(length))?;
        cut
    }
}

type Create = dyn Fn(&Path) -> io::Result<Box<dyn LogFile>> + Send;

struct Gap {
    bytes: u64,
    why: String,
}

impl Writer {
    pub(crate) fn new(path: PathBuf, limit: u64, pressure: Pressure, reserve: Option<OwnedFd>) -> Self {
        Self {
            path,
            create: Box::new(create),
            file: None,
            reserve,
            pressure,
            length: 0,
            limit,
            full: false,
            gap: None,
            truncated: false,
        }
    }

    pub(crate) fn truncated(&self) -> bool {
        self.truncated
    }

    /// Returns the length of the file, from which a reader can tell that a part is missing.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn append(&mut self, stream: Stream, at: Time, bytes: &[u8]) {
        self.append_of(None, stream, at, bytes);
    }

    /// Appends bytes of a container; `None` is the main one.
    pub(crate) fn append_of(&mut self, container: Option<&str>, stream: Stream, at: Time, bytes: &[u8]) {
        if self.full || bytes.is_empty() || !self.can_continue(at, bytes.len()) {
            return;
        }
        let room = usize::try_from(self.limit.saturating_sub(self.length)).unwrap_or(usize::MAX);
        let kept = &bytes[..bytes.len().min(room)];
        let mut written = 0;
        for part in kept.chunks(MAX_FRAME - MAX_NAME) {
            if let Err(error) = self.frame(container, stream, at, part) {
                self.drop_bytes(bytes.len() - written, || error.to_string());
                return;
            }
            written += part.len();
        }
        if kept.len() < bytes.len() {
            self.full = true;
            self.truncated = true;
            let note = format!("the log ends here: it reached its limit of {} bytes\n", self.limit);
            let _ = self.frame(None, Stream::Note, at, note.as_bytes());
        }
    }

    /// Ends the log, and notes what is missing at its end. One line may use the reserved space. Returns false if even
    /// that line cannot be written; then it can be called again later.
    pub(crate) fn close(&mut self, at: Time) -> bool {
        self.note_gap(at)
    }

    /// Returns whether the log can continue: a gap is noted before anything after it is written. Otherwise `coming`
    /// bytes are dropped.
    fn can_continue(&mut self, at: Time, coming: usize) -> bool {
        if self.pressure.load(Ordering::Relaxed) {
            self.drop_bytes(coming, || "less space is free than is reserved for the engine".to_owned());
            return false;
        }
        let named = self.note_gap(at);
        if !named {
            self.drop_bytes(coming, String::new);
        }
        named
    }

    fn note_gap(&mut self, at: Time) -> bool {
        let Some(gap) = self.gap.take() else { return true };
        let (bytes, why, length) = (gap.bytes, &gap.why, self.length);
        let note = format!("{bytes} bytes of output are missing here, behind byte {length} of the log: {why}\n");
        match self.frame(None, Stream::Note, at, note.as_bytes()) {
            Ok(()) => true,
            Err(_) => {
                self.gap = Some(gap);
                false
            }
        }
    }

    fn drop_bytes(&mut self, count: usize, why: impl FnOnce() -> String) {
        if count > 0 {
            self.truncated = true;
            self.gap.get_or_insert_with(|| Gap { bytes: 0, why: why() }).bytes += count as u64;
        }
    }

    fn frame(&mut self, container: Option<&str>, stream: Stream, at: Time, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                self.reserve = None;
                self.file.insert((self.create)(&self.path)?)
            }
        };
        let name = container.map_or(&[][..], |name| &name.as_bytes()[..name.len().min(MAX_NAME - 1)]);
        let marked;
        let (mut header, bytes) = match container {
            None => (header(stream, at, bytes.len()), bytes),
            Some(_) => {
                let length = u8::try_from(name.len()).expect("a name was cut to fit");
                marked = [&[length], name, bytes].concat();
                (header(stream, at, marked.len()), &marked[..])
            }
        };
        if container.is_some() {
            header[0] |= OF_CONTAINER;
        }
        let parts = [io::IoSlice::new(&header), io::IoSlice::new(bytes)];
        let whole = header.len() + bytes.len();
        let sent = loop {
            match file.write_vectored(&parts) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                sent => break sent,
            }
        };
        let outcome = match sent {
            Ok(sent) if sent == whole => Ok(()),
            Ok(sent) if sent < header.len() => file.write_all(&header[sent..]).and_then(|()| file.write_all(bytes)),
            Ok(sent) => file.write_all(&bytes[sent - header.len()..]),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(()) => self.length += whole as u64,
            // A partial frame would make the rest unreadable. If it cannot be cut off, the next frame overwrites it.
            Err(_) => drop(file.cut(self.length)),
        }
        outcome
    }
}

fn create(path: &Path) -> io::Result<Box<dyn LogFile>> {
    let open = || loop {
        match File::create(path) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    };
    let file = match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            open()
        }
        other => other,
    };
    Ok(Box::new(file?))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use octoflow_model::ids::{AttemptId, NodeIx, RunId};

    use super::*;
    use crate::logs::{Frame, Logs};

    fn attempt() -> AttemptId {
        AttemptId { run: RunId(3), task: NodeIx(1), attempt: 0 }
    }

    fn frames(logs: &Logs) -> Vec<Frame> {
        logs.read(attempt()).collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn a_gap_is_named_with_its_size_and_place_and_the_log_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let logs = Logs::new(dir.path());
        let pressure = Pressure::default();
        let mut writer = Writer::new(logs.path(attempt()), u64::MAX, pressure.clone(), None);
        writer.append(Stream::Stdout, Time(1), b"before");
        let place = writer.length();
        pressure.store(true, Ordering::Relaxed);
        writer.append(Stream::Stdout, Time(2), &[0; 40]);
        writer.append(Stream::Stderr, Time(2), &[0; 2]);
        assert!(writer.truncated() && writer.length() == place);
        pressure.store(false, Ordering::Relaxed);
        writer.append(Stream::Stdout, Time(3), b"after");
        let frames = frames(&logs);
        let note = String::from_utf8_lossy(&frames[1].bytes);
        assert_eq!(frames[1].stream, Stream::Note);
        assert!(note.starts_with(&format!("42 bytes of output are missing here, behind byte {place}")), "{note}");
        assert_eq!((frames[0].bytes.as_slice(), frames[2].bytes.as_slice()), (&b"before"[..], &b"after"[..]));
        assert_eq!(writer.length(), fs::metadata(logs.path(attempt())).unwrap().len());
    }

    #[test]
    fn a_log_that_cannot_even_be_made_is_truncated_and_starts_when_it_can() {
        let dir = tempfile::tempdir().unwrap();
        let logs = Logs::new(dir.path());
        // A file in the place of the log directory.
        fs::write(dir.path().join("logs"), "").unwrap();
        let mut writer = Writer::new(logs.path(attempt()), u64::MAX, Pressure::default(), None);
        writer.append(Stream::Stdout, Time(1), b"lost");
        assert!(writer.truncated() && writer.length() == 0);
        assert!(!writer.close(Time(2)), "the note cannot be written either");
        fs::remove_file(dir.path().join("logs")).unwrap();
        assert!(writer.close(Time(3)) && writer.close(Time(4)), "it is written once");
        let frames = frames(&logs);
        assert!(String::from_utf8_lossy(&frames[0].bytes).starts_with("4 bytes of output are missing here"));
        assert_eq!(frames.len(), 1);
    }

    /// A file that fails its n-th call, after a part of the bytes was written.
    struct Faulty {
        file: File,
        calls: Arc<Mutex<usize>>,
        fault: (usize, i32),
        torn: usize,
    }

    fn fails(calls: &Mutex<usize>, (nth, code): (usize, i32)) -> io::Result<()> {
        let mut calls = calls.lock().unwrap();
        *calls += 1;
        if *calls == nth { Err(io::Error::from_raw_os_error(code)) } else { Ok(()) }
    }

    impl Write for Faulty {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Err(error) = fails(&self.calls, self.fault) {
                if error.kind() != io::ErrorKind::Interrupted {
                    self.file.write_all(&bytes[..self.torn.min(bytes.len())]).unwrap();
                }
                return Err(error);
            }
            // A disk may take less than it was given.
            self.file.write(&bytes[..bytes.len().min(self.torn + 7)])
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl LogFile for Faulty {
        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.file.seek(SeekFrom::Start(length))?;
            fails(&self.calls, self.fault)?;
            self.file.set_len(length)
        }
    }

    /// Writes a log of ten lines whose n-th call fails; returns its frames and the number of calls.
    fn play(fault: (usize, i32), torn: usize) -> (Vec<Frame>, bool, usize) {
        let dir = tempfile::tempdir().unwrap();
        let logs = Logs::new(dir.path());
        let calls = Arc::new(Mutex::new(0));
        let mut writer = Writer::new(logs.path(attempt()), u64::MAX, Pressure::default(), None);
        let counted = calls.clone();
        writer.create = Box::new(move |path| {
            fails(&counted, fault)?;
            fs::create_dir_all(path.parent().unwrap())?;
            Ok(Box::new(Faulty { file: File::create(path)?, calls: counted.clone(), fault, torn }))
        });
        for line in 0..10 {
            writer.append(Stream::Stdout, Time(line), format!("line {line}\n").as_bytes());
        }
        assert!(writer.close(Time(10)) || writer.close(Time(11)));
        let length = fs::metadata(logs.path(attempt())).unwrap().len();
        assert!(writer.length() <= length, "{} and {length}", writer.length());
        let calls = *calls.lock().unwrap();
        (frames(&logs), writer.truncated(), calls)
    }

    #[test]
    fn whatever_call_fails_the_log_is_whole_or_says_how_much_is_missing_where() {
        let (sound, truncated, calls) = play((0, 0), 3);
        assert!(sound.len() == 10 && !truncated);
        for code in [libc::EIO, libc::ENOSPC, libc::EINTR] {
            for nth in 1..=calls {
                for torn in [0, 1, 12, 20] {
                    let (frames, truncated, _) = play((nth, code), torn);
                    let mut bytes = 0;
                    for frame in &frames {
                        let text = String::from_utf8_lossy(&frame.bytes);
                        if frame.stream == Stream::Note {
                            let (missing, _) = text.split_once(" bytes of output are missing here").unwrap();
                            bytes += missing.parse::<usize>().unwrap();
                        } else {
                            assert!(text.starts_with("line ") && text.len() == 7, "{text}");
                            bytes += text.len();
                        }
                    }
                    assert_eq!(bytes, 70, "call {nth} failed with {code} after {torn} bytes");
                    let missing = frames.iter().any(|frame| frame.stream == Stream::Note);
                    assert_eq!(truncated, missing, "call {nth} failed with {code}");
                    assert!(code != libc::EINTR || nth == 1 || !missing, "an interrupted call {nth} lost a line");
                }
            }
        }
    }
}
