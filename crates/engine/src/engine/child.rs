//! Runs that order other runs. The parent learns what becomes of its child in the input, and so in the commit, in which it
//! happens: nobody watches objects, and nothing is inferred from what exists. Which runs are ordered, and what their ends
//! mean, is up to the parent's dialect.

use std::sync::Arc;

use octoflow_model::{AttemptId, RunId, Shutdown, Submission, Time};

use super::Engine;
use crate::{
    dialects::dialect::{self, ChildEvent},
    engine::input::{Command, Outcome},
    run::{Run, head::Head},
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
    /// changes nothing. Those that may wait are carried out as far as the input may, and at least one of them.
    pub(super) fn command_children(&mut self, now: Time, outcome: &mut Outcome) {
        self.carry_out_commands(now, outcome);
        let mut told = false;
        while let Some((child, command)) = self.stops.front() {
            if told && self.left == 0 {
                return;
            }
            let (child, command) = (*child, command.clone());
            self.stops.pop_front();
            told = true;
            self.left = self.left.saturating_sub(1);
            self.command_child(child, &command, now, outcome);
            self.carry_out_commands(now, outcome);
        }
    }

    fn carry_out_commands(&mut self, now: Time, outcome: &mut Outcome) {
        while let Some((child, command)) = self.commands.pop_front() {
            if self.may_be_told_later(child, &command) {
                self.stops.push_back((child, command));
            } else {
                self.command_child(child, &command, now, outcome);
            }
        }
    }

    fn command_child(&mut self, child: RunId, command: &Command, now: Time, outcome: &mut Outcome) {
        if !self.is_told(child, command) {
            let _ = self.send_command(child, command, now, outcome);
        }
        if matches!(command, Command::Stop | Command::Terminate) {
            self.end_owned(child, command, now, outcome);
        }
    }

    /// Reports whether a run was given this stop, or a stronger one, before.
    fn is_told(&self, run: RunId, command: &Command) -> bool {
        let told = self.runs.get(&run).and_then(|run| run.head().shutdown);
        match command {
            Command::Stop => told.is_some(),
            Command::Terminate => told == Some(Shutdown::Terminate),
            Command::StopNodes { .. }
            | Command::Suspend
            | Command::Resume { .. }
            | Command::Set { .. }
            | Command::Evict { .. }
            | Command::Disband { .. }
            | Command::Amend { .. }
            | Command::Perform { .. }
            | Command::Mark { .. }
            | Command::Because { .. } => false,
        }
    }

    /// Reports whether a run can be told of its end with a later input: the run that ordered it ends with all that it
    /// has ordered, and waits for it.
    pub(super) fn may_be_told_later(&self, child: RunId, command: &Command) -> bool {
        let attempt = self.runs.get(&child).and_then(|run| run.head().ordered_by);
        attempt.is_some_and(|attempt| {
            let parent = self.runs.get(&attempt.run);
            parent.is_some_and(|parent| parent.stop_for_children().as_ref() == Some(command))
                && self.is_child(attempt, child)
        })
    }

    /// Finds the runs again that a run that ends has ordered and could not tell before a restart.
    pub(super) fn resume_stops(&mut self, id: RunId) {
        let Some(command) = self.runs.get(&id).and_then(|run| run.stop_for_children()) else { return };
        let children: Vec<RunId> = self.children.children(id).collect();
        for child in children {
            if self.may_be_told_later(child, &command) && !self.is_told(child, &command) {
                self.stops.push_back((child, command.clone()));
            }
        }
    }
}

/// Notes in a submission that another run ordered who is behind it: whoever submitted that one. Nobody else can be named.
pub(super) fn inherit_author(submission: &mut Submission, parent: &Head) {
    let owned = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
    submission.context.submitted_by = owned(&parent.submitted_by);
    submission.context.written_by = owned(&parent.written_by);
    if let Some(sign) = dialect::of(&submission.manifest).ok().and_then(|dialect| dialect.sign) {
        sign(&mut submission.manifest, parent.author());
    }
}
