//! The spawner: a small process of the same binary that is the parent of all tasks. It keeps their exit codes and
//! output across a crash of the engine, and exits by itself when it has nothing to do, or when its data directory was
//! deleted. On SIGTERM it stops its tasks gracefully, records their results and exits. `turn` has the event loop,
//! `life` the life cycle of an attempt, `slot` the isolation.

mod attempt;
mod cgroup;
mod device;
mod disk;
pub(super) mod launch;
mod layers;
mod ledger;
mod leftover;
mod life;
mod limits;
mod mounts;
mod orphan;
mod peer;
mod pidns;
mod pod_watch;
mod slot;
mod turn;
mod usage;
mod user;
mod waiting;
mod workers;
mod workspace;

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd},
        unix::{
            fs::{DirBuilderExt, OpenOptionsExt},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use self::{
    ledger::Ledger,
    peer::Peer,
    pidns::{InitConnection, Namespaces},
    slot::Maker,
    turn::{Parts, Spawner},
    workers::Workers,
};
use super::{
    sys::{self, ns},
    wire::{FromSpawner, Hello, Refused, ToSpawner, VERSION, Welcome, frame, next_frame},
};
use crate::space::Space;

/// Environment variable that identifies every process of an attempt.
pub(crate) const MARK: &str = "OCTOFLOW_ATTEMPT";

/// Wait for the lock: a spawner that is just exiting holds the data directory a moment longer; a living one holds it
/// for good.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs a spawner. The engine starts it with the data directory as its first argument and one end of the connection as
/// standard input. Further arguments are the folders that its first tasks see at their paths: the file system that
/// tests isolation shows them, so that the first task can use it.
///
/// It must run on the main thread of its process: that is where the kernel reparents orphans to.
pub fn spawner_main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter();
    let data = arguments.next().map(PathBuf::from);
    let visible: Vec<String> = arguments.filter_map(|folder| folder.into_string().ok()).collect();
    let missing = || io::Error::other("the data directory is missing");
    let outcome = data.ok_or_else(missing).and_then(|data| live(&data, &visible));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is the spawner's own log; there is no other place to report to.
            let _ = writeln!(io::stderr(), "spawner: {error}");
            ExitCode::FAILURE
        }
    }
}

fn live(data: &Path, visible: &[String]) -> io::Result<()> {
    // Descriptors that the engine's caller left open must not reach a task.
    sys::pid::set_inherited_cloexec();
    sys::new_session();
    sys::set_usual_umask();
    sys::reset_dispositions();
    sys::become_subreaper()?;
    let signals = sys::signals_as_descriptor()?;
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Only our copy may keep the connection open, or the engine would not notice that we closed it.
    sys::close_stdin()?;

    let hello = match read_hello(&mut socket)? {
        Some(hello) if hello.version == VERSION => hello,
        Some(_) => return refuse(&mut socket, "engine and spawner are of different versions"),
        // The engine died before the handshake.
        None => return Ok(()),
    };
    let privileged = sys::effective_uid() == 0;
    // Forked before anything of a task is read, and before there are threads. Retried later where it fails.
    let connection = if hello.isolate && privileged { InitConnection::fork().ok() } else { None };

    let dir = data.join("spawner");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    fs::create_dir_all(data.join("work"))?;
    let Some(lock) = lock(&dir)? else {
        return refuse(&mut socket, "another spawner holds this data directory");
    };
    let instance = instance()?;
    let (ledger, history) = Ledger::open(&dir, &instance)?;
    let leftovers = leftover::read(&dir)?;
    let unaccounted = history.started.iter().any(|attempt| leftovers.iter().all(|left| left.attempt != *attempt));
    if let (true, Some(dead)) = (unaccounted, &history.instance) {
        // Before entering a namespace of our own, from which a dead spawner's processes could not be inspected.
        orphan::sweep(dead);
    }
    let mut obstacle = None;
    if hello.isolate && !privileged {
        obstacle = enter_user_namespace().err().map(|error| format!("making a user namespace: {error}"));
    }
    let (mut maker, mut shared) = (None, None);
    if hello.isolate && obstacle.is_none() {
        let processes = Namespaces::new(!privileged, connection);
        let processes = processes.map_err(|error| shared = Some(format!("making a PID namespace: {error}"))).ok();
        maker = Some(Maker::new(data, &instance, !privileged, processes)?);
    }
    let listener = open_listener(&dir)?;
    let workers = Workers::new(data, maker, &instance)?;
    if hello.isolate && obstacle.is_none() {
        obstacle = workers.probe(visible).err();
    }
    workers.start()?;
    let isolated = hello.isolate && obstacle.is_none();
    let refused = obstacle.map(|why| {
        format!("this machine refuses isolation ({why}); tasks run with a private working directory and TMPDIR only")
    });
    let notice = refused.or_else(|| {
        shared.map(|why| {
            format!("this machine refuses PID namespaces for tasks ({why}); tasks see each other's processes")
        })
    });
    let mut peer = Peer::new(socket)?;
    peer.handshaken = true;
    peer.queue(&FromSpawner::Welcome(Welcome { version: VERSION, isolated, notice }), None);
    peer.flush()?;
    let parts = Parts {
        data: data.to_owned(),
        instance,
        log_limit: hello.log_limit,
        isolated,
        workers,
        signals,
        listener,
        peer,
        ledger,
        history,
        leftovers,
        space: Space::of(data, None)?,
        lock,
    };
    Spawner::new(parts)?.run()
}

