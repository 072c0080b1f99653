//! Buffered writer of the log: lines are written in batches, because the reader of a pipe is woken for every write.
//! Warnings are flushed at once, with everything before them. Logging never blocks on a reader that does not read:
//! lines beyond the buffer are dropped, counted and reported.

use std::{
    io::{self, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use octoflow_control::Supervisor;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// Time that a line waits to be batched with others.
const BATCH_DELAY: Duration = Duration::from_millis(5);

/// Buffer size that triggers a write at once.
const FLUSH_BYTES: usize = 64 << 10;

/// Buffer limit while the reader does not read, some thousand lines; more are dropped.
const MAX_BUFFERED_BYTES: usize = 1 << 20;

/// Time that the caller waits for a warning to be written. A pipe that takes longer has no reader.
const WARNING_TIMEOUT: Duration = Duration::from_millis(200);

/// Time limit for flushing at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

const THREAD: &str = "log";

/// Shared input of the log.
pub(super) struct LogBuffer<W>(Arc<Shared<W>>);

struct Shared<W> {
    state: Mutex<State>,
    /// Notified when a line was added.
    added: Condvar,
    /// Notified when lines were written.
    flushed: Condvar,
    /// Locked during a write, which may block for ever.
    to: Mutex<W>,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Number of dropped lines.
    lost: u64,
    /// True if a caller waits for the buffer to be written.
    urgent: bool,
    /// Bytes accepted, and bytes written.
    taken: u64,
    written: u64,
    /// True if the last write took so long that callers no longer wait for it.
    stuck: bool,
    closing: bool,
    /// True if the thread is gone: callers write lines themselves.
    direct: bool,
}

/// Handle to the log thread, for supervision.
#[derive(Clone, Default)]
pub struct LogThread(Arc<Mutex<ThreadEnd>>);

#[derive(Default)]
struct ThreadEnd {
    /// Reason of an unexpected end.
    ended: Option<String>,
    supervisor: Option<Supervisor>,
}

impl LogThread {
    /// Registers a supervisor, which is notified of an unexpected end, also if that has happened already.
    pub fn supervised_by(&self, supervisor: &Supervisor) {
        let mut end = self.lock();
        end.supervisor = Some(supervisor.clone());
        let ended = end.ended.clone();
        drop(end);
        if let Some(why) = ended {
            supervisor.failed(THREAD, &why);
        }
    }

    fn ended(&self, why: String) {
        let mut end = self.lock();
        end.ended = Some(why.clone());
        let supervisor = end.supervisor.clone();
        drop(end);
        if let Some(supervisor) = supervisor {
            supervisor.failed(THREAD, &why);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ThreadEnd> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard of the log thread. Flushes the rest when dropped, if the log is being read.
#[must_use = "lines of the last moment are lost without it"]
pub struct LogGuard {
    close: Box<dyn Fn() + Send>,
    thread: Option<JoinHandle<()>>,
    end: LogThread,
}

impl LogGuard {
    /// Returns the handle for supervising the thread.
    pub fn thread(&self) -> LogThread {
        self.end.clone()
    }
}

/// Writer of one line.
pub(super) struct LineWriter<'a, W> {
    shared: &'a Shared<W>,
    urgent: bool,
}

impl<W: Write + Send + 'static> LogBuffer<W> {
    pub(super) fn new(to: W) -> io::Result<(Self, LogGuard)> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            added: Condvar::new(),
            flushed: Condvar::new(),
            to: Mutex::new(to),
        });
        let (own, end) = (shared.clone(), LogThread::default());
        let told = end.clone();
        let thread = thread::Builder::new().name(THREAD.to_owned()).spawn(move || {
            let ended = catch_unwind(AssertUnwindSafe(|| own.work()));
            own.lock().direct = true;
            own.flushed.notify_all();
            if ended.is_err() {
                told.ended("it panicked while lines were written".to_owned());
            }
        })?;
        let closer = shared.clone();
        let close = Box::new(move || {
            let mut state = closer.lock();
            state.closing = true;
            closer.added.notify_one();
            let waits = |state: &mut State| !state.direct;
            drop(closer.flushed.wait_timeout_while(state, CLOSE_TIMEOUT, waits));
        });
        Ok((Self(shared), LogGuard { close, thread: Some(thread), end }))
    }
}

