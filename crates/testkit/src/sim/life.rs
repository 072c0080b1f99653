//! One life of the controller: its event loop in virtual time and everything that is only in memory. A crash ends it.
//! Beside it stand shadows, runs as their facts alone describe them, which must never differ from the engine's.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_control::{Limits, Ticket, VirtualDisk, VirtualLoop};
use octoflow_engine::{Engine, Run, argo, jobflow, kubejob, submission, taskset, volcano};
use octoflow_model::{AttemptId, Fact, NodeIx, RunFact, RunId, Time};

use super::{
    check,
    cluster::ClusterState,
    disk::Disk,
    fact_watch::FactWatches,
    failure::{Broken, Guarantee, broken},
    world::World,
};

/// In one of so many worlds decisions are sliced.
const SLICED: u64 = 3;

/// About three facts.
const SLICE: u64 = 30;

/// In one of so many worlds runs with more than a few nodes count as large, so their records are packed elsewhere.
const PACKED: u64 = 5;

pub(super) struct Life {
    pub event_loop: VirtualLoop,
    /// By open run: what its facts fold into, those of commits on their way to the disk included.
    pub shadows: BTreeMap<RunId, Shadow>,
    /// Answers that are owed, each with its place in the world's plan.
    pub tickets: Vec<(usize, Ticket)>,
    pub fact_watches: FactWatches,
    /// Runs that people are having deleted.
    pub leaving: BTreeSet<RunId>,
    /// Tasks taken over beyond the machine's room; they count down as they end.
    pub excess: usize,
}

/// The facts of one commit, by run.
pub(super) type CommitFacts = Vec<(RunId, Vec<Fact>)>;

/// A run as its facts alone describe it.
pub(super) struct Shadow {
    pub run: Run,
    pub facts: Vec<Fact>,
}

impl Life {
    /// Starts on what is on the disk.
    pub(super) fn start(
        world: &World,
        cluster: Option<&ClusterState>,
        virtual_disk: VirtualDisk,
        disk: &Disk,
        now: Time,
    ) -> Result<Self, Broken> {
        let mut limits = limits(world);
        if let Some(cluster) = cluster {
            limits.nodes = cluster.nodes();
        }
        let (event_loop, notices) = VirtualLoop::open(virtual_disk, limits, now)
            .or_else(|error| broken(Guarantee::Acknowledged, format!("nothing can be read: {error}")))?;
        if let Some(notice) = notices.first() {
            return broken(Guarantee::Acknowledged, notice.clone());
        }
        let (shadows, fact_watches) = (BTreeMap::new(), FactWatches::default());
        let mut life =
            Self { event_loop, shadows, tickets: Vec::new(), fact_watches, leaving: BTreeSet::new(), excess: 0 };
        life.leaving.clone_from(disk.leaving());
        life.shadows_of(disk)?;
        Ok(life)
    }

    /// Begins the shadows anew from what is durable.
    pub(super) fn shadows_of(&mut self, disk: &Disk) -> Result<(), Broken> {
        self.shadows.clear();
        for run in disk.open_runs() {
            let facts = disk.facts(run);
            let folded = octoflow_engine::engine::fold(run, facts.iter().cloned());
            let folded =
                folded.or_else(|why| broken(Guarantee::Acknowledged, format!("run {run} cannot be read: {why}")))?;
            self.shadows.insert(run, Shadow { run: folded, facts });
        }
        Ok(())
    }

    pub(super) fn engine(&self) -> &Engine {
        self.event_loop.engine()
    }

