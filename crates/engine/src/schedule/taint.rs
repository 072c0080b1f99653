//! Tasks that have to leave their node because of a `NoExecute` taint: at once, or when the time is over for which they
//! tolerate it. It decides who leaves and when, and nothing about where they go.

use octoflow_model::Time;

use super::{Scheduler, TaskRef, counters::PreemptionKind, room::NodeIx};

/// A task that has to leave its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    pub task: TaskRef,
    pub node: String,
    /// The taint that it does not tolerate, or not any longer.
    pub taint: String,
}

impl Scheduler {
    /// Computes again when the tasks of a node leave it, after its taints may have changed.
    pub(super) fn plan_evictions(&mut self, at: NodeIx) {
        let tasks: Vec<TaskRef> = self.room.get(at).into_iter().flat_map(|node| node.running.iter().copied()).collect();
        tasks.into_iter().for_each(|task| self.plan_eviction(task));
    }

    /// Computes when a running task leaves its node.
    pub(super) fn plan_eviction(&mut self, task: TaskRef) {
        let Some(running) = self.running.get_mut(&task) else { return };
        let node = self.room.get(running.node);
        let constraints = &running.demand.constraints;
        let leaves = node.and_then(|node| node.leaves_at(constraints)).map(|(at, _)| at);
        if let Some(before) = std::mem::replace(&mut running.leaves, leaves) {
            self.evictions.remove(&(before, task));
        }
        self.evictions.extend(leaves.map(|at| (at, task)));
    }

    /// Returns the tasks whose time on their node is over. They are to be ended, and keep their room until they are over.
    pub fn take_evictions(&mut self, now: Time) -> Vec<Eviction> {
        let mut due = Vec::new();
        while let Some(&(at, task)) = self.evictions.first()
            && at <= now
        {
            self.evictions.pop_first();
            let Some(running) = self.running.get_mut(&task) else { continue };
            running.leaves = None;
            if running.ending {
                continue;
            }
            let node = running.node;
            let constraints = running.demand.constraints.clone();
            let told = self.room.get(node).and_then(|node| {
                let (_, taint) = node.leaves_at(&constraints)?;
                Some(Eviction { task, node: node.spec.name.to_string(), taint: taint.key.clone() })
            });
            if let Some(eviction) = told {
                self.note_ending(task, PreemptionKind::Tainted);
                due.push(eviction);
            }
        }
        due
    }
}
