//! Judges each start and each preemption when its fact is decided, by a recount of what the facts before it tell.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use octoflow_engine::{
    Run,
    dialect::TaskState,
    schedule::{Gang, PreemptionReason, TaskRef, spec::Demand},
};
use octoflow_model::{
    Fact, NodeIx, RunId,
    argo::WorkflowFact,
    kubejob::{self, KubeJobFact},
    task::placement::Assignment,
    taskset::{SetFact, StopReason},
    volcano::{JobFact, PodStop},
};

use super::ClusterState;
use crate::{
    recount::{Declared, Holder, Recount, gang::key},
    sim::{
        failure::{Broken, Guarantee, broken},
        life::{Shadow, attempt_of},
    },
};

/// More often than this no task is ended for one run while nothing is declared anew: each of the run's own tasks may need it
/// once.
const MAX_AGAIN: u32 = 12;

/// What a fact means to the scheduler.
enum Decided<'f> {
    Launched(NodeIx, Option<&'f Assignment>),
    Preempted(NodeIx, &'f str),
    /// Somebody's room is free.
    Freed,
}

fn decided(fact: &Fact) -> Option<Decided<'_>> {
    match fact {
        Fact::Workflow(WorkflowFact::Launched { node, on, .. }) => Some(Decided::Launched(*node, on.as_deref())),
        Fact::Workflow(WorkflowFact::Preempted { node, message, .. }) => Some(Decided::Preempted(*node, message)),
        Fact::TaskSet(SetFact::Launched { replica, on, .. }) => {
            Some(Decided::Launched(NodeIx(*replica), on.as_deref()))
        }
        Fact::TaskSet(SetFact::Ending { replica, why: StopReason::Preempted, message, .. }) => {
            Some(Decided::Preempted(NodeIx(*replica), message))
        }
        Fact::VolcanoJob(JobFact::Launched { pod, on, .. }) | Fact::KubeJob(KubeJobFact::Launched { pod, on, .. }) => {
            Some(Decided::Launched(NodeIx(*pod), on.as_deref()))
        }
        Fact::VolcanoJob(JobFact::Ending { pod, why: PodStop::Preempted, message, .. })
        | Fact::KubeJob(KubeJobFact::Ending { pod, why: kubejob::PodStop::Preempted, message, .. }) => {
            Some(Decided::Preempted(NodeIx(*pod), message))
        }
        Fact::VolcanoJob(JobFact::Ended(_)) | Fact::KubeJob(KubeJobFact::Ended(_)) => Some(Decided::Freed),
        Fact::Workflow(WorkflowFact::Finished(_) | WorkflowFact::Requeued { .. } | WorkflowFact::Daemoned { .. })
        | Fact::TaskSet(SetFact::Ended(_)) => Some(Decided::Freed),
        _ => None,
    }
}

/// Returns the task that a fact takes its room from.
pub(super) fn preempted(fact: &Fact) -> Option<NodeIx> {
    match decided(fact)? {
        Decided::Preempted(node, _) => Some(node),
        Decided::Launched(..) | Decided::Freed => None,
    }
}

/// Tasks that are ended for one run, while they are being collected.
pub(super) struct Batch {
    message: String,
    victims: Vec<TaskRef>,
    /// Everything as it was before, and who waited.
    before: Recount,
    waiting: BTreeMap<TaskRef, Arc<Demand>>,
    /// Names of the runs that waited.
    names: BTreeMap<RunId, String>,
}

/// A preemption whose beneficiary has not started.
pub(super) struct Preempted {
    by: RunId,
    victims: BTreeSet<TaskRef>,
    /// Tasks that it may be for: all that waited in that queue.
    candidates: BTreeSet<TaskRef>,
    epoch: u64,
}

type Shadows = BTreeMap<RunId, Shadow>;

fn open(shadows: &Shadows) -> impl Iterator<Item = (RunId, &Run)> {
    shadows.iter().filter(|(_, shadow)| !shadow.run.finished()).map(|(id, shadow)| (*id, &shadow.run))
}

/// Returns everything that waits for room.
pub(super) fn waiting(shadows: &Shadows) -> BTreeMap<TaskRef, Arc<Demand>> {
    let of_run = |(id, run): (RunId, &Run)| {
        let queued = run.open_tasks().into_iter().filter(|(_, state)| *state == TaskState::Queued);
        let queued = queued.filter(|(node, _)| !run.is_weightless(*node));
        queued.map(|(node, _)| (TaskRef { run: id, node }, run.demand(node))).collect::<Vec<_>>()
    };
    open(shadows).flat_map(of_run).collect()
}

