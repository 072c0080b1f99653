//! Commands to runs. A command that ends a run also ends the open runs it owns, with the same input, so that one commit
//! holds all their facts and none is forgotten in a crash.

use std::collections::BTreeSet;

use octoflow_model::{RunId, Time};

use super::Engine;
use crate::{
    engine::input::{Command, Outcome, Refusal},
    run::Run,
};

/// Open runs created by other open runs: pairs of parent and child.
#[derive(Debug, Default)]
pub(super) struct ChildRuns(BTreeSet<(RunId, RunId)>);

impl ChildRuns {
    pub(super) fn insert(&mut self, run: &Run) {
        self.0.extend(run.parent().map(|parent| (parent, run.id())));
    }

    pub(super) fn remove(&mut self, run: &Run) {
        if let Some(parent) = run.parent() {
            self.0.remove(&(parent, run.id()));
        }
    }

    pub(super) fn children(&self, parent: RunId) -> impl Iterator<Item = RunId> + '_ {
        self.0.range((parent, RunId(u64::MIN))..=(parent, RunId(u64::MAX))).map(|(_, child)| *child)
    }
}

impl Engine {
    pub(super) fn command(&mut self, id: RunId, command: &Command, now: Time, outcome: &mut Outcome) {
        if !self.runs.contains_key(&id) {
            outcome.refusal = Some(Refusal::UnknownRun(id));
            return;
        }
        let answer = self.send_command(id, command, now, outcome);
        if answer.is_ok() && matches!(command, Command::Stop | Command::Terminate) {
            self.end_owned(id, command, now, outcome);
        }
        outcome.refusal = answer.err();
    }

    pub(super) fn send_command(
        &mut self,
        id: RunId,
        command: &Command,
        now: Time,
        outcome: &mut Outcome,
    ) -> Result<(), Refusal> {
        // A run that was only accepted begins first, so that commands never see a run that has not begun.
        self.turn(id, now, outcome, |_| ());
        let mut answer = Ok(());
        self.turn(id, now, outcome, |turn| answer = turn.command(command));
        answer
    }

    /// Sends the command to all open runs this one owns, directly or indirectly. The work limit bounds only what
    /// follows from the command: every run gets it.
    pub(super) fn end_owned(&mut self, id: RunId, command: &Command, now: Time, outcome: &mut Outcome) {
        let mut owners = vec![id];
        while let Some(owner) = owners.pop() {
            for child in self.owned_by(owner) {
                // A run that is already over refuses, but runs it created may still be open.
                let _ = self.send_command(child, command, now, outcome);
                owners.push(child);
            }
        }
    }

    /// Returns the runs that this one created and that name it as an owner.
    fn owned_by(&self, id: RunId) -> Vec<RunId> {
        let Some(uid) = self.runs.get(&id).map(|run| run.uid().to_owned()) else { return Vec::new() };
        let is_owned = |child: &RunId| {
            let ownership = self.runs.get(child).map(|run| run.marks().ownership).unwrap_or_default();
            ownership.owners.iter().any(|owner| owner["uid"] == uid.as_str())
        };
        self.children.children(id).filter(is_owned).collect()
    }
}