impl<W: Write> Shared<W> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let idle = |state: &mut State| state.waiting.is_empty() && state.lost == 0 && !state.closing;
            let state = self.added.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
            let gathers = |state: &mut State| !state.urgent && !state.closing && state.waiting.len() <= FLUSH_BYTES;
            let waited = self.added.wait_timeout_while(state, BATCH_DELAY, gathers);
            let state = waited.unwrap_or_else(PoisonError::into_inner).0;
            let closing = state.closing;
            self.write_out(state);
            if closing && self.lock().waiting.is_empty() {
                return;
            }
        }
    }

    /// Writes the buffer without blocking callers that log meanwhile.
    fn write_out(&self, mut state: MutexGuard<'_, State>) {
        let mut lines = std::mem::take(&mut state.waiting);
        let (upto, lost) = (state.taken, std::mem::take(&mut state.lost));
        state.urgent = false;
        drop(state);
        if lost > 0 {
            lines.extend_from_slice(format!("{lost} lines of the log were lost: it was not being read\n").as_bytes());
        }
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        // A failed write of the log cannot be reported anywhere.
        let _ = to.write_all(&lines).and_then(|()| to.flush());
        drop(to);
        let mut state = self.lock();
        state.written = state.written.max(upto);
        state.stuck = false;
        drop(state);
        self.flushed.notify_all();
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        (self.close)();
        // A thread that still writes has no reader; the process ends without it.
        if let Some(thread) = self.thread.take().filter(JoinHandle::is_finished) {
            let _ = thread.join();
        }
    }
}

impl<'a, W: Write + 'static> MakeWriter<'a> for LogBuffer<W> {
    type Writer = LineWriter<'a, W>;

    fn make_writer(&'a self) -> LineWriter<'a, W> {
        LineWriter { shared: &self.0, urgent: false }
    }

    fn make_writer_for(&'a self, about: &Metadata<'_>) -> LineWriter<'a, W> {
        LineWriter { shared: &self.0, urgent: *about.level() <= Level::WARN }
    }
}

