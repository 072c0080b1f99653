//! Followed logs without a thread each. A follower that has read everything sleeps until the run changes or a file in
//! its log folder is written; then it reads in a short blocking section, of which only a few run at a time. Another
//! process writes the logs, so inotify reports writes (one descriptor for all followers); without inotify followers
//! poll.

use std::{
    collections::HashMap,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use octoflow_control::{
    Supervisor,
    registry::{Fault as RegistryFault, Registry},
};
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

use crate::answer::fault::Fault;

/// Maximum number of concurrent reads.
const MAX_READS: usize = 8;
/// Debounce time after a read.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// Additional debounce time per follower, to bound the total load.
const DEBOUNCE_PER_FOLLOWER: Duration = Duration::from_micros(50);
/// Fallback poll interval, in case a notification is lost.
const POLL_WITH_INOTIFY: Duration = Duration::from_secs(2);
/// Poll interval without inotify.
const POLL_WITHOUT_INOTIFY: Duration = Duration::from_millis(200);
/// Debounce time for inotify events.
const EVENT_DEBOUNCE: Duration = Duration::from_millis(5);

/// All followers of logs.
#[derive(Clone)]
pub(crate) struct Followers(Arc<Inner>);

struct Inner {
    registry: Registry,
    /// `None` if inotify is not available.
    inotify: Option<AsyncFd<OwnedFd>>,
    state: Mutex<State>,
    /// Notified when the first follower arrives.
    arrived: Notify,
    reads: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    runs: HashMap<RunId, Followed>,
    by_watch: HashMap<i32, RunId>,
    by_folder: HashMap<String, RunId>,
    /// Watch of the folder of all logs, in which the folders of runs appear.
    root: Option<i32>,
    readers: usize,
}

struct Followed {
    changed: watch::Sender<()>,
    folder: Option<PathBuf>,
    watch: Option<i32>,
    readers: usize,
}

/// Notification channel of one reader. The run is dropped with its last reader.
struct Signal {
    followers: Followers,
    run: RunId,
    changed: watch::Receiver<()>,
}

/// Log that is read piece by piece.
pub(crate) trait Log: Send + 'static {
    type Piece: Send + 'static;

    fn run(&self) -> RunId;

    /// Reads what is available now, bounded to one piece. Blocks on the disk.
    fn read(&mut self) -> Result<Reading<Self::Piece>, RegistryFault>;
}

pub(crate) struct Reading<P> {
    /// `None` if there is nothing new.
    pub piece: Option<P>,
    pub finished: bool,
    /// True if more can be read at once.
    pub more: bool,
}

/// One follower, from the beginning to the end of its log.
pub(crate) struct Follower<L: Log> {
    signal: Signal,
    at: ReadState<L>,
    not_before: Instant,
    /// Set once everything was read: the time of the next poll.
    next_poll: Option<Instant>,
}

/// The log and the result of a read.
type Read<L> = (Box<L>, Result<Reading<<L as Log>::Piece>, RegistryFault>);

/// State between calls of `next`, which may be cancelled at any point.
enum ReadState<L: Log> {
    Ready(Box<L>),
    Reading(JoinHandle<Read<L>>),
    Over,
}

/// Starts a task that must not end by a panic; the supervisor hears of one, as of a thread's.
fn own(supervisor: Supervisor, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
    let task = tokio::spawn(task);
    tokio::spawn(async move {
        if let Err(error) = task.await
            && error.is_panic()
        {
            supervisor.failed(name, &error.to_string());
        }
    });
}

impl Followers {
    /// Must be called within a tokio runtime. Runs until `closing` is cancelled.
    pub(crate) fn new(registry: Registry, changes: watch::Receiver<Revision>, closing: CancellationToken) -> Self {
        let inotify = descriptor()
            .inspect_err(|error| tracing::warn!(%error, "inotify is not available; followed logs are polled instead"));
        let followers = Self(Arc::new(Inner {
            registry,
            inotify: inotify.ok(),
            state: Mutex::default(),
            arrived: Notify::new(),
            reads: Arc::new(Semaphore::new(MAX_READS)),
        }));
        let supervisor = followers.0.registry.controller().supervisor().clone();
        own(supervisor, "followers", followers.clone().listen(changes, closing));
        followers
    }

