//! What a step of the event loop asks for: commits with what follows them, work for other threads, and when to step again.
//! Effects are plain values; whoever drives the loop carries them out, in their order.

use std::{
    collections::{BTreeSet, HashSet},
    sync::{Arc, Mutex, PoisonError, mpsc::Sender},
    time::Duration,
};

use octoflow_model::{AttemptId, Fact, Order, Revision, RunId, Task};
use octoflow_store::{Batch, Error as StoreError};

use super::{
    Message, Name, Watchers, archive::PackJob, claims::Claimed, outage::OutageMemory, pacing::Outstanding, port::Outlet,
};
use crate::{
    Error,
    hooks::HookSignal,
    maintenance::sweep::{LocatedDeletion, QueuedDeletion},
};

/// Receives the revision of the commit that everything decided so far is part of, once that is durable.
pub(crate) type Answer = Box<dyn FnOnce(Result<Revision, Error>) + Send>;

/// What one step asks for.
pub(crate) struct Effects {
    pub list: Vec<Effect>,
    pub wait: Wait,
}

pub(crate) enum Effect {
    /// Write the batch, then settle it with the outcome.
    Commit(Commit),
    /// Tell the runtime which attempts are ours, and which runs are left alone.
    Adopt { believed: Vec<(AttemptId, Box<Task>)>, leave: Vec<RunId> },
    /// Pack the record of a large run on another thread; it comes back as [`Message::Packed`].
    Pack(PackJob),
    /// Write down what is to be deleted, before the commit that follows.
    QueueDeletion(QueuedDeletion),
    /// Open the store again after a failed write; the outcome comes back as [`Message::Reopened`].
    Reopen,
    /// Write down the engine's time.
    KeepClock,
}

/// When the loop must step again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// With the next message, or after this long if nobody sends one.
    Message(Option<Duration>),
    /// After this long, however many messages come: a commit gathers those who share it.
    Nap(Duration),
    /// Never: the loop was closed, and everything is handed to the store.
    Closed,
}

/// A batch for the store, and what follows its outcome.
pub(crate) struct Commit {
    pub batch: Batch,
    pub then: Settlement,
}

/// What follows the outcome of a commit.
pub(crate) enum Settlement {
    /// Of a piece of decisions.
    Decisions(Box<Decisions>),
    /// Of anything else.
    Call(Box<dyn FnOnce(Result<Revision, StoreError>) + Send>),
}

impl Settlement {
    pub(crate) fn settle(self, kept: Result<Revision, StoreError>) {
        match self {
            Self::Decisions(decisions) => decisions.settle(kept),
            Self::Call(call) => call(kept),
        }
    }
}

/// Everything that happens once a piece of decisions is durable, and only then: callers are answered, orders go out,
/// watchers are notified.
pub(crate) struct Decisions {
    pub(super) waiting: Vec<Answer>,
    /// The facts of watched runs.
    pub(crate) watched: Vec<(RunId, Vec<Fact>)>,
    /// Runs whose lifecycle changes.
    pub(super) lifecycle: BTreeSet<RunId>,
    pub(crate) orders: Vec<Order>,
    /// Runs whose records are in the batch.
    pub(super) ended: BTreeSet<RunId>,
    /// Names that the store has from then on.
    pub(super) named: Vec<Name>,
    pub(super) claimed: Claimed,
    pub(super) deletions: Vec<LocatedDeletion>,
    /// Life hooks that have something to hear.
    pub(super) hooks: BTreeSet<String>,
    pub(super) names: Arc<Mutex<HashSet<Name>>>,
    pub(super) watchers: Watchers,
    pub(super) inbox: Sender<Message>,
    pub(super) outlet: Arc<dyn Outlet>,
    pub(super) memory: OutageMemory,
    pub(super) outstanding: Outstanding,
}

impl Decisions {
    fn settle(self, kept: Result<Revision, StoreError>) {
        let Self { waiting, watched, lifecycle, orders, ended, named, claimed, deletions, memory, hooks, .. } = self;
        drop(self.outstanding);
        let revision = match kept {
            Ok(revision) => revision,
            Err(error) => {
                waiting.into_iter().for_each(|answer| answer(Err(error.clone().into())));
                memory.unknown(watched);
                // The store itself reports any other failure.
                if error.is_refusal() {
                    let _ = self.inbox.send(Message::Failed(error));
                }
                return;
            }
        };
        memory.kept(ended.iter());
        if !named.is_empty() {
            let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            for name in &named {
                names.remove(name);
            }
        }
        self.outlet.send(orders);
        waiting.into_iter().for_each(|answer| answer(Ok(revision)));
        claimed.settle();
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        for (run, facts) in watched {
            if let Some(audience) = watchers.get_mut(&run) {
                audience.tell(facts, lifecycle.contains(&run));
            }
        }
        for run in ended {
            watchers.remove(&run);
        }
        for deletion in deletions {
            self.outlet.sweep(deletion);
        }
        if !hooks.is_empty() {
            self.outlet.hooks(HookSignal::Due(hooks));
        }
    }
}
