//! One turn of a job: after an input, decides everything that follows until nothing is left to decide. Each decision is a
//! fact that is folded at once, so later decisions of the turn see it.

use octoflow_model::{
    Fact, RunFact, RunPhase, Time,
    volcano::{Action, JobFact, JobPhase, PodPhase},
};

use super::{
    phase::{Asker, on_sync},
    policy::Cause,
    run::{Gate, Run},
};
use crate::{engine::SharedState, run::effect::Effects};

pub struct Turn<'a> {
    pub run: &'a mut Run,
    pub now: Time,
    pub shared: &'a SharedState,
    pub(super) effects: Effects,
}

impl<'a> Turn<'a> {
    pub fn new(run: &'a mut Run, now: Time, shared: &'a SharedState) -> Self {
        Self { run, now, shared, effects: Effects::default() }
    }

    /// Decides until nothing is left to decide.
    pub fn settle(&mut self) {
        loop {
            let todo = &mut self.run.todo;
            if let Some(pod) = todo.pods.pop_front() {
                self.visit_pod(pod);
            } else if std::mem::take(&mut todo.job) {
                self.sync();
            } else {
                return;
            }
        }
    }

    /// Folds a decision into the state and records its effects.
    pub(super) fn decide(&mut self, fact: impl Into<Fact>) {
        let fact = fact.into();
        let before = self.run.state.version;
        self.run.apply(&fact);
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
        if self.run.state.over {
            return;
        }
        self.follow_manifest();
        self.create_missing();
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

    /// Creates the pods that are missing, one fact for each contiguous range.
    fn create_missing(&mut self) {
        if !self.run.state.phase.creates_pods() || self.run.state.count(PodPhase::Absent) == 0 {
            return;
        }
        let gates = self.run.gates();
        for (task, gate) in gates.into_iter().enumerate() {
            if gate != Gate::Open || self.run.state.tasks[task].count(PodPhase::Absent) == 0 {
                continue;
            }
            let plan = &self.run.program.tasks[task];
            let (mut next, end) = (plan.first, plan.first + plan.count);
            let absent = |run: &Run, pod: &u32| run.state.pods[*pod as usize].phase == PodPhase::Absent;
            while let Some(first) = (next..end).find(|pod| absent(self.run, pod)) {
                let count = (first..end).take_while(|pod| absent(self.run, pod)).count() as u32;
                self.decide(JobFact::Created { first, count, at: self.now });
                if self.run.state.admitted {
                    (first..first + count).for_each(|pod| self.is_pending(pod));
                }
                next = first + count;
            }
        }
    }

    /// Enters a final phase, and ends the pods that are left.
    fn finish(&mut self, phase: JobPhase, message: String) {
        let state = &self.run.state;
        let (retries, reason) = (state.retries, state.reason.clone());
        let live = state.pods.iter().any(|pod| !pod.phase.ended() && pod.phase != PodPhase::Absent);
        let version = state.version + u32::from(live);
        let delayed: Vec<u32> = state.delayed.keys().copied().filter(|_| !live).collect();
        for pod in delayed {
            self.decide(JobFact::DelayEnded { pod, at: self.now, called_off: true });
        }
        let why = format!("the Job is {phase}");
        self.decide(JobFact::Entered { phase, at: self.now, retries, version, reason, message });
        self.kill(0, self.run.program.pods, true, &why);
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
