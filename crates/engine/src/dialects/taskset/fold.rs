//! The fold: applies facts to the state of a TaskSet. It never decides, fails or reads the time, and no other code
//! writes the state. It also leaves notes of what changed for the turn; it does not see the work list.

use std::{ops::Deref, sync::Arc};

use octoflow_model::{
    Fact, NodeIx, RunFact, RunId, RunPhase, Time,
    submission::Submission,
    taskset::{PodEnd, ReplicaPhase, RolePhase, SetFact, SetPhase, StopReason, SummaryState},
};

use super::{
    demand::RoleDemands,
    peers,
    program::Program,
    run::{Preemptions, Replica, Role, Run, State, Verdict},
    todo::{Note, Todo},
};
use crate::run::head::Head;

mod legacy;

/// The state of a TaskSet, read-only outside of the fold.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded(State);

impl Deref for Folded {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

/// A state while a fact is folded into it.
struct Fold<'a> {
    id: RunId,
    state: &'a mut State,
    notes: &'a mut Vec<Note>,
    program: &'a Program,
}

impl Run {
    /// Creates a TaskSet of a submission; the program is compiled from its manifest.
    pub(crate) fn with(id: RunId, submission: &Submission, program: Arc<Program>) -> Self {
        let mut state = State {
            head: Head::new(submission, &program.set.metadata, program.set.spec.suspend, program.set.spec.shutdown),
            phase: SetPhase::AttemptPending,
            phase_message: String::new(),
            transition: submission.at,
            summary: SummaryState::Waiting,
            summary_message: String::new(),
            began: None,
            started: None,
            finished: None,
            attempt: 0,
            unit: None,
            verdict: None,
            wake: None,
            roles: Vec::new(),
            replicas: vec![Replica::default(); program.replicas as usize],
            logs: Vec::new(),
            preempted: 0,
        };
        reset_for_attempt(&program, &mut state, submission.at);
        Self {
            id,
            state: Folded(state),
            hosts: peers::hosts(id, &submission.name, &program),
            peers: peers::lists(id, &program),
            manifest: crate::run::written(&submission.manifest),
            known: submission.context.clone(),
            demands: program.roles.iter().map(|_| RoleDemands::default()).collect(),
            replaced: submission.previous.as_ref().map(|before| before.runs.clone()).unwrap_or_default(),
            todo: Todo { set: true, ..Todo::default() },
            notes: Vec::new(),
            program,
        }
    }

    /// Folds one fact into the state.
    pub fn apply(&mut self, fact: &Fact) {
        let (notes, program) = (&mut self.notes, &*self.program);
        let mut fold = Fold { id: self.id, state: &mut self.state.0, notes, program };
        // The journal of a TaskSet never holds facts of other dialects.
        if let Fact::Run(fact) = fact {
            fold.state.head.apply(fact);
            fold.follow_head(fact);
        } else if let Fact::TaskSet(fact) = fact {
            fold.apply(fact);
        }
        self.enter_notes();
    }
}

