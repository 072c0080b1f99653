//! Lines of the log on their way out: those of a moment are written together, because whoever reads them at the other end
//! of a pipe is waked for every write. What warns is written at once, with everything before it.

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

const THREAD: &str = "log";

/// Where lines go in. Clones share it.
pub(super) struct Gather<W>(Arc<Shared<W>>);

struct Shared<W> {
    state: Mutex<State<W>>,
    bell: Condvar,
}

struct State<W> {
    waiting: Vec<u8>,
    to: W,
    closing: bool,
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

/// Writes what waits. What is still there is written when it is dropped.
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
        let state = State { waiting: Vec::new(), to, closing: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), bell: Condvar::new() });
        let (own, fate) = (shared.clone(), LogThread::default());
        let told = fate.clone();
        let thread = thread::Builder::new().name(THREAD.to_owned()).spawn(move || {
            if catch_unwind(AssertUnwindSafe(|| own.work())).is_err() {
                // From now on everybody writes out what they say, so that nothing is lost meanwhile.
                own.lock().closing = true;
                told.ended("it panicked while lines were written".to_owned());
            }
        })?;
        let ears = shared.clone();
        let close = Box::new(move || {
            ears.lock().closing = true;
            ears.bell.notify_one();
        });
        Ok((Self(shared), Lines { close, thread: Some(thread), fate }))
    }
}

impl<W: Write> Shared<W> {
    fn lock(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let idle = |state: &mut State<W>| state.waiting.is_empty() && !state.closing;
            let state = self.bell.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
            if state.closing {
                drop(state);
                return self.lock().write_out();
            }
            drop(state);
            thread::sleep(MOMENT);
            self.lock().write_out();
        }
    }
}

impl<W: Write> State<W> {
    fn write_out(&mut self) {
        // There is nobody left to tell when nobody can be told.
        let _ = self.to.write_all(&self.waiting).and_then(|()| self.to.flush());
        self.waiting.clear();
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        (self.close)();
        if let Some(thread) = self.thread.take() {
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
        let mut state = self.shared.lock();
        let first = state.waiting.is_empty();
        state.waiting.extend_from_slice(bytes);
        // Once closed nobody writes out what waits.
        if self.urgent || state.closing || state.waiting.len() > MOST {
            state.write_out();
        } else if first {
            drop(state);
            self.shared.bell.notify_one();
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
        assert_eq!(paper.text(), "before\nwarning\n");
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
        assert_eq!(paper.text(), "first\nsecond\n");
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
