//! The threads that do what may take a moment: making processes, making slots, cleaning up. Clone with vfork suspends
//! only its own thread, so a few of them overlap. They own no state of attempts; they get a job and give back what came of it.

use std::{
    collections::VecDeque,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use super::{
    launch::{self, Born},
    slot::{Maker, Slot},
};
use crate::process::{
    clone::Stack,
    sys::{Bell, ns},
    view,
    wire::{Bind, Ended, Launch},
};

/// Clones overlap well up to about the number of cores and a little more; each thread costs a small stack.
const MOST_THREADS: usize = 4;

/// Slots kept ready although nobody uses them; each is a few mounts.
const SPARE_SLOTS: usize = 64;

/// The place of an attempt in the spawner's table.
pub(crate) type Key = usize;

pub(crate) enum Job {
    Start { key: Key, launch: Box<Launch>, slot: Option<Slot> },
    Prepare { key: Key, launch: Box<Launch> },
    /// Make a slot over what an earlier spawner left.
    Restore { key: Key, dir: PathBuf, mounts: Vec<Bind> },
}

pub(crate) enum Done {
    Started { key: Key, born: Born, slot: Option<Slot> },
    NotStarted { key: Key, why: Ended, slot: Option<Slot> },
    Prepared { key: Key, launch: Box<Launch>, slot: Option<Slot> },
    Restored { key: Key, slot: Option<Slot> },
}

enum Chore {
    Wash(Slot),
    Remove(Vec<PathBuf>),
}

pub(crate) struct Hands {
    jobs: Queue<Job>,
    chores: Queue<Chore>,
    done: Mutex<Vec<Done>>,
    pub(crate) bell: Bell,
    /// Slots as new, ready for a task.
    spare: Mutex<Vec<Slot>>,
    maker: Option<Maker>,
    instance: String,
}

impl Hands {
    pub(crate) fn new(maker: Option<Maker>, instance: &str) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            jobs: Queue::default(),
            chores: Queue::default(),
            done: Mutex::default(),
            bell: Bell::new()?,
            spare: Mutex::default(),
            maker,
            instance: instance.to_owned(),
        }))
    }

    /// Starts the threads. They live as long as the process: their death would end the tasks they made.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        let threads = thread::available_parallelism().map_or(2, usize::from).clamp(2, MOST_THREADS);
        for _ in 0..threads {
            let hands = Arc::clone(self);
            let (stack, null) = (Stack::new()?, File::options().read(true).write(true).open("/dev/null")?);
            thread::Builder::new().name("spawn".to_owned()).stack_size(THREAD_STACK).spawn(move || {
                hands.spawn_for_ever(stack, &null);
            })?;
        }
        let hands = Arc::clone(self);
        thread::Builder::new().name("clean".to_owned()).stack_size(THREAD_STACK).spawn(move || {
            loop {
                match hands.chores.take() {
                    Chore::Wash(mut slot) => {
                        if slot.is_fresh() && slot.wash() {
                            hands.spare_or_discard(slot);
                        } else {
                            slot.discard();
                        }
                    }
                    Chore::Remove(paths) => {
                        for path in paths {
                            // What resists now is swept by the next spawner.
                            let _ = view::remove_dir(&path);
                        }
                    }
                }
            }
        })?;
        Ok(())
    }

    pub(crate) fn give(&self, jobs: impl IntoIterator<Item = Job>) {
        self.jobs.give(jobs);
    }

    pub(crate) fn take_done(&self) -> Vec<Done> {
        std::mem::take(&mut *lock(&self.done))
    }

    /// A slot nobody needs any more: back to the spares when it is untouched, else to be washed.
    pub(crate) fn release(&self, mut slot: Slot) {
        if slot.is_clean() { self.spare_or_discard(slot) } else { self.chores.give([Chore::Wash(slot)]) }
    }

    pub(crate) fn remove(&self, paths: Vec<PathBuf>) {
        if !paths.is_empty() {
            self.chores.give([Chore::Remove(paths)]);
        }
    }

    /// Ends every spare slot, for the end of the process.
    pub(crate) fn close(&self) {
        for slot in std::mem::take(&mut *lock(&self.spare)) {
            slot.discard();
        }
        while let Some(chore) = self.chores.take_now() {
            match chore {
                Chore::Wash(slot) => slot.discard(),
                Chore::Remove(paths) => paths.iter().for_each(|path| drop(view::remove_dir(path))),
            }
        }
    }

    pub(crate) fn directories_in_use(&self) -> Vec<PathBuf> {
        lock(&self.spare).iter().map(|slot| slot.dir().to_owned()).collect()
    }

    fn spare_or_discard(&self, slot: Slot) {
        let mut spare = lock(&self.spare);
        if spare.len() < SPARE_SLOTS {
            spare.push(slot);
        } else {
            drop(spare);
            let dir = slot.dir().to_owned();
            drop(slot);
            self.remove(vec![dir]);
        }
    }

    fn spawn_for_ever(&self, mut stack: Stack, null: &File) {
        // Slots are entered and left by this thread alone, so it needs a root of its own.
        let own_root = ns::leave(libc::CLONE_FS);
        loop {
            let job = self.jobs.take();
            let done = match &own_root {
                Ok(()) => self.work(job, &mut stack, null),
                Err(error) => refuse(job, &format!("a spawning thread could not be set up: {error}")),
            };
            let mut queue = lock(&self.done);
            queue.push(done);
            let first = queue.len() == 1;
            drop(queue);
            if first {
                self.bell.ring();
            }
        }
    }

    fn work(&self, job: Job, stack: &mut Stack, null: &File) -> Done {
        match job {
            Job::Start { key, launch, slot } => {
                let prepared = slot.is_some();
                let mut slot = match self.slot_for(&launch, slot) {
                    Ok(slot) => slot,
                    Err(why) => return Done::NotStarted { key, why, slot: None },
                };
                let ready =
                    if prepared { Ok(()) } else { launch::furnish(&launch, slot.as_mut(), self.maker.as_ref()) };
                let mark = format!("{}={}:{}", super::MARK, self.instance, launch.attempt);
                match ready.and_then(|()| launch::start(&launch, slot.as_ref(), &mark, null, stack)) {
                    Ok(born) => Done::Started { key, born, slot },
                    Err(why) => Done::NotStarted { key, why, slot },
                }
            }
            Job::Prepare { key, launch } => match self.slot_for(&launch, None) {
                Ok(mut slot) => match launch::furnish(&launch, slot.as_mut(), self.maker.as_ref()) {
                    Ok(()) => Done::Prepared { key, launch, slot },
                    Err(why) => Done::NotStarted { key, why, slot },
                },
                Err(why) => Done::NotStarted { key, why, slot: None },
            },
            Job::Restore { key, dir, mounts } => Done::Restored { key, slot: self.restore(&dir, &mounts) },
        }
    }

    fn slot_for(&self, launch: &Launch, given: Option<Slot>) -> Result<Option<Slot>, Ended> {
        if !launch.isolated || given.is_some() {
            return Ok(given);
        }
        let mut spare = lock(&self.spare);
        while let Some(mut slot) = spare.pop() {
            if slot.is_fresh() {
                return Ok(Some(slot));
            }
            self.chores.give([Chore::Wash(slot)]);
        }
        drop(spare);
        let maker = self
            .maker
            .as_ref()
            .ok_or_else(|| Ended::Surroundings("isolation is not available in the running spawner".to_owned()))?;
        maker
            .make()
            .map(Some)
            .map_err(|error| Ended::Surroundings(format!("no private file system: {}", error.explain())))
    }

    fn restore(&self, dir: &Path, mounts: &[Bind]) -> Option<Slot> {
        let maker = self.maker.as_ref()?;
        let mut slot = maker.restore(dir).ok()?;
        for mount in mounts {
            launch::bind(mount, &mut slot, maker).ok()?;
        }
        Some(slot)
    }

    /// Makes one slot to see whether it can be done at all; it becomes the first spare.
    pub(crate) fn probe(self: &Arc<Self>) -> Result<(), String> {
        let hands = Arc::clone(self);
        let probe = thread::spawn(move || -> Result<(), String> {
            let maker = hands.maker.as_ref().ok_or("it was not set up when the spawner started")?;
            ns::leave(libc::CLONE_FS).map_err(|error| error.to_string())?;
            let slot = maker.make().map_err(|error| error.explain())?;
            lock(&hands.spare).push(slot);
            Ok(())
        });
        probe.join().unwrap_or_else(|_| Err("the attempt to isolate failed badly".to_owned()))
    }
}

/// Enough for deep directory walks, small because there are several.
const THREAD_STACK: usize = 512 * 1024;

fn refuse(job: Job, why: &str) -> Done {
    let failed = |key, slot| Done::NotStarted { key, why: Ended::Surroundings(why.to_owned()), slot };
    match job {
        Job::Start { key, slot, .. } => failed(key, slot),
        Job::Prepare { key, .. } => failed(key, None),
        Job::Restore { key, .. } => Done::Restored { key, slot: None },
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

    fn take_now(&self) -> Option<T> {
        lock(&self.waiting).pop_front()
    }
}

/// Our critical sections only move values; a panic inside one leaves them whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
