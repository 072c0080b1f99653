//! Worker threads for slow operations: creating processes, creating workspaces, cleaning up. Clone with vfork suspends
//! only its own thread, so a few of them overlap. They own no state of attempts; they take a job and return its result.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use octoflow_model::ids::AttemptId;

use super::{
    device,
    launch::{self, Spawned},
    limits::{Limit, Limits},
    slot::{Maker, Slot},
    usage::{self, Usage},
    workspace::Workspace,
};
use crate::{
    process::{
        clone::Stack,
        sys::{self, Waker, ns},
        view,
        wire::{Bind, Ended, Launch},
    },
    shortage::Shortage,
};

/// Limit of spawning threads: clones overlap well up to a little more than the number of cores; each thread costs a
/// small stack.
const MAX_THREADS: usize = 4;

/// Limit of idle workspaces kept for reuse; each is a directory, perhaps with a few mounts.
const MAX_IDLE: usize = 64;

/// Descriptors per idle workspace. Idle ones may use a quarter of the process's descriptors at most.
const DESCRIPTORS_PER_IDLE: u64 = 8;

/// Delay before a used workspace is cleaned although none is needed.
const CLEAN_AFTER: Duration = Duration::from_millis(20);

/// Enough for deep directory walks, small because there are several threads.
const THREAD_STACK: usize = 512 * 1024;

/// Index of an attempt in the spawner's table.
pub(crate) type Key = usize;

pub(crate) enum Job {
    Start {
        key: Key,
        launch: Box<Launch>,
        workspace: Option<Workspace>,
        /// True if the workspace already contains everything the task expects.
        populated: bool,
    },
    Prepare {
        key: Key,
        launch: Box<Launch>,
        workspace: Option<Workspace>,
    },
    /// Mount a slot over what an earlier spawner left.
    Restore {
        key: Key,
        dir: PathBuf,
        mounts: Vec<Bind>,
    },
}

impl Job {
    pub(crate) fn key(&self) -> Key {
        match self {
            Self::Start { key, .. } | Self::Prepare { key, .. } | Self::Restore { key, .. } => *key,
        }
    }

    /// Returns the workspace that the job already has.
    pub(crate) fn into_workspace(self) -> Option<Workspace> {
        match self {
            Self::Start { workspace, .. } | Self::Prepare { workspace, .. } => workspace,
            Self::Restore { .. } => None,
        }
    }
}

pub(crate) enum Done {
    Started {
        key: Key,
        spawned: Spawned,
        workspace: Workspace,
        limits: Vec<Limit>,
    },
    NotStarted {
        key: Key,
        why: Ended,
        workspace: Option<Workspace>,
    },
    /// A resource is short right now; the job can be retried.
    Delayed {
        job: Job,
        shortage: Shortage,
        why: Ended,
    },
    Prepared {
        key: Key,
        launch: Box<Launch>,
        workspace: Workspace,
    },
    Restored {
        key: Key,
        workspace: Option<Workspace>,
    },
    /// Disk usage of running tasks.
    Measured {
        usages: Vec<Usage>,
        began: Instant,
    },
}

pub(crate) struct Workers {
    jobs: Queue<Job>,
    done: Mutex<Vec<Done>>,
    pub(crate) waker: Waker,
    /// Clean workspaces, ready for a task.
    idle_slots: Mutex<Vec<Workspace>>,
    idle_dirs: Mutex<Vec<Workspace>>,
    /// Workspaces that were written to. A spawning thread that needs one cleans it itself; the cleaning thread handles
    /// the rest.
    used: Queue<Workspace>,
    /// Workspaces to measure, one list at a time.
    measures: Queue<Vec<(Key, AttemptId, PathBuf)>>,
    measures_run: AtomicBool,
    trash: Queue<Vec<PathBuf>>,
    maker: Option<Maker>,
    pub(crate) limits: Limits,
    work: PathBuf,
    instance: String,
    next_dir: AtomicU64,
    max_idle: usize,
    busy_period: Mutex<BusyPeriod>,
}

/// Busy period: since when there has always been a task, short gaps aside.
struct BusyPeriod {
    since: Instant,
    living: usize,
    last: Instant,
}

