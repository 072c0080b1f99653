//! The engine's end of the connection to its spawner: connects to a running one or starts one, and sends without
//! blocking.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read, Write},
    net::Shutdown,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::{
            fs::{DirBuilderExt, OpenOptionsExt},
            net::UnixStream,
        },
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::{
    Error, sys,
    wire::{FromSpawner, Hello, ToSpawner, VERSION, Welcome, frame, next_frame},
};
use crate::threads::ThreadOwner;

/// Timeout of the handshake: a spawner answers within milliseconds; one that is silent this long hangs.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// Wait for a killed process, which is gone within milliseconds unless the disk it writes to hangs.
pub(super) const GONE_WITHIN: Duration = Duration::from_secs(2);

/// A new connection.
pub(crate) struct Connected {
    pub(crate) socket: Arc<UnixStream>,
    pub(crate) welcome: Welcome,
    /// The spawner, if this process started it.
    pub(crate) child: Option<Child>,
    /// Pid of the spawner, if the system tells it.
    pub(crate) pid: Option<u32>,
}

/// Connects to the spawner of the data directory, or starts one.
pub(crate) fn connect(
    data: &Path,
    command: &[OsString],
    visible: &[String],
    hello: &Hello,
) -> Result<Connected, Error> {
    let dir = data.join("spawner");
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .map_err(|source| Error::DataDir { path: dir.clone(), source })?;
    if let Some(socket) = connect_existing(&dir) {
        match handshake(&socket, hello) {
            Ok(welcome) => {
                let pid = sys::peer_pid(socket.as_fd());
                return Ok(Connected { socket: Arc::new(socket), welcome, child: None, pid });
            }
            // It was just exiting; a new one waits until it is gone.
            Err(Error::Silent { source }) if was_exiting(&source) => {}
            Err(error) => return Err(error),
        }
    }
    let (socket, theirs) = UnixStream::pair().map_err(|source| Error::Start { source })?;
    let mut child = start(data, &dir, command, visible, theirs.into())?;
    match handshake(&socket, hello) {
        Ok(welcome) => {
            let pid = Some(child.id());
            Ok(Connected { socket: Arc::new(socket), welcome, child: Some(child), pid })
        }
        Err(error) => {
            // The handshake failed, so it has no tasks. It must neither hold the data directory nor stay as a zombie.
            let _ = child.kill();
            let give_up = Instant::now() + GONE_WITHIN;
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < give_up {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error)
        }
    }
}