    /// Lets the loop take one step. Answers the facts of each commit it made.
    pub(super) fn step(
        &mut self,
        now: Time,
        mut cluster: Option<&mut ClusterState>,
    ) -> Result<Vec<CommitFacts>, Broken> {
        let made = self.event_loop.step(now);
        let made = made.or_else(|error| broken(Guarantee::Owned, format!("the event loop ends: {error}")))?;
        let mut commits: Vec<_> = self.event_loop.commits().rev().take(made).map(<[_]>::to_vec).collect();
        commits.reverse();
        for (run, facts) in commits.iter().flatten() {
            self.follow(*run, facts, cluster.as_deref_mut())?;
        }
        if let Some(cluster) = cluster {
            cluster.note_gangs(self, &commits);
        }
        // A run that is over is released with the commit of its end, also when more is decided in the same step.
        let (engine, leaving) = (self.event_loop.engine(), &self.leaving);
        let gone = |run: &RunId, shadow: &Shadow| leaving.contains(run) || shadow.run.finished();
        self.shadows.retain(|run, shadow| engine.run(*run).is_some() || !gone(run, shadow));
        if !commits.is_empty() && !self.event_loop.holds() {
            self.compare(commits.iter().flatten().map(|(run, _)| *run))?;
        }
        Ok(commits)
    }

    /// Lets a shadow follow the facts of a commit.
    fn follow(&mut self, run: RunId, facts: &[Fact], mut cluster: Option<&mut ClusterState>) -> Result<(), Broken> {
        if let Some(Fact::Run(RunFact::Submitted(submission))) = facts.first() {
            let opened = Run::open(run, submission)
                .or_else(|why| broken(Guarantee::Fold, format!("run {run} does not open again: {why}")))?;
            self.shadows.insert(run, Shadow { run: opened, facts: Vec::new() });
        }
        for fact in facts {
            if let Some(cluster) = cluster.as_deref_mut() {
                cluster.judge(&self.shadows, run, fact)?;
            }
            let Some(shadow) = self.shadows.get_mut(&run) else {
                return broken(Guarantee::Fold, format!("facts of run {run}, which is not open: {:?}", facts.first()));
            };
            if !matches!(fact, Fact::Run(RunFact::Submitted(_))) {
                shadow.run.apply(fact);
            }
            check::grown(&shadow.run, fact)?;
            shadow.facts.push(fact.clone());
        }
        Ok(())
    }

    /// The facts alone must lead to the state the engine has. Runs that are over have left both.
    fn compare(&mut self, runs: impl Iterator<Item = RunId>) -> Result<(), Broken> {
        for run in runs {
            let Some(shadow) = self.shadows.get(&run) else { continue };
            match self.event_loop.engine().run(run) {
                Some(live) => check::same(live, &shadow.run)?,
                None if shadow.run.finished() => drop(self.shadows.remove(&run)),
                None => return broken(Guarantee::Fold, format!("run {run} left the engine before its end")),
            }
        }
        Ok(())
    }
}

/// In this world runs may have more to decide than one input may.
pub(super) fn is_sliced(world: &World) -> bool {
    world.seed.is_multiple_of(SLICED)
}

/// The present attempt of a task.
pub(super) fn attempt_of(run: &Run, task: NodeIx) -> Option<AttemptId> {
    if let Some(run) = run.of::<volcano::Run>() {
        return run.attempt_of(task.0);
    }
    if let Some(run) = run.of::<kubejob::Run>() {
        return run.attempt_of(task.0);
    }
    if let Some(run) = run.of::<jobflow::Run>() {
        return run.attempt_of(task);
    }
    if let Some(run) = run.of::<submission::Run>() {
        return run.attempt_of(task);
    }
    match (run.of::<argo::Run>(), run.of::<taskset::Run>()) {
        (Some(run), _) => run.attempt_of(task),
        (_, Some(run)) => run.attempt_of(task.0),
        (None, None) => None,
    }
}

/// In some worlds decisions come in slices so small that hardly anything fits into one, and in some nearly every run is
/// too large to be packed by the event loop.
fn limits(world: &World) -> Limits {
    let defaults = Limits::from(world.capacity);
    let slice = if is_sliced(world) { SLICE } else { u64::MAX };
    let large_run = if world.seed.is_multiple_of(PACKED) { 3 } else { defaults.large_run };
    Limits { slice, large_run, ..defaults }
}
