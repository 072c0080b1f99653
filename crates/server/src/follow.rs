//! Followed logs without a thread each. Whoever has read everything sleeps until the run changes or something is written
//! below its folder of logs; then it reads what is new in a short blocking section, of which only a few run at one time.
//! Logs are written by another process, so the kernel tells of them (inotify, one descriptor for all); where it cannot,
//! everybody looks again after a while.

use std::{
    collections::HashMap,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use octoflow_control::registry::{Fault as Trouble, Registry};
use octoflow_model::{Revision, RunId};
use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};
use tokio::{
    io::unix::AsyncFd,
    sync::{Notify, Semaphore, watch},
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::fault::Fault;

/// So many logs are read at one time; others wait for their turn.
const READS: usize = 8;
/// What is written in quick succession is read together.
const GAP: Duration = Duration::from_millis(50);
/// How much longer the gap is for each who follows, so that many do not eat the machine.
const GAP_EACH: Duration = Duration::from_micros(50);
/// Nobody relies on being told alone: so often everybody looks.
const LOOK_ANYWAY: Duration = Duration::from_secs(2);
/// The same where the kernel does not tell.
const LOOK_UNTOLD: Duration = Duration::from_millis(200);
/// Events of a moment are taken together.
const GATHER: Duration = Duration::from_millis(5);

/// Everybody who follows a log.
#[derive(Clone)]
pub(crate) struct Followers(Arc<Inner>);

struct Inner {
    registry: Registry,
    /// None where the system has no more of them to give.
    inotify: Option<AsyncFd<OwnedFd>>,
    state: Mutex<State>,
    /// Somebody follows after nobody did.
    arrived: Notify,
    reads: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    runs: HashMap<RunId, Followed>,
    by_watch: HashMap<i32, RunId>,
    by_folder: HashMap<String, RunId>,
    /// The folder of all logs, in which those of runs appear.
    root: Option<i32>,
    readers: usize,
}

struct Followed {
    changed: watch::Sender<()>,
    folder: Option<PathBuf>,
    watch: Option<i32>,
    readers: usize,
}

/// Tells one reader that there may be something new. Its run is forgotten with its last reader.
struct Signal {
    followers: Followers,
    run: RunId,
    changed: watch::Receiver<()>,
}

/// A log that is read piece by piece.
pub(crate) trait Log: Send + 'static {
    type Piece: Send + 'static;

    fn run(&self) -> RunId;

    /// What is there now, and no more than a client takes at a time. It may wait for the disk.
    fn read(&mut self) -> Result<Reading<Self::Piece>, Trouble>;
}

pub(crate) struct Reading<P> {
    /// Nothing when there is nothing new.
    pub piece: Option<P>,
    pub finished: bool,
    /// There is more already.
    pub more: bool,
}

/// One reader, from the beginning to the end of its log.
pub(crate) struct Following<L: Log> {
    signal: Signal,
    at: At<L>,
    not_before: Instant,
    /// Everything was read; look again when told, or then.
    rest_until: Option<Instant>,
}

/// The log and what was read of it.
type Read<L> = (Box<L>, Result<Reading<<L as Log>::Piece>, Trouble>);

/// Kept between two calls, because waiting may be given up at any point.
enum At<L: Log> {
    Ready(Box<L>),
    Reading(JoinHandle<Read<L>>),
    Over,
}

impl Followers {
    /// Within a runtime. It listens until `closing`.
    pub(crate) fn new(registry: Registry, changes: watch::Receiver<Revision>, closing: CancellationToken) -> Self {
        let inotify = descriptor()
            .inspect_err(|error| tracing::warn!(%error, "inotify is not available; followed logs are polled instead"));
        let followers = Self(Arc::new(Inner {
            registry,
            inotify: inotify.ok(),
            state: Mutex::default(),
            arrived: Notify::new(),
            reads: Arc::new(Semaphore::new(READS)),
        }));
        tokio::spawn(followers.clone().listen(changes, closing));
        followers
    }

    pub(crate) fn follow<L: Log>(&self, log: L) -> Following<L> {
        let signal = self.signal(log.run());
        Following { signal, at: At::Ready(Box::new(log)), not_before: Instant::now(), rest_until: None }
    }

    fn signal(&self, run: RunId) -> Signal {
        let mut state = self.lock();
        state.readers += 1;
        if state.readers == 1 {
            self.0.arrived.notify_one();
        }
        if let Some(followed) = state.runs.get_mut(&run) {
            followed.readers += 1;
            return Signal { followers: self.clone(), run, changed: followed.changed.subscribe() };
        }
        let folders = self.0.registry.log_folders(run);
        if let (Some(inotify), None, Some((root, _))) = (&self.0.inotify, state.root, &folders) {
            state.root = inotify::add_watch(inotify, root, WatchFlags::CREATE | WatchFlags::ONLYDIR).ok();
        }
        let folder = folders.map(|(_, own)| own);
        if let Some(name) = folder.as_ref().and_then(|own| own.file_name()).and_then(|name| name.to_str()) {
            state.by_folder.insert(name.to_owned(), run);
        }
        let (changed, receiver) = watch::channel(());
        state.runs.insert(run, Followed { changed, folder, watch: None, readers: 1 });
        self.watch(&mut state, run);
        Signal { followers: self.clone(), run, changed: receiver }
    }

    /// Asks the kernel to tell what is written for a run, once its folder is there.
    fn watch(&self, state: &mut State, run: RunId) {
        let (Some(inotify), Some(followed)) = (&self.0.inotify, state.runs.get_mut(&run)) else { return };
        let (None, Some(folder)) = (followed.watch, &followed.folder) else { return };
        let flags = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::ONLYDIR;
        if let Ok(number) = inotify::add_watch(inotify, folder, flags) {
            followed.watch = Some(number);
            state.by_watch.insert(number, run);
        }
    }

