//! Gives decisions read-only access to a run. A view decides nothing; whatever decides needs `&mut Turn`.

use octoflow_model::Time;

use super::{run::Run, turn::Turn};
use crate::engine::SharedState;

/// A run at one time, with what runs can refer to.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) run: &'a Run,
    pub(super) now: Time,
    pub(super) world: &'a SharedState,
}

impl Turn<'_> {
    /// Returns the read-only view that decisions are based on.
    pub(super) fn view(&self) -> View<'_> {
        View { run: self.run, now: self.now, world: self.world }
    }
}