impl Fold<'_> {
    fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    /// Notes that every role must be visited, and that its replicas may be able to start.
    fn note_all_roles(&mut self) {
        for role in 0..self.state.roles.len() {
            self.note(Note::RoleChanged(role));
            self.note(Note::MayStart(role));
        }
    }

    /// Folds the consequences of a fact about the head.
    fn follow_head(&mut self, fact: &RunFact) {
        match fact {
            RunFact::Submitted(_) | RunFact::Marked { .. } | RunFact::Deadlock { .. } => {}
            RunFact::Suspended { at } => self.unqueue(*at),
            RunFact::Resumed { .. } => {
                self.note_all_roles();
                let delayed = self.state.replicas.iter().enumerate();
                let delayed = delayed.filter(|(_, one)| one.phase == ReplicaPhase::AttemptRetryPending);
                self.notes.extend(delayed.map(|(at, _)| Note::ReplicaChanged(at as u32)));
                self.note(Note::SetChanged);
            }
            RunFact::ShuttingDown { .. } | RunFact::DeadlinePassed { .. } => self.note(Note::SetChanged),
            RunFact::Ended { phase, message, at } => {
                let state = &mut self.state;
                state.summary = SummaryState::of(*phase == RunPhase::Succeeded);
                state.summary_message.clone_from(message);
                state.finished = Some(*at);
                state.wake = None;
                self.enter(SetPhase::Completed, String::new(), *at);
            }
        }
    }

    fn apply(&mut self, fact: &SetFact) {
        match fact {
            SetFact::Began { attempt, at, unit } => self.begin(*attempt, *at, unit),
            SetFact::Queued { first, count, at } => {
                let role = self.program.role_of(*first);
                self.state.roles[role].begun = true;
                for replica in *first..*first + *count {
                    self.move_to(replica, ReplicaPhase::AttemptPreparing, *at);
                    let slot = &mut self.state.replicas[replica as usize];
                    match slot.preempted.as_ref().filter(|preempted| preempted.waits) {
                        Some(preempted) => slot.phase_message = preempted.why.to_string(),
                        None => slot.queued = *at,
                    }
                    self.note(Note::Queued(NodeIx(replica)));
                }
            }
            SetFact::Launched { replica, at, deadline, on } => {
                self.move_to(*replica, ReplicaPhase::AttemptAssigned, *at);
                let attempt = self.state.attempt;
                let slot = &mut self.state.replicas[*replica as usize];
                slot.tries.push((attempt, slot.number()));
                slot.wake = *deadline;
                slot.launched = *at;
                slot.on.clone_from(on);
                slot.preempted.iter_mut().for_each(|preempted| preempted.waits = false);
                self.notes.extend(deadline.map(|at| Note::Wake(at, Some(NodeIx(*replica)))));
            }
            SetFact::Started { replica, at } => {
                self.move_to(*replica, ReplicaPhase::AttemptRunning, *at);
                self.replica_up(*replica, *at);
            }
            SetFact::Ending { replica, at, why, message } => {
                self.move_to(*replica, ReplicaPhase::AttemptDeletionRequested, *at);
                self.set_preempting(*replica, *why == StopReason::Preempted);
                let slot = &mut self.state.replicas[*replica as usize];
                slot.stopped = *why == StopReason::Cleaning;
                slot.closing = Some(*why);
                slot.phase_message.clone_from(message);
                slot.wake = None;
            }
            SetFact::Ended(end) => self.pod_ended(end),
            SetFact::Again { replica, at } => {
                self.move_to(*replica, ReplicaPhase::AttemptPending, *at);
                let slot = &mut self.state.replicas[*replica as usize];
                let (tries, retried) = (std::mem::take(&mut slot.tries), slot.retried + 1);
                let preempted = slot.preempted.take();
                *slot = Replica { tries, retried, preempted, up: slot.up, transition: *at, ..Replica::default() };
                self.note(Note::ReplicaChanged(*replica));
            }
            SetFact::Dropped { replica, at } => {
                self.move_to(*replica, ReplicaPhase::Completed, *at);
                let slot = &mut self.state.replicas[*replica as usize];
                slot.stopped = true;
                slot.wake = None;
                self.note_role_of(*replica);
            }
            SetFact::RoleJudged { role, at, succeeded, message } => {
                let slot = &mut self.state.roles[*role as usize];
                slot.verdict = Some(Verdict { succeeded: *succeeded, message: message.clone(), last: false });
                slot.enter(RolePhase::CleaningPending);
                slot.phase_message.clone_from(message);
                slot.transition = *at;
                self.note(Note::RoleChanged(*role as usize));
            }
            SetFact::RoleOver { role, at } => {
                let slot = &mut self.state.roles[*role as usize];
                slot.enter(RolePhase::Completed);
                slot.phase_message = String::new();
                slot.transition = *at;
                if let Some(verdict) = &slot.verdict {
                    slot.summary = SummaryState::of(verdict.succeeded);
                    slot.summary_message.clone_from(&verdict.message);
                }
                self.note(Note::SetChanged);
                self.note_dependents(*role as usize);
            }
            SetFact::Judged { at, succeeded, message, last } => {
                self.state.verdict = Some(Verdict { succeeded: *succeeded, message: message.clone(), last: *last });
                self.enter(SetPhase::AttemptDeletionRequested, message.clone(), *at);
                self.notes.extend((0..self.state.roles.len()).map(Note::RoleChanged));
            }
            SetFact::Over { at, next, message, .. } => {
                self.state.wake = *next;
                match next {
                    Some(next) => {
                        self.state.summary = SummaryState::Waiting;
                        let message = legacy::or(message, || legacy::next_attempt(*next));
                        self.enter(SetPhase::AttemptRetryPending, message, *at);
                        self.note(Note::Wake(*next, None));
                    }
                    None => self.enter(SetPhase::AttemptCompleted, String::new(), *at),
                }
            }
        }
    }

    fn begin(&mut self, attempt: u32, at: Time, unit: &str) {
        let state = &mut self.state;
        state.attempt = attempt;
        state.unit = Some(unit.into());
        state.verdict = None;
        state.wake = None;
        state.summary = SummaryState::Waiting;
        state.summary_message = String::new();
        reset_for_attempt(self.program, state, at);
        if state.began.is_none() {
            state.began = Some(at);
            let deadline = state.deadline(self.program);
            self.notes.extend(deadline.map(|at| Note::Wake(at, None)));
        }
        self.enter(SetPhase::AttemptPreparing, String::new(), at);
        self.note_all_roles();
    }

    fn pod_ended(&mut self, end: &PodEnd) {
        let PodEnd { replica, at, started, terminated, reason, outcome, again, log_bytes, message, requeued } = end;
        if let (Some(attempt), true) = (self.state.attempt_of(self.id, *replica), *log_bytes > 0) {
            self.state.logs.push((attempt, *log_bytes));
        }
        if let Some(started) = started
            && self.state.replicas[*replica as usize].started.is_none()
        {
            // It ended before its start was reported.
            self.replica_up(*replica, *started);
        }
        self.set_preempting(*replica, false);
        if *requeued {
            return self.requeue(*replica, *at, message);
        }
        let next = if again.is_some() { ReplicaPhase::AttemptRetryPending } else { ReplicaPhase::Completed };
        self.move_to(*replica, next, *at);
        let slot = &mut self.state.replicas[*replica as usize];
        slot.terminated = terminated.clone().map(Box::new);
        slot.reason.clone_from(reason);
        slot.finished = Some(*at);
        slot.outcome = *outcome;
        slot.wake = *again;
        slot.phase_message = again.map(|again| legacy::or(message, || legacy::tried_again(again))).unwrap_or_default();
        self.notes.extend(again.map(|again| Note::Wake(again, Some(NodeIx(*replica)))));
        let role = self.program.role_of(*replica);
        match outcome {
            Some(true) => self.state.roles[role].succeeded += 1,
            Some(false) => self.state.roles[role].failed += 1,
            None => {}
        }
        self.note_role_of(*replica);
    }

    /// Folds that a preempted pod is over and its replica waits again. It keeps its place and its number of retries.
    fn requeue(&mut self, replica: u32, at: Time, why: &str) {
        self.move_to(replica, ReplicaPhase::AttemptPending, at);
        self.state.preempted += 1;
        let slot = &mut self.state.replicas[replica as usize];
        let count = slot.preempted.as_ref().map_or(0, |before| before.count) + 1;
        *slot = Replica {
            tries: std::mem::take(&mut slot.tries),
            retried: slot.retried,
            up: slot.up,
            queued: slot.queued,
            transition: at,
            phase_message: why.to_owned(),
            preempted: Some(Box::new(Preemptions { count, at, why: why.into(), waits: true })),
            ..Replica::default()
        };
        self.note(Note::ReplicaChanged(replica));
    }

    /// Counts whether the pod of a replica is being ended for another.
    fn set_preempting(&mut self, replica: u32, now: bool) {
        let before = self.state.replicas[replica as usize].closing == Some(StopReason::Preempted);
        let role = &mut self.state.roles[self.program.role_of(replica)];
        role.preempting = role.preempting + u32::from(now) - u32::from(before);
    }

    /// Folds the start of a replica, which may be the start of its role and of the TaskSet.
    fn replica_up(&mut self, replica: u32, at: Time) {
        let role = self.program.role_of(replica);
        let slot = &mut self.state.replicas[replica as usize];
        slot.started = Some(at);
        let first = !std::mem::replace(&mut slot.up, true);
        let state = &mut self.state.roles[role];
        if first {
            state.up += 1;
        }
        if state.phase == RolePhase::Waiting {
            state.enter(RolePhase::Running);
            state.transition = at;
            state.summary = SummaryState::Running;
        }
        if state.up == self.program.roles[role].count {
            self.note_dependents(role);
        }
        if self.state.phase == SetPhase::AttemptPreparing {
            self.state.summary = SummaryState::Running;
            self.state.started.get_or_insert(at);
            self.enter(SetPhase::AttemptRunning, String::new(), at);
        }
    }

    /// Notes that the roles that depend on this one must be visited.
    fn note_dependents(&mut self, role: usize) {
        for after in &self.program.roles[role].before {
            self.note(Note::MayStart(*after));
            self.note(Note::RoleChanged(*after));
        }
    }

    /// Takes queued replicas out of the scheduler until the TaskSet is resumed.
    fn unqueue(&mut self, at: Time) {
        for replica in 0..self.state.replicas.len() {
            if self.state.replicas[replica].phase == ReplicaPhase::AttemptPreparing {
                self.move_to(replica as u32, ReplicaPhase::AttemptPending, at);
            }
        }
    }

    fn enter(&mut self, phase: SetPhase, message: String, at: Time) {
        debug_assert!(self.state.phase.leads_to(phase), "{} never becomes {phase}", self.state.phase);
        self.state.phase = phase;
        self.state.phase_message = message;
        self.state.transition = at;
        self.note(Note::SetChanged);
    }

    fn move_to(&mut self, replica: u32, phase: ReplicaPhase, at: Time) {
        let role = self.program.role_of(replica);
        let slot = &mut self.state.replicas[replica as usize];
        let counts = &mut self.state.roles[role].counts;
        debug_assert!(slot.phase.leads_to(phase), "{} never becomes {phase}", slot.phase);
        counts[slot.phase as usize] -= 1;
        counts[phase as usize] += 1;
        slot.phase = phase;
        slot.phase_message = String::new();
        slot.transition = at;
    }

    fn note_role_of(&mut self, replica: u32) {
        self.note(Note::RoleChanged(self.program.role_of(replica)));
    }
}

impl Role {
    fn enter(&mut self, phase: RolePhase) {
        debug_assert!(self.phase.leads_to(phase), "{} never becomes {phase}", self.phase);
        self.phase = phase;
    }
}

/// Resets roles and replicas for a new attempt; the list of earlier pods is kept.
fn reset_for_attempt(program: &Program, state: &mut State, at: Time) {
    let role = |plan: &super::program::Plan| {
        let mut role = Role { transition: at, ..Role::default() };
        role.counts[ReplicaPhase::AttemptPending as usize] = plan.count;
        role
    };
    state.roles = program.roles.iter().map(role).collect();
    for replica in &mut state.replicas {
        let tries = std::mem::take(&mut replica.tries);
        *replica = Replica { tries, transition: at, ..Replica::default() };
    }
}
