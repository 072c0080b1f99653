//! The fold: applies facts to the state of a submitted job. It never decides, fails or reads the time, and no other code
//! writes the state. It also leaves notes of what changed for the turn; it does not see the work list.

use std::{ops::Deref, sync::Arc};

use octoflow_model::{Fact, RunFact, RunId, submission::Submission, submitted::WalkFact};

use super::{
    program::{Program, header},
    run::{Run, SubmittedState},
    state::{State, WalkStep},
    todo::{Note, Todo},
};
use crate::run::head::Head;

/// The state of a submitted job, read-only outside of the fold.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded(SubmittedState);

impl Deref for Folded {
    type Target = SubmittedState;

    fn deref(&self) -> &SubmittedState {
        &self.0
    }
}

impl Run {
    /// Creates the run of a submission; the program is compiled from its manifest.
    pub(crate) fn with(id: RunId, submission: &Submission, program: Arc<Program>) -> Self {
        let spec = &program.job.spec;
        let state = SubmittedState {
            head: Head::new(submission, &program.job.metadata, spec.suspend, spec.shutdown),
            header: header(spec, &submission.name),
            walk: State::new(spec.job.clone()),
            finished: None,
        };
        Self {
            id,
            state: Folded(state),
            manifest: crate::run::written(&submission.manifest),
            replaced: submission.previous.as_ref().map(|before| before.runs.clone()).unwrap_or_default(),
            todo: Todo { walk: true, ..Todo::default() },
            notes: Vec::new(),
            program,
        }
    }

    /// Folds one fact into the state.
    pub fn apply(&mut self, fact: &Fact) {
        let (state, notes) = (&mut self.state.0, &mut self.notes);
        // The journal of a submitted job never holds facts of other dialects.
        if let Fact::Run(fact) = fact {
            state.head.apply(fact);
            follow_head(state, notes, fact);
        } else if let Fact::SubmittedJob(fact) = fact {
            state.walk.apply(fact);
            note(notes, &state.walk, fact);
        }
        self.enter_notes();
    }
}

fn follow_head(state: &mut SubmittedState, notes: &mut Vec<Note>, fact: &RunFact) {
    match fact {
        RunFact::Ended { at, .. } => state.finished = Some(*at),
        RunFact::Submitted(_) | RunFact::Deadlock { .. } | RunFact::Marked { .. } => {}
        RunFact::Suspended { .. }
        | RunFact::Resumed { .. }
        | RunFact::ShuttingDown { .. }
        | RunFact::DeadlinePassed { .. } => notes.push(Note::WalkChanged),
    }
}

fn note(notes: &mut Vec<Note>, walk: &State, fact: &WalkFact) {
    match fact {
        WalkFact::Bound { .. }
        | WalkFact::Erred { .. }
        | WalkFact::Translated { .. }
        | WalkFact::Extended { .. }
        | WalkFact::Advised { .. }
        | WalkFact::Judged { .. }
        | WalkFact::Released { .. }
        | WalkFact::RecheckDue { .. }
        | WalkFact::Over { .. } => notes.push(Note::WalkChanged),
        WalkFact::Called { .. }
        | WalkFact::Told { .. }
        | WalkFact::HandedOver { .. }
        | WalkFact::Held { .. }
        | WalkFact::Made { .. }
        | WalkFact::Observed { .. } => {}
    }
    notes.extend(walk.step.due().map(Note::Wake));
}

impl WalkStep {
    /// Returns when something is to be done, if nothing happens before.
    pub(super) fn due(self) -> Option<octoflow_model::Time> {
        match self {
            Self::Pausing(at) => Some(at),
            Self::Gated(at) => at,
            Self::Ready | Self::Calling | Self::Ending(_) | Self::HandingOver | Self::Following | Self::Over(_) => None,
        }
    }
}
