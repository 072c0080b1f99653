//! Commands to runs. A command that ends a run also ends the open runs it owns, with the same input, so that one commit
//! holds all their facts and none is forgotten in a crash. Runs that a run has ordered are told in slices: it waits for
//! them, so they are found again after a crash.

use std::collections::BTreeSet;

use octoflow_model::{RunId, Time};

use super::Engine;
use crate::{
    engine::input::{Command, CommandKind, Outcome, Refusal},
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
        // What it has ordered learns that it ends, and not why: that is the reason of whoever asked.
        let (command, _) = command.split();
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
        if let Some(refusal) = self.runs.get(&id).and_then(|run| refusal(run, command)) {
            return Err(refusal);
        }
        let mut answer = Ok(());
        let (command, reason) = command.split();
        self.turn(id, now, outcome, |turn| {
            answer = match reason {
                Some(reason) => turn.command_because(command, reason),
                None => turn.command(command),
            }
        });
        answer
    }

    /// Sends the command to all open runs this one owns, directly or indirectly: at once, or in slices to those that it
    /// has ordered and waits for.
    pub(super) fn end_owned(&mut self, id: RunId, command: &Command, now: Time, outcome: &mut Outcome) {
        let mut owners = vec![id];
        while let Some(owner) = owners.pop() {
            for child in self.owned_by(owner) {
                if self.may_be_told_later(child, command) {
                    self.stops.push_back((child, command.clone()));
                    continue;
                }
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

/// Returns why a run takes no such command now, by one rule for all dialects: it takes those in the row of its dialect. Once
/// its end is decided, only what hurries that, what removes a pod of it and what changes its metadata; once it is over, only
/// the last of these.
fn refusal(run: &Run, command: &Command) -> Option<Refusal> {
    let (dialect, kind) = (run.dialect(), command.kind());
    let is_late = match kind {
        CommandKind::Mark => false,
        CommandKind::Terminate | CommandKind::Evict => run.finished(),
        CommandKind::Stop
        | CommandKind::Suspend
        | CommandKind::Resume
        | CommandKind::Nodes
        | CommandKind::Disband
        | CommandKind::Amend
        | CommandKind::Perform => run.is_decided(),
    };
    if is_late {
        return Some(Refusal::Finished { kind: dialect.kind.noun, name: run.name().to_owned(), verb: command.verb() });
    }
    (!dialect.commands.contains(&kind)).then(|| command.not_taken(dialect))
}
