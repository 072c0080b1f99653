//! How much goes on, counted while the event loop works: runs by the phase they enter, and what is in hand right now.
//! It is told to whoever asks, and said in the log.

use std::collections::BTreeSet;

use octoflow_model::{AttemptId, Report, RunId};

use super::{DecidedBatch, EventLoop};
use crate::gauge::{Gauges, PhaseEntry};

impl EventLoop {
    pub(super) fn gauges(&self) -> Gauges {
        let engine = &self.driver.engine;
        let scheduler = engine.scheduler();
        let locks = engine.locks().all();
        let (locks_held, lock_waiters) = locks
            .fold((0, 0), |(held, waiting), (_, holders, waiters)| (held + holders.len(), waiting + waiters.len()));
        Gauges {
            runs_open: self.driver.open(),
            slots: scheduler
                .nodes()
                .iter()
                .filter_map(|node| node.spec.capacity.get("pods"))
                .map(|pods| usize::try_from(pods.amount).unwrap_or(usize::MAX))
                .fold(0, usize::saturating_add),
            slots_used: scheduler.running(),
            tasks_waiting: scheduler.waiting(),
            queues: scheduler.queues(),
            scheduling: scheduler.counters().clone(),
            locks_held,
            lock_waiters,
            lock_waiters_unexamined: engine.unexamined_waiters(),
            entered: self.entered.iter().map(|(key, count)| (key.clone(), *count)).collect(),
            turns: self.turns.below(),
            turns_seconds: self.turns.sum(),
        }
    }

    /// Notes which runs enter a phase now, and says so.
    pub(super) fn count(&mut self, decided: &DecidedBatch) {
        let entering: BTreeSet<RunId> =
            decided.submitted.iter().chain(&decided.changed).chain(&decided.ended).copied().collect();
        for run in entering.into_iter().filter_map(|run| self.driver.engine.run(run)) {
            let (kind, phase) = (run.kind().name, run.phase());
            let (namespace, name) = (run.namespace().to_owned(), run.name().to_owned());
            tracing::info!(run = run.id().0, uid = run.uid(), namespace, name, phase, kind, "run");
            *self.entered.entry(PhaseEntry { kind, namespace, phase }).or_default() += 1;
        }
    }
}

/// A line for those who follow single tasks.
pub(super) fn say(report: &Report) {
    let AttemptId { run, task, attempt } = report.attempt();
    tracing::debug!(run = run.0, node = task.0, attempt, what = word(report), "report");
}

fn word(report: &Report) -> &'static str {
    match report {
        Report::Started { .. } => "started",
        Report::Ended { .. } => "ended",
        Report::Answered { .. } => "answered",
        Report::Lost { .. } => "lost",
        Report::Container { .. } => "container",
        Report::Ready { .. } => "ready",
        Report::Progress { .. } => "progress",
        Report::Waiting { .. } => "waiting",
    }
}
