//! Runs that order other runs. The parent learns what becomes of its child in the input, and so in the commit, in which it
//! happens: nobody watches objects, and nothing is inferred from what exists. Which runs are ordered, and what their ends
//! mean, is up to the parent's dialect.

use octoflow_model::{AttemptId, RunId, Time};

use super::Engine;
use crate::{
    dialects::dialect::ChildEvent,
    engine::input::{Command, Outcome},
    run::Run,
};

impl Engine {
    /// Reports whether the attempt still waits for its run to be created. So a run that is ordered twice, after a crash or
    /// by a runtime that repeats itself, is created once.
    pub(super) fn is_wanted(&self, attempt: AttemptId) -> bool {
        self.runs.get(&attempt.run).is_some_and(|run| run.wants_child(attempt))
    }

    /// Tells the parent that the run it ordered was submitted.
    pub(super) fn tell_of_creation(&mut self, child: RunId, now: Time, outcome: &mut Outcome) {
        self.tell(child, now, outcome, |run| ChildEvent::Created(run));
    }

    /// Tells the parent that the run it ordered has changed: as a whole, or a part of it that the parent follows.
    pub(super) fn tell_of_change(&mut self, child: RunId, whole: bool, now: Time, outcome: &mut Outcome) {
        let Some(run) = self.runs.get(&child) else { return };
        let Some(attempt) = run.head().ordered_by.filter(|attempt| self.is_child(*attempt, child)) else { return };
        if whole || self.runs.get(&attempt.run).is_some_and(|parent| parent.follows_parts_of(attempt.task, run)) {
            self.tell(child, now, outcome, |run| ChildEvent::Changed(run));
        }
    }

    /// Tells the parent that the run it ordered is deleted. One that is over was told of already.
    pub(super) fn tell_of_deletion(&mut self, child: RunId, now: Time, outcome: &mut Outcome) {
        let open = self.runs.get(&child).filter(|run| !run.finished());
        let attempt = open.and_then(|run| run.head().ordered_by);
        if attempt.is_some_and(|attempt| self.is_child(attempt, child)) {
            self.tell(child, now, outcome, |run| ChildEvent::Deleted(run));
        }
    }

    /// Reports whether the attempt waits for this run.
    fn is_child(&self, attempt: AttemptId, child: RunId) -> bool {
        let parent = self.runs.get(&attempt.run);
        parent.is_some_and(|parent| parent.is_placed(attempt) && parent.child_of(attempt.task) == Some(child))
    }

    fn tell(
        &mut self,
        child: RunId,
        now: Time,
        outcome: &mut Outcome,
        event: impl for<'r> FnOnce(&'r Run) -> ChildEvent<'r>,
    ) {
        // The parent reads the child while it decides.
        let Some(run) = self.runs.remove(&child) else { return };
        if let Some(attempt) = run.head().ordered_by {
            self.turn(attempt.run, now, outcome, |turn| turn.child(attempt, event(&run)));
        }
        self.runs.insert(child, run);
    }

    /// Carries out the commands of parents to their children, and to what those own. A run that is over refuses, which
    /// changes nothing.
    pub(super) fn command_children(&mut self, now: Time, outcome: &mut Outcome) {
        while let Some((child, command)) = self.commands.pop_front() {
            let _ = self.send_command(child, &command, now, outcome);
            if matches!(command, Command::Stop | Command::Terminate) {
                self.end_owned(child, &command, now, outcome);
            }
        }
    }
}