    async fn listen(self, mut changes: watch::Receiver<Revision>, closing: CancellationToken) {
        let mut cursor = *changes.borrow_and_update();
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                // Nobody's business is nobody's cost.
                () = self.0.arrived.notified(), if self.lock().readers == 0 => {
                    cursor = *changes.borrow_and_update();
                }
                changed = changes.changed(), if self.lock().readers > 0 => {
                    if changed.is_err() {
                        return;
                    }
                    let (runs, latest) = self.0.registry.runs_changed(cursor);
                    cursor = latest;
                    self.tell(runs.as_deref());
                }
                () = self.written(), if self.0.inotify.is_some() => {}
            }
            sleep(GATHER).await;
        }
    }

    /// Tells those who follow these runs, or everybody.
    fn tell(&self, runs: Option<&[RunId]>) {
        let state = self.lock();
        match runs {
            Some(runs) => {
                runs.iter().filter_map(|run| state.runs.get(run)).for_each(|one| one.changed.send_replace(()))
            }
            None => state.runs.values().for_each(|one| one.changed.send_replace(())),
        }
    }

    /// Waits until the kernel has something to tell, and passes it on.
    async fn written(&self) {
        let Some(inotify) = &self.0.inotify else { return };
        let Ok(mut ready) = inotify.readable().await else { return };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(inotify, &mut buffer);
        let mut told: Vec<RunId> = Vec::new();
        let mut state = self.lock();
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                // Nothing more for now, whatever the reason: everybody looks anyway after a while.
                Err(_) => break,
            };
            let (number, flags) = (event.wd(), event.events());
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                told.extend(state.runs.keys());
            } else if flags.contains(ReadFlags::IGNORED) {
                state.forget(number);
            } else if Some(number) == state.root {
                let name = event.file_name().and_then(|name| name.to_str().ok());
                let run = name.and_then(|name| state.by_folder.get(name)).copied();
                if let Some(run) = run {
                    self.watch(&mut state, run);
                    told.push(run);
                }
            } else if let Some(run) = state.by_watch.get(&number)
                && told.last() != Some(run)
            {
                told.push(*run);
            }
        }
        drop(state);
        ready.clear_ready();
        self.tell(Some(&told));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(deprecated, reason = "its successor is unsafe for the sake of borrowed descriptors; this one is owned")]
fn descriptor() -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?)
}

impl State {
    /// The kernel watches this no longer.
    fn forget(&mut self, number: i32) {
        if self.root == Some(number) {
            self.root = None;
        }
        if let Some(followed) = self.by_watch.remove(&number).and_then(|run| self.runs.get_mut(&run)) {
            followed.watch = None;
        }
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        let mut state = self.followers.lock();
        state.readers -= 1;
        let Some(followed) = state.runs.get_mut(&self.run) else { return };
        followed.readers -= 1;
        if followed.readers > 0 {
            return;
        }
        let Some(followed) = state.runs.remove(&self.run) else { return };
        if let Some(name) = followed.folder.as_ref().and_then(|own| own.file_name()).and_then(|name| name.to_str()) {
            state.by_folder.remove(name);
        }
        if let (Some(number), Some(inotify)) = (followed.watch, &self.followers.0.inotify) {
            state.by_watch.remove(&number);
            // It may be gone with its folder.
            let _ = inotify::remove_watch(inotify, number);
        }
    }
}

impl Signal {
    /// When to look again if nobody tells.
    fn look_anyway(&self) -> Duration {
        let told = self.followers.lock().runs.get(&self.run).is_some_and(|followed| followed.watch.is_some());
        if told { LOOK_ANYWAY } else { LOOK_UNTOLD }
    }

    fn gap(&self) -> Duration {
        GAP + GAP_EACH * u32::try_from(self.followers.lock().readers).unwrap_or(u32::MAX)
    }
}

impl<L: Log> Following<L> {
    /// Waits for the next piece; `None` at the end. It may be given up at any time and asked again.
    pub(crate) async fn next(&mut self) -> Result<Option<L::Piece>, Fault> {
        loop {
            match &mut self.at {
                At::Ready(_) => self.begin().await?,
                At::Reading(read) => {
                    let read = read.await;
                    self.at = At::Over;
                    let (log, reading) = read.map_err(|error| Fault::internal(error.to_string()))?;
                    let Reading { piece, finished, more } = reading?;
                    if !finished {
                        self.at = At::Ready(log);
                        if !more {
                            let gap = self.signal.gap();
                            self.not_before = Instant::now() + gap;
                            self.rest_until = Some(self.not_before + self.signal.look_anyway());
                        }
                    }
                    if piece.is_some() {
                        return Ok(piece);
                    }
                }
                At::Over => return Ok(None),
            }
        }
    }

    /// Begins to read, when it is worth it and there is room.
    async fn begin(&mut self) -> Result<(), Fault> {
        if let Some(until) = self.rest_until {
            tokio::select! {
                // An error would mean that nobody tells any more.
                Ok(()) = self.signal.changed.changed() => {}
                () = sleep_until(until) => {}
            }
            self.rest_until = None;
        }
        sleep_until(self.not_before).await;
        let reads = self.signal.followers.0.reads.clone();
        let turn = reads.acquire_owned().await.map_err(|error| Fault::internal(error.to_string()))?;
        let At::Ready(mut log) = std::mem::replace(&mut self.at, At::Over) else { return Ok(()) };
        // Whatever is told from here on is new.
        self.signal.changed.mark_unchanged();
        self.at = At::Reading(tokio::task::spawn_blocking(move || {
            let reading = log.read();
            drop(turn);
            (log, reading)
        }));
        Ok(())
    }
}