impl<W: Write> Write for LineWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let shared = self.shared;
        let mut state = shared.lock();
        if state.waiting.len() + bytes.len() > MAX_BUFFERED_BYTES {
            state.lost += 1;
            return Ok(bytes.len());
        }
        let first = state.waiting.is_empty();
        state.waiting.extend_from_slice(bytes);
        state.taken += bytes.len() as u64;
        if state.direct {
            shared.write_out(state);
            return Ok(bytes.len());
        }
        let mine = state.taken;
        state.urgent |= self.urgent;
        if first || self.urgent || state.waiting.len() > FLUSH_BYTES {
            shared.added.notify_one();
        }
        if self.urgent && !state.stuck {
            let waits = |state: &mut State| state.written < mine && !state.direct && !state.stuck;
            let waited = shared.flushed.wait_timeout_while(state, WARNING_TIMEOUT, waits);
            let (mut state, late) = waited.unwrap_or_else(PoisonError::into_inner);
            state.stuck |= late.timed_out();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Records each write separately.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<String>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().push(String::from_utf8(bytes.to_vec()).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Paper {
        fn text(&self) -> String {
            self.0.lock().unwrap().concat()
        }
    }

    fn put(buffer: &LogBuffer<Paper>, text: &str, urgent: bool) {
        LineWriter { shared: &buffer.0, urgent }.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn lines_come_out_in_order_in_few_writes_and_nobody_has_to_ask() {
        let paper = Paper::default();
        let (buffer, _lines) = LogBuffer::new(paper.clone()).unwrap();
        let all: String = (0..1000).map(|at| format!("{at}\n")).collect();
        (0..1000).for_each(|at| put(&buffer, &format!("{at}\n"), false));
        let deadline = Instant::now() + Duration::from_secs(30);
        while paper.text() != all {
            assert!(Instant::now() < deadline, "{}", paper.text());
            thread::sleep(BATCH_DELAY);
        }
        assert!(paper.0.lock().unwrap().len() < 500);
    }

    #[test]
    fn a_warning_is_out_at_once_and_nothing_overtakes() {
        let paper = Paper::default();
        let (buffer, _lines) = LogBuffer::new(paper.clone()).unwrap();
        put(&buffer, "before\n", false);
        put(&buffer, "warning\n", true);
        // A warning was waited for already, unless the machine is very busy.
        let deadline = Instant::now() + Duration::from_secs(30);
        while paper.text() != "before\nwarning\n" {
            assert!(Instant::now() < deadline, "{}", paper.text());
            thread::sleep(BATCH_DELAY);
        }
    }

    /// Panics once.
    struct Unlucky(Paper, bool);

    impl Write for Unlucky {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            assert!(std::mem::replace(&mut self.1, true), "unlucky");
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Blocks writes until released.
    struct Stuck(Paper, std::sync::mpsc::Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Released for good.
            let _ = self.1.recv();
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_who_does_not_read_stops_nobody_and_what_was_lost_is_told() {
        let paper = Paper::default();
        let (release, held) = std::sync::mpsc::channel();
        let (buffer, lines) = LogBuffer::new(Stuck(paper.clone(), held)).unwrap();
        let began = Instant::now();
        let text = "x".repeat(1023) + "\n";
        for at in 0..3000 {
            LineWriter { shared: &buffer.0, urgent: at % 100 == 0 }.write_all(text.as_bytes()).unwrap();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "thirty warnings did not wait in vain");
        assert!(buffer.0.lock().waiting.len() <= MAX_BUFFERED_BYTES, "what waits is bounded");
        drop(release);
        drop(lines);
        let written = paper.text();
        assert!(written.contains("lines of the log were lost"), "{}", written.len());
        assert!(written.lines().filter(|line| line.starts_with('x')).count() > 900);
    }

    #[test]
    fn the_end_does_not_wait_for_a_reader_who_does_not_read() {
        let (release, held) = std::sync::mpsc::channel();
        let (buffer, lines) = LogBuffer::new(Stuck(Paper::default(), held)).unwrap();
        LineWriter { shared: &buffer.0, urgent: false }.write_all(b"last\n").unwrap();
        drop(lines);
        // Reached only because the end does not wait for a blocked write.
        drop(release);
    }

    #[test]
    fn the_supervisor_hears_of_the_end_of_the_thread_and_no_line_is_lost_after_it() {
        let paper = Paper::default();
        let (buffer, lines) = LogBuffer::new(Unlucky(paper.clone(), false)).unwrap();
        let supervisor = Supervisor::default();
        let (tell, told) = std::sync::mpsc::channel();
        supervisor.on_failure(move |failure| tell.send(failure.thread.clone()).unwrap());
        lines.thread().supervised_by(&supervisor);
        LineWriter { shared: &buffer.0, urgent: false }.write_all(b"first\n").unwrap();
        assert_eq!(told.recv_timeout(Duration::from_secs(30)).unwrap(), "log");
        LineWriter { shared: &buffer.0, urgent: false }.write_all(b"second\n").unwrap();
        assert_eq!(paper.text(), "second\n", "the first is what it panicked over");
        let late = Supervisor::default();
        lines.thread().supervised_by(&late);
        assert!(late.failure().is_some(), "who comes later hears it too");
    }

    #[test]
    fn the_end_loses_nothing_and_what_comes_after_it_is_written_too() {
        let paper = Paper::default();
        let (buffer, lines) = LogBuffer::new(paper.clone()).unwrap();
        put(&buffer, "last\n", false);
        drop(lines);
        assert_eq!(paper.text(), "last\n");
        put(&buffer, "later\n", false);
        assert_eq!(paper.text(), "last\nlater\n");
    }
}
