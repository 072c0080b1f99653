//! The work list of a job: what a turn visits next. It is not part of the state: it is dropped on restart, and then
//! everything open is visited once. The fold never sees it; the fold leaves notes, which are entered here in their order.

use std::collections::VecDeque;

use octoflow_model::{NodeIx, Time, kubejob::PodStop};

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
    /// Pods to delete, and why. After a restart they follow from the state again.
    pub(super) surplus: VecDeque<(u32, PodStop)>,
    /// Pods that get their stop order again.
    pub(super) stops: VecDeque<u32>,
    /// True if more pods are missing than one fact creates.
    pub(super) lacks_pods: bool,
    pub(super) queued: Vec<NodeIx>,
    pub(super) wakes: Vec<(Time, Option<NodeIx>)>,
    /// When the job itself must be visited again.
    pub(super) timer: Option<Time>,
}

impl Todo {
    /// Reports whether there are pods to visit, delete or create. The job itself is visited once after all of them.
    pub(super) fn is_long(&self) -> bool {
        !self.stops.is_empty() || !self.surplus.is_empty() || !self.pods.is_empty() || self.lacks_pods
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
                Note::Wake(at, pod) => self.todo.wakes.push((at, Some(pod))),
            }
        }
    }

    /// Sets the timer of the job itself.
    pub(super) fn set_timer(&mut self, at: Option<Time>) {
        if self.todo.timer != at {
            self.todo.timer = at;
            self.todo.wakes.extend(at.map(|at| (at, None)));
        }
    }
}
