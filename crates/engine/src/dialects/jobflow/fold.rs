//! The fold: applies facts to the state of a flow. It never decides, fails or reads the time, and no other code writes the
//! state. It also leaves notes of what changed for the turn; it does not see the work list.

use std::{ops::Deref, sync::Arc};

use octoflow_model::{Fact, NodeIx, RunFact, RunId, jobflow::FlowFact, submission::Submission};

use super::{
    index::Index,
    program::Program,
    run::{FlowState, Run},
    state::State,
    todo::{Note, Todo},
};
use crate::run::head::Head;

/// The state of a flow, read-only outside of the fold.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded(FlowState);

impl Deref for Folded {
    type Target = FlowState;

    fn deref(&self) -> &FlowState {
        &self.0
    }
}

impl Run {
    /// Creates a flow of a submission; the program is compiled from its manifest.
    pub(crate) fn with(id: RunId, submission: &Submission, program: Arc<Program>) -> Self {
        let spec = &program.flow.spec;
        let mut flow = State::new(program.entries.len());
        if let Some(before) = &submission.previous {
            for (at, entry) in spec.flows.iter().enumerate() {
                before.entries.get(&entry.name).iter().for_each(|known| flow.restore(at, known));
            }
        }
        let state = FlowState {
            head: Head::new(submission, &program.flow.metadata, spec.suspend, spec.shutdown),
            index: Index::new(&program, &flow),
            flow,
            message: String::new(),
            finished: None,
        };
        Self {
            id,
            state: Folded(state),
            manifest: crate::run::written(&submission.manifest),
            replaced: submission.previous.as_ref().map(|before| before.runs.clone()).unwrap_or_default(),
            todo: Todo { flow: true, ..Todo::default() },
            notes: Vec::new(),
            program,
        }
    }

    /// Folds one fact into the state.
    pub fn apply(&mut self, fact: &Fact) {
        let (state, notes) = (&mut self.state.0, &mut self.notes);
        // The journal of a flow never holds facts of other dialects.
        if let Fact::Run(fact) = fact {
            state.head.apply(fact);
            follow_head(state, notes, fact);
        } else if let Fact::JobFlow(fact) = fact {
            state.flow.apply(fact);
            if let Some(at) = State::entry_of(fact).filter(|at| *at < state.flow.entries.len()) {
                state.index.update(&self.program, &state.flow, at);
            }
            note(notes, fact);
        }
        self.enter_notes();
    }
}

fn follow_head(state: &mut FlowState, notes: &mut Vec<Note>, fact: &RunFact) {
    match fact {
        RunFact::Ended { at, message, .. } => {
            state.finished = Some(*at);
            state.message.clone_from(message);
        }
        RunFact::Submitted(_) | RunFact::Deadlock { .. } => {}
        RunFact::Marked { .. }
        | RunFact::Suspended { .. }
        | RunFact::Resumed { .. }
        | RunFact::ShuttingDown { .. }
        | RunFact::DeadlinePassed { .. } => notes.push(Note::FlowChanged),
    }
}

fn note(notes: &mut Vec<Note>, fact: &FlowFact) {
    match fact {
        FlowFact::Made { .. }
        | FlowFact::Observed { .. }
        | FlowFact::ConditionMet { .. }
        | FlowFact::Removed { .. } => notes.push(Note::FlowChanged),
        FlowFact::Ended { entry, again, .. } => {
            notes.push(Note::FlowChanged);
            notes.extend(again.map(|at| Note::Wake(at, NodeIx(*entry))));
        }
        FlowFact::Wanted { .. } | FlowFact::Held { .. } | FlowFact::Probing { .. } | FlowFact::Removing { .. } => {}
    }
}
