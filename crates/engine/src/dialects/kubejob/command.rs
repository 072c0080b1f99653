//! Commands to a job.

use octoflow_model::{
    RunFact, Shutdown,
    kubejob::{KubeJobFact, PodPhase, PodStop},
    taskset::StopReason,
};

use super::{DIALECT, turn::Turn};
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
                if !state.head.suspended {
                    self.decide(RunFact::Suspended { at: self.now });
                }
            }
            Command::Resume { selector: None, supplied } if supplied.is_empty() => {
                if state.head.suspended {
                    self.decide(RunFact::Resumed { at: self.now });
                }
            }
            Command::Evict { pod, why } => return self.evict(pod, *why),
            Command::Amend { spec } => return self.amend(spec),
            Command::Mark { read, write } => {
                let written = mark::change(self.run, read, write, self.now)?;
                written.into_iter().for_each(|fact| self.decide(fact));
            }
            Command::StopNodes { .. }
            | Command::Resume { .. }
            | Command::Set { .. }
            | Command::Disband { .. }
            | Command::Perform { .. }
            | Command::Because { .. } => return Err(command.not_taken(&DIALECT)),
        }
        Ok(())
    }

    /// Begins a shutdown, or raises one.
    fn shut_down(&mut self, how: Shutdown) {
        if let Some(fact) = self.run.state.head.shut_down(how, self.now) {
            self.decide(fact);
            self.resend_stops();
        }
    }

    /// Evicts a pod: it counts as failed unless a rule says otherwise, and is replaced. One that has ended is only deleted.
    fn evict(&mut self, name: &str, why: StopReason) -> Result<(), Refusal> {
        let pods = 0..self.run.state.pods.len() as u32;
        let there = |pod: &u32| self.run.state.pods[*pod as usize].phase != PodPhase::Gone;
        let Some(pod) = pods.filter(there).find(|pod| self.run.pod_name(*pod) == name) else {
            return Err(Refusal::NoSuchPod { pod: name.to_owned() });
        };
        let why = if why == StopReason::Deleted { PodStop::Deleted } else { PodStop::Evicted };
        match self.run.state.pods[pod as usize].phase {
            PodPhase::Queued | PodPhase::Starting | PodPhase::Running | PodPhase::BackOff => {
                self.delete(vec![pod], why, &format!("pod {}", why.word().to_lowercase()));
            }
            PodPhase::Succeeded | PodPhase::Failed => {
                // What it counted as stays.
                let counted = octoflow_model::kubejob::Counted::Nothing;
                self.decide(KubeJobFact::Removed { pods: vec![pod], at: self.now, counted });
            }
            PodPhase::Terminating | PodPhase::Gone => {}
        }
        Ok(())
    }
}
