//! The spawner's table of attempts, from the first message about one until it is forgotten. Only data and its lookup;
//! `life` decides what happens to it.

use std::{collections::HashMap, os::fd::OwnedFd, time::Duration};

use octoflow_model::{ids::AttemptId, time::Time};

use super::{leftover::Leftover, limits::Limit, pod_watch::PodWatch, workers::Key, workspace::Workspace};
use crate::{
    logs::Writer,
    process::{
        progress,
        sys::How,
        termination::{self, Tail},
        view::View,
        wire::{Bind, DIR_PLACEHOLDER, Ending, Launch, MemberEnding, TerminationSource},
    },
};

pub(crate) struct Entry {
    pub(crate) attempt: AttemptId,
    pub(crate) state: State,
    pub(crate) workspace: Option<Workspace>,
    /// True if outputs are read from its file system after the end.
    pub(crate) keep: bool,
    pub(crate) grace: Duration,
    pub(crate) mounts: Vec<Bind>,
    /// True if the connected engine knows the attempt. Nothing is reported about the others until they are adopted.
    pub(crate) known_to_engine: bool,
    /// True if the engine will not ask for its end any more.
    pub(crate) forgotten: bool,
    pub(crate) stop: Stop,
    /// State of its containers, until the process is started.
    pub(crate) watch: Option<Box<PodWatch>>,
    /// Ends of its containers.
    pub(crate) members: Vec<MemberEnding>,
    /// File in which it may report its progress.
    pub(crate) progress: Option<String>,
    /// Progress that was reported last.
    pub(crate) reported_progress: Option<(u32, u32)>,
    /// Where its termination message is found.
    pub(crate) termination: Option<TerminationSource>,
    /// Its termination message.
    pub(crate) message: Option<String>,
    /// Limit of its private file system in bytes.
    pub(crate) storage_limit: Option<u64>,
    /// Reason why it was killed because of disk usage.
    pub(crate) evicted: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    None,
    Term,
    Kill,
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
    pub(crate) watch: Option<Box<PodWatch>>,
    /// Cgroups that enforce its memory limits.
    pub(crate) limits: Vec<Limit>,
}

impl Entry {
    pub(crate) fn new(launch: &Launch, state: State) -> Self {
        Self {
            attempt: launch.attempt,
            state,
            workspace: None,
            keep: launch.keep,
            grace: Duration::from_millis(launch.grace_ms),
            mounts: launch.mounts.clone(),
            known_to_engine: true,
            forgotten: false,
            stop: Stop::None,
            watch: launch.pod_plan.as_deref().map(|pod_plan| Box::new(PodWatch::new(pod_plan))),
            members: Vec::new(),
            progress: launch.progress.clone(),
            reported_progress: None,
            termination: launch.termination.clone(),
            message: None,
            storage_limit: launch.storage_limit,
            evicted: None,
        }
    }

    pub(crate) fn restored(leftover: Leftover) -> Self {
        Self {
            attempt: leftover.attempt,
            state: State::Ended(leftover.ending),
            workspace: None,
            keep: leftover.keep,
            grace: Duration::ZERO,
            mounts: leftover.mounts,
            known_to_engine: false,
            forgotten: false,
            stop: Stop::None,
            watch: None,
            members: leftover.members,
            progress: None,
            reported_progress: None,
            termination: None,
            message: leftover.message,
            storage_limit: None,
            evicted: None,
        }
    }

    /// Returns its progress if it has changed.
    pub(crate) fn news(&self) -> Option<(u32, u32)> {
        let (path, workspace) = (self.progress.as_deref()?, self.workspace.as_ref()?);
        let said = match workspace.slot() {
            Some(slot) => progress::read(slot.view(), path),
            None => {
                progress::read(&View::host().ok()?, &path.replace(DIR_PLACEHOLDER, &workspace.dir().to_string_lossy()))
            }
        };
        said.filter(|said| self.reported_progress != Some(*said))
    }

    /// Returns its termination message. Must be called before its workspace is given away.
    pub(crate) fn termination_message(&self, tail: Option<Tail>, badly: bool) -> Option<String> {
        let slot = self.workspace.as_ref().and_then(Workspace::slot);
        let path = self.termination.as_ref().and_then(|termination| termination.path.as_deref());
        let written = slot.zip(path).and_then(|(slot, path)| termination::read(slot.view(), path));
        written.or_else(|| tail.filter(|_| badly).and_then(Tail::text))
    }

    /// Kills the processes that it left in its own PID namespace, after its main process was reaped. Returns a
    /// descriptor that signals the namespace's end if that is still to come.
    pub(crate) fn end_processes(&mut self) -> Option<OwnedFd> {
        let slot = self.workspace.as_mut()?.slot_mut()?;
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
        self.workspace.as_ref().and_then(Workspace::slot).is_some_and(|slot| slot.mark() == mark)
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
