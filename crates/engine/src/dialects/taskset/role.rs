//! Roles: when their replicas may start, their verdicts, and stopping the remaining pods after a verdict.

use octoflow_model::{
    Order, Shutdown,
    taskset::{Condition, ReplicaPhase, RolePhase, SetFact, SetPhase, StopReason, SummaryState},
};

use super::{
    judge,
    run::{Role, Verdict},
    turn::Turn,
};
use crate::engine::slice::MEMBERS_A_FACT;

/// State of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    No,
    Yes,
    /// The condition can no longer be reached.
    Never,
}

impl Turn<'_> {
    pub(super) fn visit_role(&mut self, at: usize) {
        let unstopped = self.run.todo.stopping.remove(&at);
        if !self.run.state.at_work() || self.run.state.roles[at].phase == RolePhase::Completed {
            return;
        }
        if self.run.state.roles[at].verdict.is_none()
            && let Some(Verdict { succeeded, message, .. }) = self.verdict_of(at)
        {
            self.decide(SetFact::RoleJudged { role: at as u32, at: self.now, succeeded, message });
        }
        if self.run.state.roles[at].verdict.is_some() {
            self.stop_remaining(at, unstopped);
        } else if let Some(from) = self.run.todo.starting.remove(&at)
            && self.may_start(at)
        {
            self.start(at, from);
        }
    }

    fn verdict_of(&self, at: usize) -> Option<Verdict> {
        let state = &self.run.state;
        let (plan, role) = (&self.run.program.roles[at], &state.roles[at]);
        if let Some(verdict) = &state.verdict {
            let word = if verdict.succeeded { "succeeded" } else { "failed" };
            let message = format!("ended with the TaskSet, which {word}, before it had a verdict of its own");
            return Some(Verdict { succeeded: verdict.succeeded, message, last: false });
        }
        judge::role(plan, role, role.count(ReplicaPhase::Completed))
    }

    /// Fails a role that can never start, while the whole goes on. One at a time, because its end may affect the others
    /// and the whole.
    pub(super) fn fail_unstartable(&mut self) {
        let open = |role: &usize| self.run.state.roles[*role].verdict.is_none();
        let lost =
            (0..self.run.state.roles.len()).filter(open).find_map(|role| Some((role, self.why_unstartable(role)?)));
        if let Some((role, message)) = lost {
            self.decide(SetFact::RoleJudged { role: role as u32, at: self.now, succeeded: false, message });
        }
    }

    /// Returns why a role can never start: a dependency has failed, or its gang can no longer be complete.
    fn why_unstartable(&self, at: usize) -> Option<String> {
        let (state, program) = (&self.run.state, &self.run.program);
        let plan = &program.roles[at];
        let never = |(up, condition): &&(usize, Condition)| {
            waits(&state.roles[*up], self.count(*up), *condition) == Waits::Never
        };
        if let Some((up, condition)) = plan.after.iter().find(never).filter(|_| !state.roles[at].begun) {
            let name = &program.spec(*up).name;
            return Some(format!("it waits for role '{name}' to be {condition:?}, which has failed"));
        }
        let gang = plan.gang.as_ref()?;
        let dead = |mate: &usize| state.roles[*mate].verdict.is_some() && !state.roles[*mate].begun;
        let gone = program.gang_mates(at).find(dead)?;
        let members = |all: bool| -> u32 {
            program.gang_mates(at).filter(|mate| all || !dead(mate)).map(|mate| self.count(mate)).sum()
        };
        // A gang that other TaskSets were to complete still may be.
        (members(false) < gang.least && gang.least <= members(true)).then(|| {
            let name = &program.spec(gone).name;
            format!("its gang '{}' can never be complete: role '{name}' is over without having started", gang.name)
        })
    }

    fn count(&self, role: usize) -> u32 {
        self.run.program.roles[role].count
    }

    /// Reports whether replicas of this role may start now.
    pub(super) fn may_start(&self, at: usize) -> bool {
        let state = &self.run.state;
        let open = matches!(state.phase, SetPhase::AttemptPreparing | SetPhase::AttemptRunning);
        let after = &self.run.program.roles[at].after;
        let free =
            |(up, condition): &(usize, Condition)| waits(&state.roles[*up], self.count(*up), *condition) == Waits::No;
        open && !state.head.suspended
            && !state.closing()
            && state.roles[at].verdict.is_none()
            && (state.roles[at].begun || after.iter().all(free))
    }

    /// Queues all pending replicas from this one on, one fact for each contiguous range, as far as the slice lasts.
    fn start(&mut self, at: usize, from: u32) {
        let plan = &self.run.program.roles[at];
        let (mut next, end) = (plan.first.max(from), plan.first + plan.count);
        while next < end && self.run.state.roles[at].count(ReplicaPhase::AttemptPending) > 0 {
            let waits =
                |replica: &u32| self.run.state.replicas[*replica as usize].phase == ReplicaPhase::AttemptPending;
            let Some(first) = (next..end).find(waits) else { return };
            let count = (first..end).take(MEMBERS_A_FACT as usize).take_while(waits).count() as u32;
            self.decide(SetFact::Queued { first, count, at: self.now });
            next = first + count;
            if self.slice.is_spent() {
                self.run.todo.starting.insert(at, next);
                self.run.todo.roles.insert(at);
                return;
            }
        }
    }

    /// Stops what is left of a role that has its verdict, as far as the slice lasts.
    fn stop_remaining(&mut self, at: usize, from: Option<u32>) {
        let plan = &self.run.program.roles[at];
        let (first, end) = (plan.first, plan.first + plan.count);
        if self.run.state.roles[at].unstopped() > 0 {
            for replica in from.unwrap_or(first)..end {
                self.slice.visited();
                self.stop_one(at, replica);
                if self.slice.is_spent() && self.run.state.roles[at].unstopped() > 0 {
                    self.run.todo.stopping.insert(at, replica + 1);
                    self.run.todo.roles.insert(at);
                    return;
                }
            }
        }
        if self.run.state.roles[at].count(ReplicaPhase::Completed) == end - first {
            self.decide(SetFact::RoleOver { role: at as u32, at: self.now });
        }
    }

    fn stop_one(&mut self, at: usize, replica: u32) {
        let slot = &self.run.state.replicas[replica as usize];
        match slot.phase {
            ReplicaPhase::AttemptPending | ReplicaPhase::AttemptPreparing | ReplicaPhase::AttemptRetryPending => {
                self.decide(SetFact::Dropped { replica, at: self.now });
            }
            ReplicaPhase::AttemptDeletionRequested if !slot.makes_room() => {}
            ReplicaPhase::AttemptAssigned | ReplicaPhase::AttemptRunning | ReplicaPhase::AttemptDeletionRequested => {
                let message = self.run.state.roles[at].phase_message.clone();
                self.end_pod(replica, StopReason::Cleaning, message);
            }
            ReplicaPhase::Completed => {}
        }
    }

    pub(super) fn end_pod(&mut self, replica: u32, why: StopReason, message: String) {
        self.decide(SetFact::Ending { replica, at: self.now, why, message });
        self.resend_stop(octoflow_model::NodeIx(replica));
    }

    /// Sends a pod its stop order, possibly again: the first one may have been lost, or the shutdown was escalated.
    pub(crate) fn resend_stop(&mut self, at: octoflow_model::NodeIx) {
        let Some(attempt) = self.run.attempt_of(at.0) else { return };
        let at_once = self.run.state.head.shutdown == Some(Shutdown::Terminate);
        self.effects.orders.push(if at_once { Order::Kill { attempt } } else { Order::Stop { attempt } });
    }
}

/// Returns the state of a dependency on this role with this condition.
pub(super) fn waits(role: &Role, count: u32, condition: Condition) -> Waits {
    let over = role.phase == RolePhase::Completed;
    let well = over && role.summary == SummaryState::Succeeded;
    match condition {
        Condition::Running if well || role.up == count && role.verdict.is_none() => Waits::No,
        Condition::Succeeded if well => Waits::No,
        Condition::Completed if over => Waits::No,
        Condition::Running | Condition::Succeeded if over => Waits::Never,
        Condition::Running | Condition::Succeeded | Condition::Completed => Waits::Yes,
    }
}
