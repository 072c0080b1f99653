//! Tasks that are being ended, and gangs that lose members: what they hold is counted as ending until they are over. It ends
//! nobody itself.

use octoflow_model::RunId;

use super::{Scheduler, TaskIx, TaskRef, Waiting};

impl Scheduler {
    /// Notes that a running task is being ended: it is no victim any more, and its room is as good as free.
    pub fn set_ending(&mut self, task: TaskRef) {
        self.change_ending(task, true);
    }

    /// Counts a running task among those that are being ended, or not any more; reports whether it was not before.
    pub(super) fn change_ending(&mut self, task: TaskRef, ending: bool) -> bool {
        let Some(running) = self.running.get_mut(&task) else { return false };
        if std::mem::replace(&mut running.ending, ending) == ending {
            return false;
        }
        let (leaf, harm, node) = (running.leaf, running.harm(task), running.node);
        if ending {
            self.ending.insert(task);
        } else {
            self.ending.remove(&task);
        }
        if ending {
            self.tree.leaf(leaf).victims.remove(&harm);
        } else if running.demand.preemptable != Some(false) {
            self.tree.leaf(leaf).victims.insert(harm);
        }
        self.tree.count_ending(leaf, &running.amounts, ending);
        self.room.change(node, |node| node.count_ending(&running.amounts, ending));
        if ending && self.room.get(node).is_some_and(|node| node.nominees().next().is_some()) {
            // Less of what is free is kept for them.
            self.freed(node);
        }
        true
    }

    /// Removes a task that is ended for another from its gang. A gang with too few left starts together again.
    pub fn quit_gang(&mut self, task: TaskRef) {
        for member in self.gangs.quit(task) {
            if let Some(Waiting { demand, since, .. }) = self.waiting.get(&member) {
                let (demand, since) = (demand.clone(), *since);
                self.enqueue(member, demand, since);
            }
        }
        // Those that wait for it may be too few now, or need more of them.
        if let Some(gang) = self.gangs.of(task).filter(|gang| self.gangs.get(*gang).is_some_and(|gang| !gang.formed)) {
            self.reform(gang, true);
        }
    }

    /// Removes the tasks of a run from all gangs, when it is over or begins a new attempt.
    pub fn leave(&mut self, run: RunId) {
        let of_run = TaskRef { run, node: TaskIx(0) }..=TaskRef { run, node: TaskIx(u32::MAX) };
        let requeued: Vec<TaskRef> = self.requeued.range(of_run).map(|(task, _)| *task).collect();
        for task in requeued {
            self.requeued.remove(&task);
        }
        for (gang, left) in self.gangs.leave(run) {
            for task in left {
                self.take_waiting(task);
            }
            self.reform(gang, true);
            // Whoever waited on its own, because its gang had started, waits for its gang again if that has too few left.
            for task in self.gangs.outside(gang) {
                if let Some(Waiting { demand, since, .. }) = self.waiting.get(&task) {
                    let (demand, since) = (demand.clone(), *since);
                    self.enqueue(task, demand, since);
                }
            }
            self.gangs.drop_empty(gang);
        }
    }
}
