//! Lines of the log on their way out: those of a moment are written together, because whoever reads them at the other end
//! of a pipe is waked for every write. What warns is written at once, with everything before it.
//! Nobody who says something ever waits for a reader that does not read: lines that find no room are counted and told.

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

/// How long a line waits for others.
const MOMENT: Duration = Duration::from_millis(5);

/// More than this does not wait.
const MOST: usize = 64 << 10;

/// What waits for a reader who does not read; more is lost. Some thousand lines.
const MOST_KEPT: usize = 1 << 20;

/// How long whoever warns waits until that is written. A pipe that takes longer has nobody who reads it.
const WARNING_WAITS: Duration = Duration::from_millis(200);

/// How long the end waits for the last lines.
const END_WAITS: Duration = Duration::from_secs(2);

const THREAD: &str = "log";

/// Where lines go in. Clones share it.
pub(super) struct Gather<W>(Arc<Shared<W>>);

struct Shared<W> {
    state: Mutex<State>,
    /// Somebody said something.
    bell: Condvar,
    /// Something was written.
    out: Condvar,
    /// Held while something is written, which may take for ever.
    to: Mutex<W>,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Lines that found no room.
    lost: u64,
    /// Somebody waits for what waits.
    urgent: bool,
    /// Bytes that were taken, and those of them that were written.
    taken: u64,
    written: u64,
    /// The last write took so long that nobody waits for it.
    stuck: bool,
    closing: bool,
    /// The thread is gone: whoever says something writes it.
    direct: bool,
}

/// The end of the thread that writes lines, and who hears of it. Clones share it.
#[derive(Clone, Default)]
pub struct LogThread(Arc<Mutex<Fate>>);

#[derive(Default)]
struct Fate {
    /// Why it ended, if it did unasked.
    ended: Option<String>,
    supervisor: Option<Supervisor>,
}

impl LogThread {
    /// The supervisor hears when the thread ends unasked, also when that was before.
    pub fn supervised_by(&self, supervisor: &Supervisor) {
        let mut fate = self.lock();
        fate.supervisor = Some(supervisor.clone());
        let ended = fate.ended.clone();
        drop(fate);
        if let Some(why) = ended {
            supervisor.failed(THREAD, &why);
        }
    }

    fn ended(&self, why: String) {
        let mut fate = self.lock();
        fate.ended = Some(why.clone());
        let supervisor = fate.supervisor.clone();
        drop(fate);
        if let Some(supervisor) = supervisor {
            supervisor.failed(THREAD, &why);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Fate> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes what waits. What is still there is written when it is dropped, if somebody reads.
#[must_use = "lines of the last moment are lost without it"]
pub struct Lines {
    close: Box<dyn Fn() + Send>,
    thread: Option<JoinHandle<()>>,
    fate: LogThread,
}

impl Lines {
    /// To have the thread supervised that writes them.
    pub fn thread(&self) -> LogThread {
        self.fate.clone()
    }
}

/// One line on its way in.
pub(super) struct Line<'a, W> {
    shared: &'a Shared<W>,
    urgent: bool,
}

impl<W: Write + Send + 'static> Gather<W> {
    pub(super) fn new(to: W) -> io::Result<(Self, Lines)> {
        let shared =
            Arc::new(Shared { state: Mutex::default(), bell: Condvar::new(), out: Condvar::new(), to: Mutex::new(to) });
        let (own, fate) = (shared.clone(), LogThread::default());
        let told = fate.clone();
        let thread = thread::Builder::new().name(THREAD.to_owned()).spawn(move || {
            let ended = catch_unwind(AssertUnwindSafe(|| own.work()));
            own.lock().direct = true;
            own.out.notify_all();
            if ended.is_err() {
                told.ended("it panicked while lines were written".to_owned());
            }
        })?;
        let ears = shared.clone();
        let close = Box::new(move || {
            let mut state = ears.lock();
            state.closing = true;
            ears.bell.notify_one();
            let waits = |state: &mut State| !state.direct;
            drop(ears.out.wait_timeout_while(state, END_WAITS, waits));
        });
        Ok((Self(shared), Lines { close, thread: Some(thread), fate }))
    }
}

impl<W: Write> Shared<W> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let idle = |state: &mut State| state.waiting.is_empty() && state.lost == 0 && !state.closing;
            let state = self.bell.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
            let gathers = |state: &mut State| !state.urgent && !state.closing && state.waiting.len() <= MOST;
            let waited = self.bell.wait_timeout_while(state, MOMENT, gathers);
            let state = waited.unwrap_or_else(PoisonError::into_inner).0;
            let closing = state.closing;
            self.write_out(state);
            if closing && self.lock().waiting.is_empty() {
                return;
            }
        }
    }

    /// Writes what waits, without holding up those who say something meanwhile.
    fn write_out(&self, mut state: MutexGuard<'_, State>) {
        let mut lines = std::mem::take(&mut state.waiting);
        let (upto, lost) = (state.taken, std::mem::take(&mut state.lost));
        state.urgent = false;
        drop(state);
        if lost > 0 {
            lines.extend_from_slice(format!("{lost} lines of the log were lost: nobody read it\n").as_bytes());
        }
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        // There is nobody left to tell when nobody can be told.
        let _ = to.write_all(&lines).and_then(|()| to.flush());
        drop(to);
        let mut state = self.lock();
        state.written = state.written.max(upto);
        state.stuck = false;
        drop(state);
        self.out.notify_all();
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        (self.close)();
        // One that still writes has nobody who reads; the process ends without it.
        if let Some(thread) = self.thread.take().filter(JoinHandle::is_finished) {
            let _ = thread.join();
        }
    }
}

