//! What the scheduler tells about queues, nodes and gangs: numbers as they are now. It changes nothing.

use super::{
    Scheduler, TaskRef,
    amounts::{Amounts, PODS},
    spec::{NodeSpec, Quantities, QueueSpec},
    tree::{Queue, QueueIx, WHOLE},
};

/// A queue as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueReport {
    pub spec: QueueSpec,
    /// What it deserves: as declared, else by weight.
    pub deserved: Quantities,
    pub allocated: Quantities,
    /// The largest part that it uses of what it deserves; 1 is all of it.
    pub share: f64,
    /// Tasks that run here or below.
    pub running: usize,
    /// Tasks that wait here or below, members of incomplete gangs included.
    pub pending: usize,
    /// Tasks that have ended here or below since the scheduler was made; those that were ended for others are not counted.
    pub completed: u64,
}

/// A node as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReport {
    pub spec: NodeSpec,
    pub allocated: Quantities,
    pub running: usize,
}

/// A gang whose members may come from several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GangReport {
    pub waiting: usize,
    pub running: usize,
    /// True if enough have gathered, and only room is missing.
    pub complete: bool,
    /// True if its least has started.
    pub formed: bool,
}

impl Scheduler {
    /// Returns all queues that exist, in no particular order.
    pub fn queues(&self) -> Vec<QueueReport> {
        self.tree.all().filter(|(_, queue)| queue.exists).map(|(at, queue)| self.report(at, queue)).collect()
    }

    pub fn queue(&self, name: &str) -> Option<QueueReport> {
        let at = self.tree.find(name)?;
        let queue = self.tree.get(at);
        queue.exists.then(|| self.report(at, queue))
    }

    fn report(&self, at: QueueIx, queue: &Queue) -> QueueReport {
        QueueReport {
            spec: queue.spec.clone(),
            deserved: self.quantities(&self.tree.deserved_of(at)),
            allocated: self.quantities(queue.allocated()),
            share: queue.share().0 as f64 / WHOLE.0 as f64,
            running: usize::try_from(queue.allocated().get(PODS)).unwrap_or(usize::MAX),
            pending: queue.tasks_waiting,
            completed: queue.completed,
        }
    }

    /// Reports whether tasks run or wait in a queue or below it, members of incomplete gangs included.
    pub fn has_work(&self, queue: &str) -> bool {
        let found = self.tree.find(queue).map(|at| self.tree.get(at));
        found.is_some_and(|found| found.leaf.tasks > 0 || found.pending > 0 || !found.allocated().is_zero())
    }

    /// Returns a task that waits although nothing keeps it from starting. There is none between two decisions.
    pub fn overlooked(&self) -> Option<TaskRef> {
        let first = |leaf| self.tree.get(leaf).leaf.all(self.clock).first().and_then(|unit| self.units.get(*unit));
        let mut waiting = self.tree.leaves().filter_map(first).map(|unit| unit.task);
        waiting.find(|task| self.why(*task).is_some_and(|why| !why.is_blocked()))
    }

    /// Returns all nodes, in the order in which they came.
    pub fn nodes(&self) -> Vec<NodeReport> {
        let report = |(_, node): (_, &super::node::ScheduledNode)| NodeReport {
            spec: node.spec.clone(),
            allocated: self.quantities(node.used()),
            running: node.running.len(),
        };
        self.room.all().map(report).collect()
    }

    /// Returns the gang of a PodGroup, if some run has members of it.
    pub fn gang(&self, namespace: &str, name: &str) -> Option<GangReport> {
        let gang = self.gangs.shared(namespace, name)?;
        Some(GangReport {
            waiting: gang.members().count(),
            running: gang.running.len(),
            complete: gang.unit.is_some(),
            formed: gang.formed,
        })
    }

    fn quantities(&self, amounts: &Amounts) -> Quantities {
        amounts.iter().map(|(index, amount)| (self.names.name(index).to_string(), amount)).collect()
    }
}
