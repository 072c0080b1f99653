//! One turn of a job: after an input, decides everything that follows until nothing is left to decide. Each decision is a
//! fact that is folded at once, so later decisions of the turn see it.

use std::ops::Range;

use octoflow_model::{
    Fact, NodeIx, RunFact, RunPhase, Time,
    volcano::{Action, JobFact, JobPhase, KillWork, LeftWork, PodPhase},
};

use super::{
    phase::{Asker, on_sync},
    policy::Cause,
    run::{Run, TaskGate},
};
use crate::{
    dialects::dialect::DialectRun,
    engine::{
        SharedState,
        slice::{MEMBERS_A_FACT, Slice, Work},
    },
    run::effect::Effects,
};

pub struct Turn<'a> {
    pub run: &'a mut Run,
    pub now: Time,
    pub shared: &'a SharedState,
    pub(super) effects: Effects,
    pub(super) slice: Slice,
    /// True if the turn starts a pod. Others of its gang start with the same input, whatever is left to do.
    pub(super) launches: bool,
}

/// Divides numbers in ascending order into ranges: the first of each, and how many there are.
pub(super) fn contiguous(numbers: &[u32]) -> Vec<(u32, u32)> {
    let pieces = numbers.chunk_by(|one, next| one + 1 == *next);
    pieces.map(|piece| (piece[0], piece.len() as u32)).collect()
}

impl<'a> Turn<'a> {
    pub fn new(run: &'a mut Run, now: Time, shared: &'a SharedState) -> Self {
        Self { run, now, shared, effects: Effects::default(), slice: Slice::new(0), launches: false }
    }

    pub(crate) fn limit(&mut self, work: Work) {
        self.slice.limit = work;
    }

    pub(crate) fn done(&self) -> Work {
        self.slice.done(0)
    }

