//! The threads that do what may take a moment: making processes, making places for them, cleaning up. Clone with vfork
//! suspends only its own thread, so a few of them overlap. They own no state of attempts; they get a job and give back
//! what came of it.

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

/// Clones overlap well up to about the number of cores and a little more; each thread costs a small stack.
const MOST_THREADS: usize = 4;

/// Places kept ready although nobody uses them; each is a directory, perhaps with a few mounts.
const SPARES: usize = 64;

/// Of the descriptors this process may have, spares take one of four at most; each takes this many.
const DESCRIPTORS_PER_SPARE: u64 = 8;

/// How long what a task left may lie about before it is cleaned up although nobody needs the place.
const CLEAN_AFTER: Duration = Duration::from_millis(20);

/// Enough for deep directory walks, small because there are several.
const THREAD_STACK: usize = 512 * 1024;

/// The place of an attempt in the spawner's table.
pub(crate) type Key = usize;

pub(crate) enum Job {
    Start {
        key: Key,
        launch: Box<Launch>,
        place: Option<Place>,
        /// Everything the task expects lies in the place already.
        furnished: bool,
    },
    Prepare {
        key: Key,
        launch: Box<Launch>,
        place: Option<Place>,
    },
    /// Make a slot over what an earlier spawner left.
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

    /// The place it has got already.
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
    /// The machine lacks something right now; it can be tried again.
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
    /// What running tasks have written to their places.
    Measured {
        usages: Vec<Usage>,
        began: Instant,
    },
}

pub(crate) struct Hands {
    jobs: Queue<Job>,
    done: Mutex<Vec<Done>>,
    pub(crate) bell: Bell,
    /// Places as new, ready for a task.
    spare_slots: Mutex<Vec<Place>>,
    spare_rooms: Mutex<Vec<Place>>,
    /// Places that were written to. A spawning thread that needs one washes it itself; the cleaning thread has the rest.
    used: Queue<Place>,
    /// Places to be measured, one list at a time.
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

/// Since when there has always been a task, short gaps aside.
struct Spell {
    since: Instant,
    living: usize,
    last: Instant,
}

/// After a gap like this somebody may have looked at a result, changed a file of the machine and tried again.
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

    /// Starts the threads. They live as long as the process: their death would end the tasks they made.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        let threads = thread::available_parallelism().map_or(2, usize::from).clamp(2, MOST_THREADS);
        for _ in 0..threads {
            let (mut stack, null) = (Stack::new()?, File::options().read(true).write(true).open("/dev/null")?);
            self.thread("spawn", move |hands| hands.spawn_for_ever(&mut stack, &null))?;
        }
        self.thread("clean", |hands| {
            loop {
                hands.used.wait();
                // While tasks come and go, the threads that start them take these places and wash them as needed.
                thread::sleep(CLEAN_AFTER);
                while let Some(mut place) = hands.used.take_now() {
                    let fresh = place.is_fresh(Instant::now(), lock(&hands.spell).since);
                    if fresh && place.wash() { hands.spare(place) } else { place.discard() }
                }
            }
        })?;
        self.thread("remove", |hands| {
            loop {
                // What resists now is swept by the next spawner.
                hands.trash.take().iter().for_each(|path| drop(view::remove_dir(path)));
            }
        })
    }

    /// Starts a thread for as long as the process lives. A panic is a bug, which the spawner's log tells; the work goes on with
    /// what is next, because ending the spawner would cost the tasks their results.
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

    /// A place nobody needs any more: back to the spares when it is untouched, else to be washed.
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

    /// Ends every place nobody lives in, for the end of the process.
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
        // Whoever came last suits those who come next; the oldest may suit nobody any more.
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
                // A panic is a bug; it costs this attempt, not the thread and with it the tasks it made.
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

    /// Answered by `Done::Measured`. The thread for it is started when it is first needed; without one nothing is measured
    /// until it is asked for again.
    pub(crate) fn measure(self: &Arc<Self>, places: Vec<(Key, AttemptId, PathBuf)>) {
        if !self.measures_run.load(Ordering::Relaxed) {
            let started = self.thread("measure", |hands| {
                loop {
                    let list = hands.measures.take();
                    let began = Instant::now();
                    // A panic is a bug; it costs one measurement, and whoever waits for the others is answered.
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
                // Those that are prepared must not keep each other from being started.
                Ok(place) => match launch::leave_room(null, launch::ROOM_FOR_A_START) {
                    Ok(()) => Done::Prepared { key, launch, place },
                    Err(why) => self.not_started(key, launch, why, Some(place), None),
                },
                Err((why, place)) => self.not_started(key, launch, why, place, None),
            },
            Job::Restore { key, dir, mounts } => Done::Restored { key, place: self.restore(&dir, &mounts) },
        }
    }

    /// One that met a shortage can be tried again. A slot that was made for it goes, since it takes descriptors; one with
    /// inputs in it stays, and so does a room, whose name the launch knows by now.
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

    /// Gives back the descriptors of places nobody lives in.
    fn shed(&self) {
        let spares = std::mem::take(&mut *lock(&self.spare_slots));
        spares.into_iter().for_each(Place::discard);
        while let Some(place) = self.used.take_now() {
            place.discard();
        }
    }

    /// A place with everything in it the task expects to find.
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
        // Those that suit nobody any more go too.
        let stale: Vec<Place> = spares.extract_if(.., |place| !place.is_fresh(now, since)).collect();
        let fresh = spares.iter().rposition(|place| place.suits(launch)).map(|at| spares.remove(at));
        drop(spares);
        self.used.give(stale);
        if let Some(place) = fresh {
            return Ok(place);
        }
        // Washing one is cheaper than making one.
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
            // A task without a file for its last words is better than none.
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

    /// Makes one slot to see whether it can be done at all; it becomes the first spare.
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

    /// Returns once something is there, without taking it.
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

/// Our critical sections only move values; a panic inside one leaves them whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
