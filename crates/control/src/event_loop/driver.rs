//! The engine and what it has decided that is in no commit yet. Inputs go in, and decisions are cut off in pieces that
//! become durable together. It knows neither the store nor the runtime.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_engine::{
    Change, Decided, Engine, Input, Refusal, Run,
    meters::{Series, SeriesLabels},
    schedule::UsageRecord,
};
use octoflow_model::{AttemptId, Fact, Order, RunFact, RunId, Task, Time};
use octoflow_store::Delivery;
use serde_json::Value;

use crate::{event_loop::record::Record, hooks::event};

/// For inputs by which nothing is decided.
pub(crate) const ANY_TIME: Time = Time(0);

pub(crate) struct Driver {
    pub(crate) engine: Engine,
    /// By open run: the number of its next fact.
    next: BTreeMap<RunId, u64>,
    held: DecidedBatch,
    held_bytes: usize,
}

/// Decisions that become durable together, and what follows once they are.
#[derive(Debug, Default)]
pub(crate) struct DecidedBatch {
    pub records: BTreeMap<RunId, Record>,
    /// The facts themselves, of runs somebody watches.
    pub watched: Vec<(RunId, Vec<Fact>)>,
    pub orders: Vec<Order>,
    /// Runs whose first fact is in this batch.
    pub submitted: BTreeSet<RunId>,
    /// Runs whose phase changes with this batch.
    pub changed: BTreeSet<RunId>,
    /// Runs that begin, are suspended, resumed or shut down, or end with this batch.
    pub lifecycle: BTreeSet<RunId>,
    /// Runs on which something else is written with this batch.
    pub marked: BTreeSet<RunId>,
    /// Runs whose last fact is in this batch.
    pub ended: BTreeSet<RunId>,
    /// Caches that were filled, by namespace and name. The engine has what is in them.
    pub caches: BTreeSet<(String, String)>,
    /// Control units of TaskSets by run and attempt: whether they are there from now on.
    pub units: BTreeMap<(RunId, u32), bool>,
    /// Runs whose objects, which they bring along, have changed.
    pub objects: BTreeSet<RunId>,
    /// The manifests of runs whose first fact is in this batch, for whoever wants to see them, unless they are watched.
    pub manifests: BTreeMap<RunId, Value>,
    /// Series of custom metrics that have changed, as they are now.
    pub series: BTreeMap<(String, SeriesLabels), Series>,
    /// Events for life hooks.
    pub deliveries: Vec<Delivery>,
    /// What tenants used, as it is now, by queue and tenant.
    pub usage: BTreeMap<(String, String), UsageRecord>,
    /// Somebody waits for this.
    pub urgent: bool,
}

impl DecidedBatch {
    /// Notes what others must hear of a run once this is durable.
    fn note(&mut self, run: RunId, change: Change, engine: &Engine) {
        let Change { submitted, phase, lifecycle, marked, ended, caches, units, objects, urgent, life: _ } = change;
        let sets = [
            (submitted, &mut self.submitted),
            (phase, &mut self.changed),
            (lifecycle, &mut self.lifecycle),
            (marked, &mut self.marked),
            (ended, &mut self.ended),
            (objects, &mut self.objects),
        ];
        for (_, set) in sets.into_iter().filter(|(holds, _)| *holds) {
            set.insert(run);
        }
        if let Some(run) = engine.run(run) {
            self.caches.extend(caches.into_iter().map(|cache| (run.namespace().to_owned(), cache)));
        }
        self.units.extend(units.into_iter().map(|(attempt, there)| ((run, attempt), there)));
        self.urgent |= urgent;
    }
}

impl Driver {
    pub(crate) fn new(engine: Engine) -> Self {
        Self { engine, next: BTreeMap::new(), held: DecidedBatch::default(), held_bytes: 0 }
    }

    /// One input through the entry point.
    pub(crate) fn take(&mut self, input: Input, now: Time, watched: impl Fn(RunId) -> bool) -> Result<(), Refusal> {
        let outcome = self.engine.handle(input, now);
        self.hold(outcome, now, watched)
    }

    /// Takes back a run that was folded from its journal of so many facts; it does nothing yet.
    pub(crate) fn restore(&mut self, run: Run, facts: u64) {
        self.next.insert(run.id(), facts);
        self.engine.handle(Input::Restore(Box::new(run)), ANY_TIME);
    }

