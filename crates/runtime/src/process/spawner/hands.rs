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
    launch::{self, Born},
    limits::{Limit, Limits},
    place::Place,
    slot::{Maker, Slot},
    usage::{self, Usage},
};
use crate::{
    process::{
        clone::Stack,
        sys::{self, Bell, ns},
        view,
        wire::{Bind, Ended, Launch},
    },
    shortage::Shortage,
};

/// Limit of spawning threads: clones overlap well up to a little more than the number of cores; each thread costs a
/// small stack.
const MOST_THREADS: usize = 4;

/// Limit of idle workspaces kept for reuse; each is a directory, perhaps with a few mounts.
const SPARES: usize = 64;

/// Descriptors per idle workspace. Idle ones may use a quarter of the process's descriptors at most.
const DESCRIPTORS_PER_SPARE: u64 = 8;

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
        place: Option<Place>,
        /// True if the workspace already contains everything the task expects.
        furnished: bool,
    },
    Prepare {
        key: Key,
        launch: Box<Launch>,
        place: Option<Place>,
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
    pub(crate) fn into_place(self) -> Option<Place> {
        match self {
            Self::Start { place, .. } | Self::Prepare { place, .. } => place,
            Self::Restore { .. } => None,
        }
    }
}

pub(crate) enum Done {
    Started {
        key: Key,
        born: Born,
        place: Place,
        limits: Vec<Limit>,
    },
    NotStarted {
        key: Key,
        why: Ended,
        place: Option<Place>,
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
        place: Place,
    },
    Restored {
        key: Key,
        place: Option<Place>,
    },
    /// Disk usage of running tasks.
    Measured {
        usages: Vec<Usage>,
        began: Instant,
    },
}

pub(crate) struct Hands {
    jobs: Queue<Job>,
    done: Mutex<Vec<Done>>,
    pub(crate) bell: Bell,
    /// Clean workspaces, ready for a task.
    spare_slots: Mutex<Vec<Place>>,
    spare_rooms: Mutex<Vec<Place>>,
    /// Workspaces that were written to. A spawning thread that needs one cleans it itself; the cleaning thread handles
    /// the rest.
    used: Queue<Place>,
    /// Workspaces to measure, one list at a time.
    measures: Queue<Vec<(Key, AttemptId, PathBuf)>>,
    measures_run: AtomicBool,
    trash: Queue<Vec<PathBuf>>,
    maker: Option<Maker>,
    pub(crate) limits: Limits,
    work: PathBuf,
    instance: String,
    next_room: AtomicU64,
    most_spares: usize,
    spell: Mutex<Spell>,
}

/// Busy period: since when there has always been a task, short gaps aside.
struct Spell {
    since: Instant,
    living: usize,
    last: Instant,
}

/// Gap that ends a busy period: after it a user may have looked at a result, changed a file of the machine and tried
/// again.
const PAUSE: Duration = Duration::from_millis(20);

