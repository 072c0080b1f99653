//! PID namespaces of slots: a task sees and signals only its own processes, and all of them end with it. The namespaces
//! are created by a separate process (`init`); this file requests them and supervises it.

use std::{
    io::{self, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Command, Stdio},
    sync::{Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use crate::process::{
    init::{self, ANSWER, INIT_ARGUMENT},
    pod::NAME,
    sys::{self, pid},
};

/// Timeout of a request; a namespace is created within a millisecond.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Provides namespaces. Shared by all spawning threads.
pub(crate) struct Namespaces {
    /// Connection to the process that creates them; `None` after it failed.
    line: Mutex<Option<Line>>,
    /// The spawner's own namespace, to return to. An ordinary user may not: its threads stay in the namespace they
    /// entered last, which matters only for the children they create.
    home: Option<OwnedFd>,
    unprivileged: bool,
}

/// A connection to a process that creates namespaces.
pub(crate) struct Line {
    socket: UnixStream,
    /// Namespace created to test whether that works.
    first: Option<Namespace>,
    /// True if a namespace was requested and not received yet.
    asked: bool,
}

/// How the process that creates namespaces is started.
#[derive(Clone, Copy)]
enum Origin {
    Fork,
    Program { unprivileged: bool },
}

impl Namespaces {
    /// Fails if the machine refuses PID namespaces. `early` is the connection from [`Line::fork`], if there is one.
    pub(crate) fn new(unprivileged: bool, early: Option<Line>) -> io::Result<Self> {
        let own = i32::try_from(std::process::id()).map_err(io::Error::other)?;
        let home = if unprivileged { None } else { Some(pid::descriptor(own)?) };
        let mut line = match early {
            Some(line) => line,
            None => Line::open(Origin::Program { unprivileged })?,
        };
        line.first = Some(line.take()??);
        Ok(Self { line: Mutex::new(Some(line)), home, unprivileged })
    }

    pub(crate) fn home(&self) -> Option<BorrowedFd<'_>> {
        self.home.as_ref().map(OwnedFd::as_fd)
    }

    pub(crate) fn make(&self) -> io::Result<Namespace> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if line.is_none() {
            *line = Some(Line::open(Origin::Program { unprivileged: self.unprivileged })?);
        }
        let open = line.as_mut().expect("it was just opened");
        if let Some(first) = open.first.take() {
            return Ok(first);
        }
        // A caller that needs a second one will need more: the next is requested in advance.
        match open.take().and_then(|made| open.ask().map(|()| made)) {
            Ok(made) => made,
            // The process is gone; a new one is started for the next namespace.
            Err(error) => {
                *line = None;
                Err(error)
            }
        }
    }
}

impl Line {
    /// Forks the process that creates namespaces from this one, which costs a tenth of starting the program anew. The
    /// caller must not have read anything yet that tasks must not see, and be the only thread. Only for root.
    pub(crate) fn fork() -> io::Result<Self> {
        Self::open(Origin::Fork)
    }