impl<'a, W: Write + 'static> MakeWriter<'a> for Gather<W> {
    type Writer = Line<'a, W>;

    fn make_writer(&'a self) -> Line<'a, W> {
        Line { shared: &self.0, urgent: false }
    }

    fn make_writer_for(&'a self, about: &Metadata<'_>) -> Line<'a, W> {
        Line { shared: &self.0, urgent: *about.level() <= Level::WARN }
    }
}

impl<W: Write> Write for Line<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let shared = self.shared;
        let mut state = shared.lock();
        if state.waiting.len() + bytes.len() > MOST_KEPT {
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
        if first || self.urgent || state.waiting.len() > MOST {
            shared.bell.notify_one();
        }
        if self.urgent && !state.stuck {
            let waits = |state: &mut State| state.written < mine && !state.direct && !state.stuck;
            let waited = shared.out.wait_timeout_while(state, WARNING_WAITS, waits);
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

    /// Notes each write of its own.
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

    fn put(gather: &Gather<Paper>, text: &str, urgent: bool) {
        Line { shared: &gather.0, urgent }.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn lines_come_out_in_order_in_few_writes_and_nobody_has_to_ask() {
        let paper = Paper::default();
        let (gather, _lines) = Gather::new(paper.clone()).unwrap();
        let all: String = (0..1000).map(|at| format!("{at}\n")).collect();
        (0..1000).for_each(|at| put(&gather, &format!("{at}\n"), false));
        let deadline = Instant::now() + Duration::from_secs(30);
        while paper.text() != all {
            assert!(Instant::now() < deadline, "{}", paper.text());
            thread::sleep(MOMENT);
        }
        assert!(paper.0.lock().unwrap().len() < 500);
    }

    #[test]
    fn a_warning_is_out_at_once_and_nothing_overtakes() {
        let paper = Paper::default();
        let (gather, _lines) = Gather::new(paper.clone()).unwrap();
        put(&gather, "before\n", false);
        put(&gather, "warning\n", true);
        // Whoever warns has waited for it already, unless the machine is very busy.
        let deadline = Instant::now() + Duration::from_secs(30);
        while paper.text() != "before\nwarning\n" {
            assert!(Instant::now() < deadline, "{}", paper.text());
            thread::sleep(MOMENT);
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

    /// Writes nothing until it is let.
    struct Stuck(Paper, std::sync::mpsc::Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Whoever lets it go lets it go for good.
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
        let (gather, lines) = Gather::new(Stuck(paper.clone(), held)).unwrap();
        let began = Instant::now();
        let text = "x".repeat(1023) + "\n";
        for at in 0..3000 {
            Line { shared: &gather.0, urgent: at % 100 == 0 }.write_all(text.as_bytes()).unwrap();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "thirty warnings did not wait in vain");
        assert!(gather.0.lock().waiting.len() <= MOST_KEPT, "what waits is bounded");
        drop(release);
        drop(lines);
        let written = paper.text();
        assert!(written.contains("lines of the log were lost"), "{}", written.len());
        assert!(written.lines().filter(|line| line.starts_with('x')).count() > 900);
    }

    #[test]
    fn the_end_does_not_wait_for_a_reader_who_does_not_read() {
        let (release, held) = std::sync::mpsc::channel();
        let (gather, lines) = Gather::new(Stuck(Paper::default(), held)).unwrap();
        Line { shared: &gather.0, urgent: false }.write_all(b"last\n").unwrap();
        drop(lines);
        // Here only because the end came although nothing was let through.
        drop(release);
    }

    #[test]
    fn the_supervisor_hears_of_the_end_of_the_thread_and_no_line_is_lost_after_it() {
        let paper = Paper::default();
        let (gather, lines) = Gather::new(Unlucky(paper.clone(), false)).unwrap();
        let supervisor = Supervisor::default();
        let (tell, told) = std::sync::mpsc::channel();
        supervisor.on_failure(move |failure| tell.send(failure.thread.clone()).unwrap());
        lines.thread().supervised_by(&supervisor);
        Line { shared: &gather.0, urgent: false }.write_all(b"first\n").unwrap();
        assert_eq!(told.recv_timeout(Duration::from_secs(30)).unwrap(), "log");
        Line { shared: &gather.0, urgent: false }.write_all(b"second\n").unwrap();
        assert_eq!(paper.text(), "second\n", "the first is what it panicked over");
        let late = Supervisor::default();
        lines.thread().supervised_by(&late);
        assert!(late.failure().is_some(), "who comes later hears it too");
    }

    #[test]
    fn the_end_loses_nothing_and_what_comes_after_it_is_written_too() {
        let paper = Paper::default();
        let (gather, lines) = Gather::new(paper.clone()).unwrap();
        put(&gather, "last\n", false);
        drop(lines);
        assert_eq!(paper.text(), "last\n");
        put(&gather, "later\n", false);
        assert_eq!(paper.text(), "last\nlater\n");
    }
}
