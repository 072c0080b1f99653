//! Metrics on request: the load of the event loop and the counters of the store.

use std::time::Duration;

pub use octoflow_engine::schedule::{Counters, PreemptionKind, QueueReport, spec::Quantities};
use octoflow_model::RunId;
use octoflow_runtime::port::{Condition, ConditionKind};
use octoflow_store::{Change, Filter};

pub use octoflow_store::{Histogram, Stats};

use crate::{
    Error, clock,
    event_loop::Message,
    registry::{Fault, Kind, Registry, kinds},
};

/// Phase that runs entered, for a counter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PhaseEntry {
    pub kind: &'static str,
    pub namespace: String,
    pub phase: &'static str,
}

/// Load of the event loop at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gauges {
    pub runs_open: usize,
    pub slots: usize,
    pub slots_used: usize,
    /// Tasks waiting for capacity.
    pub tasks_waiting: usize,
    /// Queues as they stand.
    pub queues: Vec<QueueReport>,
    /// What the scheduler has counted since the controller was opened.
    pub scheduling: Counters,
    pub locks_held: usize,
    pub lock_waiters: usize,
    /// Those who wait for locks if they are too many to look for circles among them, else 0.
    pub lock_waiters_unexamined: usize,
    /// Number of runs that entered each phase since the controller was opened.
    pub entered: Vec<(PhaseEntry, u64)>,
    /// Histogram of turn durations: upper bounds in seconds with cumulative counts; `turns_seconds` is the sum.
    pub turns: Vec<(f64, u64)>,
    pub turns_seconds: f64,
}

/// Bucket bounds: from a tenth of a millisecond to a second, which is far too long.
pub(crate) const TURN_BUCKETS: &[f64] = &[0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0];

impl Registry {
    pub fn gauges(&self) -> Result<Gauges, Fault> {
        Ok(self.handle().ask(|reply| Message::Gauges { reply })?)
    }

    /// Returns the number of runs by kind and phase, open and finished.
    pub fn runs_by_phase(&self) -> Result<Vec<(&'static str, &'static str, u64)>, Fault> {
        self.read(|reader| {
            let count = |(kind, phase): (&'static Kind, &'static str)| -> Result<_, Fault> {
                let (key, phases) = (Some(kind.key.to_owned()), vec![phase.to_owned()]);
                let filter = Filter { kind: key, phases, ..Filter::default() };
                Ok((kind.name, phase, reader.count(&filter)?))
            };
            let dialects = kinds::of_runs().filter_map(Kind::dialect);
            dialects
                .flat_map(|dialect| dialect.phases.iter().map(|phase| (dialect.kind, phase.word)))
                .map(count)
                .collect()
        })
    }

    /// Returns why runs cannot be accepted or executed at present, as far as that is known without trying. A thread
    /// that is busy with one thing for longer than `longest` is stuck. Never blocks.
    pub fn not_ready_reason(&self, longest: Duration) -> Option<String> {
        let controller = self.controller();
        if let Some(why) = controller.stalled(longest) {
            return Some(why);
        }
        let store = controller.store();
        if let Some(error) = store.failure().or_else(|| store.check_space().err()) {
            return Some(error.to_string());
        }
        // Delayed starts still happen.
        let hinders = |condition: &Condition| condition.kind != ConditionKind::StartsDelayed;
        let condition = controller.runtime_conditions().into_iter().find(hinders)?;
        Some(format!("{}: {}", condition.kind.name(), condition.message))
    }

    /// Checks that decisions are made and durable: the event loop answers, and a write succeeds.
    pub fn probe(&self) -> Result<(), Fault> {
        self.handle().size_at_work(RunId(0))?;
        let mark = Change::PutTimestamp { name: "ready".to_owned(), at: clock::now() };
        self.controller().store().commit_wait(mark.into()).map_err(Error::from)?;
        Ok(())
    }
}