fn was_exiting(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

fn connect_existing(dir: &Path) -> Option<UnixStream> {
    let handle = File::open(dir).ok()?;
    UnixStream::connect(format!("/proc/self/fd/{}/sock", handle.as_raw_fd())).ok()
}

fn start(
    data: &Path,
    dir: &Path,
    command: &[OsString],
    visible: &[String],
    connection: OwnedFd,
) -> Result<Child, Error> {
    let log = File::options().create(true).append(true).mode(0o600).open(dir.join("log"));
    let (program, args) = command.split_first().ok_or(Error::NoCommand)?;
    Command::new(program)
        .args(args)
        .arg(data)
        .args(visible)
        .stdin(connection)
        .stdout(Stdio::null())
        .stderr(log.map_or_else(|_| Stdio::null(), Stdio::from))
        .current_dir("/")
        .spawn()
        .map_err(|source| Error::Start { source })
}

fn handshake(socket: &UnixStream, hello: &Hello) -> Result<Welcome, Error> {
    let silent = |source| Error::Silent { source };
    let mut bytes = Vec::new();
    frame(&ToSpawner::Hello(hello.clone()), &mut bytes);
    socket.set_read_timeout(Some(ANSWER_WITHIN)).map_err(silent)?;
    let mut stream = socket;
    // A closed connection shows when we read below.
    let _ = stream.write_all(&bytes);
    let mut answer = vec![0; 4];
    stream.read_exact(&mut answer).map_err(silent)?;
    let length = u32::from_le_bytes(answer[..4].try_into().expect("four bytes")) as usize;
    if length > 64 * 1024 {
        return Err(silent(io::Error::other("the answer is no Welcome")));
    }
    answer.resize(4 + length, 0);
    stream.read_exact(&mut answer[4..]).map_err(silent)?;
    socket.set_read_timeout(None).map_err(silent)?;
    match next_frame(&mut &answer[..]) {
        Ok(Some(FromSpawner::Welcome(welcome))) => Ok(welcome),
        Ok(Some(FromSpawner::Refused(refused))) if refused.version != VERSION => {
            Err(Error::Version { spawner: refused.version, engine: VERSION })
        }
        Ok(Some(FromSpawner::Refused(refused))) => Err(Error::Refused { why: refused.why }),
        _ => Err(silent(io::Error::other("the answer is no Welcome"))),
    }
}

/// Messages to the spawner. Sending writes at once what fits and leaves the rest to a thread, so it never blocks.
pub(crate) struct Outbox {
    state: Mutex<OutboxState>,
    changed: Condvar,
}

struct OutboxState {
    socket: Option<Arc<UnixStream>>,
    /// Incremented with every new connection.
    generation: u64,
    unsent: Vec<u8>,
    closed: bool,
}

impl Outbox {
    pub(crate) fn new(socket: Arc<UnixStream>, owner: &ThreadOwner) -> io::Result<Arc<Self>> {
        let state = OutboxState { socket: Some(socket), generation: 1, unsent: Vec::new(), closed: false };
        let outbox = Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() });
        let writer = Arc::clone(&outbox);
        owner.spawn("outbox", move || writer.write_for_ever())?;
        Ok(outbox)
    }

    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn generation(&self) -> u64 {
        self.lock().generation
    }

    /// Switches to a new connection. Unsent bytes are dropped, since adoption repeats them.
    pub(crate) fn replace(&self, socket: Option<Arc<UnixStream>>) {
        let mut state = self.lock();
        state.socket = socket;
        state.generation += 1;
        state.unsent.clear();
        self.changed.notify_all();
    }

    /// Closes the connection; `abruptly` also without reading the spawner's last messages.
    pub(crate) fn close(&self, abruptly: bool) {
        let mut state = self.lock();
        state.closed = true;
        if let Some(socket) = &state.socket {
            let _ = socket.shutdown(if abruptly { Shutdown::Both } else { Shutdown::Write });
        }
        self.changed.notify_all();
    }

    pub(crate) fn post(&self, messages: &[ToSpawner]) {
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| frame(message, &mut bytes));
        self.post_if(None, &bytes);
    }

    /// Sends a message only if the connection is still the one it is meant for.
    pub(crate) fn post_to(&self, generation: u64, message: &ToSpawner) {
        let mut bytes = Vec::new();
        frame(message, &mut bytes);
        self.post_if(Some(generation), &bytes);
    }

    fn post_if(&self, generation: Option<u64>, bytes: &[u8]) {
        let mut state = self.lock();
        if generation.is_some_and(|wanted| wanted != state.generation) {
            return;
        }
        let Some(socket) = state.socket.clone().filter(|_| !state.closed) else { return };
        let mut sent = 0;
        while state.unsent.is_empty() && sent < bytes.len() {
            match sys::send_with(socket.as_fd(), &bytes[sent..], &[]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The reader notices a broken connection, reconnects and repeats everything.
                Err(_) => return,
            }
        }
        if sent < bytes.len() {
            state.unsent.extend_from_slice(&bytes[sent..]);
            self.changed.notify_all();
        }
    }

    fn write_for_ever(&self) {
        let mut state = self.lock();
        while !state.closed {
            let Some(socket) = state.socket.clone().filter(|_| !state.unsent.is_empty()) else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let generation = state.generation;
            drop(state);
            sys::wait_for_room(socket.as_fd());
            state = self.lock();
            if state.generation == generation {
                match sys::send_with(socket.as_fd(), &state.unsent, &[]) {
                    Ok(count) => drop(state.unsent.drain(..count)),
                    Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                    Err(_) => state.unsent.clear(),
                }
            }
        }
    }
}
