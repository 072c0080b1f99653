//! The spawner's event loop: one turn handles everything that happened, and sends all messages in one go. It blocks
//! only while waiting for the next event, and it creates no processes itself.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet},
    fs::File,
    io::{self, Write},
    os::{
        fd::OwnedFd,
        unix::{fs::MetadataExt, net::UnixListener},
    },
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use octoflow_model::ids::AttemptId;

use super::{
    attempt::{Entry, State, Stop, Table},
    disk::Disk,
    ledger::{Ledger, LedgerHistory},
    leftover::{self, Leftover},
    orphan,
    peer::{Flushed, Peer},
    waiting::Waiting,
    workers::{Job, Key, Workers},
    workspace::Workspace,
};
use crate::{
    logs::Logs,
    port::ConditionKind,
    process::{
        sys::{self, Epoll, How, NO_EVENT},
        wire::{Ended, Ending, FromSpawner, Hello, Launch, Refused, ToSpawner, VERSION, Welcome},
    },
    space::Space,
};

const SIGNALS: u64 = 0;
const WAKER: u64 = 1;
const LISTENER: u64 = 2;
const PEER: u64 = 3;
/// A PID namespace in which processes were left is gone.
pub(crate) const ENDING: u64 = 4;
/// Offset of stream tokens, which encode an attempt's key and one of its streams.
const STREAMS: u64 = 5;

pub(crate) fn stream_token(key: Key, stderr: bool) -> u64 {
    STREAMS + (key as u64) * 2 + u64::from(stderr)
}

/// Interval of the check for a deleted data directory, whose tasks may run that much longer.
const CHECK_LOCK_EVERY: Duration = Duration::from_secs(5);

const EVENTS_PER_TURN: usize = 256;
const BUFFER: usize = 128 * 1024;

pub(crate) struct Spawner {
    /// `<data>/spawner`
    pub(super) dir: PathBuf,
    pub(super) work: PathBuf,
    pub(super) logs: Logs,
    pub(super) log_limit: u64,
    pub(super) instance: String,
    pub(super) isolated: bool,
    pub(super) workers: Arc<Workers>,
    pub(super) epoll: Epoll,
    pub(super) signals: OwnedFd,
    pub(super) listener: UnixListener,
    pub(super) peer: Option<Peer>,
    pub(super) table: Table,
    /// Main processes by pid, which is also the id of their session and group.
    pub(super) pids: HashMap<i32, Key>,
    /// Ends of processes whose start was not reported by its thread yet.
    pub(super) early: HashMap<i32, How>,
    pub(super) lingering: Vec<Key>,
    /// PID namespaces of lingering attempts that are being killed.
    pub(super) ending: Vec<(Key, OwnedFd)>,
    pub(super) ledger: Ledger,
    pub(super) history: LedgerHistory,
    pub(super) timers: BinaryHeap<Reverse<(Instant, Key, AttemptId)>>,
    /// Time at which the progress of running tasks is read next; `None` while none runs.
    pub(super) progress_at: Option<Instant>,
    pub(super) buffer: Vec<u8>,
    /// Attempts to be recorded in the ledger, and their jobs, gathered during a turn. They stay while it cannot be
    /// written.
    pub(super) to_record: Vec<AttemptId>,
    pub(super) jobs: Vec<Job>,
    pub(super) waiting: Waiting,
    pub(super) disk: Disk,
    /// True once the spawner was told to exit.
    pub(super) exiting: bool,
    /// Held as long as the process lives. No engine can find the spawner once it has no name.
    lock: File,
    /// Time of the next check for a name; `None` while an engine is connected, which would know.
    check_lock_at: Option<Instant>,
    /// True if a file with results of an earlier spawner exists and is still needed.
    pub(super) has_leftovers: bool,
    /// True if directories of earlier spawners have been swept.
    pub(super) swept: bool,
}