impl Spell {
    fn enter(&mut self, now: Instant) -> Instant {
        if self.living == 0 && now.saturating_duration_since(self.last) >= PAUSE {
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

impl Hands {
    pub(crate) fn new(data: &Path, maker: Option<Maker>, instance: &str) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            jobs: Queue::default(),
            done: Mutex::default(),
            bell: Bell::new()?,
            spare_slots: Mutex::default(),
            spare_rooms: Mutex::default(),
            used: Queue::default(),
            measures: Queue::default(),
            measures_run: AtomicBool::new(false),
            trash: Queue::default(),
            maker,
            limits: Limits::default(),
            work: data.join("work"),
            instance: instance.to_owned(),
            next_room: AtomicU64::new(0),
            most_spares: usize::try_from(sys::descriptor_limit() / 4 / DESCRIPTORS_PER_SPARE)
                .map_or(SPARES, |room| room.min(SPARES)),
            spell: Mutex::new(Spell { since: Instant::now(), living: 0, last: Instant::now() }),
        }))
    }

    /// Starts the threads. They live as long as the process: the end of one would end the tasks that it created.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        let threads = thread::available_parallelism().map_or(2, usize::from).clamp(2, MOST_THREADS);
        for _ in 0..threads {
            let (mut stack, null) = (Stack::new()?, File::options().read(true).write(true).open("/dev/null")?);
            self.thread("spawn", move |hands| hands.spawn_for_ever(&mut stack, &null))?;
        }
        self.thread("clean", |hands| {
            loop {
                hands.used.wait();
                // While tasks come and go, the spawning threads take these workspaces and clean them as needed.
                thread::sleep(CLEAN_AFTER);
                while let Some(mut place) = hands.used.take_now() {
                    let fresh = place.is_fresh(Instant::now(), lock(&hands.spell).since);
                    if fresh && place.wash() { hands.spare(place) } else { place.discard() }
                }
            }
        })?;
        self.thread("remove", |hands| {
            loop {
                // What cannot be removed now is swept by the next spawner.
                hands.trash.take().iter().for_each(|path| drop(view::remove_dir(path)));
            }
        })
    }

    /// Starts a thread that lives as long as the process. A panic is a bug, which is in the spawner's log; the thread
    /// continues with the next work, because ending the spawner would cost the tasks their results.
    fn thread(self: &Arc<Self>, name: &str, mut work: impl FnMut(&Self) + Send + 'static) -> io::Result<()> {
        let hands = Arc::clone(self);
        let supervised = move || loop {
            drop(catch_unwind(AssertUnwindSafe(|| work(&hands))));
        };
        thread::Builder::new().name(name.to_owned()).stack_size(THREAD_STACK).spawn(supervised).map(drop)
    }

    pub(crate) fn give(&self, jobs: impl IntoIterator<Item = Job>) {
        self.jobs.give(jobs);
    }

    pub(crate) fn take_done(&self) -> Vec<Done> {
        std::mem::take(&mut *lock(&self.done))
    }

    /// Takes back a workspace: to the idle ones if it is untouched, else to be cleaned.
    pub(crate) fn release(&self, mut place: Place) {
        let now = Instant::now();
        place.was_used(now);
        lock(&self.spell).leave(now);
        if place.is_clean() { self.spare(place) } else { self.used.give([place]) }
    }

    pub(crate) fn remove(&self, paths: Vec<PathBuf>) {
        if !paths.is_empty() {
            self.trash.give([paths]);
        }
    }

    /// Removes every workspace without a task, before the process exits.
    pub(crate) fn close(&self) {
        let mut places = std::mem::take(&mut *lock(&self.spare_slots));
        places.append(&mut lock(&self.spare_rooms));
        places.extend(std::iter::from_fn(|| self.used.take_now()));
        places.into_iter().for_each(Place::discard);
        self.limits.close();
    }

    pub(crate) fn directories_in_use(&self) -> Vec<PathBuf> {
        let spares = [&self.spare_slots, &self.spare_rooms];
        spares
            .iter()
            .flat_map(|spares| lock(spares).iter().map(|place| place.dir().to_owned()).collect::<Vec<_>>())
            .collect()
    }

    fn spare(&self, place: Place) {
        let mut spares = lock(self.spares(place.slot().is_some()));
        // The newest is most likely to suit the next task; the oldest may suit none any more.
        let oldest = (spares.len() >= self.most_spares.max(1)).then(|| spares.remove(0));
        spares.push(place);
        drop(spares);
        if let Some(oldest) = oldest {
            oldest.discard();
        }
    }

    fn spares(&self, slots: bool) -> &Mutex<Vec<Place>> {
        if slots { &self.spare_slots } else { &self.spare_rooms }
    }

    fn spawn_for_ever(&self, stack: &mut Stack, null: &File) {
        // Slots are entered and left by this thread alone, so it needs a root of its own.
        let own_root = ns::leave(libc::CLONE_FS);
        loop {
            let job = self.jobs.take();
            let (key, restores) = (job.key(), matches!(job, Job::Restore { .. }));
            let done = match &own_root {
                // A panic is a bug; it costs this attempt, not the thread and with it the tasks that it created.
                Ok(()) => catch_unwind(AssertUnwindSafe(|| self.work(job, stack, null))).unwrap_or_else(|_| {
                    if restores {
                        return Done::Restored { key, place: None };
                    }
                    let why = "a bug of octoflow: starting it failed; the spawner's log says how".to_owned();
                    Done::NotStarted { key, why: Ended::Environment(why), place: None }
                }),
                Err(error) => refuse(job, &format!("a spawning thread could not be set up: {error}")),
            };
            self.tell(done);
        }
    }

    fn tell(&self, done: Done) {
        let mut queue = lock(&self.done);
        queue.push(done);
        let first = queue.len() == 1;
        drop(queue);
        if first {
            self.bell.ring();
        }
    }

    /// Measures workspaces; the result is `Done::Measured`. The thread is started when it is first needed; without one
    /// nothing is measured until the next call.
    pub(crate) fn measure(self: &Arc<Self>, places: Vec<(Key, AttemptId, PathBuf)>) {
        if !self.measures_run.load(Ordering::Relaxed) {
            let started = self.thread("measure", |hands| {
                loop {
                    let list = hands.measures.take();
                    let began = Instant::now();
                    // A panic is a bug; it costs one measurement, and the others are still reported.
                    let measured = |dir: &Path| catch_unwind(AssertUnwindSafe(|| usage::of(dir))).ok();
                    let usages = list
                        .into_iter()
                        .filter_map(|(key, attempt, dir)| Some(Usage { key, attempt, bytes: measured(&dir)? }));
                    hands.tell(Done::Measured { usages: usages.collect(), began });
                }
            });
            self.measures_run.store(started.is_ok(), Ordering::Relaxed);
        }
        if self.measures_run.load(Ordering::Relaxed) {
            self.measures.give([places]);
        } else {
            self.tell(Done::Measured { usages: Vec::new(), began: Instant::now() });
        }
    }

    fn work(&self, job: Job, stack: &mut Stack, null: &File) -> Done {
        match job {
            Job::Start { key, mut launch, place, furnished } => {
                let place = match place {
                    Some(place) if furnished => Ok(place),
                    place => self.furnished(&mut launch, place),
                };
                let mark = format!("{}={}:{}", super::MARK, self.instance, launch.attempt);
                match place {
                    Ok(place) => {
                        let inside = place.slot().zip(self.maker.as_ref());
                        let started = self.limits.impose(&mut launch).and_then(|limits| {
                            match launch::start(&launch, inside, &mark, null, stack) {
                                Ok(born) => Ok((born, limits)),
                                Err(why) => {
                                    self.limits.lift(limits);
                                    Err(why)
                                }
                            }
                        });
                        match started {
                            Ok((born, limits)) => Done::Started { key, born, place, limits },
                            Err(why) => self.not_started(key, launch, why, Some(place), Some(furnished)),
                        }
                    }
                    Err((why, place)) => self.not_started(key, launch, why, place, Some(false)),
                }
            }
            Job::Prepare { key, mut launch, place } => match self.furnished(&mut launch, place) {
                // Prepared attempts must not keep each other from being started.
                Ok(place) => match launch::leave_room(null, launch::ROOM_FOR_A_START) {
                    Ok(()) => Done::Prepared { key, launch, place },
                    Err(why) => self.not_started(key, launch, why, Some(place), None),
                },
                Err((why, place)) => self.not_started(key, launch, why, place, None),
            },
            Job::Restore { key, dir, mounts } => Done::Restored { key, place: self.restore(&dir, &mounts) },
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
        place: Option<Place>,
        starting: Option<bool>,
    ) -> Done {
        let Some(shortage) = launch::shortage(&why) else { return Done::NotStarted { key, why, place } };
        if shortage == Shortage::Descriptors {
            self.shed();
        }
        let furnished = starting == Some(true);
        let place = match place {
            Some(place) if !furnished && place.slot().is_some() => {
                lock(&self.spell).leave(Instant::now());
                place.discard();
                None
            }
            place => place,
        };
        let job = match starting {
            Some(_) => Job::Start { key, launch, place, furnished },
            None => Job::Prepare { key, launch, place },
        };
        Done::Delayed { job, shortage, why }
    }

    /// Frees the descriptors of workspaces without a task.
    fn shed(&self) {
        let spares = std::mem::take(&mut *lock(&self.spare_slots));
        spares.into_iter().for_each(Place::discard);
        while let Some(place) = self.used.take_now() {
            place.discard();
        }
    }

    /// Returns a workspace with everything in it that the task expects.
    fn furnished(&self, launch: &mut Launch, place: Option<Place>) -> Result<Place, (Ended, Option<Place>)> {
        let mut place = match place {
            Some(place) => place,
            None => self.place_for(launch).map_err(|why| {
                lock(&self.spell).leave(Instant::now());
                (Ended::Environment(why), None)
            })?,
        };
        place.name_in(launch);
        match launch::furnish(launch, place.slot_mut(), self.maker.as_ref()) {
            Ok(()) => Ok(place),
            Err(why) => Err((why, Some(place))),
        }
    }

    fn place_for(&self, launch: &Launch) -> Result<Place, String> {
        let now = Instant::now();
        let since = lock(&self.spell).enter(now);
        let mut spares = lock(self.spares(launch.isolated));
        // Stale ones are removed too.
        let stale: Vec<Place> = spares.extract_if(.., |place| !place.is_fresh(now, since)).collect();
        let fresh = spares.iter().rposition(|place| place.suits(launch)).map(|at| spares.remove(at));
        drop(spares);
        self.used.give(stale);
        if let Some(place) = fresh {
            return Ok(place);
        }
        // Cleaning one is cheaper than creating one.
        let washable = self.used.take_if(|place| place.suits(launch) && place.is_fresh(now, since));
        if let Some(mut place) = washable {
            if place.wash() {
                return Ok(place);
            }
            self.used.give([place]);
        }
        if launch.isolated {
            let maker = self.maker.as_ref().ok_or("isolation is not available in the running spawner")?;
            let words = device::wanted(launch);
            // A task without a file for its termination message is better than none.
            let make = |words| maker.make(words, &launch.visible);
            let made = make(words).or_else(|error| if words.is_some() { make(None) } else { Err(error) });
            let slot = made.map_err(|error| format!("no private file system: {}", error.explain()))?;
            return Ok(Place::Slot(Box::new(slot)));
        }
        if self.maker.as_ref().is_some_and(Maker::is_one_way) {
            return Err(
                "the running spawner isolates tasks and cannot start any without; let its tasks end first".into()
            );
        }
        let number = self.next_room.fetch_add(1, Ordering::Relaxed);
        let dir = self.work.join(format!("{}-r{number}", self.instance));
        fs::create_dir(&dir).map_err(|error| format!("no directory of its own: {error}"))?;
        Ok(Place::Room(dir))
    }

    fn restore(&self, dir: &Path, mounts: &[Bind]) -> Option<Place> {
        let maker = self.maker.as_ref()?;
        let mut slot: Slot = maker.restore(dir).ok()?;
        for mount in mounts {
            launch::bind(mount, &mut slot, maker).ok()?;
        }
        Some(Place::Slot(Box::new(slot)))
    }

    /// Creates one slot to test whether isolation works; it becomes the first idle one.
    pub(crate) fn probe(self: &Arc<Self>) -> Result<(), String> {
        let hands = Arc::clone(self);
        let probe = thread::spawn(move || -> Result<(), String> {
            let maker = hands.maker.as_ref().ok_or("it was not set up when the spawner started")?;
            ns::leave(libc::CLONE_FS).map_err(|error| error.to_string())?;
            let slot = maker.make(None, &[]).map_err(|error| error.explain())?;
            hands.spare(Place::Slot(Box::new(slot)));
            Ok(())
        });
        probe.join().unwrap_or_else(|_| Err("the attempt to isolate failed badly".to_owned()))
    }
}

fn refuse(job: Job, why: &str) -> Done {
    let failed = |key, place| Done::NotStarted { key, why: Ended::Environment(why.to_owned()), place };
    match job {
        Job::Start { key, place, .. } => failed(key, place),
        Job::Prepare { key, place, .. } => failed(key, place),
        Job::Restore { key, .. } => Done::Restored { key, place: None },
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
    fn give(&self, items: impl IntoIterator<Item = T>) {
        let mut waiting = lock(&self.waiting);
        let before = waiting.len();
        waiting.extend(items);
        let added = waiting.len() - before;
        drop(waiting);
        for _ in 0..added.min(MOST_THREADS) {
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
