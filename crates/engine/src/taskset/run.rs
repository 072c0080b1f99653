//! One TaskSet: the state that facts fold into, the work list that is thrown away on restart, and what both are about.
//! Only the fold can write a `State` that belongs to a run: see [`Folded`].

use std::sync::Arc;

use octoflow_model::{
    AttemptId, NodeIx, RunId, Time,
    task::EnvValue,
    taskset::{Closing, ReplicaPhase, RolePhase, SetPhase, Standing, Terminated},
};

use super::{
    fold::Folded,
    ident, peers,
    program::Program,
    todo::{Note, Todo},
};
use crate::{dialect::Stand, head::Head, schedule::Gang};

/// What the facts say. Two folds of the same facts are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub head: Head,
    pub phase: SetPhase,
    pub phase_message: String,
    pub transition: Time,
    pub standing: Standing,
    pub standing_message: String,
    /// When the first attempt began; the deadline counts from here.
    pub began: Option<Time>,
    /// When a replica was up for the first time.
    pub started: Option<Time>,
    pub finished: Option<Time>,
    /// The attempt under way, or the last: how often it was tried again.
    pub attempt: u32,
    /// The uid of the control unit, once there is one.
    pub unit: Option<Arc<str>>,
    pub verdict: Option<Verdict>,
    /// When the next attempt comes.
    pub wake: Option<Time>,
    pub roles: Vec<Role>,
    pub replicas: Vec<Replica>,
    /// How long the logs of pods that are gone were, of those that wrote something.
    pub logs: Vec<(AttemptId, u64)>,
}

/// What an attempt, or a role, came to. It never changes once it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub succeeded: bool,
    pub message: String,
    /// Nothing is tried again after it.
    pub last: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Role {
    pub phase: RolePhase,
    pub phase_message: String,
    pub transition: Time,
    pub standing: Standing,
    pub standing_message: String,
    pub verdict: Option<Verdict>,
    /// Replicas by phase, in the order of the phases.
    pub counts: [u32; PHASES],
    pub succeeded: u32,
    pub failed: u32,
    /// It has asked for its pods in this attempt: whom it waited for is no longer its business.
    pub begun: bool,
    /// Replicas that have been up in this attempt.
    pub up: u32,
}

pub const PHASES: usize = 7;

impl Role {
    pub fn count(&self, phase: ReplicaPhase) -> u32 {
        self.counts[phase as usize]
    }

