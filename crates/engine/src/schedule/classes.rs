//! Priority classes as they change: tasks that wait and run under one are judged by what it says now, as they would be after a
//! restart. It starts and ends nobody.

use std::sync::Arc;

use super::{Scheduler, TaskRef, Waiting, spec::ClassSpec};

impl Scheduler {
    /// Creates, changes or removes a priority class.
    pub fn put_class(&mut self, name: &str, class: Option<ClassSpec>, is_default: bool) {
        let key: Arc<str> = name.into();
        let before = (self.classes.get(&key).copied(), self.default_class.clone());
        match class {
            Some(class) => {
                self.classes.insert(key.clone(), class);
            }
            None => {
                self.classes.remove(&key);
            }
        }
        if is_default {
            self.default_class = Some(key.clone());
        } else if self.default_class.as_ref() == Some(&key) {
            self.default_class = None;
        }
        let of_default = before.1 != self.default_class || self.default_class.as_ref() == Some(&key);
        if before == (self.classes.get(&key).copied(), self.default_class.clone()) {
            return;
        }
        let concerns = |class: Option<&Arc<str>>| class.map_or(of_default, |class| *class == key);
        self.place_again(|waiting| concerns(waiting.demand.class.as_ref()));
        let running = self.running.iter().filter(|(_, running)| concerns(running.demand.class.as_ref()));
        let running: Vec<TaskRef> = running.map(|(task, _)| *task).collect();
        running.into_iter().for_each(|task| self.judge_again(task));
    }

    /// Enters tasks that wait into their queues again, because their rank or longest wait is another now.
    pub(super) fn place_again(&mut self, which: impl Fn(&Waiting) -> bool) {
        let turn = |task: &TaskRef| self.runs.get(&task.run).map_or(0, |run| run.turn.0);
        let concerned = self.waiting.iter().filter(|(_, waiting)| which(waiting));
        let mut tasks: Vec<_> = concerned.map(|(task, _)| (turn(task), *task)).collect();
        tasks.sort_unstable();
        for (_, task) in tasks {
            if let Some(Waiting { demand, since, .. }) = self.waiting.get(&task) {
                let (demand, since) = (demand.clone(), *since);
                self.enqueue(task, demand, since);
            }
        }
    }

    /// Computes the class of a running task, and with it its place among possible victims.
    fn judge_again(&mut self, task: TaskRef) {
        let Some(running) = self.running.get(&task) else { return };
        let class = self.class(&running.demand).map(|class| class.value);
        let Some(running) = self.running.get_mut(&task) else { return };
        let before = running.harm(task);
        running.class = class;
        let (leaf, after) = (running.leaf, running.harm(task));
        let victims = &mut self.tree.leaf(leaf).victims;
        if victims.remove(&before) {
            victims.insert(after);
        }
    }
}
