//! Life hooks: which events of runs go to whom, and the worker that delivers them. An event is written down in the commit of
//! the fact that caused it and deleted when the hook has acknowledged it, so none is lost and none overtakes another one of
//! its run. What hooks answer changes no run.

pub(crate) mod event;
mod outcome;
pub mod registry;
mod request;
mod worker;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread::JoinHandle,
};

use octoflow_engine::plugins::PluginTable;
use octoflow_runtime::egress::Policy;
use octoflow_store::Store;
pub use octoflow_store::{Delivery, DeliveryFilter, DeliveryStatus};

use crate::{Error, Supervisor};
use outcome::Outcome;
use worker::HookWorker;

/// The most dead letters that are kept for a plugin; older ones are deleted.
pub(crate) const MAX_DEAD: u32 = 10_000;

/// What the worker is told.
pub(crate) enum HookSignal {
    /// There is something new for these plugins.
    Due(BTreeSet<String>),
    /// These are the plugins from now on. Everything decided with those before is durable.
    Table(Arc<PluginTable>),
    /// A request was answered, or was not.
    Answered(Outcome),
    Close,
}

/// The queue of the worker. Putting something into it neither waits nor fails.
#[derive(Clone)]
pub(crate) struct HookQueue(Sender<HookSignal>);

impl HookQueue {
    pub(crate) fn new() -> (Self, Receiver<HookSignal>) {
        let (queue, signals) = mpsc::channel();
        (Self(queue), signals)
    }

    pub(crate) fn send(&self, signal: HookSignal) {
        // A worker that is gone has told the supervisor; what is written down waits for the next one.
        let _ = self.0.send(signal);
    }

    /// Tells that there is something new for these plugins, if any.
    pub(crate) fn send_due(&self, plugins: BTreeSet<String>) {
        if !plugins.is_empty() {
            self.send(HookSignal::Due(plugins));
        }
    }
}

/// How often something happened to deliveries of a plugin since the controller was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryTotals {
    pub delivered: u64,
    pub retried: u64,
    pub dead: u64,
}

/// Totals by key of the plugin. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct HookCounters(Arc<Mutex<BTreeMap<String, DeliveryTotals>>>);

impl HookCounters {
    pub(crate) fn all(&self) -> BTreeMap<String, DeliveryTotals> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, DeliveryTotals>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The worker that delivers, as its owner has it.
pub(crate) struct Hooks {
    queue: HookQueue,
    pub(crate) counters: HookCounters,
    thread: Mutex<Option<JoinHandle<Result<(), Error>>>>,
}

impl Hooks {
    /// Starts to deliver to the hooks of this table.
    pub(crate) fn start(
        (queue, signals): (HookQueue, Receiver<HookSignal>),
        table: Arc<PluginTable>,
        store: Store,
        policy: &Policy,
        supervisor: &Supervisor,
    ) -> Result<Self, Error> {
        let counters = HookCounters::default();
        let worker =
            HookWorker::new(store, policy, supervisor.clone(), (queue.clone(), signals), table, counters.clone());
        let thread = supervisor.spawn("hooks", move || worker.run()).map_err(Error::Thread)?;
        Ok(Self { queue, counters, thread: Mutex::new(Some(thread)) })
    }

    /// Begins no further delivery. Those under way are repeated by the next process.
    pub(crate) fn close(&self) {
        self.queue.send(HookSignal::Close);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A thread that panicked has told the supervisor.
        let _ = thread.map(JoinHandle::join);
    }
}
