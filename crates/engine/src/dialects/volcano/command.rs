//! Commands to a job.

use octoflow_model::{
    Shutdown,
    taskset::StopReason,
    volcano::{Action, Event, JobFact, JobPhase, PodPhase, PodStop},
};

use super::{DIALECT, phase::Asker, policy::Cause, status::shown_phase, turn::Turn};
use crate::{
    engine::input::{Command, Refusal},
    run::mark,
};

impl Turn<'_> {
    pub fn command(&mut self, command: &Command) -> Result<(), Refusal> {
        let state = &self.run.state;
        match command {
            Command::Stop => self.shut_down(Shutdown::Stop),
            Command::Terminate => self.shut_down(Shutdown::Terminate),
            Command::Suspend => {
                if matches!(state.phase, JobPhase::Completing | JobPhase::Terminating) {
                    return Err(Refusal::Invalid(format!("the Job is {} and cannot be suspended", state.phase)));
                }
                self.act(Action::AbortJob, None, Asker::Person, &Cause::Command("Suspended"));
            }
            Command::Resume { selector: None, supplied } if supplied.is_empty() => {
                self.act(Action::ResumeJob, None, Asker::Person, &Cause::Command("Resumed"));
            }
            Command::Amend { spec } => return self.amend(spec),
            Command::Perform { action } => return self.perform(action),
            Command::Evict { pod, why } => return self.evict(pod, *why),
            Command::Mark { read, write } => {
                let written = mark::change(self.run, read, write, self.now)?;
                written.into_iter().for_each(|fact| self.decide(fact));
            }
            Command::StopNodes { .. }
            | Command::Resume { .. }
            | Command::Set { .. }
            | Command::Disband { .. }
            | Command::Because { .. } => {
                return Err(command.not_taken(&DIALECT));
            }
        }
        Ok(())
    }

    /// Carries out an action that somebody asks for by name.
    fn perform(&mut self, word: &str) -> Result<(), Refusal> {
        let known = Action::ALL.into_iter().find(|action| action.word() == word);
        match known {
            Some(Action::TerminateJob) => self.shut_down(Shutdown::Stop),
            Some(action @ (Action::AbortJob | Action::RestartJob | Action::CompleteJob | Action::ResumeJob)) => {
                self.act(action, None, Asker::Person, &Cause::Command("CommandIssued"));
            }
            Some(Action::RestartTask | Action::RestartPod | Action::RestartPartition) => {
                return Err(Refusal::Invalid(format!("{word} is about a pod, and a command names none")));
            }
            None => return Err(Command::Perform { action: word.to_owned() }.not_taken(&DIALECT)),
        }
        Ok(())
    }

    /// Begins a shutdown, or raises one.
    fn shut_down(&mut self, how: Shutdown) {
        let Some(fact) = self.run.state.head.shut_down(how, self.now) else { return };
        let ending = |(_, pod): &(usize, &super::run::Pod)| pod.phase == PodPhase::Terminating;
        let told: Vec<usize> = self.run.state.pods.iter().enumerate().filter(ending).map(|(at, _)| at).collect();
        self.decide(fact);
        self.act(Action::TerminateJob, None, Asker::Person, &Cause::Command("Terminated"));
        self.run.todo.stops.extend(told.into_iter().map(|at| at as u32));
    }

    /// Evicts a pod: it is gone, and created again unless a policy says otherwise.
    fn evict(&mut self, name: &str, why: StopReason) -> Result<(), Refusal> {
        let mut pods = 0..self.run.program.slots;
        let exists = |pod: &u32| shown_phase(self.run, self.run.state.pods[*pod as usize].phase).is_some();
        let Some(pod) = pods.find(|pod| exists(pod) && self.run.pod_name(*pod) == name) else {
            return Err(Refusal::NoSuchPod { pod: name.to_owned() });
        };
        match self.run.state.pods[pod as usize].phase {
            PodPhase::Starting | PodPhase::Running | PodPhase::BackOff => {
                let why = if why == StopReason::Deleted { PodStop::Deleted } else { PodStop::Evicted };
                self.end_pod(pod, why, format!("pod {}", why.word().to_lowercase()));
            }
            // No runtime has it, so it is gone at once.
            PodPhase::Queued | PodPhase::Succeeded | PodPhase::Failed => {
                self.decide(JobFact::Removed { first: pod, count: 1, at: self.now });
                self.call_off(pod, &[Event::PodPending]);
                self.raise(Event::PodEvicted, pod, None);
            }
            PodPhase::Terminating | PodPhase::Absent => {}
        }
        Ok(())
    }
}
