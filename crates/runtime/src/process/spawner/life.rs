//! The life cycle of an attempt in the spawner: started, read, stopped, ended, forgotten. Every change of an entry's
//! state is in this file or in the messages of `turn`.

use std::{
    cmp::Reverse,
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use octoflow_model::ids::AttemptId;

use super::{
    attempt::{Entry, Running, State, Stop},
    launch::Spawned,
    leftover,
    limits::Limit,
    orphan,
    turn::{ENDING, Spawner, ending, stream_token},
    workers::{Done, Job, Key},
    workspace::Workspace,
};
use crate::{
    logs::{Stream, Writer},
    process::{
        sys::{self, Epoll, How},
        termination::Tail,
        wire::{Ended, Ending, FromSpawner},
    },
    shortage::Shortage,
};

/// Time that left-over processes get to die before the end is reported anyway (they may hang in the kernel).
const LINGER: Duration = Duration::from_secs(5);

/// Interval at which the progress of running tasks is read. Shorter tasks are read once, at their end.
const PROGRESS_EVERY: Duration = Duration::from_secs(3);

/// Buffers read from a stream per event, so that one loud task cannot starve the others.
const BUFFERS_PER_EVENT: usize = 8;

/// Size of a pipe that fills whole buffers.
const WIDE_PIPE: i32 = 1 << 20;

/// Buffers drained after the end: more than the widest pipe holds.
const BUFFERS_AT_END: usize = 64;

impl Spawner {
    pub(super) fn take_done(&mut self) {
        for done in self.workers.take_done() {
            match done {
                Done::Started { key, spawned, workspace, limits } => {
                    self.process_started(key, spawned, workspace, limits)
                }
                Done::NotStarted { key, why, workspace } => self.end(key, why, workspace),
                Done::Delayed { job, shortage, why } => self.delayed(job, shortage, &why),
                Done::Prepared { key, launch, workspace } => {
                    let Some(entry) = self.table.get(key) else { continue };
                    entry.workspace = Some(workspace);
                    entry.state = State::Prepared(launch);
                    if entry.forgotten {
                        self.drop_entry(key);
                    } else if entry.stop == Stop::None {
                        self.report_prepared(key);
                    } else {
                        self.end(key, Ended::Signal(libc::SIGTERM), None);
                    }
                }
                Done::Measured { usages, began } => self.measured(&usages, began),
                Done::Restored { key, workspace } => {
                    let Some(entry) = self.table.get(key) else { continue };
                    entry.workspace = workspace;
                    if let State::Restoring(ending) = &entry.state {
                        entry.state = State::Ended(ending.clone());
                    }
                    if entry.known_to_engine {
                        self.report_all(key);
                    }
                }
            }
        }
    }

    /// Delays a start because of a shortage, unless the attempt was stopped or forgotten.
    fn delayed(&mut self, job: Job, shortage: Shortage, why: &Ended) {
        let key = job.key();
        let Some(entry) = self.table.get(key) else { return };
        if entry.forgotten || entry.stop != Stop::None {
            self.end(key, Ended::Signal(libc::SIGTERM), job.into_workspace());
        } else {
            self.delay(job, shortage, why);
        }
    }

    fn process_started(&mut self, key: Key, spawned: Spawned, workspace: Workspace, limits: Vec<Limit>) {
        self.start_succeeded();
        let entry = self.table.get(key).expect("an attempt that is starting stays in the table");
        entry.workspace = Some(workspace);
        let Spawned { pid, at, stdout, stderr, reserve } = spawned;
        let (attempt, stop, known_to_engine) = (entry.attempt, entry.stop, entry.known_to_engine);
        let log = Writer::new(self.logs.path(attempt), self.log_limit, self.disk.pressure(), Some(reserve));
        let watch = entry.watch.take();
        // Without events the output is still read at the end, only late.
        let _ = self.epoll.add(&stdout, stream_token(key, false));
        if let Some(stderr) = &stderr {
            let _ = self.epoll.add(stderr, stream_token(key, true));
        }
        let tail = entry.termination.as_ref().filter(|termination| termination.tail).map(|_| Tail::default());
        let stdout = Some(stdout);
        entry.state = State::Running(Running { pid, started: at, stdout, stderr, log, tail, watch, limits });
        if self.progress_at.is_none() {
            self.progress_at = Some(Instant::now() + PROGRESS_EVERY);
        }
        self.pids.insert(pid, key);
        if known_to_engine {
            self.send(&FromSpawner::Started(attempt, at));
        }
        match stop {
            Stop::None => {}
            Stop::Term => self.terminate(key),
            Stop::Kill => sys::signal_group(pid, libc::SIGKILL),
        }
        if let Some(how) = self.early.remove(&pid) {
            sys::signal_group(pid, libc::SIGKILL);
            self.died(key, how);
            self.end_lingering();
        }
    }

    /// Reads a stream and writes its output into the log.
    pub(super) fn read_stream(&mut self, key: Key, stderr: bool) {
        let Some(entry) = self.table.get(key) else { return };
        let (State::Running(running) | State::Lingering(running, _)) = &mut entry.state else { return };
        let before = running.log.length();
        take_output(running, stderr, &mut self.buffer, &self.epoll, BUFFERS_PER_EVENT);
        let (logged, supervised) = (running.log.length() - before, running.watch.is_some());
        if supervised {
            self.report_members(key);
        }
        self.logged(logged);
    }

    /// Reports which containers began or ended, if an engine is connected.
    fn report_members(&mut self, key: Key) {
        let Some(entry) = self.table.get(key).filter(|entry| entry.known_to_engine) else { return };
        let attempt = entry.attempt;
        let State::Running(Running { watch: Some(watch), .. }) = &mut entry.state else { return };
        let (news, ready) = (watch.take_news(), watch.take_readiness());
        for (member, ending) in news {
            self.send(&FromSpawner::Member(attempt, sys::now(), member, ending));
        }
        if let Some(ready) = ready {
            self.send(&FromSpawner::Ready(attempt, sys::now(), ready));
        }
    }

    pub(super) fn handle_signals(&mut self) {
        while let Some(signal) = sys::next_signal(&self.signals) {
            if signal == libc::SIGTERM {
                self.end_all();
            }
        }
        while let Some(dead) = sys::peek_dead() {
            if let Some(key) = self.pids.get(&dead.pid).copied().filter(|key| self.is_running(*key, dead.pid)) {
                // Until it is reaped its pid cannot belong to another process.
                sys::signal_group(dead.pid, libc::SIGKILL);
                sys::reap(dead.pid);
                self.died(key, dead.how);
            } else {
                sys::reap(dead.pid);
                if self.table.iter().any(|(_, entry)| matches!(entry.state, State::Starting)) {
                    self.early.insert(dead.pid, dead.how);
                } else {
                    self.early.clear();
                }
            }
        }
        self.end_lingering();
    }

    fn is_running(&mut self, key: Key, pid: i32) -> bool {
        matches!(self.table.get(key).map(|entry| &entry.state), Some(State::Running(running)) if running.pid == pid)
    }

    fn died(&mut self, key: Key, how: How) {
        let entry = self.table.get(key).expect("a process's attempt stays in the table");
        let before = std::mem::replace(&mut entry.state, State::Starting);
        if let State::Running(running) = before {
            entry.state = State::Lingering(running, how);
            self.lingering.push(key);
        } else {
            entry.state = before;
        }
    }

    /// Ends the attempts whose main process is dead and which left no process behind.
    pub(super) fn end_lingering(&mut self) {
        if self.lingering.is_empty() {
            return;
        }
        let mut waiting = self.end_namespaces();
        if sys::has_adopted_children() {
            let anything_alive =
                self.table.iter().any(|(_, entry)| matches!(entry.state, State::Starting | State::Running(_)));
            for pid in orphan::adopted() {
                match self.owner_of(pid) {
                    Some(key) if self.lingering.contains(&key) => {
                        sys::signal_process(pid, libc::SIGKILL);
                        waiting.push(key);
                    }
                    // A running task may have such children.
                    Some(_) => {}
                    // Its owner is unknown. While any task runs it may belong to that task; afterwards to none.
                    None if anything_alive => {}
                    None => {
                        sys::signal_process(pid, libc::SIGKILL);
                        waiting.extend(self.lingering.iter().copied());
                    }
                }
            }
        }
        for key in std::mem::take(&mut self.lingering) {
            if waiting.contains(&key) {
                self.lingering.push(key);
                let attempt = self.table.get(key).map(|entry| entry.attempt);
                self.timers.extend(attempt.map(|attempt| Reverse((Instant::now() + LINGER, key, attempt))));
            } else {
                self.finish(key);
            }
        }
    }

    /// Kills the processes left in PID namespaces. Returns the attempts whose namespaces are not gone yet.
    fn end_namespaces(&mut self) -> Vec<Key> {
        let mut waiting = Vec::new();
        for key in &self.lingering {
            let Some(gone) = self.table.get(*key).and_then(Entry::end_processes) else { continue };
            waiting.push(*key);
            if !self.ending.iter().any(|(other, _)| other == key) {
                // Without the event the timer ends the wait.
                let _ = self.epoll.add(&gone, ENDING);
                self.ending.push((*key, gone));
            }
        }
        waiting
    }

    fn owner_of(&self, pid: i32) -> Option<Key> {
        let traits = orphan::traits_of(pid);
        if let Some(key) = traits.session.and_then(|session| self.pids.get(&session)) {
            return Some(*key);
        }
        let by_slot = traits.namespace.and_then(|mark| {
            let mut entries = self.table.iter();
            entries.find(|(_, entry)| entry.is_alive() && entry.lives_in(mark))
        });
        if let Some((key, _)) = by_slot {
            return Some(key);
        }
        let (instance, attempt) = traits.marked?;
        (instance == self.instance).then(|| self.table.key(attempt)).flatten()
    }

    /// Drains the output, closes the log and reports the end.
    fn finish(&mut self, key: Key) {
        let Some(entry) = self.table.get(key) else { return };
        let before = std::mem::replace(&mut entry.state, State::Starting);
        let State::Lingering(mut running, how) = before else {
            entry.state = before;
            return;
        };
        for stderr in [false, true] {
            take_output(&mut running, stderr, &mut self.buffer, &self.epoll, BUFFERS_AT_END);
        }
        // A pipe that another process still holds open does not matter any more.
        running.stdout.iter().chain(&running.stderr).for_each(|pipe| self.epoll.remove(pipe));
        if self.pids.get(&running.pid) == Some(&key) {
            self.pids.remove(&running.pid);
        }
        if let Some(at) = self.ending.iter().position(|(other, _)| *other == key) {
            self.epoll.remove(&self.ending.swap_remove(at).1);
        }
        let mut exit = match how {
            How::Exited(code) => Ended::Code(code),
            How::Signalled(signal) => Ended::Signal(signal),
        };
        let mut of_main = None;
        let short: Vec<Option<usize>> =
            running.limits.iter().filter(|limit| limit.group.was_oom_killed()).map(|limit| limit.member).collect();
        self.workers.limits.lift(std::mem::take(&mut running.limits));
        if exit != Ended::Code(0) && short.contains(&None) {
            exit = Ended::OutOfMemory;
        }
        if let Some(mut watch) = running.watch.take() {
            short.into_iter().flatten().for_each(|member| watch.ran_out_of_memory(member));
            watch.close(sys::now());
            exit = match (watch.exit(), how) {
                (Some(exit), _) => exit,
                (None, How::Signalled(_)) => exit,
                (None, How::Exited(_)) => {
                    Ended::Environment("its containers could not be supervised; its log says why".to_owned())
                }
            };
            of_main = watch.end_of_main();
            entry.members = watch.endings();
        }
        if let Some(why) = entry.evicted.take() {
            exit = Ended::Evicted(why);
        }
        let badly = of_main.as_ref().unwrap_or(&exit) != &Ended::Code(0);
        entry.message = entry.termination_message(running.tail.take(), badly);
        let noted = running.log.close(sys::now());
        let (log_truncated, log_bytes) = (running.log.truncated(), running.log.length());
        let news = entry.news();
        let started = Some(running.started);
        entry.state = State::Ended(Ending { at: sys::now(), started, exit, log_truncated, log_bytes });
        self.report_progress(key, news);
        if !noted {
            self.close_log(running.log);
        }
        self.ended(key);
    }

    /// Ends an attempt that has no process.
    pub(super) fn end(&mut self, key: Key, why: Ended, workspace: Option<Workspace>) {
        let Some(entry) = self.table.get(key) else { return };
        entry.workspace = entry.workspace.take().or(workspace);
        // Nothing ran, so there is nothing to collect.
        entry.keep = false;
        entry.state = State::Ended(ending(why));
        self.ended(key);
    }

    fn ended(&mut self, key: Key) {
        let entry = self.table.get(key).expect("an attempt that just ended is in the table");
        if entry.forgotten {
            self.drop_entry(key);
            return;
        }
        if !entry.keep
            && let Some(workspace) = entry.workspace.take()
        {
            self.workers.release(workspace);
        }
        self.report_end(key);
    }

    /// Reports everything about an attempt that the engine just adopted.
    pub(super) fn report_all(&mut self, key: Key) {
        let Some(entry) = self.table.get(key) else { return };
        let attempt = entry.attempt;
        match &mut entry.state {
            State::Running(running) | State::Lingering(running, _) => {
                let at = running.started;
                // A new engine does not know what an earlier one was sent.
                entry.reported_progress = None;
                if let Some(watch) = &mut running.watch {
                    watch.mark_all_as_news();
                }
                self.send(&FromSpawner::Started(attempt, at));
                self.report_members(key);
            }
            State::Ended(_) => self.report_end(key),
            // Their reports follow by themselves.
            State::Preparing | State::Prepared(_) | State::Starting | State::Restoring(_) => {}
        }
    }

    fn report_prepared(&mut self, key: Key) {
        let Some(entry) = self.table.get(key).filter(|entry| entry.known_to_engine) else { return };
        let attempt = entry.attempt;
        match self.root_of(key) {
            Ok(root) => self.send_with_descriptor(&FromSpawner::Prepared(attempt, root.is_some()), root),
            Err(NoDescriptor) => self.report_later(attempt),
        }
    }

    /// Repeats the last report of an attempt, because its descriptor was lost in transit.
    pub(super) fn report_again(&mut self, attempt: AttemptId) {
        let Some(key) = self.table.key(attempt) else { return };
        match self.table.get(key).map(|entry| &entry.state) {
            Some(State::Prepared(_)) => self.report_prepared(key),
            Some(State::Ended(_)) => self.report_end(key),
            _ => {}
        }
    }

    fn report_end(&mut self, key: Key) {
        let Some(entry) = self.table.get(key) else { return };
        let State::Ended(ending) = &entry.state else { return };
        if entry.known_to_engine {
            let (attempt, ending, members) = (entry.attempt, ending.clone(), entry.members.clone());
            let message = entry.message.clone();
            let root = if entry.keep { self.root_of(key) } else { Ok(None) };
            let Ok(root) = root else { return self.report_later(attempt) };
            self.send_with_descriptor(&FromSpawner::Ended(attempt, ending, members, message, root.is_some()), root);
        }
    }

    /// Returns a descriptor of the root as the task sees it; `None` if its workspace is gone.
    fn root_of(&mut self, key: Key) -> Result<Option<OwnedFd>, NoDescriptor> {
        let workspace = self.table.get(key).and_then(|entry| entry.workspace.as_ref());
        workspace.map(Workspace::root).transpose().map_err(|_| NoDescriptor)
    }

    pub(super) fn stop(&mut self, attempt: AttemptId, how: Stop) {
        let Some(key) = self.table.key(attempt) else { return };
        let entry = self.table.get(key).expect("the key was just found");
        let harder = how > entry.stop;
        entry.stop = entry.stop.max(how);
        match &entry.state {
            State::Running(running) if harder => {
                let pid = running.pid;
                if how == Stop::Kill {
                    sys::signal_group(pid, libc::SIGKILL);
                } else {
                    self.terminate(key);
                }
            }
            State::Prepared(_) => self.end(key, Ended::Signal(libc::SIGTERM), None),
            State::Starting | State::Preparing => {
                if let Some(job) = self.withdraw(key, attempt) {
                    self.end(key, Ended::Signal(libc::SIGTERM), job.into_workspace());
                }
            }
            // Starts in progress check `stop` when they are ready.
            _ => {}
        }
    }

    fn terminate(&mut self, key: Key) {
        let entry = self.table.get(key).expect("a running attempt is in the table");
        let (attempt, grace) = (entry.attempt, entry.grace);
        if let Some(pid) = entry.pid() {
            sys::signal_group(pid, libc::SIGTERM);
            self.timers.push(Reverse((Instant::now() + grace, key, attempt)));
        }
    }

    pub(super) fn fire_timers(&mut self) {
        while let Some(Reverse((due, key, attempt))) = self.timers.peek().copied() {
            if due > Instant::now() {
                return;
            }
            self.timers.pop();
            let Some(entry) = self.table.get(key).filter(|entry| entry.attempt == attempt) else { continue };
            match &entry.state {
                State::Running(running) if entry.stop == Stop::Term => {
                    entry.stop = Stop::Kill;
                    sys::signal_group(running.pid, libc::SIGKILL);
                }
                State::Lingering(..) => {
                    self.lingering.retain(|other| *other != key);
                    self.finish(key);
                }
                _ => {}
            }
        }
    }

    /// Reads the progress of tasks that have run for a while. One timer for all of them, and none while none runs.
    pub(super) fn read_progress(&mut self) {
        if self.progress_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        let now = sys::now().0;
        let old = now - i64::try_from(PROGRESS_EVERY.as_micros()).unwrap_or(0);
        let (mut news, mut running) = (Vec::new(), false);
        for (key, entry) in self.table.iter_mut() {
            if let State::Running(run) = &entry.state {
                running = true;
                // A start in the future happened before the clock was set back.
                if (run.started.0 <= old || run.started.0 > now)
                    && let Some(said) = entry.news()
                {
                    news.push((key, said));
                }
            }
        }
        self.progress_at = running.then(|| Instant::now() + PROGRESS_EVERY);
        news.into_iter().for_each(|(key, said)| self.report_progress(key, Some(said)));
    }

    /// Reports progress, if an engine is connected; a new engine gets it at the next interval.
    fn report_progress(&mut self, key: Key, news: Option<(u32, u32)>) {
        let (Some((done, total)), Some(entry)) = (news, self.table.get(key)) else { return };
        if entry.known_to_engine {
            entry.reported_progress = news;
            let attempt = entry.attempt;
            self.send(&FromSpawner::Progressed(attempt, sys::now(), done, total));
        }
    }

    pub(super) fn forget(&mut self, attempt: AttemptId) {
        self.history.started.remove(&attempt);
        let Some(key) = self.table.key(attempt) else { return };
        let entry = self.table.get(key).expect("the key was just found");
        match entry.state {
            State::Prepared(_) | State::Ended(_) => self.drop_entry(key),
            // It is dropped when its thread or its process is done.
            State::Preparing | State::Starting | State::Running(_) | State::Lingering(..) | State::Restoring(_) => {
                entry.forgotten = true;
            }
        }
    }

    pub(super) fn drop_entry(&mut self, key: Key) {
        let Some(entry) = self.table.remove(key) else { return };
        if let Some(workspace) = entry.workspace {
            self.workers.release(workspace);
        }
        if self.has_leftovers && !self.table.iter().any(|(_, entry)| matches!(entry.state, State::Ended(_))) {
            // A file that stays is read again, and its attempts are then unknown to the engine: a nuisance, no harm.
            self.has_leftovers = leftover::forget(&self.dir).is_err();
        }
    }
}

/// Error: no descriptor is available.
struct NoDescriptor;

/// Moves the content of a pipe to the log; the end of the stream closes it.
fn take_output(running: &mut Running, stderr: bool, buffer: &mut [u8], epoll: &Epoll, most: usize) {
    let supervised = running.watch.is_some();
    let (pipe, stream) = match (stderr, supervised) {
        (false, _) => (&mut running.stdout, Stream::Stdout),
        (true, false) => (&mut running.stderr, Stream::Stderr),
        // The supervisor writes to standard error only when something is wrong with it.
        (true, true) => (&mut running.stderr, Stream::Note),
    };
    for _ in 0..most {
        let Some(end) = pipe.as_ref() else { return };
        match sys::read(end, buffer) {
            Ok(0) => {
                epoll.remove(end);
                *pipe = None;
            }
            Ok(count) => {
                if count == PIPE_BYTES {
                    sys::widen_pipe(end, WIDE_PIPE);
                }
                match &mut running.watch {
                    Some(watch) if !stderr => {
                        watch.receive(&buffer[..count], sys::now(), &mut running.log, running.tail.as_mut());
                    }
                    _ => {
                        running.log.append(stream, sys::now(), &buffer[..count]);
                        if let (Some(tail), false) = (&mut running.tail, supervised) {
                            tail.push(&buffer[..count]);
                        }
                    }
                }
                // Fewer bytes than fit: the pipe is empty for now.
                if count < PIPE_BYTES && most == BUFFERS_PER_EVENT {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // A terminal without any process returns EIO. Closing our end would hang up on a process that reopens it,
            // so it stays open until the end, when the rest is read.
            Err(_) => {
                epoll.remove(end);
                return;
            }
        }
    }
}

/// Default capacity of a pipe.
const PIPE_BYTES: usize = 64 * 1024;
