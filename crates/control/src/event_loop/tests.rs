//! The event loop step by step: what it answers, and when. Only the order of answers and commits is tried here; the
//! simulator tries the rest.

use octoflow_model::Revision;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::{effect::Wait, virtual_loop::VirtualDisk, *};

struct Midnight;

impl Clock for Midnight {
    fn now(&self) -> Time {
        Time(1_700_000_000_000_000)
    }

    fn skew(&self) -> i64 {
        0
    }
}

struct Nowhere;

impl Outlet for Nowhere {
    fn send(&self, _: Vec<octoflow_model::Order>) {}

    fn sweep(&self, _: crate::maintenance::sweep::LocatedDeletion) {}

    fn hooks(&self, _: crate::hooks::HookSignal) {}
}

fn event_loop() -> EventLoop {
    let (inbox, _) = std::sync::mpsc::channel();
    let capacity = Capacity { slots: 1, cpu_milli: 1000, memory_bytes: 1 << 30 };
    let limits = Limits::from(capacity);
    let storage = Box::new(VirtualDisk::new().unwrap());
    let ports = Ports { storage, clock: Box::new(Midnight), outlet: Arc::new(Nowhere), inbox };
    EventLoop::new(
        limits.engine(vec![capacity.into()], Meters::default()),
        limits,
        ports,
        InFlight::default(),
        Arc::default(),
    )
}

/// Asks, and says whether the answer came before its commit was settled, and whether it came with that.
fn asked<T>(event_loop: &mut EventLoop, ask: impl FnOnce(Reply<T>) -> Message) -> (bool, bool) {
    let (reply, mut answer) = oneshot::channel();
    let effects = event_loop.step([ask(reply)].into_iter()).unwrap();
    let before = !matches!(answer.try_recv(), Err(TryRecvError::Empty));
    for effect in effects.list {
        if let Effect::Commit(commit) = effect {
            commit.then.settle(Ok(Revision(2)));
        }
    }
    (before, !before && matches!(answer.try_recv(), Ok(Ok(_))))
}

#[test]
fn whatever_shows_decisions_is_answered_after_their_sync() {
    let (event_loop, run) = (&mut event_loop(), RunId(1));
    let asked = [
        ("object", asked(event_loop, |reply| Message::Object { run, detail: Detail::Whole, reply })),
        ("size", asked(event_loop, |reply| Message::Size { run, reply })),
        ("tasks", asked(event_loop, |reply| Message::Tasks { run, reply })),
        ("log sizes", asked(event_loop, |reply| Message::LogSizes { run, reply })),
        ("explain", asked(event_loop, |reply| Message::Explain { run, reply })),
        ("metrics", asked(event_loop, |reply| Message::Metrics { reply })),
        ("scheduler", asked(event_loop, |reply| Message::Look(Box::new(|_| Box::new(|kept| drop(reply.send(kept))))))),
    ];
    for (what, (before, after)) in asked {
        assert!(!before, "{what}: answered before the sync");
        assert!(after, "{what}: never answered");
    }
}

#[test]
fn a_close_commits_what_is_held_and_ends_the_loop() {
    let mut event_loop = event_loop();
    let effects = event_loop.step([Message::Close].into_iter()).unwrap();
    assert_eq!(effects.wait, Wait::Closed);
    assert!(effects.list.iter().any(|effect| matches!(effect, Effect::KeepClock)));
}
