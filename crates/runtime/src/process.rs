//! The process runtime: tasks run as plain processes on this machine, isolated from each other and from the machine.
//! This file is the engine's side; the processes themselves belong to the spawner, a separate process.

pub(crate) mod clone;
mod collect;
mod delay;
mod dispatcher;
mod entrypoint;
mod environment;
pub mod hostpath;
mod hosts;
mod init;
mod link;
mod memory;
mod monitor;
pub(crate) mod plan;
mod pod;
mod pool;
mod progress;
mod receive;
mod spawner;
mod supervise;
pub(crate) mod sys;
mod termination;
pub(crate) mod view;
pub(crate) mod wire;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, mpsc::Receiver},
    time::Duration,
};

use octoflow_model::{
    ids::{AttemptId, RunId},
    order::Order,
    task::Task,
};

use self::{
    dispatcher::Dispatcher,
    entrypoint::ProgramTable,
    environment::BaseEnvironment,
    hostpath::HostPaths,
    link::{Outbox, connect},
    plan::PlanContext,
    wire::{Hello, VERSION},
};
pub use self::{
    environment::{INHERITED, INHERITED_PREFIX},
    init::{INIT_ARGUMENT, init_main},
    pod::{POD_ARGUMENT, pod_main},
    spawner::{memory_limits, spawner_main},
};
use crate::{
    egress::Policy,
    port::{Health, Runtime, Sink},
    threads::ThreadOwner,
};

/// How far a task is isolated from the machine and from other tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// A private, writable layer over the machine's files, a private `/tmp`, volumes at their paths.
    #[default]
    Overlay,
    /// Only a private working directory and `TMPDIR`.
    None,
}

#[derive(Clone, Debug)]
pub struct Config {
    pub data_dir: PathBuf,
    pub isolation: Isolation,
    /// Programs that images run if no command is given, by image name with or without registry and tag; extends a
    /// built-in table.
    pub entrypoints: BTreeMap<String, Vec<String>>,
    /// `PATH` of tasks; the engine's own if not given.
    pub path: Option<String>,
    /// Directories searched before `PATH`.
    pub extra_path: Vec<String>,
    /// Command that starts a spawner: program and first arguments; the data directory is appended. See [`Config::new`].
    pub spawner_command: Vec<OsString>,
    /// Limit of log bytes per attempt.
    pub log_limit: u64,
    /// Egress policy for fetching and uploading artifacts.
    pub egress: Policy,
    /// Egress policy for calls of plugins and life hooks.
    pub plugin_egress: Policy,
    /// Host paths that tasks may mount.
    pub host_paths: HostPaths,
    /// Folders below `/tmp` that stay visible to tasks at their paths, although the rest is hidden there.
    pub visible: Vec<PathBuf>,
    /// Bytes of the data directory's file system that logs, artifacts and tasks leave free for the engine's own
    /// records; by default a share of it (`octoflow_model::space::task_floor`).
    pub space_floor: Option<u64>,
    /// Bytes that a task without an `ephemeral-storage` limit may write to its private file system; by default as many
    /// as are free above the floor.
    pub storage_limit: Option<u64>,
    /// Callback for the unexpected end of a runtime thread.
    pub thread_owner: ThreadOwner,
}

/// Hidden first argument on which the program must call [`spawner_main`] with the arguments after it.
pub const SPAWNER_ARGUMENT: &str = "__spawner";

/// Default limit of log bytes per attempt: 1 GiB.
const LOG_LIMIT: u64 = 1 << 30;

impl Config {
    /// Returns the defaults, with a program that understands [`SPAWNER_ARGUMENT`].
    pub fn new(data_dir: impl Into<PathBuf>, octoflow_exe: impl Into<OsString>) -> Self {
        Self {
            data_dir: data_dir.into(),
            isolation: Isolation::default(),
            entrypoints: BTreeMap::new(),
            path: None,
            extra_path: Vec::new(),
            spawner_command: vec![octoflow_exe.into(), SPAWNER_ARGUMENT.into()],
            log_limit: LOG_LIMIT,
            egress: Policy::local(),
            plugin_egress: Policy::local(),
            host_paths: HostPaths::default(),
            visible: Vec::new(),
            space_floor: None,
            storage_limit: None,
            thread_owner: ThreadOwner::default(),
        }
    }
}

/// A message that the user should see once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice(pub String);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the data directory {} cannot be used", path.display())]
    DataDir { path: PathBuf, source: io::Error },
    #[error("the spawner could not be started")]
    Start { source: io::Error },
    #[error("no thread could be started for the tasks' runtime")]
    Threads { source: io::Error },
    #[error("no command to start a spawner is configured")]
    NoCommand,
    #[error("the spawner does not answer; its log is `spawner/log` in the data directory")]
    Silent { source: io::Error },
    #[error("the spawner refused: {why}")]
    Refused { why: String },
    #[error(
        "tasks of another version are still running (their spawner speaks version {spawner}, this program {engine}): \
         let them end, or continue with the version that started them"
    )]
    Version { spawner: u32, engine: u32 },
}

