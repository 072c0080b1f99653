//! The work list of a job: what a turn visits next. It is not part of the state: it is dropped on restart, and then
//! everything open is visited once. The fold never sees it; the fold leaves notes, which are entered here in their order.

use std::{collections::VecDeque, ops::Range};

use octoflow_model::{NodeIx, Time};

use super::run::Run;

/// A change that the fold reports to the turn. A note says what changed, never what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    PodChanged(u32),
    JobChanged,
    /// A pod waits for the scheduler.
    Queued(NodeIx),
    /// The demands of so many pods have changed.
    Resized(u32),
    /// A pod must be visited at this time.
    Wake(Time, NodeIx),
}

/// Pods to visit next, and requests to the engine.
#[derive(Default)]
pub(super) struct Todo {
    pub(super) pods: VecDeque<u32>,
    pub(super) job: bool,
    /// Pods that wait for the scheduler with other demands than it knows.
    pub(super) requeued: Option<Range<u32>>,
    /// Pods that get their stop order again.
    pub(super) stops: VecDeque<u32>,
    /// How much of the first work that is left is done. After a restart it is looked through again.
    pub(super) left_at: u32,
    /// The task whose pods are being created, and the place among them from which on they are missing.
    pub(super) created: Option<(usize, usize)>,
    pub(super) queued: Vec<NodeIx>,
    pub(super) wakes: Vec<(Time, Option<NodeIx>)>,
}

impl Todo {
    /// Reports whether there are pods to visit or to create. The job itself is visited once after all of them.
    pub(super) fn is_long(&self) -> bool {
        self.requeued.is_some() || !self.stops.is_empty() || !self.pods.is_empty() || self.created.is_some()
    }
}

impl Run {
    /// Enters the notes of a fold into the work list.
    pub(super) fn enter_notes(&mut self) {
        for note in self.notes.drain(..) {
            match note {
                Note::PodChanged(pod) => self.todo.pods.push_back(pod),
                Note::JobChanged => self.todo.job = true,
                Note::Queued(pod) => self.todo.queued.push(pod),
                Note::Resized(pods) => self.todo.requeued = Some(0..pods),
                Note::Wake(at, pod) => self.todo.wakes.push((at, Some(pod))),
            }
        }
    }
}
