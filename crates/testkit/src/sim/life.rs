//! One life of the controller: the event loop and everything that is only in memory. A crash ends it.
//! It does what the controller's own thread does, one step at a time.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use octoflow_control::Driver;
use octoflow_engine::{Engine, Input, Refusal, Run, Setup, engine::Keyed};
use octoflow_model::{AttemptId, Fact, RunFact, RunId, Task, Time};

use super::{
    check,
    disk::Pending,
    failure::{Broken, Guarantee, broken},
    tree,
    world::World,
};

/// How long a decision nobody waits for may stay in memory.
const LINGER: Duration = Duration::from_millis(100);

/// In one of so many worlds decisions are sliced.
const SLICED: u64 = 3;

/// About three facts.
const SLICE: u64 = 30;

/// Somebody is told that what they asked for is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ack {
    /// Its place in the world's plan.
    pub act: usize,
}

pub(super) struct Life {
    pub driver: Driver,
    /// Cuts on their way to the disk, oldest first.
    pub flight: VecDeque<Pending>,
    /// By open run: what its facts fold into, in flight or kept.
    pub shadows: BTreeMap<RunId, Shadow>,
    waiting: Vec<Ack>,
    must_commit: bool,
    held_since: Option<Time>,
    /// Runs that were accepted and have not begun.
    pub fresh: BTreeSet<RunId>,
    /// Tasks taken over beyond the machine's room; they count down as they end.
    pub excess: usize,
}

/// A run as its facts alone describe it.
pub(super) struct Shadow {
    pub run: Run,
    pub facts: Vec<Fact>,
}

impl Life {
    pub(super) fn new(world: &World) -> Self {
        // In some worlds decisions come in slices so small that hardly anything fits into one.
        let slice = if world.seed.is_multiple_of(SLICED) { SLICE } else { u64::MAX };
        let engine = Engine::new(Setup { slice, ..world.capacity.into() });
        Self {
            driver: Driver::new(engine),
            flight: VecDeque::new(),
            shadows: BTreeMap::new(),
            waiting: Vec::new(),
            must_commit: false,
            held_since: None,
            fresh: BTreeSet::new(),
            excess: 0,
        }
    }

    pub(super) fn take(&mut self, input: Input, now: Time) -> Result<(), Refusal> {
        match &input {
            Input::Submit { run, .. } => {
                self.fresh.insert(*run);
            }
            // A command lets it begin.
            Input::Begin { run } | Input::Command { run, .. } => {
                self.fresh.remove(run);
            }
            Input::Report(_)
            | Input::Tick
            | Input::Object { .. }
            | Input::Restore(_)
            | Input::ReserveLocks(_)
            | Input::Continue { .. }
            | Input::Release { .. } => {}
        }
        self.driver.take(input, now, |_| false)
    }

    /// Somebody waits for an answer.
    pub(super) fn answer(&mut self, act: usize) {
        self.waiting.push(Ack { act });
    }

    /// A run goes on from its journal; what is believed to be with the runtime comes back.
    pub(super) fn take_up(
        &mut self,
        run: RunId,
        facts: Vec<Fact>,
        now: Time,
    ) -> Result<Vec<(AttemptId, Box<Task>)>, Broken> {
        let unreadable = |why| broken(Guarantee::Acknowledged, format!("run {run} cannot be taken up: {why}"));
        let shadow = octoflow_engine::engine::fold(run, facts.iter().cloned()).or_else(unreadable)?;
        let believed = self
            .driver
            .take_up(run, facts.clone(), now, |_| false)
            .or_else(|why| broken(Guarantee::Acknowledged, format!("run {run} cannot be taken up: {why}")))?;
        self.shadows.insert(run, Shadow { run: shadow, facts });
        self.must_commit = true;
        Ok(believed)
    }

    /// When something must happen though nobody calls.
    pub(super) fn next_at(&self) -> Option<Time> {
        let linger = self.held_since.map(|since| since.saturating_add(LINGER));
        self.driver.engine.wake_at().into_iter().chain(linger).min()
    }

    /// The end of a turn of the controller's loop: what was due is looked at, and what was decided may be cut off.
    pub(super) fn turn(&mut self, now: Time) -> Result<Option<&Pending>, Broken> {
        if self.driver.engine.wake_at().is_some_and(|at| at <= now) {
            let _ = self.take(Input::Tick, now);
        }
        let lingered = self.held_since.is_some_and(|since| now.since(since) >= LINGER);
        let wanted = self.driver.urgent() || !self.waiting.is_empty() || self.must_commit;
        let cut = wanted || self.driver.holds() && lingered;
        if cut {
            self.cut()?;
        }
        self.held_since = if self.driver.holds() { self.held_since.or(Some(now)) } else { None };
        Ok(if cut { self.flight.back() } else { None })
    }

    fn cut(&mut self) -> Result<(), Broken> {
        self.must_commit = false;
        let cut = self.driver.cut();
        let ended: Vec<RunId> = cut.ended.iter().copied().collect();
        let engine = &self.driver.engine;
        let filled = cut.caches.iter().filter_map(|(namespace, name)| {
            Some((name.clone(), engine.keyed(Keyed::ConfigMap, namespace, name)?.clone()))
        });
        let caches = filled.collect();
        let mut pending = Pending::new(cut, std::mem::take(&mut self.waiting), Vec::new())?;
        pending.caches = caches;
        for (run, first, facts) in &pending.lines {
            self.follow(*run, *first, facts)?;
        }
        for run in ended {
            let Some(live) = self.driver.engine.run(run) else {
                return broken(
                    Guarantee::Fold,
                    format!("run {run} left the engine before its last facts were cut off"),
                );
            };
            let tree = tree::tree(live).or_else(|why| broken(Guarantee::Fold, why))?;
            pending.ended.push((run, tree));
            self.shadows.remove(&run);
            self.driver.forget(run);
        }
        self.flight.push_back(pending);
        Ok(())
    }

    /// The facts alone must lead to the state the engine has.
    fn follow(&mut self, run: RunId, first: u64, facts: &[Fact]) -> Result<(), Broken> {
        if let Some(Fact::Run(RunFact::Submitted(submission))) = facts.first().filter(|_| first == 0) {
            let opened = Run::open(run, submission)
                .or_else(|why| broken(Guarantee::Fold, format!("run {run} does not open again: {why}")))?;
            self.shadows.insert(run, Shadow { run: opened, facts: Vec::new() });
        }
        let Some(shadow) = self.shadows.get_mut(&run) else {
            return broken(Guarantee::Fold, format!("facts of run {run}, which is not open: {:?}", facts.first()));
        };
        for fact in facts {
            if !matches!(fact, Fact::Run(RunFact::Submitted(_))) {
                shadow.run.apply(fact);
            }
            check::grown(&shadow.run, fact)?;
            shadow.facts.push(fact.clone());
        }
        match self.driver.engine.run(run) {
            Some(live) => check::same(live, &shadow.run),
            None => broken(Guarantee::Fold, format!("run {run} left the engine before its last facts were cut off")),
        }
    }
}
