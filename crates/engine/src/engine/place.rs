//! What the engine does with decisions of the lock table and the scheduler: grants, starts, preemptions, drained nodes. It
//! decides nothing about order or room.

use octoflow_model::{Order, Report, RunId, Time, task::placement::Assignment};

use super::{
    Engine,
    input::Outcome,
    locks::{Holder, LockDecision, Ready},
};
use crate::{
    dialects::dialect::TaskState,
    run::Run,
    schedule::{Decision, Eviction, Preemption, PreemptionKind, PreemptionReason, Scheduler, TaskRef},
};

impl Engine {
    /// Frees the room of a task that is over at once, even while its own run has too much to decide to process the
    /// report. Only room is freed: what follows from the end waits, so that the run decides what it would have decided
    /// in one go.
    pub(super) fn free_room(&mut self, report: &Report, now: Time) {
        let attempt = report.attempt();
        let over = matches!(report, Report::Ended { .. } | Report::Answered { .. } | Report::Lost { .. });
        let frees = |run: &Run| run.is_placed(attempt) && !run.may_keep_room(attempt.task);
        if over && self.runs.get(&attempt.run).is_some_and(frees) {
            self.scheduler.release(TaskRef { run: attempt.run, node: attempt.task }, now);
        }
    }

    /// Kills all tasks of a run that is deleted before its end, and frees their room: nobody will hear of their ends. What
    /// follows is scheduled with the next input, which is due at once.
    pub(super) fn drop_tasks(&mut self, id: RunId, now: Time, outcome: &mut Outcome) {
        let Some(run) = self.runs.get_mut(&id).filter(|run| !run.finished()) else { return };
        let (tasks, local) = (run.open_tasks(), run.local(now));
        let turn = run.turn(local, &self.shared);
        for (node, state) in tasks {
            if matches!(state, TaskState::Placed | TaskState::Ending) {
                outcome.orders.push(Order::Kill { attempt: turn.attempt_id(node) });
            }
            self.scheduler.release(TaskRef { run: id, node }, now);
        }
        drop(turn);
        self.locks.recheck_skipped();
        self.unscheduled = true;
    }

    /// Starts a task that the scheduler admitted, or defers it while its run is unsettled.
    pub(super) fn launch(&mut self, task: TaskRef, assignment: Assignment, now: Time, outcome: &mut Outcome) {
        if self.is_unsettled(task.run) {
            self.postponed.entry(task.run).or_default().push((task, assignment));
        } else {
            self.turn(task.run, now, outcome, |turn| turn.launch(task.node, assignment));
        }
    }

    /// Ends a task so that another can start. Its room is kept for that one.
    pub(super) fn preempt(&mut self, preemption: &Preemption, now: Time, outcome: &mut Outcome) {
        let namespace = self.runs.get(&preemption.victim.run).map(|run| run.namespace().to_owned());
        let by = self.runs.get(&preemption.by.run).map_or_else(String::new, |run| {
            // Who may not read a namespace does not learn the names in it.
            let name = match namespace.as_deref() == Some(run.namespace()) {
                true => format!("{} {}", run.kind().noun, run.name()),
                false => format!("a {} of another namespace", run.kind().noun),
            };
            format!("{name} in queue {}", preemption.queue)
        });
        let why = match preemption.reason {
            PreemptionReason::Reclaimed => format!("Preempted: {by} takes back what its queue deserves"),
            PreemptionReason::LowerClass => format!("Preempted: {by} has a higher priority class"),
        };
        let victim = preemption.victim;
        if self.withdraw_postponed(victim, now) {
            return;
        }
        self.turn(victim.run, now, outcome, |turn| turn.preempt(victim.node, why));
    }

    /// Ends a task that has to leave its node because of a taint; it waits again.
    fn evict(&mut self, eviction: &Eviction, now: Time, outcome: &mut Outcome) {
        let Eviction { task, node, taint } = eviction;
        if !self.withdraw_postponed(*task, now) {
            let why = format!("Node {node} has the taint {taint}, which is not tolerated");
            self.turn(task.run, now, outcome, |turn| turn.preempt(task.node, why));
        }
    }

