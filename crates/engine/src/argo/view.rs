//! What a decision looks at. A view reads and decides nothing; whatever decides needs `&mut Turn`.

use octoflow_model::Time;

use super::{run::Run, turn::Turn};
use crate::engine::SharedState;

/// A run at a moment, with what runs can refer to.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) run: &'a Run,
    pub(super) now: Time,
    pub(super) world: &'a SharedState,
}

impl Turn<'_> {
    /// What the turn decides by.
    pub(super) fn view(&self) -> View<'_> {
        View { run: self.run, now: self.now, world: self.world }
    }
}