    pub(crate) fn follow<L: Log>(&self, log: L) -> Follower<L> {
        let signal = self.signal(log.run());
        Follower { signal, at: ReadState::Ready(Box::new(log)), not_before: Instant::now(), next_poll: None }
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

    /// Adds an inotify watch for a run's folder, once it exists.
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
                // Without followers nothing is processed.
                () = self.0.arrived.notified(), if self.lock().readers == 0 => {
                    cursor = *changes.borrow_and_update();
                }
                changed = changes.changed(), if self.lock().readers > 0 => {
                    if changed.is_err() {
                        return;
                    }
                    let (runs, latest) = self.0.registry.runs_changed(cursor);
                    cursor = latest;
                    self.notify(runs.as_deref());
                }
                () = self.written(), if self.0.inotify.is_some() => {}
            }
            sleep(EVENT_DEBOUNCE).await;
        }
    }

    /// Notifies the followers of these runs, or all followers.
    fn notify(&self, runs: Option<&[RunId]>) {
        let state = self.lock();
        match runs {
            Some(runs) => {
                runs.iter().filter_map(|run| state.runs.get(run)).for_each(|one| one.changed.send_replace(()))
            }
            None => state.runs.values().for_each(|one| one.changed.send_replace(())),
        }
    }

    /// Waits for inotify events and notifies the followers concerned.
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
                // No more events for now, whatever the reason: followers poll anyway.
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
        self.notify(Some(&told));
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
    /// Removes a watch that the kernel has dropped.
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
            // The watch may be gone with its folder.
            let _ = inotify::remove_watch(inotify, number);
        }
    }
}

impl Signal {
    /// Returns the poll interval.
    fn poll_interval(&self) -> Duration {
        let told = self.followers.lock().runs.get(&self.run).is_some_and(|followed| followed.watch.is_some());
        if told { POLL_WITH_INOTIFY } else { POLL_WITHOUT_INOTIFY }
    }

    fn debounce(&self) -> Duration {
        DEBOUNCE + DEBOUNCE_PER_FOLLOWER * u32::try_from(self.followers.lock().readers).unwrap_or(u32::MAX)
    }
}

impl<L: Log> Follower<L> {
    /// Waits for the next piece; `None` at the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<L::Piece>, Fault> {
        loop {
            match &mut self.at {
                ReadState::Ready(_) => self.begin().await?,
                ReadState::Reading(read) => {
                    let read = read.await;
                    self.at = ReadState::Over;
                    let (log, reading) = read.map_err(|error| Fault::internal(error.to_string()))?;
                    let Reading { piece, finished, more } = reading?;
                    if !finished {
                        self.at = ReadState::Ready(log);
                        if !more {
                            let debounce = self.signal.debounce();
                            self.not_before = Instant::now() + debounce;
                            self.next_poll = Some(self.not_before + self.signal.poll_interval());
                        }
                    }
                    if piece.is_some() {
                        return Ok(piece);
                    }
                }
                ReadState::Over => return Ok(None),
            }
        }
    }

    /// Starts a read, after a notification or the poll interval, and once a permit is free.
    async fn begin(&mut self) -> Result<(), Fault> {
        if let Some(until) = self.next_poll {
            tokio::select! {
                // An error would mean that the sender is gone.
                Ok(()) = self.signal.changed.changed() => {}
                () = sleep_until(until) => {}
            }
            self.next_poll = None;
        }
        sleep_until(self.not_before).await;
        let reads = self.signal.followers.0.reads.clone();
        let turn = reads.acquire_owned().await.map_err(|error| Fault::internal(error.to_string()))?;
        let ReadState::Ready(mut log) = std::mem::replace(&mut self.at, ReadState::Over) else { return Ok(()) };
        // Notifications from here on are new.
        self.signal.changed.mark_unchanged();
        self.at = ReadState::Reading(tokio::task::spawn_blocking(move || {
            let reading = log.read();
            drop(turn);
            (log, reading)
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_supervisor_hears_of_a_task_that_panicked_and_not_of_one_that_ended() {
        let supervisor = Supervisor::default();
        own(supervisor.clone(), "quiet", async {});
        own(supervisor.clone(), "loud", async { panic!("out of luck") });
        while supervisor.failure().is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(supervisor.failure().unwrap().thread, "loud");
    }
}
