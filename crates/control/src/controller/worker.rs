//! The event loop's thread: waits for messages, lets the loop take a step, and carries out its effects in their order.
//! It decides nothing.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    },
    thread,
};

use octoflow_model::Order;
use octoflow_store::{BusyTimer, Store};

use super::{archiver::Archiver, dispatch::OrderQueue};
use crate::{
    Error, clock,
    event_loop::{
        EventLoop, MAX_MESSAGES, Message,
        effect::{Commit, Effect, Wait},
        port::Outlet,
    },
    hooks::{HookQueue, HookSignal},
    maintenance::sweep::{LocatedDeletion, Sweeper},
};

pub(super) struct Worker {
    pub(super) event_loop: EventLoop,
    pub(super) inbox: Receiver<Message>,
    pub(super) store: Store,
    pub(super) runtime: OrderQueue,
    pub(super) archiver: Archiver,
    pub(super) data_dir: PathBuf,
    /// Shows how long the thread has been busy with one step.
    pub(super) busy: BusyTimer,
}

impl Worker {
    /// Works until the loop is closed. An error is one that cannot be repaired here.
    pub(super) fn run(mut self) -> Result<(), Error> {
        let mut first = None;
        let mut wait = self.event_loop.wait(clock::steady());
        loop {
            let taken = first.take().or_else(|| self.receive(wait));
            self.busy.begin();
            let messages = taken.into_iter().chain(self.inbox.try_iter()).take(MAX_MESSAGES);
            let effects = self.event_loop.step(messages)?;
            for effect in effects.list {
                first = self.carry_out(effect).or(first);
            }
            self.busy.end();
            wait = effects.wait;
            if wait == Wait::Closed {
                return Ok(());
            }
        }
    }

    /// The next message, when there is one before something else is to be done.
    fn receive(&self, wait: Wait) -> Option<Message> {
        match wait {
            Wait::Message(Some(timeout)) => match self.inbox.recv_timeout(timeout) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Message::Close),
            },
            Wait::Message(None) => Some(self.inbox.recv().unwrap_or(Message::Close)),
            Wait::Nap(pause) => {
                thread::sleep(pause);
                match self.inbox.try_recv() {
                    Ok(message) => Some(message),
                    Err(TryRecvError::Empty) => None,
                    Err(TryRecvError::Disconnected) => Some(Message::Close),
                }
            }
            Wait::Closed => None,
        }
    }

    /// What the loop must be told at once, if anything.
    fn carry_out(&mut self, effect: Effect) -> Option<Message> {
        match effect {
            Effect::Commit(Commit { batch, then }) => self.store.commit(batch, move |kept| then.settle(kept)),
            Effect::Adopt { believed, leave } => self.runtime.adopt(believed, leave),
            Effect::Pack(job) => self.archiver.pack(job),
            Effect::QueueDeletion(deletion) => {
                // Not written down it is still done now; only a crash in between would leave the bytes behind.
                let _ = deletion.write(&self.data_dir);
            }
            Effect::Reopen => return Some(Message::Reopened(self.store.reopen())),
            Effect::KeepClock => {
                // Nothing breaks without it, so failing is no reason to stop; `clock` tells what it costs.
                if let Err(error) = clock::keep(&self.data_dir) {
                    tracing::warn!(%error, "the engine's time could not be written down");
                }
            }
        }
        None
    }
}

/// Carries orders to the dispatcher and artifacts to be deleted to the sweeper.
pub(super) struct Outgoing {
    pub(super) runtime: OrderQueue,
    pub(super) sweeper: Arc<Mutex<Sweeper>>,
    pub(super) hooks: HookQueue,
}

impl Outlet for Outgoing {
    fn send(&self, orders: Vec<Order>) {
        self.runtime.send(orders);
    }

    fn sweep(&self, deletion: LocatedDeletion) {
        self.sweeper.lock().unwrap_or_else(PoisonError::into_inner).send(deletion);
    }

    fn hooks(&self, signal: HookSignal) {
        self.hooks.send(signal);
    }
}
