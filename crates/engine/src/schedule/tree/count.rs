//! Counts of what waits in a queue and below it: units, by which queues are served, and tasks, which people are told.

use super::{QueueIx, Tree};

impl Tree {
    /// Counts a task that begins or ceases to wait in a leaf.
    pub(in crate::schedule) fn count_waiting(&mut self, leaf: QueueIx, begins: bool) {
        self.leaf(leaf).tasks = if begins { self.leaf(leaf).tasks + 1 } else { self.leaf(leaf).tasks - 1 };
        let mut next = Some(leaf);
        while let Some(at) = next {
            let queue = self.at(at);
            queue.tasks_waiting = if begins { queue.tasks_waiting + 1 } else { queue.tasks_waiting - 1 };
            next = queue.parent;
        }
    }

    /// Counts a unit that begins or ceases to wait in a leaf.
    pub(in crate::schedule) fn count(&mut self, leaf: QueueIx, begins: bool) {
        let mut next = Some(leaf);
        while let Some(at) = next {
            let queue = self.at(at);
            queue.pending = if begins { queue.pending + 1 } else { queue.pending - 1 };
            next = queue.parent;
            // The place depends on whether something waits only where that changes.
            if (begins && self.get(at).pending == 1) || self.get(at).pending == 0 {
                self.place(at);
            }
        }
    }
}
