//! Commands to a job.

use octoflow_model::{
    NodeIx, RunFact, Shutdown,
    taskset::StopReason,
    volcano::{Action, JobPhase, KIND, PodPhase, PodStop},
};

use super::{phase::Asker, policy::Cause, turn::Turn};
use crate::{
    engine::input::{Command, Refusal},
    run::mark,
};

impl Turn<'_> {
    pub fn command(&mut self, command: &Command) -> Result<(), Refusal> {
        let state = &self.run.state;
        if (state.over || state.phase.is_final()) && !matches!(command, Command::Mark { .. } | Command::Terminate) {
            return Err(self.finished(command));
        }
        match command {
            Command::Stop => self.shut_down(Shutdown::Stop),
            Command::Terminate if state.over => return Err(self.finished(command)),
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
            Command::Evict { pod, why } => return self.evict(pod, *why),
            Command::Mark { read, write } => {
                let written = mark::change(self.run, read, write, self.now)?;
                written.into_iter().for_each(|fact| self.decide(fact));
            }
            Command::Disband { .. } => {
                return Err(Refusal::Invalid("a Job has no control unit".to_owned()));
            }
            Command::StopNodes { .. } | Command::Resume { .. } | Command::Set { .. } => {
                let message = "a Job has no nodes to choose from; this works on the whole of it only";
                return Err(Refusal::Invalid(message.to_owned()));
            }
        }
        Ok(())
    }

    fn finished(&self, command: &Command) -> Refusal {
        Refusal::Finished { kind: KIND, name: self.run.state.head.name.to_string(), verb: command.verb() }
    }

    /// Shuts the job down. A stop may be escalated to a termination, not the other way round.
    fn shut_down(&mut self, how: Shutdown) {
        let now = self.run.state.head.shutdown;
        if now.is_some() && (now, how) != (Some(Shutdown::Stop), Shutdown::Terminate) {
            return;
        }
        let ending = |(_, pod): &(usize, &super::run::Pod)| pod.phase == PodPhase::Terminating;
        let told: Vec<usize> = self.run.state.pods.iter().enumerate().filter(ending).map(|(at, _)| at).collect();
        self.decide(RunFact::ShuttingDown { how, at: self.now });
        self.act(Action::TerminateJob, None, Asker::Person, &Cause::Command("Terminated"));
        told.into_iter().for_each(|at| self.resend_stop(NodeIx(at as u32)));
    }

    /// Evicts a pod: it is gone, and created again unless a policy says otherwise.
    fn evict(&mut self, name: &str, why: StopReason) -> Result<(), Refusal> {
        let pods = 0..self.run.program.pods;
        let live = |pod: &u32| {
            matches!(
                self.run.state.pods[*pod as usize].phase,
                PodPhase::Starting | PodPhase::Running | PodPhase::BackOff | PodPhase::Terminating
            )
        };
        let Some(pod) = pods.filter(live).find(|pod| self.run.pod_name(*pod) == name) else {
            return Err(Refusal::NoSuchPod { pod: name.to_owned() });
        };
        if self.run.state.pods[pod as usize].phase != PodPhase::Terminating {
            let why = if why == StopReason::Deleted { PodStop::Deleted } else { PodStop::Evicted };
            self.end_pod(pod, why, format!("pod {}", why.word().to_lowercase()));
        }
        Ok(())
    }
}
