//! The work list of a flow. It is not part of the state: it is dropped on restart, and then the whole flow is visited once.

use std::collections::VecDeque;

use octoflow_model::{NodeIx, Time};

use super::run::Run;

/// A change that the fold reports to the turn. A note says what changed, never what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// Something changed on which further entries, or the end, may depend.
    FlowChanged,
    /// An entry is tried again at this time.
    Wake(Time, NodeIx),
}

/// What to visit next, and requests to the engine.
#[derive(Debug, Default)]
pub(super) struct Todo {
    pub(super) flow: bool,
    /// Entries to order. After a restart they follow from the state again.
    pub(super) wanted: VecDeque<u32>,
    /// Nodes that get their stop order.
    pub(super) stops: VecDeque<NodeIx>,
    pub(super) wakes: Vec<(Time, Option<NodeIx>)>,
}

impl Todo {
    /// Reports whether there are entries to visit. The flow itself is visited once after all of them.
    pub(super) fn is_long(&self) -> bool {
        !self.wanted.is_empty() || !self.stops.is_empty()
    }
}

impl Run {
    /// Enters the notes of a fold into the work list.
    pub(super) fn enter_notes(&mut self) {
        for note in self.notes.drain(..) {
            match note {
                Note::FlowChanged => self.todo.flow = true,
                Note::Wake(at, node) => self.todo.wakes.push((at, Some(node))),
            }
        }
    }
}
