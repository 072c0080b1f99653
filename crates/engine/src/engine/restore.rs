//! Restores runs after a restart: what they hold and wait for is counted before the first of them continues.

use std::collections::BTreeSet;

use octoflow_model::{AttemptId, Order, Report, RunId, Task, Time};

use super::{Engine, Holder, Outcome, Run, TaskRef, TaskState, enqueue};

impl Engine {
    pub(super) fn restore(&mut self, run: Run) {
        let id = run.id();
        if !run.finished() {
            self.adopt_locks(&run);
            // Waiters are queued before the first run continues, so that nothing overtakes them.
            for (node, waiter) in run.waiters() {
                self.locks.enqueue(Holder { run: id, node }, waiter);
            }
            // Tasks that a runtime has occupy their room before the first run continues, so that it is not assigned
            // twice.
            let open = run.open_tasks();
            for (node, state) in
                open.iter().filter(|(node, state)| *state != TaskState::Queued && !run.is_weightless(*node))
            {
                let started = run.engine_time(run.launched_at(*node));
                let (task, assignment) = (TaskRef { run: id, node: *node }, run.assignment(*node));
                self.scheduler.adopt(task, run.demand(*node), assignment.as_ref(), started);
                if *state == TaskState::Ending {
                    self.scheduler.set_ending(task);
                }
            }
            for (node, gang) in run.joined() {
                self.scheduler.join(TaskRef { run: id, node }, &gang);
            }
            self.children.insert(&run);
            self.deadlock.note(true);
            if run.head().deadlock.is_some() {
                self.deadlocked.insert(id);
            }
            self.runs.insert(id, run);
        }
    }

    pub(super) fn adopt_locks(&mut self, run: &Run) {
        for (holder, claims, name) in run.held_locks() {
            self.locks.adopt(holder, &claims, &name);
        }
    }

    /// Continues a restored run: returns the tasks assumed to be with a runtime, and visits everything open once.
    pub(super) fn continue_run(&mut self, id: RunId, now: Time, outcome: &mut Outcome) -> Vec<(AttemptId, Box<Task>)> {
        let (mut assumed_running, mut gone, mut ending) = (Vec::new(), Vec::new(), Vec::new());
        let children: BTreeSet<RunId> = self.children.children(id).collect();
        if let Some(run) = self.runs.get_mut(&id) {
            run.reopen();
            for (node, state) in run.open_tasks() {
                if state == TaskState::Queued {
                    enqueue(&mut self.scheduler, run, TaskRef { run: id, node });
                    continue;
                }
                if state == TaskState::Held {
                    continue;
                }
                // The engine itself tells it of a run it has ordered. One that is not open here is left to the runtime.
                if run.child_of(node).is_some_and(|child| children.contains(&child)) {
                    continue;
                }
                let local = run.local(now);
                let mut turn = run.turn(local, &self.shared);
                match turn.describe(node) {
                    Ok(task) => assumed_running.push((turn.attempt_id(node), Box::new(task))),
                    Err(why) => gone.push((turn.attempt_id(node), why)),
                }
                if state == TaskState::Ending {
                    ending.push(node);
                }
            }
        }
        self.resume_stops(id);
        self.turn(id, now, outcome, |turn| {
            ending.into_iter().for_each(|node| turn.resend_stop(node));
            // A task that cannot be rebuilt cannot be adopted: it is killed, and counts as lost.
            for (attempt, why) in gone {
                turn.order(Order::Kill { attempt });
                turn.report(Report::Lost { attempt, at: now, why });
            }
        });
        assumed_running
    }
}
