//! One turn of a TaskSet: after an input, decides everything that follows until nothing is left to decide. Each
//! decision is a fact that is folded at once, so later decisions of the turn see it.

use std::time::Duration;

use octoflow_model::{
    Fact, NodeIx, RunFact, RunPhase, Time,
    taskset::{RolePhase, SetFact, SetPhase},
};

use super::{
    ident, judge,
    replica::MIN_RETRY_DELAY,
    run::{Replica, Run},
};
use crate::{
    dialects::dialect::DialectRun,
    engine::{
        SharedState,
        slice::{Slice, Work},
    },
    run::effect::Effects,
};

pub struct Turn<'a> {
    pub run: &'a mut Run,
    pub now: Time,
    pub shared: &'a SharedState,
    pub(super) effects: Effects,
    pub(super) slice: Slice,
}

impl<'a> Turn<'a> {
    pub fn new(run: &'a mut Run, now: Time, shared: &'a SharedState) -> Self {
        Self { run, now, shared, effects: Effects::default(), slice: Slice::new(0) }
    }

    pub(crate) fn limit(&mut self, work: Work) {
        self.slice.limit = work;
    }

    pub(crate) fn done(&self) -> Work {
        self.slice.done(0)
    }

    /// Decides until nothing is left to decide, or until the slice is used up. Returns true if work is left. A slice makes
    /// at least one visit. A pause between two visits changes nothing: all that they need is in state and work list.
    pub fn settle(&mut self) -> bool {
        let mut visited = false;
        loop {
            let todo = &mut self.run.todo;
            if visited && self.slice.is_spent() && todo.is_long() {
                return true;
            }
            visited = true;
            self.slice.visited();
            if let Some(replica) = todo.stops.pop_front() {
                self.resend_stop(NodeIx(replica));
            } else if let Some(replica) = todo.replicas.pop_front() {
                self.visit_replica(replica);
            } else if let Some(role) = todo.roles.pop_first() {
                self.visit_role(role);
            } else if std::mem::take(&mut todo.set) {
                self.visit_set();
            } else {
                return false;
            }
        }
    }

    pub(super) fn into_effects(mut self) -> Effects {
        let todo = &mut self.run.todo;
        self.effects.queued = std::mem::take(&mut todo.queued);
        self.effects.wakes = std::mem::take(&mut todo.wakes);
        self.effects
    }

    /// Folds a decision into the state and records its effects.
    pub(super) fn decide(&mut self, fact: impl Into<Fact>) {
        let fact = fact.into();
        let before = self.run.state.phase;
        let life = self.run.life_state();
        self.run.apply(&fact);
        self.effects.note_life(life, self.run.life_state(), self.now);
        self.slice.decided();
        if let Fact::Run(fact) = &fact {
            self.effects.note(fact);
        } else if let Fact::TaskSet(fact) = &fact {
            self.note(fact, before);
        } else {
            unreachable!("a TaskSet decides nothing of other dialects: {fact:?}");
        }
        self.effects.facts.push(fact);
    }

    fn visit_set(&mut self) {
        let state = &self.run.state;
        if !state.over() && !state.closing() && self.run.deadline().is_some_and(|at| at <= self.now) {
            self.decide(RunFact::DeadlinePassed { at: self.now });
        }
        let state = &self.run.state;
        match state.phase {
            SetPhase::AttemptPending | SetPhase::AttemptRetryPending => {
                let due = state.wake.is_none_or(|at| at <= self.now);
                if state.closing() {
                    self.end(false, self.closing_message());
                } else if due && !state.head.suspended {
                    let attempt = if state.began.is_some() { state.attempt + 1 } else { 0 };
                    let unit = ident::unit_uid(&state.head.uid, attempt);
                    self.decide(SetFact::Began { attempt, at: self.now, unit });
                }
            }
            SetPhase::AttemptPreparing | SetPhase::AttemptRunning => {
                if state.closing() {
                    let message = self.closing_message();
                    self.decide(SetFact::Judged { at: self.now, succeeded: false, message, last: true });
                } else if let Some((succeeded, message)) = judge::set(&self.run.program, &state.roles) {
                    self.decide(SetFact::Judged { at: self.now, succeeded, message, last: false });
                } else {
                    self.fail_unstartable();
                }
            }
            SetPhase::AttemptDeletionRequested => {
                if state.roles.iter().all(|role| role.phase == RolePhase::Completed) {
                    let (attempt, next) = (state.attempt, self.next_attempt());
                    let message = next.map(|next| format!("the next attempt comes at {next}")).unwrap_or_default();
                    self.decide(SetFact::Over { attempt, at: self.now, next, message });
                }
            }
            SetPhase::AttemptCompleted => {
                if let Some(verdict) = state.verdict.clone() {
                    self.end(verdict.succeeded, verdict.message);
                }
            }
            SetPhase::Completed => {}
        }
    }

    /// Returns when the whole is retried after this attempt; `None` if it succeeded, was stopped, or has no retries
    /// left.
    fn next_attempt(&self) -> Option<Time> {
        let state = &self.run.state;
        let policy = &self.run.program.set.spec.retry_policy;
        let verdict = state.verdict.as_ref()?;
        let over = verdict.succeeded || verdict.last || state.closing();
        let left = policy.retry && u64::from(state.attempt) < policy.max_retry_count;
        let had_pods = || {
            let last = |replica: &Replica| replica.tries.last().is_some_and(|(attempt, _)| *attempt == state.attempt);
            state.replicas.iter().any(last)
        };
        // An attempt without a single pod fails again at once; without a delay this would be a busy loop.
        let least = || if had_pods() { Duration::ZERO } else { MIN_RETRY_DELAY };
        (!over && left).then(|| self.now.saturating_add(Duration::from_secs(policy.delay).max(least())))
    }

    fn end(&mut self, succeeded: bool, message: String) {
        let phase = if succeeded { RunPhase::Succeeded } else { RunPhase::Failed };
        self.decide(RunFact::Ended { phase, message, at: self.now });
    }

    fn closing_message(&self) -> String {
        match self.run.state.head.shutdown {
            Some(how) => format!("TaskSet shutdown with strategy: {}", how.word()),
            None => "DeadlineExceeded: TaskSet was active longer than activeDeadlineSeconds".to_owned(),
        }
    }
}
