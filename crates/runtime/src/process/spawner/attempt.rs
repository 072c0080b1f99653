//! The spawner's table of attempts, from the first message about one until it is forgotten. Only data and its lookup;
//! `life` decides what happens to it.

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
    /// True if outputs are read from its file system after the end.
    pub(crate) keep: bool,
    pub(crate) grace: Duration,
    pub(crate) mounts: Vec<Bind>,
    /// True if the connected engine knows the attempt. Nothing is reported about the others until they are adopted.
    pub(crate) claimed: bool,
    /// True if the engine will not ask for its end any more.
    pub(crate) forgotten: bool,
    pub(crate) stop: Stop,
    /// State of its containers, until the process is started.
    pub(crate) watch: Option<Box<Watch>>,
    /// Ends of its containers.
    pub(crate) members: Vec<MemberEnding>,
    /// File in which it may report its progress.
    pub(crate) progress: Option<String>,
    /// Progress that was reported last.
    pub(crate) told: Option<(u32, u32)>,
    /// Where its termination message is found.
    pub(crate) words: Option<Words>,
    /// Its termination message.
    pub(crate) message: Option<String>,
    /// Limit of its private file system in bytes.
    pub(crate) storage_limit: Option<u64>,
    /// Reason why it was killed because of disk usage.
    pub(crate) evicted: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    No,
    Polite,
    Final,
}

pub(crate) enum State {
    /// A worker thread prepares its file system. Next: `Prepared`, or gone.
    Preparing,
    /// Waits for the engine to stage inputs. Next: `Starting`, or gone.
    Prepared(Box<Launch>),
    /// A worker thread creates its process. Next: `Running` or `Ended`.
    Starting,
    /// Its main process is alive. Next: `Lingering`.
    Running(Running),
    /// Its main process is dead, and the processes it left behind are being killed. Next: `Ended`.
    Lingering(Running, How),
    /// An earlier spawner recorded its end; its file system is being mounted again. Next: `Ended`.
    Restoring(Ending),
    Ended(Ending),
}

pub(crate) struct Running {
    pub(crate) pid: i32,
    pub(crate) started: Time,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
    pub(crate) log: Writer,
    /// End of its main container's output, if that may be wanted.
    pub(crate) tail: Option<Tail>,
    /// Set for a supervisor, whose standard output is about its containers.
    pub(crate) watch: Option<Box<Watch>>,
    /// Cgroups that enforce its memory limits.
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

    /// Returns its progress if it has changed.
    pub(crate) fn news(&self) -> Option<(u32, u32)> {
        let (path, place) = (self.progress.as_deref()?, self.place.as_ref()?);
        let said = match place.slot() {
            Some(slot) => progress::read(slot.view(), path),
            None => progress::read(&View::host().ok()?, &path.replace(ROOM, &place.dir().to_string_lossy())),
        };
        said.filter(|said| self.told != Some(*said))
    }

    /// Returns its termination message. Must be called before its workspace is given away.
    pub(crate) fn last_words(&self, tail: Option<Tail>, badly: bool) -> Option<String> {
        let slot = self.place.as_ref().and_then(Place::slot);
        let path = self.words.as_ref().and_then(|words| words.path.as_deref());
        let written = slot.zip(path).and_then(|(slot, path)| words::read(slot.view(), path));
        written.or_else(|| tail.filter(|_| badly).and_then(Tail::text))
    }

    /// Kills the processes that it left in its own PID namespace, after its main process was reaped. Returns a
    /// descriptor that signals the namespace's end if that is still to come.
    pub(crate) fn end_processes(&mut self) -> Option<OwnedFd> {
        let slot = self.place.as_mut()?.slot_mut()?;
        if slot.end_processes() {
            return None;
        }
        slot.processes()?.init().try_clone_to_owned().ok()
    }

    /// Returns whether there is, or soon will be, a process.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.state, State::Starting | State::Running(_) | State::Lingering(..))
    }

    /// Returns whether it runs in the mount namespace with this number.
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

/// All attempts. A key stays the same while its attempt exists.
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
