//! The books of the scheduler beside a recount, whenever the engine has nothing left to decide: sums of nodes, devices and
//! queues, gangs, and that nothing waits that could start.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_engine::schedule::{Gang, TaskRef, spec::Demand};
use octoflow_model::{Fact, NodeIx, RunId, argo::WorkflowFact, taskset::SetFact, volcano::JobFact};

use super::{
    ClusterState,
    judge::{preempted, waiting},
};
use crate::{
    recount::{
        Recount,
        gang::{Key, StartedGangs, key},
    },
    sim::{
        failure::{Broken, Guarantee, broken},
        life::Life,
    },
};

impl ClusterState {
    /// Notes the gangs of which members have started in this step.
    pub(in crate::sim) fn note_gangs(&mut self, life: &Life, commits: &[Vec<(RunId, Vec<Fact>)>]) {
        for (id, fact) in commits.iter().flatten().flat_map(|(id, facts)| facts.iter().map(move |fact| (id, fact))) {
            let node = match fact {
                Fact::Workflow(WorkflowFact::Launched { node, .. }) => *node,
                Fact::TaskSet(SetFact::Launched { replica, .. }) => NodeIx(*replica),
                Fact::VolcanoJob(JobFact::Launched { pod, .. }) => NodeIx(*pod),
                _ => continue,
            };
            let gang = life.shadows.get(id).and_then(|shadow| shadow.run.demand(node).gang.clone());
            self.begun.extend(gang.map(|gang| (key(&gang), TaskRef { run: *id, node })));
        }
        // A node that is drained in the same step takes members away again.
        for (id, fact) in commits.iter().flatten().flat_map(|(id, facts)| facts.iter().map(move |fact| (id, fact))) {
            let Some(node) = preempted(fact) else { continue };
            let gang = life.shadows.get(id).and_then(|shadow| shadow.run.demand(node).gang.clone());
            if let Some(gone) = gang.map(|gang| key(&gang)) {
                self.begun.retain(|(gang, _)| *gang != gone);
            }
        }
    }

    pub(in crate::sim) fn audit(&mut self, life: &Life) -> Result<(), Broken> {
        self.judge_batch()?;
        self.before.clear();
        let count = self.recount(&life.shadows, &self.declared);
        let scheduler = life.engine().scheduler();
        if let Some(why) = count.sums_problem(scheduler) {
            return broken(Guarantee::Limits, why);
        }
        let gangs = started_gangs(life);
        self.gangs(life, &gangs)?;
        self.judge_use(&life.shadows, &count)?;
        nothing_due(life, &count, &gangs)
    }

    /// Where a member of a gang has begun, as many as it needs have, unless whoever began is being ended again.
    fn gangs(&mut self, life: &Life, started: &StartedGangs) -> Result<(), Broken> {
        let begun = std::mem::take(&mut self.begun);
        for (_, task) in begun {
            let Some(run) = life.engine().run(task.run).filter(|run| !run.finished()) else { continue };
            let Some((_, gang)) = run.joined().into_iter().find(|(node, _)| *node == task.node) else { continue };
            self.seen.gangs += 1;
            let closing = run.head().shutdown.is_some()
                || run
                    .of::<octoflow_engine::taskset::Run>()
                    .is_some_and(|set| set.state.closing() || set.state.verdict.is_some());
            if !closing && !started.is_formed(&gang) {
                let count = started.started(&gang).len();
                return broken(
                    Guarantee::Limits,
                    format!("gang {} of run {} started with {count} members of {}", gang.name, task.run, gang.least),
                );
            }
        }
        Ok(())
    }
}

fn started_gangs(life: &Life) -> StartedGangs {
    let mut gangs = StartedGangs::default();
    for id in life.shadows.keys() {
        let Some(run) = life.engine().run(*id).filter(|run| !run.finished()) else { continue };
        for (node, gang) in run.joined() {
            gangs.restore(TaskRef { run: *id, node }, &gang);
        }
    }
    gangs
}

/// Nobody who could start waits: neither the first of a queue, nor anybody while nothing runs.
fn nothing_due(life: &Life, count: &Recount, gangs: &StartedGangs) -> Result<(), Broken> {
    let scheduler = life.engine().scheduler();
    let waiting = waiting(&life.shadows);
    let why: BTreeMap<TaskRef, _> = waiting.keys().filter_map(|task| Some((*task, scheduler.why(*task)?))).collect();
    if let Some(task) = waiting.keys().find(|task| !why.contains_key(task)) {
        return broken(Guarantee::Owned, format!("{task:?} waits, and the scheduler does not know it"));
    }
    // Room that is kept for somebody is not free, even if that one has just ceased to wait.
    if scheduler.promised().next().is_some() {
        return Ok(());
    }
    let idle = count.holders.is_empty();
    let mut incomplete: BTreeMap<Key, Vec<(&Demand, TaskRef)>> = BTreeMap::new();
    for (task, demand) in &waiting {
        if let Some(gang) = demand.gang.as_ref().filter(|gang| !gangs.is_formed(gang)) {
            incomplete.entry(key(gang)).or_default().push((demand, *task));
            continue;
        }
        if (idle || why[task].position == 0)
            && let Some(node) = count.could_start(demand)
        {
            let who = if idle { "nothing runs, and yet".to_owned() } else { format!("the first of {},", demand.queue) };
            return broken(
                Guarantee::Owned,
                format!("{who} {task:?} waits, which fits on {}: {}", node.name, why[task]),
            );
        }
    }
    for members in incomplete.values() {
        gang_due(
            count,
            gangs,
            members,
            idle || members.iter().any(|(_, task)| why[task].position == 0 && why[task].waiting > 0),
        )?;
    }
    Ok(())
}

/// A gang whose turn it is starts as soon as its least fits in any way.
fn gang_due(
    count: &Recount,
    gangs: &StartedGangs,
    members: &[(&Demand, TaskRef)],
    is_first: bool,
) -> Result<(), Broken> {
    let Some(gang): Option<&Gang> = members.first().and_then(|(demand, _)| demand.gang.as_ref()) else { return Ok(()) };
    let here: BTreeSet<TaskRef> = gangs.started(gang);
    let needed = (gang.least as usize).saturating_sub(here.len()).max(1);
    // Which members start first is the scheduler's choice unless all of them have to.
    if !is_first || members.len() != needed || members.len() > 5 || !gang.least_of.is_empty() {
        return Ok(());
    }
    let demands: Vec<&Demand> = members.iter().map(|(demand, _)| *demand).collect();
    if demands.iter().all(|demand| demand.queue == demands[0].queue) && count.could_start_together(&demands) {
        return broken(Guarantee::Owned, format!("gang {} is complete and fits, and yet it waits", gang.name));
    }
    Ok(())
}