/// Returns the version of cgroups that enforces a memory limit for all processes of a container together, or why none
/// does.
pub fn memory_limits() -> Result<u8, String> {
    let groups = cgroup::Groups::open()?;
    groups.close();
    Ok(groups.version())
}

/// Takes the lock that allows one spawner per data directory.
fn lock(dir: &Path) -> io::Result<Option<File>> {
    let file = File::options().create(true).append(true).mode(0o600).open(dir.join("lock"))?;
    let give_up = Instant::now() + LOCK_TIMEOUT;
    while !sys::try_lock(&file)? {
        if Instant::now() > give_up {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(Some(file))
}

fn refuse(socket: &mut UnixStream, why: &str) -> io::Result<()> {
    let mut bytes = Vec::new();
    frame(&FromSpawner::Refused(Refused { version: VERSION, why: why.to_owned() }), &mut bytes);
    socket.write_all(&bytes)
}

/// Reads exactly the first frame, so that what follows stays on the connection.
fn read_hello(socket: &mut UnixStream) -> io::Result<Option<Hello>> {
    let mut bytes = vec![0; 4];
    if let Err(error) = socket.read_exact(&mut bytes) {
        return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
    }
    let length = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes")) as usize;
    if length > 4096 {
        return Err(io::Error::other("the first message is no Hello"));
    }
    bytes.resize(4 + length, 0);
    socket.read_exact(&mut bytes[4..])?;
    match next_frame(&mut &bytes[..]) {
        Ok(Some(ToSpawner::Hello(hello))) => Ok(Some(hello)),
        _ => Err(io::Error::other("the first message is no Hello")),
    }
}

/// Returns twelve random hex digits that identify this spawner.
fn instance() -> io::Result<String> {
    let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(uuid.chars().filter(char::is_ascii_hexdigit).take(12).collect())
}

/// Enters a user namespace, because an ordinary user may mount only inside one. It maps the user to itself, so tasks
/// keep their name and lose every privilege again when they exec.
fn enter_user_namespace() -> io::Result<()> {
    let (user, group) = (sys::effective_uid(), sys::effective_gid());
    ns::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Binds the socket at which later engines find us. Bound through the open directory, because a socket's path may have
/// 107 bytes at most.
fn open_listener(dir: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(dir.join("sock")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let handle = File::open(dir)?;
    let listener = UnixListener::bind(format!("/proc/self/fd/{}/sock", handle.as_raw_fd()))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
