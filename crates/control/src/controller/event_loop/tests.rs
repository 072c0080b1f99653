//! The event loop turn by turn: what it answers, and when. Only the order of answers and commits is tried here.

use std::sync::mpsc;

use octoflow_engine::Engine;
use octoflow_runtime::{egress::Policy, null::NullRuntime};
use octoflow_store::BusyTimer;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::*;
use crate::{Capacity, Supervisor, controller::dispatch::Dispatcher};

/// An event loop whose turns the test takes.
fn worker(store: &Store) -> EventLoop {
    let data_dir = store.data_dir().to_owned();
    let (messages, inbox) = mpsc::channel();
    let runtime = Box::new(NullRuntime::new(Box::new(|_| {})));
    let dispatcher = Dispatcher::start(runtime, messages.clone()).unwrap();
    let sweeper = Sweeper::new(store.clone(), data_dir.clone(), Policy::strict(), Supervisor::default());
    let keeper = Keeper { data_dir, sweeper: Arc::new(Mutex::new(sweeper)) };
    let capacity = Capacity { slots: 1, cpu_milli: 1000, memory_bytes: 1 << 30 };
    let recovery = Recovery::new(capacity, BusyTimer::default());
    let driver = Driver::new(Engine::new(capacity));
    let archiver = Archiver::new(Supervisor::default(), messages.clone(), store.clone());
    let (queue, in_flight) = (dispatcher.queue(), InFlight::default());
    EventLoop::new(driver, store.clone(), queue, inbox, messages, in_flight, keeper, archiver, recovery)
}

/// Asks, and answers whether the answer came before the commit and whether it came after it.
fn asked<T>(worker: &mut EventLoop, store: &Store, ask: impl FnOnce(Reply<T>) -> Message) -> (bool, bool) {
    let (reply, mut answer) = oneshot::channel();
    worker.take(ask(reply));
    let before = !matches!(answer.try_recv(), Err(TryRecvError::Empty));
    worker.commit().unwrap();
    // Whatever was committed before this is on disk and told.
    store.commit_wait(Batch::new()).unwrap();
    (before, !before && matches!(answer.try_recv(), Ok(Ok(_))))
}

#[test]
fn whatever_shows_decisions_is_answered_after_their_sync() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let mut worker = worker(&store);
    let (own, run) = (&mut worker, RunId(1));
    let asked = [
        ("object", asked(own, &store, |reply| Message::Object { run, detail: Detail::Whole, reply })),
        ("size", asked(own, &store, |reply| Message::Size { run, reply })),
        ("tasks", asked(own, &store, |reply| Message::Tasks { run, reply })),
        ("log sizes", asked(own, &store, |reply| Message::LogSizes { run, reply })),
        ("explain", asked(own, &store, |reply| Message::Explain { run, reply })),
        ("metrics", asked(own, &store, |reply| Message::Metrics { reply })),
    ];
    for (what, (before, after)) in asked {
        assert!(!before, "{what}: answered before the sync");
        assert!(after, "{what}: never answered");
    }
}