    /// Decides until nothing is left to decide, or until the slice is used up. Returns true if work is left. A slice makes
    /// at least one visit. What was decided and is not done is done before anything else is decided.
    pub fn settle(&mut self) -> bool {
        let only_pending = |left: &[LeftWork]| left.iter().all(|work| matches!(work, LeftWork::Pending { .. }));
        if self.launches && !self.run.state.left.is_empty() && only_pending(&self.run.state.left) {
            self.run.todo.wakes.push((self.now, None));
            return false;
        }
        let mut visited = false;
        loop {
            let todo = &mut self.run.todo;
            if visited && self.slice.is_spent() && (todo.is_long() || !self.run.state.left.is_empty()) {
                return true;
            }
            visited = true;
            self.slice.visited();
            if let Some(pods) = todo.requeued.take() {
                self.requeue(pods);
            } else if let Some(pod) = todo.stops.pop_front() {
                self.resend_stop(NodeIx(pod));
            } else if !self.run.state.left.is_empty() {
                self.go_on();
            } else if let Some(pod) = todo.pods.pop_front() {
                self.visit_pod(pod);
            } else if std::mem::take(&mut todo.job) {
                self.sync();
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

    /// Lets pods that wait for room wait for it anew, with the demands that they have now.
    fn requeue(&mut self, pods: Range<u32>) {
        for pod in pods.clone() {
            if self.run.state.pods[pod as usize].phase == PodPhase::Queued {
                self.slice.covered(1);
                self.effects.freed.push(NodeIx(pod));
                self.run.todo.queued.push(NodeIx(pod));
            }
            if self.slice.is_spent() {
                self.run.todo.requeued = Some(pod + 1..pods.end).filter(|left| !left.is_empty());
                return;
            }
        }
    }

    /// Folds a decision into the state and records its effects.
    pub(super) fn decide(&mut self, fact: impl Into<Fact>) {
        let fact = fact.into();
        let before = self.run.state.version;
        let life = self.run.life_state();
        self.run.apply(&fact);
        self.effects.note_life(life, self.run.life_state(), self.now);
        self.slice.decided();
        if let Fact::Run(fact) = &fact {
            self.effects.note(fact);
        } else if let Fact::VolcanoJob(fact) = &fact {
            self.note(fact, before);
        } else {
            unreachable!("a Job decides nothing of other dialects: {fact:?}");
        }
        self.effects.facts.push(fact);
    }

    /// Decides what follows from the pods as they are: creates missing ones, and changes the phase.
    fn sync(&mut self) {
        let from = self.run.todo.created.take().unwrap_or_default();
        if self.run.state.over {
            return;
        }
        self.follow_manifest();
        if !self.run.state.left.is_empty() || !self.create_missing(from) {
            self.run.todo.job = true;
            return;
        }
        let (state, rules) = (&self.run.state, self.run.program.rules);
        if state.phase.is_final() {
            return self.end();
        }
        if let Some((phase, message)) = on_sync(state.phase, &self.run.counts(), state.retries, rules) {
            let (retries, reason) = (state.retries, state.reason.clone());
            if phase.is_final() {
                return self.finish(phase, message);
            }
            let version = state.version;
            self.decide(JobFact::Entered { phase, at: self.now, retries, version, reason, message });
        }
    }

    /// Does what the manifest or the head of the run asks for: a suspended job is aborted, one that is shut down is
    /// terminated.
    fn follow_manifest(&mut self) {
        let state = &self.run.state;
        let began = matches!(state.phase, JobPhase::Pending | JobPhase::Running | JobPhase::Restarting);
        if state.head.closing() && !state.phase.is_final() {
            self.act(Action::TerminateJob, None, Asker::Person, &Cause::Command("Terminated"));
        } else if state.head.suspended && began {
            self.act(Action::AbortJob, None, Asker::Person, &Cause::Command("Suspended"));
        }
    }

    /// Creates the pods that are missing, one fact for each contiguous range, beginning with this task and this place among
    /// its pods. Returns false if the slice is used up and more may be missing.
    fn create_missing(&mut self, (task, pod): (usize, usize)) -> bool {
        if !self.run.state.phase.creates_pods() || self.run.state.count(PodPhase::Absent) == 0 || self.awaits_claims() {
            return true;
        }
        let gates = self.run.gates();
        for (task, from) in (task..gates.len()).zip(std::iter::once(pod).chain(std::iter::repeat(0))) {
            if gates[task] == TaskGate::Open && !self.create_missing_of(task, from) {
                return false;
            }
        }
        true
    }

    /// Creates the missing pods of a task, beginning with this place among its pods.
    fn create_missing_of(&mut self, task: usize, from: usize) -> bool {
        let pods: Vec<u32> = self.run.program.tasks[task].pods().skip(from).collect();
        let mut at = 0;
        while at < pods.len() && self.run.state.tasks[task].count(PodPhase::Absent) > 0 {
            let absent = |pod: u32| self.run.state.pods[pod as usize].phase == PodPhase::Absent;
            let Some(next) = pods[at..].iter().position(|pod| absent(*pod)) else { return true };
            let first = pods[at + next];
            let follow = |(pod, number): &(&u32, u32)| **pod == first + number && absent(**pod);
            let count = pods[at + next..].iter().zip(0..MEMBERS_A_FACT).take_while(follow).count() as u32;
            at += next + count as usize;
            self.decide(JobFact::Created { first, count, at: self.now });
            if self.run.state.admitted {
                (first..first + count).for_each(|pod| self.is_pending(pod));
            }
            if self.slice.is_spent() {
                self.run.todo.created = Some((task, from + at));
                return false;
            }
        }
        true
    }

    /// Reports whether claims are missing that pods need, and records which.
    fn awaits_claims(&mut self) -> bool {
        let missing = self.run.missing_claims(self.shared);
        let known = self.run.state.awaits.as_ref().map_or(&[][..], |(_, claims)| claims);
        if missing != known {
            self.decide(JobFact::Awaits { at: self.now, claims: missing });
        }
        self.run.state.awaits.is_some()
    }

    /// Enters a final phase, and ends the pods that are left.
    fn finish(&mut self, phase: JobPhase, message: String) {
        let state = &self.run.state;
        let (retries, reason) = (state.retries, state.reason.clone());
        let live =
            PodPhase::ALL.iter().any(|phase| !phase.ended() && *phase != PodPhase::Absent && state.count(*phase) > 0);
        let version = state.version + u32::from(live);
        let delayed: Vec<u32> = state.delayed.keys().copied().filter(|_| !live).collect();
        for pod in delayed {
            self.decide(JobFact::DelayEnded { pod, at: self.now, called_off: true });
        }
        let why = format!("the Job is {phase}");
        self.decide(JobFact::Entered { phase, at: self.now, retries, version, reason, message });
        let pods = vec![(0, self.run.program.slots)];
        self.kill(KillWork { pods, keep_finished: true, why, calls_off: None });
    }

    /// Ends the run once nothing of it is left.
    fn end(&mut self) {
        let state = &self.run.state;
        if state.count(PodPhase::Terminating) == 0 {
            let phase = if state.phase == JobPhase::Completed { RunPhase::Succeeded } else { RunPhase::Failed };
            let message = state.message.clone();
            self.decide(RunFact::Ended { phase, message, at: self.now });
        }
    }
}