impl ClusterState {
    /// Counts what holds room by the facts alone.
    pub(super) fn recount(&self, shadows: &Shadows, declared: &Declared) -> Recount {
        let mut holders = BTreeMap::new();
        for (id, run) in open(shadows) {
            // Who has started is of the gang with which it began, whatever it would ask for now.
            let gangs: BTreeMap<NodeIx, Gang> = run.joined().into_iter().collect();
            for (node, state) in run.open_tasks() {
                if state == TaskState::Queued || run.is_weightless(node) {
                    continue;
                }
                let demand = run.demand(node);
                let gang = gangs.get(&node).or(demand.gang.as_ref()).cloned();
                let holder = Holder {
                    demand: Arc::new(Demand { gang, ..(*demand).clone() }),
                    assignment: run.assignment(node).unwrap_or_default(),
                    started: run.launched_at(node),
                    ending: state == TaskState::Ending,
                };
                holders.insert(TaskRef { run: id, node }, holder);
            }
        }
        Recount { declared: declared.clone(), holders }
    }

    /// A fact has been decided, and the shadows do not know it yet.
    pub(in crate::sim) fn judge(&mut self, shadows: &Shadows, id: RunId, fact: &Fact) -> Result<(), Broken> {
        match decided(fact) {
            None => Ok(()),
            Some(Decided::Freed) => self.judge_batch(),
            Some(Decided::Launched(node, on)) => {
                self.judge_batch()?;
                let Some(run) = shadows.get(&id).map(|shadow| &shadow.run) else { return Ok(()) };
                // One that is started again in its place has kept its room.
                let in_place =
                    run.open_tasks().into_iter().any(|(open, state)| open == node && state == TaskState::Held);
                if in_place || run.is_weightless(node) {
                    return Ok(());
                }
                let task = TaskRef { run: id, node };
                self.start_preemptor(id);
                self.seen.starts += 1;
                self.judge_start(shadows, task, &run.demand(node), &on.cloned().unwrap_or_default())
            }
            Some(Decided::Preempted(node, message)) => {
                if self.batch.as_ref().is_some_and(|batch| batch.message != message) {
                    self.judge_batch()?;
                }
                if message.starts_with("Preempted: ") {
                    if self.batch.is_none() {
                        let before = self.recount(shadows, &self.declared);
                        let waiting = waiting(shadows);
                        let runs: BTreeSet<RunId> = waiting.keys().map(|task| task.run).collect();
                        let name = |run: &RunId| Some((*run, shadows.get(run)?.run.name().to_owned()));
                        let (names, message) = (runs.iter().filter_map(name).collect(), message.to_owned());
                        self.batch = Some(Batch { message, victims: Vec::new(), before, waiting, names });
                    }
                    let task = TaskRef { run: id, node };
                    self.batch.iter_mut().for_each(|batch| batch.victims.push(task));
                }
                Ok(())
            }
        }
    }

    /// Ends the promises to a run of which a task starts. If that took the room of another's victims, its own are that one's
    /// now.
    fn start_preemptor(&mut self, id: RunId) {
        let (started, mut others): (Vec<Preempted>, Vec<Preempted>) =
            std::mem::take(&mut self.preempted).into_iter().partition(|one| one.by == id);
        for other in &mut others {
            other.victims.extend(started.iter().flat_map(|one| &one.victims));
        }
        self.preempted = others;
    }

    fn judge_start(&self, shadows: &Shadows, task: TaskRef, demand: &Demand, on: &Assignment) -> Result<(), Broken> {
        let mut first = None;
        for declared in std::iter::once(&self.declared).chain(&self.before) {
            let mut count = self.recount(shadows, declared);
            // A run with much to decide frees room before it decides what follows from an end.
            count.holders.retain(|task, _| {
                let attempt = shadows.get(&task.run).and_then(|shadow| attempt_of(&shadow.run, task.node));
                !self.lenient || attempt.is_none_or(|attempt| !self.told_over.contains(&attempt))
            });
            match count.start_problem(demand, on) {
                None => return Ok(()),
                Some(why) => first = first.or(Some(why)),
            }
        }
        broken(Guarantee::Limits, format!("{task:?} starts on {on:?}: {}", first.unwrap_or_default()))
    }

