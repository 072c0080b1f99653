//! Commands to a flow. What ends, suspends or resumes it does the same to its jobs, in the same commit.

use octoflow_model::{NodeIx, RunFact, Shutdown};

use super::{DIALECT, state::Stage, turn::Turn};
use crate::{
    engine::input::{Command, Refusal},
    run::mark,
};

impl Turn<'_> {
    pub fn command(&mut self, command: &Command) -> Result<(), Refusal> {
        match command {
            Command::Stop => self.shut_down(Shutdown::Stop, command),
            Command::Terminate => self.shut_down(Shutdown::Terminate, command),
            Command::Suspend => {
                if !self.run.state.head.suspended {
                    self.decide(RunFact::Suspended { at: self.now });
                }
                self.pass_on(command);
            }
            Command::Resume { selector: None, supplied } if supplied.is_empty() => {
                if self.run.state.head.suspended {
                    self.decide(RunFact::Resumed { at: self.now });
                }
                self.pass_on(command);
            }
            Command::Mark { read, write } => {
                let written = mark::change(self.run, read, write, self.now)?;
                written.into_iter().for_each(|fact| self.decide(fact));
            }
            Command::StopNodes { .. }
            | Command::Resume { .. }
            | Command::Set { .. }
            | Command::Evict { .. }
            | Command::Disband { .. }
            | Command::Amend { .. }
            | Command::Perform { .. }
            | Command::Because { .. } => return Err(command.not_taken(&DIALECT)),
        }
        Ok(())
    }

    /// Begins a shutdown, or raises one.
    fn shut_down(&mut self, how: Shutdown, command: &Command) {
        let Some(fact) = self.run.state.head.shut_down(how, self.now) else { return };
        self.decide(fact);
        let wanted = |(_, entry): &(usize, &super::state::Entry)| entry.stage == Stage::Wanted;
        let entries = self.run.state.flow.entries.iter().enumerate().filter(wanted);
        let stops: Vec<NodeIx> = entries.map(|(at, _)| NodeIx(at as u32)).collect();
        self.run.todo.stops.extend(stops);
        self.pass_on(command);
    }

    /// Gives the jobs that are there the same command.
    fn pass_on(&mut self, command: &Command) {
        let jobs = self.active().into_iter().filter_map(|at| self.run.child(NodeIx(at as u32)));
        let commands: Vec<_> = jobs.map(|job| (job, command.clone())).collect();
        self.effects.commands.extend(commands);
    }
}
