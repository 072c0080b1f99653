//! The life of a run: the state that life hooks and job lists see, whatever the dialect calls its phases, and the header by
//! which hooks choose runs. States follow from the facts alone; whoever decides a fact notes what it changed.

use octoflow_model::{plugin::LifeState, task::Labels};
use serde_json::{Value, json};

use super::{Run, head::Head};
use crate::dialects::dialect::{Dialect, PhaseClass};

/// The state in which every run begins, also one that is suspended from the beginning.
pub(crate) const FIRST: LifeState = LifeState::Waiting;

/// A run and the number of states it has entered, while its facts are folded.
pub(crate) struct Lived {
    state: LifeState,
    count: u32,
}

impl Lived {
    /// Begins with a run that was just submitted.
    pub(crate) fn new(run: &Run) -> Self {
        Self { state: run.life_state(), count: at_first(run).count() as u32 }
    }

    /// Takes the state that the run has after a fact.
    pub(crate) fn follow(&mut self, run: &Run) {
        let state = run.life_state();
        self.count += u32::from(state != self.state);
        self.state = state;
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }
}

/// Returns the states that a run enters with its submission.
pub(crate) fn at_first(run: &Run) -> impl Iterator<Item = LifeState> {
    let now = run.life_state();
    std::iter::once(FIRST).chain((now != FIRST).then_some(now))
}

/// Returns the state of a run as it follows from what all dialects have.
pub(crate) fn state_of(dialect: &Dialect, head: &Head, phase: &str, finished: bool, began: bool) -> LifeState {
    if finished {
        return match dialect.phase_class(phase) {
            Some(PhaseClass::Succeeded) => LifeState::Succeeded,
            Some(PhaseClass::Waiting | PhaseClass::Running | PhaseClass::Failed) | None => {
                if head.shutdown.is_some() {
                    LifeState::Stopped
                } else {
                    LifeState::Failed
                }
            }
        };
    }
    match (head.suspended, began) {
        (true, _) => LifeState::Suspended,
        (false, true) => LifeState::Running,
        (false, false) => LifeState::Waiting,
    }
}

/// Returns the header of a run that was not submitted through the pipeline.
pub(crate) fn header(dialect: &Dialect, head: &Head, labels: &Labels) -> Value {
    json!({
        "jobID": &*head.name,
        "jobName": &*head.name,
        "jobKind": dialect.kind.name,
        "jobUID": &*head.uid,
        "userID": head.author(),
        "namespace": &*head.namespace,
        "labels": labels,
    })
}