    /// Restored runs go on, all of them before the first is given room.
    pub(crate) fn continue_runs(
        &mut self,
        runs: Vec<RunId>,
        now: Time,
        watched: impl Fn(RunId) -> bool,
    ) -> Vec<(AttemptId, Box<Task>)> {
        let mut outcome = self.engine.handle(Input::Continue { runs }, now);
        let believed = std::mem::take(&mut outcome.assumed_running);
        let refused = self.hold(outcome, now, watched);
        debug_assert!(refused.is_ok(), "going on is never refused");
        believed
    }

    fn hold(
        &mut self,
        outcome: octoflow_engine::Outcome,
        now: Time,
        watched: impl Fn(RunId) -> bool,
    ) -> Result<(), Refusal> {
        self.held.urgent |= !outcome.orders.is_empty();
        for Decided { run, mut facts, change, lived } in outcome.decided {
            let next = self.next.entry(run).or_insert(0);
            let record = self.held.records.entry(run).or_insert_with(|| Record::starting_at(*next));
            let before = record.lines.len();
            facts.iter().for_each(|fact| record.push(fact));
            self.held_bytes += record.lines.len() - before;
            if let Some(open) = self.engine.run(run) {
                let told = event::deliveries(self.engine.plugins(), open, &change.life, lived, now);
                self.held.deliveries.extend(told);
            }
            self.held.note(run, change, &self.engine);
            *next += facts.len() as u64;
            if watched(run) {
                // One message a commit, not one a turn.
                match self.held.watched.last_mut() {
                    Some((of, earlier)) if *of == run => earlier.append(&mut facts),
                    Some(_) | None => self.held.watched.push((run, facts)),
                }
            } else if let Some(Fact::Run(RunFact::Submitted(submission))) = facts.into_iter().next() {
                self.held.manifests.insert(run, submission.manifest);
            }
        }
        self.held.orders.extend(outcome.orders);
        let series = outcome.series.into_iter();
        self.held.series.extend(series.map(|series| ((series.name.clone(), series.labels.clone()), series)));
        let usage = outcome.usage.into_iter();
        self.held.usage.extend(usage.map(|record| ((record.queue.clone(), record.tenant.clone()), record)));
        match outcome.refusal {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        }
    }

    /// How many facts of a run were decided so far.
    pub(crate) fn decided(&self, run: RunId) -> u64 {
        self.next.get(&run).copied().unwrap_or_default()
    }

    /// How many runs are under way.
    pub(crate) fn open(&self) -> usize {
        self.next.len()
    }

    /// Somebody waits for what has been decided to be kept.
    pub(crate) fn urgent(&self) -> bool {
        self.held.urgent
    }

    /// Something has been decided that is not kept yet.
    pub(crate) fn holds(&self) -> bool {
        !self.held.records.is_empty()
    }

    /// How many bytes of facts have been decided and are not kept yet.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Takes everything decided since the last batch.
    pub(crate) fn take_decided(&mut self) -> DecidedBatch {
        self.held_bytes = 0;
        std::mem::take(&mut self.held)
    }

    /// The run's last facts are cut off, and it is over; the engine need not remember it, but the caller may look at it.
    pub(crate) fn release(&mut self, run: RunId) -> Option<Box<Run>> {
        self.next.remove(&run);
        self.engine.handle(Input::Release { run }, ANY_TIME).released
    }

    /// Returns the events that the deletion of a run that may be open means.
    pub(crate) fn events_of_deletion(&self, run: RunId, now: Time) -> Vec<Delivery> {
        let open = self.engine.run(run);
        open.map(|run| event::of_deletion(self.engine.plugins(), run, now)).unwrap_or_default()
    }

    /// Removes a run that may be open. A run that waits for it decides what follows.
    pub(crate) fn forget(&mut self, run: RunId, now: Time, watched: impl Fn(RunId) -> bool) {
        self.next.remove(&run);
        let outcome = self.engine.handle(Input::Release { run }, now);
        let refused = self.hold(outcome, now, watched);
        debug_assert!(refused.is_ok(), "forgetting is never refused");
    }
}