/// Gap that ends a busy period: after it a user may have looked at a result, changed a file of the machine and tried
/// again.
const BUSY_GAP: Duration = Duration::from_millis(20);

impl BusyPeriod {
    fn enter(&mut self, now: Instant) -> Instant {
        if self.living == 0 && now.saturating_duration_since(self.last) >= BUSY_GAP {
            self.since = now;
        }
        self.living += 1;
        self.since
    }

    fn leave(&mut self, now: Instant) {
        self.living = self.living.saturating_sub(1);
        self.last = now;
    }
}

impl Workers {
    pub(crate) fn new(data: &Path, maker: Option<Maker>, instance: &str) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            jobs: Queue::default(),
            done: Mutex::default(),
            waker: Waker::new()?,
            idle_slots: Mutex::default(),
            idle_dirs: Mutex::default(),
            used: Queue::default(),
            measures: Queue::default(),
            measures_run: AtomicBool::new(false),
            trash: Queue::default(),
            maker,
            limits: Limits::default(),
            work: data.join("work"),
            instance: instance.to_owned(),
            next_dir: AtomicU64::new(0),
            max_idle: usize::try_from(sys::descriptor_limit() / 4 / DESCRIPTORS_PER_IDLE)
                .map_or(MAX_IDLE, |room| room.min(MAX_IDLE)),
            busy_period: Mutex::new(BusyPeriod { since: Instant::now(), living: 0, last: Instant::now() }),
        }))
    }

    /// Starts the threads. They live as long as the process: the end of one would end the tasks that it created.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        let threads = thread::available_parallelism().map_or(2, usize::from).clamp(2, MAX_THREADS);
        for _ in 0..threads {
            let (mut stack, null) = (Stack::new()?, File::options().read(true).write(true).open("/dev/null")?);
            self.thread("spawn", move |workers| workers.spawn_for_ever(&mut stack, &null))?;
        }
        self.thread("clean", |workers| {
            loop {
                workers.used.wait();
                // While tasks come and go, the spawning threads take these workspaces and clean them as needed.
                thread::sleep(CLEAN_AFTER);
                while let Some(mut workspace) = workers.used.take_now() {
                    let fresh = workspace.is_fresh(Instant::now(), lock(&workers.busy_period).since);
                    if fresh && workspace.clean() { workers.keep_idle(workspace) } else { workspace.discard() }
                }
            }
        })?;
        self.thread("remove", |workers| {
            loop {
                // What cannot be removed now is swept by the next spawner.
                workers.trash.take().iter().for_each(|path| drop(view::remove_dir(path)));
            }
        })
    }

    /// Starts a thread that lives as long as the process. A panic is a bug, which is in the spawner's log; the thread
    /// continues with the next work, because ending the spawner would cost the tasks their results.
    fn thread(self: &Arc<Self>, name: &str, mut work: impl FnMut(&Self) + Send + 'static) -> io::Result<()> {
        let workers = Arc::clone(self);
        let supervised = move || loop {
            drop(catch_unwind(AssertUnwindSafe(|| work(&workers))));
        };
        thread::Builder::new().name(name.to_owned()).stack_size(THREAD_STACK).spawn(supervised).map(drop)
    }

    pub(crate) fn push(&self, jobs: impl IntoIterator<Item = Job>) {
        self.jobs.push(jobs);
    }

    pub(crate) fn take_done(&self) -> Vec<Done> {
        std::mem::take(&mut *lock(&self.done))
    }

    /// Takes back a workspace: to the idle ones if it is untouched, else to be cleaned.
    pub(crate) fn release(&self, mut workspace: Workspace) {
        let now = Instant::now();
        workspace.mark_used(now);
        lock(&self.busy_period).leave(now);
        if workspace.is_clean() { self.keep_idle(workspace) } else { self.used.push([workspace]) }
    }

    pub(crate) fn remove(&self, paths: Vec<PathBuf>) {
        if !paths.is_empty() {
            self.trash.push([paths]);
        }
    }

    /// Removes every workspace without a task, before the process exits.
    pub(crate) fn close(&self) {
        let mut workspaces = std::mem::take(&mut *lock(&self.idle_slots));
        workspaces.append(&mut lock(&self.idle_dirs));
        workspaces.extend(std::iter::from_fn(|| self.used.take_now()));
        workspaces.into_iter().for_each(Workspace::discard);
        self.limits.close();
    }

    pub(crate) fn directories_in_use(&self) -> Vec<PathBuf> {
        let idle = [&self.idle_slots, &self.idle_dirs];
        idle.iter()
            .flat_map(|idle| lock(idle).iter().map(|workspace| workspace.dir().to_owned()).collect::<Vec<_>>())
            .collect()
    }

    fn keep_idle(&self, workspace: Workspace) {
        let mut idle = lock(self.idle(workspace.slot().is_some()));
        // The newest is most likely to suit the next task; the oldest may suit none any more.
        let oldest = (idle.len() >= self.max_idle.max(1)).then(|| idle.remove(0));
        idle.push(workspace);
        drop(idle);
        if let Some(oldest) = oldest {
            oldest.discard();
        }
    }

    fn idle(&self, slots: bool) -> &Mutex<Vec<Workspace>> {
        if slots { &self.idle_slots } else { &self.idle_dirs }
    }

    fn spawn_for_ever(&self, stack: &mut Stack, null: &File) {
        // Slots are entered and left by this thread alone, so it needs a root of its own.
        let own_root = ns::unshare(libc::CLONE_FS);
        loop {
            let job = self.jobs.take();
            let (key, restores) = (job.key(), matches!(job, Job::Restore { .. }));
            let done = match &own_root {
                // A panic is a bug; it costs this attempt, not the thread and with it the tasks that it created.
                Ok(()) => catch_unwind(AssertUnwindSafe(|| self.work(job, stack, null))).unwrap_or_else(|_| {
                    if restores {
                        return Done::Restored { key, workspace: None };
                    }
                    let why = "a bug of octoflow: starting it failed; the spawner's log says how".to_owned();
                    Done::NotStarted { key, why: Ended::Environment(why), workspace: None }
                }),
                Err(error) => refuse(job, &format!("a spawning thread could not be set up: {error}")),
            };
            self.push_done(done);
        }
    }

    fn push_done(&self, done: Done) {
        let mut queue = lock(&self.done);
        queue.push(done);
        let first = queue.len() == 1;
        drop(queue);
        if first {
            self.waker.wake();
        }
    }

    /// Measures workspaces; the result is `Done::Measured`. The thread is started when it is first needed; without one
    /// nothing is measured until the next call.
    pub(crate) fn measure(self: &Arc<Self>, workspaces: Vec<(Key, AttemptId, PathBuf)>) {
        if !self.measures_run.load(Ordering::Relaxed) {
            let started = self.thread("measure", |workers| {
                loop {
                    let list = workers.measures.take();
                    let began = Instant::now();
                    // A panic is a bug; it costs one measurement, and the others are still reported.
                    let measured = |dir: &Path| catch_unwind(AssertUnwindSafe(|| usage::of(dir))).ok();
                    let usages = list
                        .into_iter()
                        .filter_map(|(key, attempt, dir)| Some(Usage { key, attempt, bytes: measured(&dir)? }));
                    workers.push_done(Done::Measured { usages: usages.collect(), began });
                }
            });
            self.measures_run.store(started.is_ok(), Ordering::Relaxed);
        }
        if self.measures_run.load(Ordering::Relaxed) {
            self.measures.push([workspaces]);
        } else {
            self.push_done(Done::Measured { usages: Vec::new(), began: Instant::now() });
        }
    }

    fn work(&self, job: Job, stack: &mut Stack, null: &File) -> Done {
        match job {
            Job::Start { key, mut launch, workspace, populated } => {
                let workspace = match workspace {
                    Some(workspace) if populated => Ok(workspace),
                    workspace => self.populated(&mut launch, workspace),
                };
                let mark = format!("{}={}:{}", super::MARK, self.instance, launch.attempt);
                match workspace {
                    Ok(workspace) => {
                        let inside = workspace.slot().zip(self.maker.as_ref());
                        let started = self.limits.impose(&mut launch).and_then(|limits| {
                            match launch::start(&launch, inside, &mark, null, stack) {
                                Ok(spawned) => Ok((spawned, limits)),
                                Err(why) => {
                                    self.limits.lift(limits);
                                    Err(why)
                                }
                            }
                        });
                        match started {
                            Ok((spawned, limits)) => Done::Started { key, spawned, workspace, limits },
                            Err(why) => self.not_started(key, launch, why, Some(workspace), Some(populated)),
                        }
                    }
                    Err((why, workspace)) => self.not_started(key, launch, why, workspace, Some(false)),
                }
            }
            Job::Prepare { key, mut launch, workspace } => match self.populated(&mut launch, workspace) {
                // Prepared attempts must not keep each other from being started.
                Ok(workspace) => match launch::leave_room(null, launch::ROOM_FOR_A_START) {
                    Ok(()) => Done::Prepared { key, launch, workspace },
                    Err(why) => self.not_started(key, launch, why, Some(workspace), None),
                },
                Err((why, workspace)) => self.not_started(key, launch, why, workspace, None),
            },
            Job::Restore { key, dir, mounts } => Done::Restored { key, workspace: self.restore(&dir, &mounts) },
        }
    }

    /// Turns a failed start into a delayed job if the cause is a shortage. A slot that was created for it is discarded,
    /// since it takes descriptors; one with inputs in it stays, and so does a plain directory, whose path the launch
    /// contains by now.
    fn not_started(
        &self,
        key: Key,
        launch: Box<Launch>,
        why: Ended,
        workspace: Option<Workspace>,
        starting: Option<bool>,
    ) -> Done {
        let Some(shortage) = launch::shortage(&why) else { return Done::NotStarted { key, why, workspace } };
        if shortage == Shortage::Descriptors {
            self.free_descriptors();
        }
        let populated = starting == Some(true);
        let workspace = match workspace {
            Some(workspace) if !populated && workspace.slot().is_some() => {
                lock(&self.busy_period).leave(Instant::now());
                workspace.discard();
                None
            }
            workspace => workspace,
        };
        let job = match starting {
            Some(_) => Job::Start { key, launch, workspace, populated },
            None => Job::Prepare { key, launch, workspace },
        };
        Done::Delayed { job, shortage, why }
    }

    /// Frees the descriptors of workspaces without a task.
    fn free_descriptors(&self) {
        let idle = std::mem::take(&mut *lock(&self.idle_slots));
        idle.into_iter().for_each(Workspace::discard);
        while let Some(workspace) = self.used.take_now() {
            workspace.discard();
        }
    }

    /// Returns a workspace with everything in it that the task expects.
    fn populated(
        &self,
        launch: &mut Launch,
        workspace: Option<Workspace>,
    ) -> Result<Workspace, (Ended, Option<Workspace>)> {
        let mut workspace = match workspace {
            Some(workspace) => workspace,
            None => self.workspace_for(launch).map_err(|why| {
                lock(&self.busy_period).leave(Instant::now());
                (Ended::Environment(why), None)
            })?,
        };
        workspace.fill_placeholders(launch);
        match launch::populate(launch, workspace.slot_mut(), self.maker.as_ref()) {
            Ok(()) => Ok(workspace),
            Err(why) => Err((why, Some(workspace))),
        }
    }

    fn workspace_for(&self, launch: &Launch) -> Result<Workspace, String> {
        let now = Instant::now();
        let since = lock(&self.busy_period).enter(now);
        let mut idle = lock(self.idle(launch.isolated));
        // Stale ones are removed too.
        let stale: Vec<Workspace> = idle.extract_if(.., |workspace| !workspace.is_fresh(now, since)).collect();
        let fresh = idle.iter().rposition(|workspace| workspace.suits(launch)).map(|at| idle.remove(at));
        drop(idle);
        self.used.push(stale);
        if let Some(workspace) = fresh {
            return Ok(workspace);
        }
        // Cleaning one is cheaper than creating one.
        let cleanable = self.used.take_if(|workspace| workspace.suits(launch) && workspace.is_fresh(now, since));
        if let Some(mut workspace) = cleanable {
            if workspace.clean() {
                return Ok(workspace);
            }
            self.used.push([workspace]);
        }
        if launch.isolated {
            let maker = self.maker.as_ref().ok_or("isolation is not available in the running spawner")?;
            let termination = device::wanted(launch);
            // A task without a file for its termination message is better than none.
            let make = |termination| maker.make(termination, &launch.visible);
            let made = make(termination).or_else(|error| if termination.is_some() { make(None) } else { Err(error) });
            let slot = made.map_err(|error| format!("no private file system: {}", error.explain()))?;
            return Ok(Workspace::Slot(Box::new(slot)));
        }
        if self.maker.as_ref().is_some_and(Maker::is_one_way) {
            return Err(
                "the running spawner isolates tasks and cannot start any without; let its tasks end first".into()
            );
        }
        let number = self.next_dir.fetch_add(1, Ordering::Relaxed);
        let dir = self.work.join(format!("{}-r{number}", self.instance));
        fs::create_dir(&dir).map_err(|error| format!("no directory of its own: {error}"))?;
        Ok(Workspace::Dir(dir))
    }

    fn restore(&self, dir: &Path, mounts: &[Bind]) -> Option<Workspace> {
        let maker = self.maker.as_ref()?;
        let mut slot: Slot = maker.restore(dir).ok()?;
        for mount in mounts {
            launch::bind(mount, &mut slot, maker).ok()?;
        }
        Some(Workspace::Slot(Box::new(slot)))
    }

    /// Creates one slot to test whether isolation works; it becomes the first idle one. It shows the folders that the
    /// first tasks will want. A folder that cannot be shown is no obstacle: the task that wants it gets the error.
    pub(crate) fn probe(self: &Arc<Self>, visible: &[String]) -> Result<(), String> {
        let (workers, visible) = (Arc::clone(self), visible.to_vec());
        let probe = thread::spawn(move || -> Result<(), String> {
            let maker = workers.maker.as_ref().ok_or("it was not set up when the spawner started")?;
            ns::unshare(libc::CLONE_FS).map_err(|error| error.to_string())?;
            let without = |_| maker.make(None, &[]);
            let slot = maker.make(None, &visible).or_else(without).map_err(|error| error.explain())?;
            workers.keep_idle(Workspace::Slot(Box::new(slot)));
            Ok(())
        });
        probe.join().unwrap_or_else(|_| Err("the test of isolation panicked".to_owned()))
    }
}

