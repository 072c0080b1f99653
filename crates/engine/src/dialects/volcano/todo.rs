//! The work list of a job: what a turn visits next. It is not part of the state: it is dropped on restart, and then
//! everything open is visited once. The fold never sees it; the fold leaves notes, which are entered here in their order.

use std::collections::VecDeque;

use octoflow_model::{NodeIx, Time};

use super::run::Run;

/// A change that the fold reports to the turn. A note says what changed, never what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    PodChanged(u32),
    JobChanged,
    /// A pod waits for the scheduler.
    Queued(NodeIx),
    /// A pod must be visited at this time.
    Wake(Time, NodeIx),
}

/// Pods to visit next, and requests to the engine.
#[derive(Default)]
pub(super) struct Todo {
    pub(super) pods: VecDeque<u32>,
    pub(super) job: bool,
    pub(super) queued: Vec<NodeIx>,
    pub(super) wakes: Vec<(Time, Option<NodeIx>)>,
}

impl Run {
    /// Enters the notes of a fold into the work list.
    pub(super) fn enter_notes(&mut self) {
        for note in self.notes.drain(..) {
            match note {
                Note::PodChanged(pod) => self.todo.pods.push_back(pod),
                Note::JobChanged => self.todo.job = true,
                Note::Queued(pod) => self.todo.queued.push(pod),
                Note::Wake(at, pod) => self.todo.wakes.push((at, Some(pod))),
            }
        }
    }
}