impl Spawner {
    pub(crate) fn new(parts: Parts) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(&parts.signals, SIGNALS)?;
        epoll.add(&parts.workers.waker, WAKER)?;
        epoll.add(&parts.listener, LISTENER)?;
        epoll.add(&parts.peer, PEER)?;
        let mut spawner = Self {
            dir: parts.data.join("spawner"),
            work: parts.data.join("work"),
            logs: Logs::new(&parts.data),
            log_limit: parts.log_limit,
            instance: parts.instance,
            isolated: parts.isolated,
            workers: parts.workers,
            epoll,
            signals: parts.signals,
            listener: parts.listener,
            peer: Some(parts.peer),
            table: Table::default(),
            pids: HashMap::new(),
            early: HashMap::new(),
            lingering: Vec::new(),
            ending: Vec::new(),
            ledger: parts.ledger,
            history: parts.history,
            timers: BinaryHeap::new(),
            progress_at: None,
            buffer: vec![0; BUFFER],
            to_record: Vec::new(),
            jobs: Vec::new(),
            waiting: Waiting::default(),
            disk: Disk::new(parts.space),
            exiting: false,
            lock: parts.lock,
            check_lock_at: None,
            has_leftovers: false,
            swept: false,
        };
        for leftover in parts.leftovers {
            spawner.has_leftovers = true;
            spawner.history.started.remove(&leftover.attempt);
            let (workspace, isolated) = (leftover.workspace.clone().map(PathBuf::from), leftover.isolated);
            let key = spawner.table.insert(Entry::restored(leftover));
            match workspace {
                Some(dir) if isolated => spawner.restore_later(key, dir),
                Some(dir) => spawner.table.get(key).expect("just inserted").workspace = Some(Workspace::Dir(dir)),
                None => {}
            }
        }
        spawner.workers.push(std::mem::take(&mut spawner.jobs));
        Ok(spawner)
    }

    fn restore_later(&mut self, key: Key, dir: PathBuf) {
        let entry = self.table.get(key).expect("it was just inserted");
        let State::Ended(ending) = &entry.state else { return };
        if entry.keep {
            entry.state = State::Restoring(ending.clone());
            self.jobs.push(Job::Restore { key, dir, mounts: entry.mounts.clone() });
        }
    }

    /// Runs until there is nothing left to do and no engine connected.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut events = [NO_EVENT; EVENTS_PER_TURN];
        while !(self.is_done() && self.try_exit()) {
            let timer = self.timers.peek().map(|Reverse((due, ..))| *due);
            let due = [self.progress_at, self.check_lock_at, self.waiting.due(), self.disk.due()];
            let next = timer.into_iter().chain(due.into_iter().flatten()).min();
            let timeout = next.map(|due| due.saturating_duration_since(Instant::now()));
            let (mut signal, mut waker, mut listener, mut peer, mut ending) = (false, false, false, false, false);
            for event in self.epoll.wait(&mut events, timeout)? {
                match event.u64 {
                    SIGNALS => signal = true,
                    WAKER => waker = true,
                    LISTENER => listener = true,
                    PEER => peer = true,
                    ENDING => ending = true,
                    token => {
                        let index = token - STREAMS;
                        let key = usize::try_from(index / 2).expect("a key is an index");
                        self.read_stream(key, index % 2 == 1);
                    }
                }
            }
            // Starts before ends, so that a quick task is known when its end is seen.
            if waker {
                self.workers.waker.clear();
                self.take_done();
            }
            if signal {
                self.handle_signals();
            } else if ending {
                self.end_lingering();
            }
            self.fire_timers();
            self.read_progress();
            self.check_lock();
            if listener {
                self.open_listener();
            }
            if peer {
                self.receive_from_peer();
            }
            self.check_disk();
            self.retry_waiting();
            self.record_and_start();
            self.report_conditions();
            self.flush();
            let remembered = self.table.len() + self.history.started.len();
            let (table, history) = (&self.table, &self.history);
            // A ledger that cannot be compacted only stays larger than necessary.
            let _ = self.ledger.compact(remembered, || remembered_by(table, history));
        }
        Ok(())
    }

    /// Ends all tasks if the data directory was deleted. Without an engine tasks normally continue, for the next one;
    /// in this case no engine could collect their results.
    fn check_lock(&mut self) {
        if self.peer.is_some() || self.exiting {
            self.check_lock_at = None;
        } else if self.check_lock_at.is_none_or(|at| at <= Instant::now()) {
            self.check_lock_at = Some(Instant::now() + CHECK_LOCK_EVERY);
            if self.is_deleted() {
                // The log's file may be gone too; the message then shows only to people who look at the process.
                let _ = writeln!(io::stderr(), "spawner: the data directory was deleted; all tasks are ended");
                self.end_all();
            }
        }
    }

    fn is_deleted(&self) -> bool {
        self.lock.metadata().is_ok_and(|about| about.nlink() == 0)
    }

    /// Stops every task gracefully, and exits once they are gone.
    pub(super) fn end_all(&mut self) {
        self.exiting = true;
        let alive = self.table.iter().filter(|(_, entry)| entry.is_alive()).map(|(_, entry)| entry.attempt);
        alive.collect::<Vec<_>>().into_iter().for_each(|attempt| self.stop(attempt, Stop::Term));
    }

    fn is_done(&self) -> bool {
        (self.peer.is_none() || self.exiting) && !self.table.iter().any(|(_, entry)| entry.is_alive())
    }

    /// Writes the uncollected results; returns whether the spawner may exit. If they cannot be written it stays,
    /// because they are stored nowhere else, and retries.
    fn try_exit(&mut self) -> bool {
        if self.is_deleted() {
            // There is no place to write to and no reader.
            self.workers.close();
            return true;
        }
        if self.waiting.is_paused() {
            return false;
        }
        let mut leftovers = Vec::new();
        for (_, entry) in self.table.iter() {
            let (State::Ended(ending) | State::Restoring(ending)) = &entry.state else { continue };
            if entry.forgotten {
                continue;
            }
            leftovers.push(Leftover {
                attempt: entry.attempt,
                ending: ending.clone(),
                keep: entry.keep,
                isolated: entry.workspace.as_ref().is_some_and(|workspace| workspace.slot().is_some()),
                workspace: entry.workspace.as_ref().map(|workspace| workspace.dir().to_string_lossy().into_owned()),
                mounts: entry.mounts.clone(),
                members: entry.members.clone(),
                message: entry.message.clone(),
            });
        }
        if leftover::write(&self.dir, &leftovers).is_err() {
            // No engine is connected; the next one gets the results themselves.
            self.waiting.pause();
            return false;
        }
        // An old ledger is only longer than necessary.
        let _ = self.ledger.rewrite(&remembered_by(&self.table, &self.history));
        self.workers.close();
        // A connected engine learns from the closed connection that the spawner is gone, after everything is on disk.
        true
    }

    /// Records the attempts in the ledger first, then passes their jobs to the threads. What cannot be recorded waits.
    fn record_and_start(&mut self) {
        if self.jobs.is_empty() && self.to_record.is_empty() || self.waiting.is_paused() {
            return;
        }
        if self.disk.is_low() && self.jobs.iter().any(|job| !matches!(job, Job::Restore { .. })) {
            return;
        }
        match self.ledger.record(&self.to_record) {
            Ok(()) => {
                self.to_record.clear();
                self.waiting.clear(ConditionKind::LedgerUnwritable);
                self.workers.push(std::mem::take(&mut self.jobs));
            }
            Err(error) => {
                let why = format!("the spawner's ledger cannot be written, so no task is started: {error}");
                self.waiting.add_condition(ConditionKind::LedgerUnwritable, why);
            }
        }
    }

    fn open_listener(&mut self) {
        while let Ok((socket, _)) = self.listener.accept() {
            let Ok(mut visitor) = Peer::new(socket) else { continue };
            // An engine that disconnected may have left orders; they count.
            while self.peer.as_ref().is_some_and(Peer::is_gone) {
                self.receive_from_peer();
            }
            if self.peer.is_some() {
                let why = "another engine is connected to this data directory".to_owned();
                visitor.queue(&FromSpawner::Refused(Refused { version: VERSION, why }), None);
                // It fits into a new socket's buffer; if not, the peer sees a closed connection, which is as clear.
                let _ = visitor.flush();
            } else if self.epoll.add(&visitor, PEER).is_ok() {
                self.peer = Some(visitor);
            }
        }
    }

    fn receive_from_peer(&mut self) {
        let Some(peer) = &mut self.peer else { return };
        match peer.receive(&mut self.buffer) {
            Ok(messages) => messages.into_iter().for_each(|message| self.handle_message(message)),
            Err(_) => self.lose_peer(),
        }
    }

    /// Handles the loss of the engine. Its incomplete requests are dropped; running tasks continue.
    fn lose_peer(&mut self) {
        if let Some(peer) = self.peer.take() {
            self.epoll.remove(&peer);
        }
        let mut unfinished = Vec::new();
        for (key, entry) in self.table.iter_mut() {
            entry.known_to_engine = false;
            match entry.state {
                State::Preparing => entry.forgotten = true,
                State::Prepared(_) => unfinished.push(key),
                State::Starting | State::Running(_) | State::Lingering(..) | State::Restoring(_) | State::Ended(_) => {}
            }
        }
        unfinished.into_iter().for_each(|key| self.drop_entry(key));
    }

    fn handle_message(&mut self, message: ToSpawner) {
        let handshaken = self.peer.as_ref().is_some_and(|peer| peer.handshaken);
        if !handshaken && !matches!(message, ToSpawner::Hello(_)) {
            self.lose_peer();
            return;
        }
        match message {
            ToSpawner::Hello(hello) => self.handshake(&hello),
            ToSpawner::Start(launch) => {
                if self.table.key(launch.attempt).is_none() {
                    let key = self.table.insert(Entry::new(&launch, State::Starting));
                    self.to_record.push(launch.attempt);
                    self.jobs.push(Job::Start { key, launch, workspace: None, populated: false });
                }
            }
            ToSpawner::Prepare(launch) => {
                if self.table.key(launch.attempt).is_none() {
                    let key = self.table.insert(Entry::new(&launch, State::Preparing));
                    self.jobs.push(Job::Prepare { key, launch, workspace: None });
                }
            }
            ToSpawner::StartPrepared(attempt) => self.start_prepared(attempt),
            ToSpawner::Abandon(attempt) => {
                if let Some(key) = self.table.key(attempt) {
                    let entry = self.table.get(key).expect("the key was just found");
                    match entry.state {
                        State::Prepared(_) => self.drop_entry(key),
                        State::Preparing => entry.forgotten = true,
                        _ => {}
                    }
                }
            }
            ToSpawner::Stop(attempt) => self.stop(attempt, Stop::Term),
            ToSpawner::Kill(attempt) => self.stop(attempt, Stop::Kill),
            ToSpawner::Forget(attempt) => self.forget(attempt),
            ToSpawner::Adopt(believed, leave) => self.adopt(&believed, &leave),
            ToSpawner::SetSpaceFloor(floor) => self.disk.set_floor(floor),
            ToSpawner::Ping() => self.send(&FromSpawner::Pong()),
            ToSpawner::Repeat(attempt) => self.report_again(attempt),
        }
    }

    fn handshake(&mut self, hello: &Hello) {
        let Some(peer) = &mut self.peer else { return };
        if hello.version == VERSION {
            peer.handshaken = true;
            self.waiting.mark_unreported();
            self.log_limit = hello.log_limit;
            let notice = (hello.isolate && !self.isolated)
                .then(|| "the running spawner was started without isolation; its tasks must end first".to_owned());
            let isolated = hello.isolate && self.isolated;
            peer.queue(&FromSpawner::Welcome(Welcome { version: VERSION, isolated, notice }), None);
        } else {
            let why = "the running spawner is of another version".to_owned();
            peer.queue(&FromSpawner::Refused(Refused { version: VERSION, why }), None);
            let _ = peer.flush();
            self.lose_peer();
        }
    }

    fn start_prepared(&mut self, attempt: AttemptId) {
        let Some(key) = self.table.key(attempt) else { return };
        let entry = self.table.get(key).expect("the key was just found");
        if !matches!(entry.state, State::Prepared(_)) {
            return;
        }
        if let State::Prepared(launch) = std::mem::replace(&mut entry.state, State::Starting) {
            let launch = Box::new(Launch { files: Vec::new(), ..*launch });
            let workspace = entry.workspace.take();
            self.to_record.push(attempt);
            self.jobs.push(Job::Start { key, launch, workspace, populated: true });
        }
    }

    /// Reports every attempt that the engine believes to be alive and ends the others, except in runs to be left alone.
    fn adopt(&mut self, believed: &[AttemptId], leave: &[u64]) {
        let believed_set: HashSet<AttemptId> = believed.iter().copied().collect();
        let mut lost = Vec::new();
        for attempt in believed {
            if let Some(key) = self.table.key(*attempt) {
                self.table.get(key).expect("the key was just found").known_to_engine = true;
                self.report_all(key);
            } else if self.history.started.contains(attempt) {
                lost.push((*attempt, "its spawner died, and nobody saw how it ended"));
            } else if !self.history.complete {
                lost.push((*attempt, "the machine went down, or its records were lost, after the order to start"));
            } else {
                self.send(&FromSpawner::Fresh(*attempt));
            }
        }
        for (attempt, why) in lost {
            if self.history.started.insert(attempt) {
                self.to_record.push(attempt);
            }
            self.send(&FromSpawner::Lost(attempt, why.to_owned()));
        }
        // Whatever was uncertain is recorded now; from here on our own ledger is complete.
        self.history.complete = true;
        self.ledger.accounted();
        let unknown: Vec<AttemptId> = self
            .table
            .iter()
            .filter(|(_, entry)| !entry.known_to_engine && !believed_set.contains(&entry.attempt))
            .filter(|(_, entry)| !leave.contains(&entry.attempt.run.0))
            .map(|(_, entry)| entry.attempt)
            .collect();
        for attempt in unknown {
            self.stop(attempt, Stop::Kill);
            self.forget(attempt);
        }
        if !self.swept {
            self.swept = true;
            let mut needed = self.workers.directories_in_use();
            for (_, entry) in self.table.iter() {
                needed.extend(entry.workspace.iter().map(|workspace| workspace.dir().to_owned()));
            }
            // Workspaces being created right now have our own instance in their names.
            let own = format!("{}-", self.instance);
            let mut abandoned = orphan::abandoned_dirs(&self.work, &needed);
            abandoned.retain(|dir| !dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&own)));
            if self.table.iter().all(|(_, entry)| !matches!(entry.state, State::Restoring(_))) {
                self.workers.remove(abandoned);
            }
        }
    }

    pub(super) fn send(&mut self, message: &FromSpawner) {
        if let Some(peer) = &mut self.peer {
            peer.queue(message, None);
        }
    }

    pub(super) fn send_with_descriptor(&mut self, message: &FromSpawner, descriptor: Option<OwnedFd>) {
        if let Some(peer) = &mut self.peer {
            peer.queue(message, descriptor);
        }
    }

    fn flush(&mut self) {
        let Some(peer) = &mut self.peer else { return };
        let flushed = peer.flush().and_then(|left| {
            let left = match left {
                Flushed::All => false,
                Flushed::NoRoom => true,
                Flushed::NoDescriptors => {
                    self.waiting.pause();
                    false
                }
            };
            if left != peer.wants_room {
                peer.wants_room = left;
                self.epoll.also_writable(peer, PEER, left)?;
            }
            Ok(())
        });
        if flushed.is_err() {
            self.lose_peer();
        }
    }
}

/// Everything the event loop starts with.
pub(crate) struct Parts {
    pub(crate) data: PathBuf,
    pub(crate) instance: String,
    pub(crate) log_limit: u64,
    pub(crate) isolated: bool,
    pub(crate) workers: Arc<Workers>,
    pub(crate) signals: OwnedFd,
    pub(crate) listener: UnixListener,
    pub(crate) peer: Peer,
    pub(crate) ledger: Ledger,
    pub(crate) history: LedgerHistory,
    pub(crate) leftovers: Vec<Leftover>,
    pub(crate) space: Space,
    pub(crate) lock: File,
}

fn remembered_by(table: &Table, history: &LedgerHistory) -> HashSet<AttemptId> {
    table.iter().map(|(_, entry)| entry.attempt).chain(history.started.iter().copied()).collect()
}

pub(crate) fn ending(exit: Ended) -> Ending {
    Ending { at: sys::now(), started: None, exit, log_truncated: false, log_bytes: 0 }
}
