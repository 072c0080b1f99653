//! The work list of a TaskSet: what a turn visits next. It is not part of the state: it is dropped on restart, and then
//! everything open is visited once. The fold never sees it; the fold leaves notes, which are entered here in their
//! order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use octoflow_model::{NodeIx, Time};

use super::run::Run;

/// A change that the fold reports to the turn. A note says what changed, never what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    ReplicaChanged(u32),
    RoleChanged(usize),
    /// Waiting replicas of a role may be able to start.
    MayStart(usize),
    SetChanged,
    /// A replica waits for the scheduler.
    Queued(NodeIx),
    /// A replica, or the TaskSet, must be visited at this time.
    Wake(Time, Option<NodeIx>),
}

/// Replicas and roles to visit next, and requests to the engine.
#[derive(Default)]
pub(super) struct Todo {
    pub(super) replicas: VecDeque<u32>,
    pub(super) roles: BTreeSet<usize>,
    /// Roles whose waiting replicas may be able to start, and the replica from which on they are looked for.
    pub(super) starting: BTreeMap<usize, u32>,
    /// Roles with a verdict, and the replica from which on the others are stopped.
    pub(super) stopping: BTreeMap<usize, u32>,
    /// Replicas whose pods get their stop order again.
    pub(super) stops: VecDeque<u32>,
    pub(super) set: bool,
    pub(super) queued: Vec<NodeIx>,
    pub(super) wakes: Vec<(Time, Option<NodeIx>)>,
}

impl Run {
    /// Enters the notes of a fold into the work list.
    pub(super) fn enter_notes(&mut self) {
        for note in self.notes.drain(..) {
            self.todo.enter(note);
        }
    }
}

impl Todo {
    /// Reports whether there are members to visit. The TaskSet itself is visited once after all of them.
    pub(super) fn is_long(&self) -> bool {
        !self.stops.is_empty() || !self.replicas.is_empty() || !self.roles.is_empty()
    }

    fn enter(&mut self, note: Note) {
        match note {
            Note::ReplicaChanged(replica) => self.replicas.push_back(replica),
            Note::RoleChanged(role) => {
                self.roles.insert(role);
            }
            Note::MayStart(role) => {
                self.starting.insert(role, 0);
            }
            Note::SetChanged => self.set = true,
            Note::Queued(replica) => self.queued.push(replica),
            Note::Wake(at, replica) => self.wakes.push((at, replica)),
        }
    }
}
