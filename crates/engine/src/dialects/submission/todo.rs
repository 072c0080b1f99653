//! The work list of a submitted job. It is not part of the state: it is dropped on restart, and then the job is visited
//! once.

use octoflow_model::Time;

use super::run::Run;

/// A change that the fold reports to the turn. A note says what changed, never what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// Something changed on which the next step may depend.
    WalkChanged,
    /// Something is due at this time.
    Wake(Time),
}

/// Whether to visit the job, and requests to the engine.
#[derive(Debug, Default)]
pub(super) struct Todo {
    pub(super) walk: bool,
    pub(super) wakes: Vec<Time>,
}

impl Run {
    /// Enters the notes of a fold into the work list.
    pub(super) fn enter_notes(&mut self) {
        for note in self.notes.drain(..) {
            match note {
                Note::WalkChanged => self.todo.walk = true,
                Note::Wake(at) => self.todo.wakes.push(at),
            }
        }
    }
}
