//! Tests of the scheduler's promises: order, room, queues, gangs, reservations, preemption.

mod change;
mod gangs;
mod kept;
mod nodes;
mod order;
mod preempt;
mod promise;
mod queues;
mod quota;
mod remedy;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use octoflow_model::task::Resources;

use super::{
    spec::{NodeSpec, Quantities, QueueSpec, ResourceCapacity},
    *,
};

/// A scheduler and its time, as an engine drives them.
struct Stage {
    scheduler: Scheduler,
    now: Time,
}

fn task(run: u64, node: u32) -> TaskRef {
    TaskRef { run: RunId(run), node: TaskIx(node) }
}

fn cpu(cpu_milli: u64) -> Resources {
    Resources { cpu_milli, ..Resources::default() }
}

fn demand(cpu_milli: u64) -> Demand {
    Demand::new("tenant", cpu(cpu_milli))
}

fn quantities(pairs: &[(&str, u64)]) -> Quantities {
    pairs.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect()
}

/// A node with declared amounts.
fn declared(name: &str, amounts: &[(&str, u64)]) -> NodeSpec {
    let capacity =
        amounts.iter().map(|(name, amount)| ((*name).to_owned(), ResourceCapacity { amount: *amount, declared: true }));
    NodeSpec { capacity: capacity.collect(), open_ended: false, ..NodeSpec::measured(name, 0, 0, 0) }
}

impl Stage {
    /// One machine that nobody configured.
    fn measured(pods: u64, cpu_milli: u64) -> Self {
        let mut scheduler = Scheduler::default();
        scheduler.put_node(NodeSpec::measured("local", pods, cpu_milli, 1 << 40));
        Self { scheduler, now: Time::from_secs(1000) }
    }

    fn declared(nodes: &[NodeSpec]) -> Self {
        let mut scheduler = Scheduler::default();
        nodes.iter().for_each(|node| scheduler.put_node(node.clone()));
        Self { scheduler, now: Time::from_secs(1000) }
    }

    fn enqueue(&mut self, task: TaskRef, demand: Demand) {
        self.scheduler.enqueue(task, Arc::new(demand), self.now);
    }

    fn wait(&mut self, seconds: u64) {
        self.now = self.now.saturating_add(Duration::from_secs(seconds));
    }

    fn decisions(&mut self) -> Vec<Decision> {
        std::iter::from_fn(|| self.scheduler.next(self.now, |_| true, |_| true)).collect()
    }

    /// Returns what starts now; nobody may be ended for it.
    fn started(&mut self) -> Vec<(u64, u32)> {
        let started = self.decisions().into_iter().map(|decision| match decision {
            Decision::Start { task, .. } => (task.run.0, task.node.0),
            Decision::Preempt(preemption) => panic!("{preemption:?}"),
        });
        started.collect()
    }

    fn release(&mut self, run: u64, node: u32) {
        self.scheduler.release(task(run, node), self.now);
    }

    fn node_of(&self, run: u64, node: u32) -> &str {
        &self.scheduler.running[&task(run, node)].assignment.node
    }
}
