//! The engine's books, compared with the runs they are kept for: room, locks and gangs. All of them must follow from the open
//! runs alone, so an entry that is never removed is found before somebody waits for it.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_engine::{
    Run,
    dialect::TaskState,
    locks::Holder,
    schedule::{
        Gang,
        spec::{Quantities, ROOT},
    },
    taskset,
};
use octoflow_model::{AttemptId, Claim, Order, Shutdown, task::Resources};

use super::{
    failure::{Broken, Guarantee, broken},
    life::{Life, attempt_of},
    runtime::Runtime,
};

pub(super) fn audit(life: &Life) -> Result<(), Broken> {
    room(life)?;
    open_runs(life).try_for_each(gangs)
}

fn open_runs(life: &Life) -> impl Iterator<Item = &Run> {
    life.shadows.keys().filter_map(|id| life.engine().run(*id)).filter(|run| !run.finished())
}

/// G5: cpu and memory in use are those of the tasks that a runtime has.
fn room(life: &Life) -> Result<(), Broken> {
    let (mut used, mut placed) = (Resources::default(), Resources::default());
    for node in life.engine().scheduler().nodes() {
        let of = |name: &str| node.allocated.get(name).copied().unwrap_or(0);
        used.cpu_milli += of("cpu");
        used.memory_bytes += of("memory");
    }
    let (most_cpu, most_memory) = (capacity(life, "cpu"), capacity(life, "memory"));
    for run in open_runs(life) {
        for (node, _) in run.open_tasks().into_iter().filter(|(_, state)| *state != TaskState::Queued) {
            if !run.is_weightless(node) {
                let own = &run.demand(node).resources;
                placed.cpu_milli += own.cpu_milli.min(most_cpu);
                placed.memory_bytes += own.memory_bytes.min(most_memory);
            }
        }
    }
    if used == placed {
        return queues(life);
    }
    broken(Guarantee::Limits, format!("{used:?} are in use where the live tasks have {placed:?}"))
}

/// G5: what the queues have allocated together is what the nodes have.
fn queues(life: &Life) -> Result<(), Broken> {
    let scheduler = life.engine().scheduler();
    let mut used = Quantities::new();
    for (resource, amount) in scheduler.nodes().into_iter().flat_map(|node| node.allocated) {
        *used.entry(resource).or_default() += amount;
    }
    let mut allocated = scheduler.queue(ROOT).map(|root| root.allocated).unwrap_or_default();
    used.retain(|_, amount| *amount > 0);
    allocated.retain(|_, amount| *amount > 0);
    if used == allocated {
        return Ok(());
    }
    broken(Guarantee::Limits, format!("{allocated:?} are allocated by queues where nodes have {used:?}"))
}

/// Returns how much of a resource the only node has.
pub(super) fn capacity(life: &Life, resource: &str) -> u64 {
    let nodes = life.engine().scheduler().nodes();
    nodes.iter().filter_map(|node| node.spec.capacity.get(resource)).map(|capacity| capacity.amount).sum()
}

/// G5: the table of locks has the holders and waiters that the runs tell of, and no other.
pub(super) fn locks(life: &Life) -> Result<(), Broken> {
    type Sides = (BTreeSet<Holder>, BTreeSet<Holder>);
    let mut told: BTreeMap<Claim, Sides> = BTreeMap::new();
    for run in open_runs(life) {
        for (holder, claims, _) in run.held_locks() {
            for claim in claims {
                told.entry(claim).or_default().0.insert(holder);
            }
        }
        for (node, waiter) in run.waiters() {
            let holder = Holder { run: run.id(), node };
            for claim in waiter.claims {
                told.entry(claim).or_default().1.insert(holder);
            }
        }
    }
    let table = life.engine().locks().all();
    let table: BTreeMap<Claim, Sides> = table
        .map(|(claim, held, queue)| (claim.clone(), (held.into_iter().collect(), queue.into_iter().collect())))
        .collect();
    if table == told {
        return Ok(());
    }
    broken(Guarantee::Limits, format!("the table of locks is {table:?} and the runs tell {told:?}"))
}

/// G2: whoever terminates a run leaves its tasks no time to end, those that were stopped before included.
pub(super) fn killed(life: &Life, runtime: &Runtime) -> Result<(), Broken> {
    let kills = life.event_loop.pending_orders().filter(|order| matches!(order, Order::Kill { .. }));
    let kills: BTreeSet<AttemptId> = kills.map(Order::attempt).collect();
    for run in open_runs(life).filter(|run| run.head().shutdown == Some(Shutdown::Terminate)) {
        for (node, _) in run.open_tasks().into_iter().filter(|(_, state)| *state == TaskState::Ending) {
            let attempt = attempt_of(run, node).filter(|_| !run.is_request(node));
            if attempt.is_some_and(|attempt| !kills.contains(&attempt) && !runtime.killed(attempt)) {
                return broken(Guarantee::Owned, format!("{attempt:?} should be killed, and is only told to end"));
            }
        }
    }
    Ok(())
}

/// A gang starts as a whole: where one member has started, as many as it needs have.
fn gangs(run: &Run) -> Result<(), Broken> {
    // Whoever is ended between the starts of a gang does not start the others.
    let ends = |set: &taskset::Run| set.state.closing() || set.state.verdict.is_some();
    if run.of::<taskset::Run>().is_none_or(ends) {
        return Ok(());
    }
    let mut started: BTreeMap<String, (Gang, u32)> = BTreeMap::new();
    for (_, gang) in run.joined() {
        started.entry(gang.name.to_string()).or_insert((gang, 0)).1 += 1;
    }
    match started.values().find(|(gang, count)| gang.own.is_some() && *count < gang.least) {
        Some((gang, count)) => broken(
            Guarantee::Limits,
            format!("gang {} of run {} started with {count} members of {}", gang.name, run.id(), gang.least),
        ),
        None => Ok(()),
    }
}
