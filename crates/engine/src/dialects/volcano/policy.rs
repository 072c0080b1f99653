//! Policies: which action follows an event, at once or later, and what an action does to the pods.

use octoflow_model::{
    RunFact,
    volcano::{Action, DelayedAction, Event, JobFact, JobPhase, KillWork},
};

use super::{
    phase::{Asker, Kill, Step, on_action},
    turn::{Turn, contiguous},
};

/// Why an action is carried out.
#[derive(Clone, Debug)]
pub(super) enum Cause {
    /// An event of a pod.
    Event(Event),
    /// A command or the manifest, in one word.
    Command(&'static str),
}

impl Turn<'_> {
    /// Does what the policies say about an event of a pod.
    pub(super) fn raise(&mut self, event: Event, pod: u32, code: Option<i32>) {
        // What is being ended, or is over, has no events.
        if !matches!(self.run.state.phase, JobPhase::Pending | JobPhase::Running | JobPhase::Restarting) {
            return;
        }
        let task = self.run.program.task_of(pod);
        let Some(rule) = self.run.program.tasks[task].rule(event, code) else { return };
        let (Some(action), timeout) = (rule.action, rule.timeout) else { return };
        let Some(timeout) = timeout else {
            return self.act(action, Some(pod), Asker::Policy, &Cause::Event(event));
        };
        // The first of equal actions counts, so that a pod that fails again and again does not put it off for ever.
        if self.run.state.delayed.get(&pod).is_none_or(|waiting| waiting.action != action) {
            let (at, due) = (self.now, self.now.saturating_add(timeout));
            self.decide(JobFact::Delayed(Box::new(DelayedAction { pod, at, due, event, action })));
        }
    }

    /// Raises that a pod is pending.
    pub(super) fn is_pending(&mut self, pod: u32) {
        self.raise(Event::PodPending, pod, None);
    }

    /// Calls off the delayed action of a pod that left the state it was about.
    pub(super) fn call_off(&mut self, pod: u32, events: &[Event]) {
        if self.run.state.delayed.get(&pod).is_some_and(|waiting| events.contains(&waiting.event)) {
            self.decide(JobFact::DelayEnded { pod, at: self.now, called_off: true });
        }
    }

    /// Carries out the delayed action of a pod if its time has come.
    pub(super) fn act_if_due(&mut self, pod: u32) {
        let Some(waiting) = self.run.state.delayed.get(&pod).filter(|waiting| waiting.due <= self.now).cloned() else {
            return;
        };
        self.decide(JobFact::DelayEnded { pod, at: self.now, called_off: false });
        self.act(waiting.action, Some(pod), Asker::Policy, &Cause::Event(waiting.event));
    }

    /// Carries out an action. A targeted one is about `pod`.
    pub(super) fn act(&mut self, action: Action, pod: Option<u32>, asker: Asker, cause: &Cause) {
        let state = &self.run.state;
        let (phase, kill, retry) = match on_action(state.phase, action, asker) {
            Step::Nothing => return,
            Step::Kill(kill) => (state.phase, kill, false),
            Step::Enter { phase, kill, retry } => (phase, kill, retry),
        };
        let retries = state.retries + u32::from(retry);
        let whole = kill != Kill::Target;
        let version = state.version + u32::from(whole);
        let reason = match cause {
            Cause::Event(event) => event.word().to_owned(),
            Cause::Command(word) => (*word).to_owned(),
        };
        let message = match (cause, pod) {
            (Cause::Event(event), Some(pod)) => {
                format!("{}: {} of {}", action.word(), event.word(), self.run.short_name(pod))
            }
            (Cause::Event(_), None) | (Cause::Command(_), _) => action.word().to_owned(),
        };
        self.note_suspension(phase);
        self.decide(JobFact::Entered { phase, at: self.now, retries, version, reason, message: message.clone() });
        // After the last attempt its pods stay, so that people can see what was wrong.
        let last = phase == JobPhase::Restarting && retries >= self.run.program.rules.max_retry;
        let keep = kill == Kill::Unfinished || last;
        let pods = self.target(action, pod, kill);
        // Equal actions that wait for pods of the same target are called off. An action on the whole job has called off
        // all.
        self.kill(KillWork { pods, keep_finished: keep, why: message, calls_off: Some(action) });
    }

    /// Keeps the head of the run in step, so that whoever resumes runs finds it suspended.
    fn note_suspension(&mut self, phase: JobPhase) {
        let (suspended, at) = (self.run.state.head.suspended, self.now);
        if phase == JobPhase::Aborting && !suspended {
            self.decide(RunFact::Suspended { at });
        } else if phase == JobPhase::Restarting && suspended {
            self.decide(RunFact::Resumed { at });
        }
    }

    /// Returns the pods that an action ends, in ascending order, as ranges.
    fn target(&self, action: Action, pod: Option<u32>, kill: Kill) -> Vec<(u32, u32)> {
        let program = &self.run.program;
        let everything = || vec![(0, program.slots)];
        let (Some(pod), Kill::Target) = (pod, kill) else { return everything() };
        match action {
            Action::RestartTask => {
                let ranges = &program.tasks[program.task_of(pod)].ranges;
                ranges.iter().map(|range| (range.start, range.end - range.start)).collect()
            }
            Action::RestartPod => vec![(pod, 1)],
            Action::RestartPartition => contiguous(&program.partition_of(pod)),
            Action::AbortJob | Action::RestartJob | Action::TerminateJob | Action::CompleteJob | Action::ResumeJob => {
                everything()
            }
        }
    }
}
