//! Keeps the connection to the spawner for the life of the runtime: reads from it, and reconnects or starts another one
//! when it dies, for as long as it takes. Nothing fails meanwhile: attempts wait, and the next spawner is asked about
//! each of them.

use std::{
    collections::VecDeque,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::Child,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{self, Receiver},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use octoflow_model::ids::AttemptId;

use super::{
    Error,
    dispatcher::{Dispatcher, EndOrder, lock},
    link::{Connected, GONE_WITHIN, connect},
    sys,
    wire::{ToSpawner, next_frame},
};
use crate::{
    port::{Condition, Health},
    shortage::Backoff,
};

/// The thread that reads from the spawner. Joining returns `None` after a panic, else the spawner's process if it is
/// our child.
pub(crate) type Listener = JoinHandle<Option<Option<Child>>>;

impl Dispatcher {
    /// Starts the thread that reads from the spawner until the end. The channel closes when it ends.
    pub(crate) fn listen(self: &Arc<Self>, connected: Connected) -> io::Result<(Listener, Receiver<()>)> {
        let dispatcher = Arc::clone(self);
        let (listening, over) = mpsc::channel();
        let Connected { socket, child, pid, .. } = connected;
        self.monitor.up(pid);
        self.outbox.post(&[ToSpawner::SetSpaceFloor(self.context.space_floor)]);
        let thread = self.owner.spawn("spawner", move || {
            let _listening = listening;
            dispatcher.receive_for_ever(socket, child)
        })?;
        Ok((thread, over))
    }

    /// Returns how to query the conditions that keep tasks from running.
    pub(crate) fn health(self: &Arc<Self>) -> Health {
        let dispatcher = Arc::downgrade(self);
        Arc::new(move || dispatcher.upgrade().map_or_else(Vec::new, |dispatcher| dispatcher.conditions()))
    }

    fn conditions(&self) -> Vec<Condition> {
        if self.monitor.ping_due() {
            self.outbox.post(&[ToSpawner::Ping()]);
        }
        self.monitor.conditions()
    }

    fn receive_for_ever(self: Arc<Self>, mut socket: Arc<UnixStream>, mut child: Option<Child>) -> Option<Child> {
        loop {
            self.receive_until_closed(&socket);
            if self.closing.has_begun() {
                return child;
            }
            // The spawner died. Its process is reaped, and a new one reports on what it left.
            self.monitor.down("the spawner died".to_owned());
            self.outbox.replace(None);
            collect(&mut child);
            let connected = self.reconnect()?;
            socket = connected.socket;
            child = connected.child.or(child);
            self.isolated.store(connected.welcome.isolated, Ordering::Relaxed);
            self.outbox.replace(Some(Arc::clone(&socket)));
            // From here on new attempts are sent by themselves; all others are part of this adoption.
            self.monitor.up(connected.pid);
            let (mut ids, mut stops): (Vec<AttemptId>, Vec<(AttemptId, EndOrder)>) = (Vec::new(), Vec::new());
            for (attempt, flight) in &*lock(&self.in_flight) {
                ids.push(*attempt);
                stops.extend(flight.stop.map(|stop| (*attempt, stop)));
            }
            let leave = lock(&self.untouched_runs).clone();
            let mut messages = vec![ToSpawner::SetSpaceFloor(self.context.space_floor), ToSpawner::Adopt(ids, leave)];
            messages.extend(stops.into_iter().map(|(attempt, stop)| stop.message(attempt)));
            self.outbox.post(&messages);
        }
    }

    /// Retries with backoff until there is a spawner; `None` if the runtime is closed meanwhile.
    fn reconnect(&self) -> Option<Connected> {
        let mut backoff = Backoff::default();
        loop {
            match connect(&self.context.data, &self.command, &self.context.visible, &self.hello) {
                Ok(connected) => return Some(connected),
                Err(error) => {
                    self.monitor.down(format!("the spawner died and could not be started: {}", chain(&error)))
                }
            }
            if self.closing.wait(backoff.pause()) {
                return None;
            }
        }
    }

    fn receive_until_closed(self: &Arc<Self>, socket: &UnixStream) {
        let mut buffer = vec![0; 64 * 1024];
        let mut inbox: Vec<u8> = Vec::new();
        let mut descriptors: VecDeque<Option<OwnedFd>> = VecDeque::new();
        let generation = self.outbox.generation();
        loop {
            match sys::receive_with(socket.as_fd(), &mut buffer, &mut descriptors) {
                Ok(0) => return,
                Ok(count) => inbox.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            }
            self.monitor.mark_alive();
            let mut rest = &inbox[..];
            let mut reports = Vec::new();
            let mut answers = Vec::new();
            loop {
                match next_frame(&mut rest) {
                    Ok(Some(message)) => {
                        self.handle_message_safely(message, &mut descriptors, generation, &mut reports, &mut answers)
                    }
                    Ok(None) => break,
                    // The stream is corrupt; a new connection starts clean.
                    Err(_) => return,
                }
            }
            let used = inbox.len() - rest.len();
            inbox.drain(..used);
            if !reports.is_empty() {
                (self.sink)(reports);
            }
            if !answers.is_empty() {
                self.outbox.post(&answers);
            }
        }
    }
}

/// Reaps a dead child. One that only closed the connection and lives on stays ours: it is found again by its socket.
fn collect(child: &mut Option<Child>) {
    let give_up = Instant::now() + GONE_WITHIN;
    while let Some(dead) = child {
        match dead.try_wait() {
            Ok(None) if Instant::now() < give_up => thread::sleep(Duration::from_millis(1)),
            Ok(None) => return,
            Ok(Some(_)) | Err(_) => *child = None,
        }
    }
}

/// Formats an error with its sources.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