    /// Replicas that a verdict would have to end.
    pub fn loose(&self) -> u32 {
        use ReplicaPhase::*;
        [AttemptPending, AttemptPreparing, AttemptAssigned, AttemptRunning, AttemptRetryPending]
            .into_iter()
            .map(|phase| self.count(phase))
            .sum()
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replica {
    pub phase: ReplicaPhase,
    pub phase_message: String,
    pub transition: Time,
    /// Ended by us, not by itself.
    pub stopped: bool,
    pub started: Option<Time>,
    pub finished: Option<Time>,
    /// How often it was tried again in this attempt of the TaskSet.
    pub retried: u32,
    pub terminated: Option<Box<Terminated>>,
    pub reason: String,
    pub closing: Option<Closing>,
    /// What it counts as, once it is final and counts.
    pub outcome: Option<bool>,
    /// It has been up in this attempt of the TaskSet.
    pub up: bool,
    /// When it must be looked at though nothing happens: the end of its delay, or of its time.
    pub wake: Option<Time>,
    /// Every pod it had, of all attempts: which attempt of the TaskSet, and which of the replica. Its place is the try.
    pub tries: Vec<(u32, u32)>,
}

impl State {
    pub fn over(&self) -> bool {
        self.phase == SetPhase::Completed
    }

    /// It is being ended by somebody, or by its deadline.
    pub fn closing(&self) -> bool {
        self.head.closing()
    }

    /// An attempt is under way.
    pub fn at_work(&self) -> bool {
        use SetPhase::*;
        matches!(self.phase, AttemptPreparing | AttemptRunning | AttemptDeletionRequested)
    }

    /// The last try of a replica; the run has this id.
    pub(super) fn attempt_of(&self, run: RunId, replica: u32) -> Option<AttemptId> {
        let tries = self.replicas[replica as usize].tries.len() as u32;
        Some(AttemptId { run, task: NodeIx(replica), attempt: tries.checked_sub(1)? })
    }

    /// When its time is up, once it has begun.
    pub(super) fn deadline(&self, program: &Program) -> Option<Time> {
        let span = program.set.spec.active_deadline_seconds?;
        Some(self.began?.saturating_add(std::time::Duration::from_secs(span)))
    }

    /// How many replicas are final, of how many.
    pub fn progress(&self) -> (u64, u64) {
        let done: u32 = self.roles.iter().map(|role| role.count(ReplicaPhase::Completed)).sum();
        (u64::from(done), self.replicas.len() as u64)
    }
}

pub struct Run {
    pub id: RunId,
    /// What the facts say, to be read.
    pub state: Folded,
    pub program: Arc<Program>,
    /// The manifest as it was given, kept as text: a tree of values would be several times as large.
    pub(super) manifest: Box<str>,
    /// Who is reached where, as a hosts file says it.
    pub(super) hosts: Arc<str>,
    /// The runs whose place it took; the logs of their pods go with it.
    pub(super) replaced: Vec<RunId>,
    /// The same as variables.
    pub(super) peers: Arc<[(String, EnvValue)]>,
    pub(super) todo: Todo,
    /// What the last fold tells the work list; empty between facts.
    pub(super) notes: Vec<Note>,
}

impl Run {
    /// The manifest as it was given.
    pub fn manifest(&self) -> serde_json::Value {
        serde_json::from_str(&self.manifest).expect("a manifest survives being written down")
    }

    pub fn took_place_of(&self) -> &[RunId] {
        &self.replaced
    }

    pub(crate) fn wake(&mut self, node: Option<NodeIx>) {
        match node {
            Some(node) => self.todo.replicas.push_back(node.0),
            None => self.todo.set = true,
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.state.deadline(&self.program)
    }

    /// When a finished TaskSet is to be deleted; never when nobody says.
    pub fn expires(&self) -> Option<Time> {
        let span = self.program.set.spec.ttl_seconds_after_finished?;
        Some(self.state.finished?.saturating_add(std::time::Duration::from_secs(span)))
    }

    /// Replicas whose pods are with a runtime.
    pub(super) fn placed(&self) -> impl Iterator<Item = NodeIx> + '_ {
        self.in_phase(ReplicaPhase::placed)
    }

    /// Replicas that wait for room or are with a runtime.
    pub(crate) fn open_pods(&self) -> impl Iterator<Item = (NodeIx, Stand)> + '_ {
        let all = self.state.replicas.iter().enumerate();
        all.filter_map(|(at, replica)| {
            let stand = match replica.phase {
                ReplicaPhase::AttemptPreparing => Stand::Queued,
                ReplicaPhase::AttemptAssigned | ReplicaPhase::AttemptRunning => Stand::Placed,
                ReplicaPhase::AttemptDeletionRequested => Stand::Ending,
                ReplicaPhase::AttemptPending | ReplicaPhase::AttemptRetryPending | ReplicaPhase::Completed => {
                    return None;
                }
            };
            Some((NodeIx(at as u32), stand))
        })
    }

    fn in_phase(&self, test: impl Fn(ReplicaPhase) -> bool) -> impl Iterator<Item = NodeIx> {
        let all = self.state.replicas.iter().enumerate();
        all.filter(move |(_, replica)| test(replica.phase)).map(|(at, _)| NodeIx(at as u32))
    }

    /// The gang its pod must start with. One that is tried again joins those that run already.
    pub(crate) fn gang(&self, at: NodeIx) -> Option<Gang> {
        let plan = self.program.roles[self.program.role_of(at.0)].gang.as_ref()?;
        let again = self.state.replicas[at.at()].retried > 0;
        (!again).then(|| self.gang_of(plan))
    }

    /// Those that have started with their gang in this attempt.
    pub(crate) fn joined(&self) -> impl Iterator<Item = (NodeIx, Gang)> + '_ {
        let plans = self.program.roles.iter().filter(|_| self.state.at_work());
        let with_gangs = plans.filter_map(|plan| Some((plan, plan.gang.as_ref()?)));
        with_gangs.flat_map(|(plan, gang)| {
            let replicas = plan.first..plan.first + plan.count;
            let began = |at: &u32| {
                let last = self.state.replicas[*at as usize].tries.last();
                last.is_some_and(|(attempt, _)| *attempt == self.state.attempt)
            };
            replicas.filter(began).map(|at| (NodeIx(at), self.gang_of(gang)))
        })
    }

    fn gang_of(&self, plan: &super::program::GangPlan) -> Gang {
        let own = (!plan.shared).then_some(self.id);
        Gang { namespace: self.state.head.namespace.clone(), name: plan.name.clone(), own, least: plan.least }
    }

    /// The last try of a replica.
    pub fn attempt_of(&self, replica: u32) -> Option<AttemptId> {
        self.state.attempt_of(self.id, replica)
    }

    /// Every pod there ever was, by name, with the attempt whose log is its own.
    pub fn pods(&self) -> Vec<(String, AttemptId)> {
        let mut found = Vec::new();
        for (at, replica) in self.state.replicas.iter().enumerate() {
            for (number, (attempt, retried)) in replica.tries.iter().enumerate() {
                let id = AttemptId { run: self.id, task: NodeIx(at as u32), attempt: number as u32 };
                found.push((self.pod_name(at as u32, *attempt, *retried), id));
            }
        }
        found
    }

    pub(super) fn pod_name(&self, replica: u32, attempt: u32, retried: u32) -> String {
        let role = self.program.role_of(replica);
        let index = replica - self.program.roles[role].first;
        ident::pod_name(&self.state.head.name, &self.program.spec(role).name, attempt, retried, index)
    }

    /// The pod a replica has now, or had last in this attempt.
    pub fn pod_of(&self, replica: u32) -> Option<String> {
        let state = &self.state.replicas[replica as usize];
        let (attempt, retried) = *state.tries.last()?;
        (attempt == self.state.attempt && retried == state.retried).then(|| self.pod_name(replica, attempt, retried))
    }

    /// Where a replica is reached by its peers.
    pub fn address_of(&self, replica: u32) -> core::net::Ipv4Addr {
        peers::address(self.id, replica)
    }
}