    /// Queues a task again that was admitted and could not be launched yet; returns whether it was one.
    fn withdraw_postponed(&mut self, task: TaskRef, now: Time) -> bool {
        let Some(postponed) = self.postponed.get_mut(&task.run) else { return false };
        let Some(place) = postponed.iter().position(|(other, _)| *other == task) else { return false };
        postponed.remove(place);
        self.scheduler.release(task, now);
        if let Some(run) = self.runs.get(&task.run).filter(|run| run.is_queued(task.node)) {
            enqueue(&mut self.scheduler, run, task);
        }
        true
    }

    /// Ends everything that runs on a node; it waits again and starts elsewhere, or here once the node takes tasks again.
    pub(super) fn drain(&mut self, node: &str, now: Time, outcome: &mut Outcome) {
        for task in self.scheduler.tasks_on_node(node) {
            if self.withdraw_postponed(task, now) {
                continue;
            }
            self.scheduler.note_ending(task, PreemptionKind::Drained);
            self.turn(task.run, now, outcome, |turn| turn.preempt(task.node, format!("Node {node} is drained")));
        }
    }

    /// Grants free locks to waiters, and notifies the others which lock they wait for.
    pub(super) fn grant(&mut self, now: Time, outcome: &mut Outcome) {
        loop {
            if self.left == 0 {
                self.unscheduled = true;
                return;
            }
            let (runs, shared, unsettled) = (&self.runs, &self.shared, &self.unsettled);
            let ready = |holder: Holder| {
                if unsettled.contains(&holder.run) {
                    return Ready::Later;
                }
                runs.get(&holder.run).map_or(Ready::Later, |run| run.ready_for_locks(holder.node))
            };
            match self.locks.next(|claim| shared.limit(claim), ready) {
                Some(LockDecision::Grant(holder)) => {
                    self.turn(holder.run, now, outcome, |turn| turn.locked(holder.node));
                }
                Some(LockDecision::Wait(holder, wait)) => {
                    self.turn(holder.run, now, outcome, |turn| turn.wait_for(holder.node, wait));
                }
                Some(LockDecision::Refuse(holder, why)) => {
                    self.turn(holder.run, now, outcome, |turn| turn.refuse_locks(holder.node, &why));
                }
                None => return,
            }
        }
    }

    /// Admits waiting tasks until there is no room left.
    pub(super) fn schedule(&mut self, now: Time, outcome: &mut Outcome) {
        // However much was decided before, every input considers at least one waiter.
        self.left = self.left.max(1);
        self.unscheduled = false;
        for eviction in self.scheduler.take_evictions(now) {
            self.evict(&eviction, now, outcome);
        }
        loop {
            // Members of a gang start in one commit, however many they are.
            if !self.scheduler.has_decided() {
                self.grant(now, outcome);
                if self.left == 0 {
                    self.unscheduled = true;
                    return;
                }
            }
            let (runs, unsettled) = (&self.runs, &self.unsettled);
            let waits = |task: TaskRef| runs.get(&task.run).is_some_and(|run| run.is_queued(task.node));
            // Room given to a run that cannot use it yet would be wasted.
            match self.scheduler.next(now, waits, |run| !unsettled.contains(&run)) {
                Some(Decision::Start { task, assignment }) => self.launch(task, assignment, now, outcome),
                Some(Decision::Preempt(preemption)) => self.preempt(&preemption, now, outcome),
                None => return,
            }
        }
    }
}

/// Queues a task. Requests bypass the queue: one that waits for another run must not hold the room that run needs.
pub(super) fn enqueue(scheduler: &mut Scheduler, run: &Run, task: TaskRef) {
    if run.is_request(task.node) {
        scheduler.enqueue_weightless(task);
    } else {
        scheduler.enqueue(task, run.demand(task.node), run.engine_time(run.waits_since(task.node)));
    }
}
