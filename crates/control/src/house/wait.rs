//! What the pump puts off, and for how long: the begin of runs and the reports of the runtime while many stand at the
//! door, and a commit that others are about to share.

use std::time::{Duration, Instant};

use octoflow_engine::Input;
use octoflow_model::Time;

use super::{
    event_loop::{LINGER, Worker},
    tally,
};
use crate::clock;

/// How long somebody at the door waits for others to share a commit. Much of its cost, the sync above all, does not grow
/// with them.
const GATHER: Duration = Duration::from_millis(2);

/// How long the decisions of a run that has more to decide wait for those that follow.
const SHARED: Duration = Duration::from_millis(20);

/// How long reports are heard, and runs begun, before messages are looked at again.
const CATCHING_UP: Duration = Duration::from_millis(20);

/// How often it is looked who has come meanwhile.
pub(super) const NAP: Duration = Duration::from_micros(250);

impl Worker {
    /// How long nothing needs to happen unless someone calls.
    pub(super) fn patience(&mut self) -> Duration {
        const IDLE: Duration = Duration::from_secs(3600);
        let now = Instant::now();
        let mut due = self.pump.engine.wake_at().map_or(IDLE, |at| at.since(clock::steady()));
        if !self.starting() && (!self.fresh.is_empty() || !self.later.is_empty()) {
            due = due.min(self.busy(now).map_or(Duration::ZERO, |until| until - now));
        }
        if let Some(since) = self.gathering {
            due = due.min(GATHER.saturating_sub(now - since));
        }
        if self.pump.holds() { due.min(LINGER.saturating_sub(self.lingered())) } else { due }
    }

    /// Runs are still to be taken up.
    pub(super) fn starting(&self) -> bool {
        self.progress.is_pending()
    }

    /// Until when running waits for those at the door.
    pub(super) fn busy(&mut self, now: Instant) -> Option<Instant> {
        self.door.busy(self.threshold.guests(), now)
    }

    /// Begins what was accepted and hears what was reported while others were let in.
    pub(super) fn catch_up(&mut self, now: Time) {
        // Runtimes go by the wall clock.
        let skew = if self.later.is_empty() { 0 } else { clock::skew() };
        // Not all at once: meanwhile nobody is answered.
        let began = Instant::now();
        for taken in 1_u32.. {
            if let Some(mut report) = self.later.pop_front() {
                tally::say(&report);
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

    /// What a run decides in slices is not committed slice by slice.
    pub(super) fn shares(&self) -> bool {
        self.pump.engine.has_more() && self.lingered() < SHARED
    }

    /// The commit waits a moment: most of those at the door are still on their way here, or wait for the one before.
    pub(super) fn gathers(&mut self, now: Instant) -> bool {
        let few = 2 * self.showing.len() < self.threshold.guests();
        let since = *self.gathering.get_or_insert(now);
        few && now - since < GATHER && self.busy(now).is_some()
    }
}
