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
    connection: Mutex<Option<InitConnection>>,
    /// The spawner's own namespace, to return to. An ordinary user may not: its threads stay in the namespace they
    /// entered last, which matters only for the children they create.
    home: Option<OwnedFd>,
    unprivileged: bool,
}

/// A connection to a process that creates namespaces.
pub(crate) struct InitConnection {
    socket: UnixStream,
    /// Namespace created to test whether that works.
    first: Option<Namespace>,
    /// True if a namespace was requested and not received yet.
    requested: bool,
}

/// How the process that creates namespaces is started.
#[derive(Clone, Copy)]
enum Origin {
    Fork,
    Program { unprivileged: bool },
}

impl Namespaces {
    /// Fails if the machine refuses PID namespaces. `early` is the connection from [`InitConnection::fork`], if there
    /// is one.
    pub(crate) fn new(unprivileged: bool, early: Option<InitConnection>) -> io::Result<Self> {
        let own = i32::try_from(std::process::id()).map_err(io::Error::other)?;
        let home = if unprivileged { None } else { Some(pid::descriptor(own)?) };
        let mut connection = match early {
            Some(connection) => connection,
            None => InitConnection::open(Origin::Program { unprivileged })?,
        };
        connection.first = Some(connection.take()??);
        Ok(Self { connection: Mutex::new(Some(connection)), home, unprivileged })
    }

    pub(crate) fn home(&self) -> Option<BorrowedFd<'_>> {
        self.home.as_ref().map(OwnedFd::as_fd)
    }

    pub(crate) fn make(&self) -> io::Result<Namespace> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if connection.is_none() {
            *connection = Some(InitConnection::open(Origin::Program { unprivileged: self.unprivileged })?);
        }
        let open = connection.as_mut().expect("it was just opened");
        if let Some(first) = open.first.take() {
            return Ok(first);
        }
        // A caller that needs a second one will need more: the next is requested in advance.
        match open.take().and_then(|made| open.request().map(|()| made)) {
            Ok(made) => made,
            // The process is gone; a new one is started for the next namespace.
            Err(error) => {
                *connection = None;
                Err(error)
            }
        }
    }
}

impl InitConnection {
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
                    pid::reap(child);
                }
                Err(error) => drop(started.send(Err(error))),
            }
        })?;
        outcome.recv().map_err(io::Error::other)??;
        let mut connection = Self { socket: ours, first: None, requested: false };
        connection.request()?;
        Ok(connection)
    }

    fn request(&mut self) -> io::Result<()> {
        self.socket.write_all(&[1])?;
        self.requested = true;
        Ok(())
    }

    /// Receives a namespace. The outer error is the connection's, the inner one the kernel's refusal.
    fn take(&mut self) -> io::Result<io::Result<Namespace>> {
        if !self.requested {
            self.request()?;
        }
        let (mut answer, mut descriptors) = ([0; ANSWER], Vec::new());
        let mut got = 0;
        while got < ANSWER {
            match sys::receive_with(self.socket.as_fd(), &mut answer[got..], &mut descriptors)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => got += count,
            }
        }
        self.requested = false;
        let mut descriptors = descriptors.into_iter().flatten();
        Ok(match (i32::from_le_bytes(answer), descriptors.next(), descriptors.next()) {
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
    /// Directory with its processes; `position_of_init` is the position of the init process in it.
    list: OwnedFd,
    position_of_init: i64,
    /// True once it is being killed because processes were left in it.
    ending: bool,
}

impl Namespace {
    fn new(proc: OwnedFd, init: OwnedFd) -> io::Result<Self> {
        let list = sys::open_at(proc.as_fd(), c".", libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
        let position_of_init = pid::position_of(list.as_fd(), c"1")?;
        let position_of_init =
            position_of_init.ok_or_else(|| io::Error::other("its /proc does not show its processes"))?;
        Ok(Self { init, proc: Some(proc), list, position_of_init, ending: false })
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
        if !self.ending && !pid::has_others(self.list.as_fd(), self.position_of_init).unwrap_or(true) {
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
