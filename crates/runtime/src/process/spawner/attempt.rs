//! What the spawner knows of each attempt, from the first word about it until it is forgotten.
//! Only data and its lookup; what happens to it is decided in `life`.

use std::{collections::HashMap, os::fd::OwnedFd, time::Duration};

use octoflow_model::{ids::AttemptId, time::Time};

use super::{crew::Watch, hands::Key, leftover::Leftover, limits::Limit, place::Place};
use crate::{
    logs::Writer,
    process::{
        progress,
        sys::How,
        view::View,
        wire::{Bind, Ending, Launch, MemberEnding, ROOM, Words},
        words::{self, Tail},
    },
};

pub(crate) struct Entry {
    pub(crate) attempt: AttemptId,
    pub(crate) state: State,
    pub(crate) place: Option<Place>,
    /// Outputs are read from its file system after the end.
    pub(crate) keep: bool,
    pub(crate) grace: Duration,
    pub(crate) mounts: Vec<Bind>,
    /// The connected engine knows of it. Nothing is reported about the others until they are adopted.
    pub(crate) claimed: bool,
    /// Nobody will ask for its end.
    pub(crate) forgotten: bool,
    pub(crate) stop: Stop,
    /// What its containers do, until it is born.
    pub(crate) watch: Option<Box<Watch>>,
    /// How its containers ended.
    pub(crate) members: Vec<MemberEnding>,
    /// The file in which it may tell how far it is, and what it said last.
    pub(crate) progress: Option<String>,
    pub(crate) told: Option<(u32, u32)>,
    /// Where its last words are found, and what they were.
    pub(crate) words: Option<Words>,
    pub(crate) message: Option<String>,
    /// How many bytes it may write to its private file system.
    pub(crate) storage_limit: Option<u64>,
    /// Why it was killed for the sake of the disk.
    pub(crate) evicted: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    No,
    Polite,
    Final,
}

pub(crate) enum State {
    /// A thread makes its file system ready. Next: `Prepared`, or gone.
    Preparing,
    /// Waits for the engine to place inputs. Next: `Starting`, or gone.
    Prepared(Box<Launch>),
    /// A thread makes its process. Next: `Running` or `Ended`.
    Starting,
    /// Its main process lives. Next: `Lingering`.
    Running(Running),
    /// Its main process is dead, and whatever it left running is being ended. Next: `Ended`.
    Lingering(Running, How),
    /// An earlier spawner saw its end; its file system is being made visible again. Next: `Ended`.
    Restoring(Ending),
    Ended(Ending),
}

pub(crate) struct Running {
    pub(crate) pid: i32,
    pub(crate) started: Time,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
    pub(crate) log: Writer,
    /// The end of its main container's output, when that may be wanted.
    pub(crate) tail: Option<Tail>,
    /// It is a supervisor, whose standard output is about its containers.
    pub(crate) watch: Option<Box<Watch>>,
    /// The control groups that hold its limits of memory.
    pub(crate) limits: Vec<Limit>,
}

impl Entry {
    pub(crate) fn new(launch: &Launch, state: State) -> Self {
        Self {
            attempt: launch.attempt,
            state,
            place: None,
            keep: launch.keep,
            grace: Duration::from_millis(launch.grace_ms),
            mounts: launch.mounts.clone(),
            claimed: true,
            forgotten: false,
            stop: Stop::No,
            watch: launch.crew.as_deref().map(|crew| Box::new(Watch::new(crew))),
            members: Vec::new(),
            progress: launch.progress.clone(),
            told: None,
            words: launch.words.clone(),
            message: None,
            storage_limit: launch.storage_limit,
            evicted: None,
        }
    }

    pub(crate) fn restored(leftover: Leftover) -> Self {
        Self {
            attempt: leftover.attempt,
            state: State::Ended(leftover.ending),
            place: None,
            keep: leftover.keep,
            grace: Duration::ZERO,
            mounts: leftover.mounts,
            claimed: false,
            forgotten: false,
            stop: Stop::No,
            watch: None,
            members: leftover.members,
            progress: None,
            told: None,
            words: None,
            message: leftover.message,
            storage_limit: None,
            evicted: None,
        }
    }

    /// How far it says it is, when that is news.
    pub(crate) fn news(&self) -> Option<(u32, u32)> {
        let (path, place) = (self.progress.as_deref()?, self.place.as_ref()?);
        let said = match place.slot() {
            Some(slot) => progress::read(slot.view(), path),
            None => progress::read(&View::host().ok()?, &path.replace(ROOM, &place.dir().to_string_lossy())),
        };
        said.filter(|said| self.told != Some(*said))
    }

    /// What it said of its own end. Asked before its place is given away.
    pub(crate) fn last_words(&self, tail: Option<Tail>, badly: bool) -> Option<String> {
        let slot = self.place.as_ref().and_then(Place::slot);
        let path = self.words.as_ref().and_then(|words| words.path.as_deref());
        let written = slot.zip(path).and_then(|(slot, path)| words::read(slot.view(), path));
        written.or_else(|| tail.filter(|_| badly).and_then(Tail::text))
    }

    /// Ends whatever it left running in a PID namespace of its own, after its main process was collected. Answers
    /// with the descriptor that tells of the namespace's end while that is still to come.
    pub(crate) fn end_processes(&mut self) -> Option<OwnedFd> {
        let slot = self.place.as_mut()?.slot_mut()?;
        if slot.end_processes() {
            return None;
        }
        slot.processes()?.init().try_clone_to_owned().ok()
    }

    /// There is, or soon will be, a process.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.state, State::Starting | State::Running(_) | State::Lingering(..))
    }

    /// Whether the mount namespace of this number is the one it lives in.
    pub(crate) fn lives_in(&self, mark: u64) -> bool {
        self.place.as_ref().and_then(Place::slot).is_some_and(|slot| slot.mark() == mark)
    }

    pub(crate) fn pid(&self) -> Option<i32> {
        match &self.state {
            State::Running(running) | State::Lingering(running, _) => Some(running.pid),
            State::Preparing | State::Prepared(_) | State::Starting | State::Restoring(_) | State::Ended(_) => None,
        }
    }
}

/// All attempts. A key stays the same while its attempt is there.
#[derive(Default)]
pub(crate) struct Table {
    entries: Vec<Option<Entry>>,
    free: Vec<Key>,
    by_id: HashMap<AttemptId, Key>,
}

impl Table {
    pub(crate) fn insert(&mut self, entry: Entry) -> Key {
        let key = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        let before = self.by_id.insert(entry.attempt, key);
        assert!(before.is_none(), "attempt {} was inserted twice", entry.attempt);
        self.entries[key] = Some(entry);
        key
    }

    pub(crate) fn key(&self, attempt: AttemptId) -> Option<Key> {
        self.by_id.get(&attempt).copied()
    }

    pub(crate) fn get(&mut self, key: Key) -> Option<&mut Entry> {
        self.entries.get_mut(key)?.as_mut()
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<Entry> {
        let entry = self.entries.get_mut(key)?.take()?;
        self.by_id.remove(&entry.attempt);
        self.free.push(key);
        Some(entry)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &Entry)> {
        self.entries.iter().enumerate().filter_map(|(key, entry)| Some((key, entry.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut Entry)> {
        self.entries.iter_mut().enumerate().filter_map(|(key, entry)| Some((key, entry.as_mut()?)))
    }
}