    /// Starts the process, and requests the first namespace.
    fn open(origin: Origin) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(ANSWER_WITHIN))?;
        let (started, outcome) = mpsc::channel();
        // The parent is a separate thread: every child of the main thread counts as an orphan of a task.
        thread::Builder::new().name("namespaces".to_owned()).spawn(move || {
            let (child, theirs) = (origin.start(&theirs), theirs);
            // Our copy of the other end must be closed, or the end of the process would not show.
            drop(theirs);
            match child {
                Ok(child) => {
                    let _ = started.send(Ok(()));
                    // Its end shows on the connection; here it is only reaped.
                    pid::collect(child);
                }
                Err(error) => drop(started.send(Err(error))),
            }
        })?;
        outcome.recv().map_err(io::Error::other)??;
        let mut line = Self { socket: ours, first: None, asked: false };
        line.ask()?;
        Ok(line)
    }

    fn ask(&mut self) -> io::Result<()> {
        self.socket.write_all(&[1])?;
        self.asked = true;
        Ok(())
    }

    /// Receives a namespace. The outer error is the connection's, the inner one the kernel's refusal.
    fn take(&mut self) -> io::Result<io::Result<Namespace>> {
        if !self.asked {
            self.ask()?;
        }
        let (mut answer, mut riders) = ([0; ANSWER], Vec::new());
        let mut got = 0;
        while got < ANSWER {
            match sys::receive_with(self.socket.as_fd(), &mut answer[got..], &mut riders)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => got += count,
            }
        }
        self.asked = false;
        let mut riders = riders.into_iter().flatten();
        Ok(match (i32::from_le_bytes(answer), riders.next(), riders.next()) {
            (0, Some(proc), Some(init)) => Namespace::new(proc, init),
            // They were sent, so this process had no descriptors left for them.
            (0, ..) => Err(io::Error::from_raw_os_error(libc::EMFILE)),
            (number, ..) => Err(io::Error::from_raw_os_error(number)),
        })
    }
}

impl Origin {
    /// Returns the pid of the process, which is a child of this thread.
    fn start(self, socket: &UnixStream) -> io::Result<i32> {
        let unprivileged = match self {
            Self::Program { unprivileged } => unprivileged,
            Self::Fork => return pid::fork()?.map_or_else(|| init::forked_main(socket.as_fd()), Ok),
        };
        if unprivileged {
            pid::keep_administration()?;
        }
        let mut command = Command::new("/proc/self/exe");
        command.arg0(NAME).arg(INIT_ARGUMENT).env_clear().current_dir("/");
        command.stdin(OwnedFd::from(socket.try_clone()?)).stdout(Stdio::null()).stderr(Stdio::null());
        i32::try_from(command.spawn()?.id()).map_err(io::Error::other)
    }
}

/// One PID namespace, reused for task after task as long as no process is left in it.
pub(crate) struct Namespace {
    /// Its init process, through whose descriptor it is entered.
    init: OwnedFd,
    /// `/proc` of this namespace, until it is mounted.
    proc: Option<OwnedFd>,
    /// Directory with its processes; `place_of_init` is the position of the init process in it.
    list: OwnedFd,
    place_of_init: i64,
    /// True once it is being killed because processes were left in it.
    ending: bool,
}

impl Namespace {
    fn new(proc: OwnedFd, init: OwnedFd) -> io::Result<Self> {
        let list = sys::open_at(proc.as_fd(), c".", libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
        let place_of_init = pid::place_of(list.as_fd(), c"1")?;
        let place_of_init = place_of_init.ok_or_else(|| io::Error::other("its /proc does not show its processes"))?;
        Ok(Self { init, proc: Some(proc), list, place_of_init, ending: false })
    }

    pub(crate) fn init(&self) -> BorrowedFd<'_> {
        self.init.as_fd()
    }

    /// Takes the mount of its `/proc`.
    pub(crate) fn take_proc(&mut self) -> Option<OwnedFd> {
        self.proc.take()
    }

    /// Returns whether another task can use it.
    pub(crate) fn is_usable(&self) -> bool {
        !self.ending && !pid::is_dead(self.init.as_fd())
    }

    /// Kills the processes that a task left, after its main process was reaped. Returns whether nothing runs any more.
    pub(crate) fn clear(&mut self) -> bool {
        if !self.ending && !pid::has_others(self.list.as_fd(), self.place_of_init).unwrap_or(true) {
            return true;
        }
        if !std::mem::replace(&mut self.ending, true) {
            // The kernel kills all others with it.
            pid::kill(self.init.as_fd());
        }
        pid::is_dead(self.init.as_fd())
    }
}

/// Kills the init process, with which the unused namespace ends.
impl Drop for Namespace {
    fn drop(&mut self) {
        pid::kill(self.init.as_fd());
    }
}