impl Error {
    /// Returns whether a later retry may succeed without anybody doing anything.
    pub fn retry(&self) -> bool {
        match self {
            Self::Start { .. }
            | Self::Threads { .. }
            | Self::Silent { .. }
            | Self::Refused { .. }
            | Self::Version { .. } => true,
            Self::DataDir { .. } | Self::NoCommand => false,
        }
    }
}

/// Opens the runtime of a data directory: connects to the running spawner, or starts one.
pub fn open(config: Config, sink: Sink) -> Result<(ProcessRuntime, Vec<Notice>), Error> {
    let bad_dir = |source| Error::DataDir { path: config.data_dir.clone(), source };
    fs::create_dir_all(&config.data_dir).map_err(bad_dir)?;
    let data = fs::canonicalize(&config.data_dir).map_err(bad_dir)?;
    let hello =
        Hello { version: VERSION, isolate: config.isolation == Isolation::Overlay, log_limit: config.log_limit };
    let visible = visible(&config.visible);
    let connected = connect(&data, &config.spawner_command, &visible, &hello)?;
    let own =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let context = PlanContext {
        data: data.clone(),
        base: BaseEnvironment::new(own, config.path.as_deref(), &config.extra_path),
        programs: ProgramTable::new(config.entrypoints),
        host_paths: config.host_paths,
        visible,
        storage_limit: config.storage_limit,
        space_floor: config.space_floor,
    };
    let notices = connected.welcome.notice.iter().cloned().map(Notice).collect();
    let isolated = connected.welcome.isolated;
    let no_thread = |source| Error::Threads { source };
    let owner = config.thread_owner;
    let outbox = Outbox::new(Arc::clone(&connected.socket), &owner).map_err(no_thread)?;
    let dispatcher =
        Dispatcher::new(context, sink, outbox, isolated, hello, config.spawner_command, config.egress, owner)
            .map_err(no_thread)?;
    let (thread, over) = dispatcher.listen(connected).map_err(no_thread)?;
    Ok((ProcessRuntime { dispatcher, reader: Some(Listening { thread, over: Mutex::new(over) }), data }, notices))
}

/// Returns the folders that a task would not see at their paths, outermost only.
fn visible(folders: &[PathBuf]) -> Vec<String> {
    let mut found: Vec<PathBuf> = folders.iter().filter_map(|folder| fs::canonicalize(folder).ok()).collect();
    found.retain(|folder| folder.starts_with("/tmp") || folder.starts_with("/dev/shm"));
    found.sort();
    found.dedup_by(|inner, outer| inner.starts_with(outer));
    found.into_iter().filter_map(|folder| folder.into_os_string().into_string().ok()).collect()
}

pub struct ProcessRuntime {
    dispatcher: Arc<Dispatcher>,
    /// Returns the spawner's child handle if this process started it.
    reader: Option<Listening>,
    data: PathBuf,
}

/// The thread that reads from the spawner, and a channel that closes when it ends.
struct Listening {
    thread: supervise::Listener,
    over: Mutex<Receiver<()>>,
}

/// Timeout of a shutdown: a spawner without tasks exits within milliseconds.
const GOODBYE_WITHIN: Duration = Duration::from_secs(3);

impl ProcessRuntime {
    /// Returns the data directory with links resolved.
    pub fn data_dir(&self) -> &Path {
        &self.data
    }

    /// Disconnects cleanly. Running tasks continue and are adopted by the next engine; without any the spawner exits
    /// too.
    pub fn shutdown(mut self) {
        self.leave(true);
    }

    fn leave(&mut self, wait: bool) {
        let Some(Listening { thread, over }) = self.reader.take() else { return };
        self.dispatcher.close(!wait);
        // A stopped (SIGSTOP) spawner does not close the connection; then this side does.
        if wait {
            let _ = over.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(GOODBYE_WITHIN);
            self.dispatcher.close(true);
        }
        let child = thread.join().ok().flatten().flatten();
        if let (true, Some(mut child)) = (wait, child) {
            let ending = u32::cast_signed(child.id());
            if self.dispatcher.is_idle()
                && matches!(child.try_wait(), Ok(None))
                && let Ok(ending) = sys::pid::descriptor(ending)
            {
                sys::pid::wait_for_end(ending.as_fd(), GOODBYE_WITHIN);
                // Reaps it, so that it does not stay as a zombie.
                let _ = child.try_wait();
            }
        }
    }
}

/// Behaves like a crash: the spawner continues.
impl Drop for ProcessRuntime {
    fn drop(&mut self) {
        self.leave(false);
    }
}

impl Runtime for ProcessRuntime {
    fn send(&mut self, orders: Vec<Order>) {
        self.dispatcher.send(orders);
    }

    fn adopt(&mut self, believed: Vec<(AttemptId, Box<Task>)>, leave: &[RunId]) {
        self.dispatcher.adopt(believed, leave);
    }

    fn health(&self) -> Health {
        self.dispatcher.health()
    }

    fn close(self: Box<Self>) {
        self.shutdown();
    }
}
