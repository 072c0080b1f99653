//! Changes of what the scheduler works with: nodes, queues, priority classes, usage of earlier days. Changing them starts
//! and ends nothing by itself.

use std::{sync::Arc, time::Duration};

use octoflow_model::Time;

use super::{
    Scheduler, TaskRef,
    room::NodeIx,
    shapes::ShapeIx,
    spec::{NodeSpec, QueueSpec},
    tree::QueueIx,
    usage::UsageRecord,
};

/// How often the usage of tenants is persisted while tasks run.
const USAGE_INTERVAL: Duration = Duration::from_secs(10);

/// Describes a node that tasks run on and that has not been heard of.
pub(super) fn absent(name: &str) -> NodeSpec {
    NodeSpec {
        cordoned: true,
        capacity: std::collections::BTreeMap::new(),
        open_ended: false,
        ..NodeSpec::measured(name, 0, 0, 0)
    }
}

impl Scheduler {
    /// Adds a node, or changes one. What runs there stays, even if there is less room than it takes.
    pub fn put_node(&mut self, spec: NodeSpec) {
        self.give_up_all();
        let at = match self.room.find(&spec.name) {
            Some(at) => {
                let held: Vec<_> =
                    self.tasks_on(at).filter_map(|task| Some(self.running.get(&task)?.assignment.clone())).collect();
                let names = &mut self.names;
                self.room.change(at, |node| node.update(spec, held.into_iter(), names));
                self.plan_evictions(at);
                self.room.set_present(at);
                self.room.measure();
                at
            }
            None => self.room.insert(spec, &mut self.names),
        };
        self.nodes_changed(Some(at));
    }

    /// Removes a node. Its tasks keep counting for their queues until they are released, and for the node if it comes back
    /// before: they may still run there.
    pub fn remove_node(&mut self, name: &str) {
        if let Some(at) = self.room.find(name) {
            self.give_up_all();
            if self.tasks_on(at).next().is_some() {
                self.room.set_absent(at, absent(name), &mut self.names);
            } else {
                self.room.remove(at);
            }
            self.nodes_changed(None);
        }
    }

    /// Returns the tasks that run on a node.
    pub fn tasks_on_node(&self, name: &str) -> Vec<TaskRef> {
        self.room.find(name).map_or_else(Vec::new, |at| self.tasks_on(at).collect())
    }

    fn tasks_on(&self, at: NodeIx) -> impl Iterator<Item = TaskRef> + '_ {
        self.room.get(at).into_iter().flat_map(|node| node.running.iter().copied())
    }

    fn nodes_changed(&mut self, changed: Option<NodeIx>) {
        self.nodes_version += 1;
        self.tree.set_total(self.room.total(&self.names));
        // Who holds up others, or waits for room at some time, may be another now.
        let concerned = self.tree.all().filter(|(_, queue)| {
            let leaf = &queue.leaf;
            leaf.waits() && (leaf.reservation.is_some() || queue.spec.strict || !leaf.never.1.is_empty())
        });
        let concerned: Vec<_> = concerned.map(|(at, _)| at).collect();
        for leaf in concerned {
            self.tree.leaf(leaf).reservation = None;
            self.tree.mark(leaf);
        }
        // A node that cannot hold a shape does not wake it, and one that was removed wakes nobody.
        if let Some(at) = changed {
            self.freed(at);
        }
        // Everybody may be larger than all nodes now, or no longer.
        let groups: Vec<ShapeIx> =
            self.shapes.asking().filter(|(_, shape)| shape.single().is_none()).map(|(at, _)| at).collect();
        for shape in groups {
            for leaf in self.shapes.activate(shape) {
                self.tree.mark(leaf);
            }
        }
    }

    /// Creates or changes a queue. It acts at once; nobody is ended because a queue shrank.
    pub fn put_queue(&mut self, spec: QueueSpec) {
        self.give_up_all();
        let name = spec.name.clone();
        let known = self.tree.find(&name);
        let before = known.map(|at| self.tree.get(at).spec.longest_wait);
        let waits_otherwise = before.is_some_and(|before| before != spec.longest_wait);
        self.tree.put(spec, &mut self.names);
        self.tree.set_total(self.room.total(&self.names));
        if waits_otherwise {
            self.place_again(|waiting| waiting.demand.queue == name && waiting.demand.longest_wait.is_none());
        }
    }

    pub fn remove_queue(&mut self, name: &str) {
        self.give_up_all();
        self.tree.remove(name, &mut self.names);
        if let Some(at) = self.tree.find(name) {
            self.forget_queue(at);
        }
    }

    /// Forgets a queue that does not exist and has nothing in it any more.
    pub(super) fn forget_queue(&mut self, at: QueueIx) {
        if self.tree.is_unused(at) {
            self.set_wake(at);
            self.usage.forget(at);
            self.tree.forget(at);
        }
    }

    /// Restores the usage of a tenant from before a restart.
    pub fn restore_usage(&mut self, record: &UsageRecord) {
        let queue = self.tree.find_or_remember(&record.queue.as_str().into());
        self.usage.restore(queue, record);
    }

    /// Returns the usages that have changed since the last call and are to be persisted: at intervals while tasks run, and
    /// when nothing runs or waits any more. Writing them with every start would cost more than the start; a crash forgets
    /// at most one interval.
    pub fn take_usage(&mut self, now: Time) -> Vec<UsageRecord> {
        let since = *self.usage_taken.get_or_insert(now);
        let idle = self.running.is_empty() && self.waiting.is_empty();
        if !self.usage.has_touched() || !(idle || now >= since.saturating_add(USAGE_INTERVAL)) {
            return Vec::new();
        }
        self.usage_taken = Some(now);
        let touched = self.usage.take_touched(now);
        let record = |(queue, tenant, value): (_, Arc<str>, f64)| UsageRecord {
            queue: self.tree.get(queue).spec.name.to_string(),
            tenant: tenant.to_string(),
            value,
            at: now,
        };
        touched.into_iter().map(record).collect()
    }
}
