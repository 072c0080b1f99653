//! What the event loop puts off, and for how long: the begin of runs and the reports of the runtime while many runs
//! are submitted, and a commit that others are about to share.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use octoflow_engine::Input;
use octoflow_model::Time;

use super::{EventLoop, LINGER, State, counts, effect::Wait, yielding::Yielding};

/// How long a submission waits for others to share a commit. Much of its cost, the sync above all, does not grow
/// with them.
const GATHER: Duration = Duration::from_millis(2);

/// How long the decisions of a run that has more to decide wait for those that follow.
const SHARED: Duration = Duration::from_millis(20);

/// How long one step hands reports to the engine, and begins runs, before messages are taken again.
const CATCHING_UP: Duration = Duration::from_millis(20);

/// The pause between two looks at the inbox while a commit gathers, or a large run waits for the store.
const NAP: Duration = Duration::from_micros(250);

/// How many bytes of facts a run with more to decide may hold before they are committed while others are active. Each of
/// them waits for one such commit at most; its sync takes about as long as writing this much.
const PIECE: usize = 8 * 1024;

/// The same while nobody else is active: only the first who comes can meet such a commit, and syncs are what a large run alone
/// pays for.
const PIECE_ALONE: usize = 256 * 1024;

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
    /// When the loop must step again.
    pub(crate) fn wait(&mut self, now: Time) -> Wait {
        match &self.state {
            State::Closing if self.archive.is_idle() => return Wait::Closed,
            State::Closing => return Wait::Message(None),
            State::Outage(outage) => return Wait::Message(outage.retry_in(now)),
            State::Serving => {}
        }
        let timer = self.held_back(now).or_else(|| self.driver.engine.wake_at().map(|at| at.since(now)));
        let put_off = !self.starting() && (!self.accepted.is_empty() || !self.reports.is_empty());
        let put_off = put_off.then(|| self.busy(now).map_or(Duration::ZERO, |until| until.since(now)));
        let lingers = self.driver.holds().then(|| LINGER.saturating_sub(self.lingered(now)));
        let due = timer.into_iter().chain(put_off).chain(lingers).min();
        match self.gathering {
            // Nobody wakes the loop for each of those who come while a commit gathers.
            Some(since) => {
                let gathers = GATHER.saturating_sub(now.since(since)).min(NAP);
                Wait::Nap(due.map_or(gathers, |due| due.min(gathers)))
            }
            None => Wait::Message(due),
        }
    }

    /// How long decisions that nobody waits for have been held.
    pub(super) fn lingered(&self, now: Time) -> Duration {
        self.held_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Runs are still to be restored.
    pub(super) fn starting(&self) -> bool {
        self.progress.is_pending()
    }

    /// Until when running waits for submissions.
    pub(super) fn busy(&mut self, now: Time) -> Option<Time> {
        self.backpressure.busy(self.in_flight.count(), now)
    }

    /// Hands the engine the reports and the accepted runs that waited for submissions.
    pub(super) fn catch_up(&mut self, now: Time) {
        // Runtimes go by the wall clock.
        let skew = if self.reports.is_empty() { 0 } else { self.clock.skew() };
        // Not all at once: meanwhile nobody is answered.
        for taken in 1_u32.. {
            if let Some(mut report) = self.reports.pop_front() {
                counts::say(&report);
                if skew != 0 {
                    report.retime(|time| time.shifted(-skew));
                }
                self.input(Input::Report(report), now).ok();
            } else if let Some(run) = self.accepted.pop_front() {
                self.input(Input::Begin { run }, now).ok();
            } else {
                return;
            }
            // The clock is not asked after each of them.
            if taken.is_multiple_of(16) && self.clock.now().since(now) > CATCHING_UP {
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
        let piece = if self.storage.load().is_active() { PIECE } else { PIECE_ALONE };
        self.driver.engine.has_more() && self.driver.held_bytes() >= piece
    }

    /// What such a run has decided is committed while nobody else's commit is under way, and while others are active with
    /// theirs rather than by itself.
    pub(super) fn commits_piece(&self, now: Time) -> bool {
        self.has_piece()
            && self.backlog.is_empty()
            && Yielding::alone_in(self.lingered(now), self.storage.load()).is_zero()
    }

    /// How long such a run does not go on, if it may not: it waits for the store, because everybody else would wait behind
    /// what it decides meanwhile, or it leaves the processor and the disk to others.
    pub(super) fn held_back(&self, now: Time) -> Option<Duration> {
        if !self.driver.engine.has_more() {
            return None;
        }
        if !self.has_piece() {
            return self.yielding.rest(now, self.storage.load());
        }
        if !self.backlog.is_empty() {
            return Some(NAP);
        }
        Some(Yielding::alone_in(self.lingered(now), self.storage.load())).filter(|wait| !wait.is_zero())
    }

    /// Does what is due now, and one slice of a run that has more to decide.
    pub(super) fn tick(&mut self, now: Time) {
        self.input(Input::Tick, now).ok();
        if self.driver.engine.has_more() {
            self.yielding.worked(now, self.clock.now(), self.storage.load());
        }
    }

    /// What a run decides in slices is not committed slice by slice.
    pub(super) fn shares(&self, now: Time) -> bool {
        self.driver.engine.has_more() && self.lingered(now) < SHARED
    }

    /// The commit waits a moment: most submissions in flight are still on their way here, or wait for the one before.
    pub(super) fn gathers(&mut self, now: Time) -> bool {
        let few = 2 * self.showing.len() < self.in_flight.count();
        let since = *self.gathering.get_or_insert(now);
        few && now.since(since) < GATHER && self.busy(now).is_some()
    }
}