fn refuse(job: Job, why: &str) -> Done {
    let failed = |key, workspace| Done::NotStarted { key, why: Ended::Environment(why.to_owned()), workspace };
    match job {
        Job::Start { key, workspace, .. } => failed(key, workspace),
        Job::Prepare { key, workspace, .. } => failed(key, workspace),
        Job::Restore { key, .. } => Done::Restored { key, workspace: None },
    }
}

struct Queue<T> {
    waiting: Mutex<VecDeque<T>>,
    more: Condvar,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { waiting: Mutex::default(), more: Condvar::new() }
    }
}

impl<T> Queue<T> {
    fn push(&self, items: impl IntoIterator<Item = T>) {
        let mut waiting = lock(&self.waiting);
        let before = waiting.len();
        waiting.extend(items);
        let added = waiting.len() - before;
        drop(waiting);
        for _ in 0..added.min(MAX_THREADS) {
            self.more.notify_one();
        }
    }

    fn take(&self) -> T {
        let mut waiting = lock(&self.waiting);
        loop {
            if let Some(item) = waiting.pop_front() {
                return item;
            }
            waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until there is an item, without taking it.
    fn wait(&self) {
        let mut waiting = lock(&self.waiting);
        while waiting.is_empty() {
            waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn take_now(&self) -> Option<T> {
        lock(&self.waiting).pop_front()
    }

    fn take_if(&self, wanted: impl FnMut(&mut T) -> bool) -> Option<T> {
        let mut waiting = lock(&self.waiting);
        let at = waiting.iter_mut().position(wanted)?;
        waiting.remove(at)
    }
}

/// Locks a mutex even if it is poisoned: our critical sections only move values, and a panic inside one leaves them
/// whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