    /// Judges the preemptions that were collected.
    pub(super) fn judge_batch(&mut self) -> Result<(), Broken> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        self.seen.preemptions += batch.victims.len() as u64;
        let Some((by, queue, reason)) = beneficiary(&batch) else {
            return broken(Guarantee::Limits, format!("nobody waits for whom tasks are ended: {}", batch.message));
        };
        let candidates: BTreeMap<TaskRef, Arc<Demand>> = batch
            .waiting
            .iter()
            .filter(|(task, demand)| task.run == by && *demand.queue == *queue)
            .map(|(task, demand)| (*task, demand.clone()))
            .collect();
        let victims: Vec<(TaskRef, PreemptionReason)> = batch.victims.iter().map(|task| (*task, reason)).collect();
        let mut why = Some("nobody waits there".to_owned());
        for declared in std::iter::once(&self.declared).chain(&self.before) {
            let count = Recount { declared: declared.clone(), ..batch.before.clone() };
            for by in beneficiaries(&candidates) {
                why = why.and(count.victims_problem(&by, &[], &victims));
            }
        }
        if let Some(why) = why {
            return broken(Guarantee::Limits, format!("{}: of {:?}: {why}", batch.message, batch.victims));
        }
        for victim in &batch.victims {
            let times = self.again.entry((by, *victim)).or_default();
            *times += 1;
            if *times > MAX_AGAIN {
                return broken(Guarantee::Limits, format!("{victim:?} is ended for run {by} again and again"));
            }
        }
        let candidates = candidates.into_keys().collect();
        // It may count on the room of others that are being ended anyway.
        let ending = batch.before.holders.iter().filter(|(_, holder)| holder.ending).map(|(task, _)| *task);
        let victims = ending.chain(batch.victims).collect();
        self.preempted.push(Preempted { by, victims, candidates, epoch: self.epoch });
        Ok(())
    }

    /// Nobody is ended in vain: once the victims are gone, somebody starts for whom they were ended, unless something else
    /// has changed. Room is room: of several for whom tasks are ended, each may take what another's victims leave.
    pub(super) fn judge_use(&mut self, shadows: &Shadows, count: &Recount) -> Result<(), Broken> {
        let waiting = waiting(shadows);
        let epoch = self.epoch;
        self.preempted.retain(|one| one.epoch == epoch && shadows.contains_key(&one.by));
        for one in &mut self.preempted {
            one.victims.retain(|task| count.holders.get(task).is_some_and(|holder| holder.ending));
        }
        if self.preempted.iter().any(|one| !one.victims.is_empty()) {
            return Ok(());
        }
        for one in std::mem::take(&mut self.preempted) {
            let untouched = !one.candidates.is_empty() && one.candidates.iter().all(|task| waiting.contains_key(task));
            let stopped = shadows.get(&one.by).is_some_and(|shadow| {
                shadow.run.finished() || shadow.run.head().shutdown.is_some() || shadow.run.head().suspended
            });
            if untouched && !stopped {
                return broken(
                    Guarantee::Limits,
                    format!("tasks were ended for run {}, and none of {:?} starts", one.by, one.candidates),
                );
            }
        }
        Ok(())
    }
}

/// Returns what may start together of those for whom tasks may have been ended: each alone, and of a gang as many as it may
/// lack.
fn beneficiaries(candidates: &BTreeMap<TaskRef, Arc<Demand>>) -> Vec<Vec<&Demand>> {
    let mut gangs: BTreeMap<_, Vec<&Demand>> = BTreeMap::new();
    for demand in candidates.values() {
        gangs.entry(demand.gang.as_ref().map(key)).or_default().push(demand);
    }
    let of_gangs = gangs.into_iter().filter(|(gang, _)| gang.is_some()).map(|(_, members)| members);
    // Its first member has the class that counts, and which one that is only the scheduler knows.
    let led = of_gangs.flat_map(|members| {
        (0..members.len()).map(move |leader| {
            let mut members = members.clone();
            members.swap(0, leader);
            members
        })
    });
    let together = led.flat_map(|members| (2..=members.len()).map(move |count| members[..count].to_vec()));
    candidates.values().map(|demand| vec![&**demand]).chain(together).collect()
}

/// Reads for whom tasks are ended: the run that waits, its queue, and why.
fn beneficiary(batch: &Batch) -> Option<(RunId, String, PreemptionReason)> {
    let rest = batch.message.strip_prefix("Preempted: ")?;
    let (whose, queue) = rest.split_once(" in queue ")?;
    let (name, queue) = (whose.split(' ').next_back()?, queue.split(' ').next()?);
    let reclaimed = rest.ends_with("takes back what its queue deserves");
    let reason = if reclaimed { PreemptionReason::Reclaimed } else { PreemptionReason::LowerClass };
    let by = batch.names.iter().find(|(_, known)| *known == name).map(|(run, _)| *run)?;
    Some((by, queue.to_owned(), reason))
}
