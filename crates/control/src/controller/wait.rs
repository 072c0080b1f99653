//! What the event loop puts off, and for how long: the begin of runs and the reports of the runtime while many runs
//! are submitted, and a commit that others are about to share.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use octoflow_engine::Input;
use octoflow_model::Time;
use octoflow_store::Load;

use super::{
    counts,
    event_loop::{EventLoop, LINGER},
    yielding::Yielding,
};
use crate::clock;

/// How long a submission waits for others to share a commit. Much of its cost, the sync above all, does not grow
/// with them.
const GATHER: Duration = Duration::from_millis(2);

/// How long the decisions of a run that has more to decide wait for those that follow.
const SHARED: Duration = Duration::from_millis(20);

/// How long reports are heard, and runs begun, before messages are looked at again.
const CATCHING_UP: Duration = Duration::from_millis(20);

/// How often it is looked who has come meanwhile.
pub(super) const NAP: Duration = Duration::from_micros(250);

/// How many bytes of facts a run with more to decide may hold before they are committed. Whoever comes meanwhile waits for
/// one such commit at most; its sync takes about as long as writing this much.
const PIECE: usize = 24 * 1024;

/// Counts the commits that the store was handed and has not answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Backlog(Arc<AtomicUsize>);

/// One such commit; dropped when it is answered.
pub(super) struct Outstanding(Backlog);

impl Backlog {
    pub(super) fn enter(&self) -> Outstanding {
        self.0.fetch_add(1, Ordering::Relaxed);
        Outstanding(self.clone())
    }

    fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl EventLoop {
    /// How long nothing needs to happen unless someone calls.
    pub(super) fn patience(&mut self) -> Duration {
        const IDLE: Duration = Duration::from_secs(3600);
        let now = Instant::now();
        let mut due = self.driver.engine.wake_at().map_or(IDLE, |at| at.since(clock::steady()));
        if let Some(wait) = self.held_back() {
            due = wait;
        }
        if !self.starting() && (!self.fresh.is_empty() || !self.later.is_empty()) {
            due = due.min(self.busy(now).map_or(Duration::ZERO, |until| until - now));
        }
        if let Some(since) = self.gathering {
            due = due.min(GATHER.saturating_sub(now - since));
        }
        if self.driver.holds() { due.min(LINGER.saturating_sub(self.lingered())) } else { due }
    }

    /// Runs are still to be taken up.
    pub(super) fn starting(&self) -> bool {
        self.progress.is_pending()
    }

    /// Until when running waits for submissions.
    pub(super) fn busy(&mut self, now: Instant) -> Option<Instant> {
        self.backpressure.busy(self.in_flight.count(), now)
    }

    /// Begins what was accepted and hears what was reported while others were let in.
    pub(super) fn catch_up(&mut self, now: Time) {
        // Runtimes go by the wall clock.
        let skew = if self.later.is_empty() { 0 } else { clock::skew() };
        // Not all at once: meanwhile nobody is answered.
        let began = Instant::now();
        for taken in 1_u32.. {
            if let Some(mut report) = self.later.pop_front() {
                counts::say(&report);
                if skew != 0 {
                    report.retime(|time| time.shifted(-skew));
                }
                self.input(Input::Report(report), now).ok();
            } else if let Some(run) = self.fresh.pop_front() {
                self.input(Input::Begin { run }, now).ok();
            } else {
                return;
            }
            // The clock is not asked after each of them.
            if taken.is_multiple_of(16) && began.elapsed() > CATCHING_UP {
                return;
            }
        }
    }

    /// Somebody waits for the next commit.
    pub(super) fn awaited(&self) -> bool {
        !self.waiting.is_empty() || !self.showing.is_empty()
    }

    /// A run with more to decide has decided enough to be committed.
    fn has_piece(&self) -> bool {
        self.driver.engine.has_more() && self.driver.held_bytes() >= PIECE
    }

    /// What such a run has decided is committed while nobody else's commit is under way, and while others are active with
    /// theirs rather than by itself.
    pub(super) fn commits_piece(&self) -> bool {
        self.has_piece() && self.backlog.is_empty() && Yielding::alone_in(self.lingered(), self.load()).is_zero()
    }

    /// How long such a run does not go on, if it may not: it waits for the store, because everybody else would wait behind
    /// what it decides meanwhile, or it leaves the processor and the disk to others.
    pub(super) fn held_back(&self) -> Option<Duration> {
        if !self.driver.engine.has_more() {
            return None;
        }
        if !self.has_piece() {
            return self.yielding.rest(Instant::now(), self.load());
        }
        if !self.backlog.is_empty() {
            return Some(NAP);
        }
        Some(Yielding::alone_in(self.lingered(), self.load())).filter(|wait| !wait.is_zero())
    }

    /// What is due now, and one slice of a run that has more to decide.
    pub(super) fn tick(&mut self, now: Time) {
        let began = Instant::now();
        self.input(Input::Tick, now).ok();
        if self.driver.engine.has_more() {
            let ended = Instant::now();
            self.yielding.worked(began, ended, self.store.foreground().load(ended));
        }
    }

    fn load(&self) -> Load {
        self.store.foreground().load(Instant::now())
    }

    /// What a run decides in slices is not committed slice by slice.
    pub(super) fn shares(&self) -> bool {
        self.driver.engine.has_more() && self.lingered() < SHARED
    }

    /// The commit waits a moment: most submissions in flight are still on their way here, or wait for the one before.
    pub(super) fn gathers(&mut self, now: Instant) -> bool {
        let few = 2 * self.showing.len() < self.in_flight.count();
        let since = *self.gathering.get_or_insert(now);
        few && now - since < GATHER && self.busy(now).is_some()
    }
}
