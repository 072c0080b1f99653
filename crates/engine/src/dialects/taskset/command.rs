//! Commands to a TaskSet.

use octoflow_model::{
    RunFact, Shutdown,
    taskset::{ReplicaPhase, SetFact, StopReason},
};

use super::{DIALECT, ident, turn::Turn};
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
            Command::Disband { unit } => {
                let own = ident::unit_name(&state.head.name, state.attempt) == *unit;
                if own && state.at_work() && state.verdict.is_none() {
                    let message = format!("its control unit {unit} was deleted");
                    self.decide(SetFact::Judged { at: self.now, succeeded: false, message, last: false });
                }
            }
            Command::Mark { read, write } => {
                let written = mark::change(self.run, read, write, self.now)?;
                written.into_iter().for_each(|fact| self.decide(fact));
            }
            Command::StopNodes { .. }
            | Command::Resume { .. }
            | Command::Set { .. }
            | Command::Amend { .. }
            | Command::Perform { .. }
            | Command::Because { .. } => return Err(command.not_taken(&DIALECT)),
        }
        Ok(())
    }

    /// Begins a shutdown, or raises one.
    fn shut_down(&mut self, how: Shutdown) {
        if let Some(fact) = self.run.state.head.shut_down(how, self.now) {
            self.decide(fact);
            let told = self
                .run
                .placed()
                .filter(|at| self.run.state.replicas[at.at()].phase == ReplicaPhase::AttemptDeletionRequested);
            let told: Vec<u32> = told.map(|at| at.0).collect();
            self.run.todo.stops.extend(told);
        }
    }

    /// Evicts a pod; its replica fails, and may be retried.
    fn evict(&mut self, pod: &str, why: StopReason) -> Result<(), Refusal> {
        let mut live = self.run.placed().map(|at| at.0);
        let Some(replica) = live.find(|replica| self.run.pod_of(*replica).as_deref() == Some(pod)) else {
            return Err(Refusal::NoSuchPod { pod: pod.to_owned() });
        };
        drop(live);
        if self.run.state.replicas[replica as usize].phase != ReplicaPhase::AttemptDeletionRequested {
            self.end_pod(replica, why, format!("pod {}", why.word().to_lowercase()));
        }
        Ok(())
    }
}
