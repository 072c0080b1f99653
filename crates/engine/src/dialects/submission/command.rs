//! Commands to a submitted job. Before the hand-over they are about the walk; after it they are passed on to the run that
//! came out, in the same commit.

use octoflow_model::{RunFact, Shutdown, submitted::WalkFact};

use super::{DIALECT, run::CHILD, state::WalkStep, turn::Turn};
use crate::{
    engine::input::{Command, CommandKind, Refusal},
    kinds,
    run::mark,
};

/// The action that asks the gate again which has suspended the job.
const RECHECK: &str = "recheck";

impl Turn<'_> {
    pub(super) fn command(&mut self, command: &Command, reason: Option<&str>) -> Result<(), Refusal> {
        if let Some(refusal) = self.refusal(command) {
            return Err(refusal);
        }
        if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            let command = word(command).to_owned();
            self.decide(WalkFact::Told { at: self.now, command, reason: reason.to_owned() });
        }
        match command {
            Command::Stop => self.shut_down(Shutdown::Stop, command),
            Command::Terminate => self.shut_down(Shutdown::Terminate, command),
            Command::Suspend => {
                if !self.run.state.head.suspended {
                    self.decide(RunFact::Suspended { at: self.now });
                }
                self.pass_on(command);
            }
            Command::Resume { .. } => self.resume(command, false),
            Command::Perform { .. } => self.resume(command, true),
            Command::Mark { read, write } => {
                let written = mark::change(self.run, read, write, self.now)?;
                written.into_iter().for_each(|fact| self.decide(fact));
            }
            Command::StopNodes { .. }
            | Command::Set { .. }
            | Command::Evict { .. }
            | Command::Disband { .. }
            | Command::Amend { .. }
            | Command::Because { .. } => return Err(command.not_taken(&DIALECT)),
        }
        Ok(())
    }

    /// Returns why the job does not take the command as it is now.
    fn refusal(&self, command: &Command) -> Option<Refusal> {
        let state = &self.run.state;
        let name = &state.head.name;
        let said = |text: String| Some(Refusal::Invalid(text));
        match command {
            Command::Suspend => self.not_passed_on(CommandKind::Suspend),
            Command::Resume { selector: None, supplied } if supplied.is_empty() => {
                if !state.head.suspended && !state.walk.gated {
                    return said(format!("the job '{name}' is not suspended, so it cannot be resumed"));
                }
                self.not_passed_on(CommandKind::Resume)
            }
            Command::Perform { action } if action == RECHECK => (!state.walk.gated)
                .then(|| Refusal::Invalid(format!("no gate holds the job '{name}', so none can be asked again"))),
            Command::Stop | Command::Terminate | Command::Mark { .. } => None,
            Command::Resume { .. }
            | Command::Perform { .. }
            | Command::StopNodes { .. }
            | Command::Set { .. }
            | Command::Evict { .. }
            | Command::Disband { .. }
            | Command::Amend { .. }
            | Command::Because { .. } => Some(command.not_taken(&DIALECT)),
        }
    }

    /// Returns why a command that is for the run that came out cannot be passed on to it.
    fn not_passed_on(&self, command: CommandKind) -> Option<Refusal> {
        let child = self.run.state.walk.child.as_ref()?;
        let kind = kinds::find(kinds::group_of(&child.api_version), &child.kind)?;
        let takes = kind.dialect()?.commands.contains(&command);
        (!takes).then(|| Refusal::Invalid(format!("a {} cannot be suspended or resumed", kind.noun)))
    }

    fn resume(&mut self, command: &Command, recheck: bool) {
        if self.run.state.walk.gated {
            // The gate may be under way by itself.
            self.break_off();
            self.decide(WalkFact::Released { at: self.now, recheck });
        }
        if self.run.state.head.suspended {
            self.decide(RunFact::Resumed { at: self.now });
        }
        if !recheck {
            self.pass_on(command);
        }
    }

    fn shut_down(&mut self, how: Shutdown, command: &Command) {
        let Some(fact) = self.run.state.head.shut_down(how, self.now) else { return };
        self.decide(fact);
        self.pass_on(command);
    }

    /// Gives the run that came out the same command.
    fn pass_on(&mut self, command: &Command) {
        if self.run.state.walk.step == WalkStep::Following
            && let Some(child) = self.run.child(CHILD)
        {
            self.effects.commands.push((child, command.clone()));
        }
    }

    /// Returns why the job was stopped.
    pub(super) fn why_stopped(&self) -> String {
        self.told_why("stopped before it was handed over".to_owned())
    }

    /// Returns the reason that whoever stopped the job gave, or what is known without it.
    pub(super) fn told_why(&self, otherwise: String) -> String {
        let stops = [word(&Command::Stop), word(&Command::Terminate)];
        let told = self.run.state.walk.reasons.iter().rev().find(|told| stops.contains(&told.command.as_str()));
        told.map_or(otherwise, |told| told.reason.clone())
    }
}

/// Returns the word under which the reason of a command is kept.
fn word(command: &Command) -> &str {
    match command {
        Command::Stop => "stop",
        Command::Terminate => "terminate",
        Command::Suspend => "suspend",
        Command::Resume { .. } => "resume",
        Command::Perform { action } => action,
        Command::StopNodes { .. }
        | Command::Set { .. }
        | Command::Evict { .. }
        | Command::Disband { .. }
        | Command::Amend { .. }
        | Command::Mark { .. }
        | Command::Because { .. } => command.verb(),
    }
}
