//! A run of a TaskSet: the state folded from facts, and the work list that is dropped on restart. Only the fold can
//! write a `State` that belongs to a run: see [`Folded`].

use std::sync::Arc;

use octoflow_model::{
    AttemptId, NodeIx, RunId, Time,
    submission::SubmitContext,
    task::{EnvValue, placement::Assignment},
    taskset::{ReplicaPhase, RolePhase, SetPhase, StopReason, SummaryState, Terminated},
};

use super::{
    demand::RoleDemands,
    fold::Folded,
    ident,
    program::Program,
    todo::{Note, Todo},
};
use crate::{dialects::dialect::TaskState, pod::address::address, run::head::Head, schedule::Gang};

/// State folded from the facts. Two folds of the same facts are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub head: Head,
    pub phase: SetPhase,
    pub phase_message: String,
    pub transition: Time,
    pub summary: SummaryState,
    pub summary_message: String,
    /// Start of the first attempt; the deadline counts from here.
    pub began: Option<Time>,
    /// Time when a replica was first up.
    pub started: Option<Time>,
    pub finished: Option<Time>,
    /// Number of the current or last attempt, which is the number of retries.
    pub attempt: u32,
    /// Uid of the control unit, once there is one.
    pub unit: Option<Arc<str>>,
    pub verdict: Option<Verdict>,
    /// Start time of the next attempt.
    pub wake: Option<Time>,
    pub roles: Vec<Role>,
    pub replicas: Vec<Replica>,
    /// Log lengths of ended pods that wrote something.
    pub logs: Vec<(AttemptId, u64)>,
    /// Number of pods that were ended for others, in all attempts.
    pub preempted: u32,
}

/// Success or failure of an attempt or a role. Never changes once it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub succeeded: bool,
    pub message: String,
    /// True if no retry follows.
    pub last: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Role {
    pub phase: RolePhase,
    pub phase_message: String,
    pub transition: Time,
    pub summary: SummaryState,
    pub summary_message: String,
    pub verdict: Option<Verdict>,
    /// Number of replicas by phase, in the order of the phases.
    pub counts: [u32; PHASES],
    pub succeeded: u32,
    pub failed: u32,
    /// True if its pods were queued in this attempt; its dependencies no longer matter.
    pub begun: bool,
    /// Number of replicas that have been up in this attempt.
    pub up: u32,
    /// Number of replicas whose pods are being ended for others.
    pub preempting: u32,
}

pub const PHASES: usize = 7;

impl Role {
    pub fn count(&self, phase: ReplicaPhase) -> u32 {
        self.counts[phase as usize]
    }

    /// Returns the number of replicas that a verdict would have to stop.
    pub fn unstopped(&self) -> u32 {
        use ReplicaPhase::*;
        [AttemptPending, AttemptPreparing, AttemptAssigned, AttemptRunning, AttemptRetryPending]
            .into_iter()
            .map(|phase| self.count(phase))
            .sum::<u32>()
            + self.preempting
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replica {
    pub phase: ReplicaPhase,
    pub phase_message: String,
    pub transition: Time,
    /// True if stopped by the engine.
    pub stopped: bool,
    pub started: Option<Time>,
    pub finished: Option<Time>,
    /// Number of retries in this attempt of the TaskSet.
    pub retried: u32,
    pub terminated: Option<Box<Terminated>>,
    pub reason: String,
    pub closing: Option<StopReason>,
    /// Success or failure, once it is final and has an outcome.
    pub outcome: Option<bool>,
    /// True if it has been up in this attempt of the TaskSet.
    pub up: bool,
    /// Time of its next timer: the end of its retry delay, or its deadline.
    pub wake: Option<Time>,
    /// Every pod it had: the attempt of the TaskSet and the number of the pod in it. The index is the number of the try.
    pub tries: Vec<(u32, u32)>,
    /// Since when it waits, or waited before its last start. A preempted one keeps its place.
    pub queued: Time,
    /// Start of its last try, and where that runs or ran, unless on the machine that the run was submitted on.
    pub launched: Time,
    pub on: Option<Box<Assignment>>,
    /// Preemptions in this attempt of the TaskSet.
    pub preempted: Option<Box<Preemptions>>,
}

/// Preemptions of a replica's pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preemptions {
    pub count: u32,
    /// Time and reason of the last one.
    pub at: Time,
    pub why: Box<str>,
    /// True until its next pod is started.
    pub waits: bool,
}

impl Replica {
    /// Returns the number of its current or next pod in this attempt of the TaskSet.
    pub fn number(&self) -> u32 {
        self.retried + self.preempted.as_ref().map_or(0, |preempted| preempted.count)
    }

    /// Reports whether its pod is being ended for another, or was and it waits again.
    pub fn makes_room(&self) -> bool {
        self.closing == Some(StopReason::Preempted) || self.preempted.as_ref().is_some_and(|preempted| preempted.waits)
    }
}

impl State {
    pub fn over(&self) -> bool {
        self.phase == SetPhase::Completed
    }

    /// Reports whether it is being ended, by a command or by its deadline.
    pub fn closing(&self) -> bool {
        self.head.closing()
    }

    /// Reports whether an attempt is under way.
    pub fn at_work(&self) -> bool {
        use SetPhase::*;
        matches!(self.phase, AttemptPreparing | AttemptRunning | AttemptDeletionRequested)
    }

    /// Returns the last try of a replica; the run has this id.
    pub(super) fn attempt_of(&self, run: RunId, replica: u32) -> Option<AttemptId> {
        let tries = self.replicas[replica as usize].tries.len() as u32;
        Some(AttemptId { run, task: NodeIx(replica), attempt: tries.checked_sub(1)? })
    }

    /// Returns its deadline, once it has begun.
    pub(super) fn deadline(&self, program: &Program) -> Option<Time> {
        let span = program.set.spec.active_deadline_seconds?;
        Some(self.began?.saturating_add(std::time::Duration::from_secs(span)))
    }

    /// Returns the number of final replicas, and of all.
    pub fn progress(&self) -> (u64, u64) {
        let done: u32 = self.roles.iter().map(|role| role.count(ReplicaPhase::Completed)).sum();
        (u64::from(done), self.replicas.len() as u64)
    }
}

pub struct Run {
    pub id: RunId,
    /// State folded from the facts, read-only.
    pub state: Folded,
    pub program: Arc<Program>,
    /// The manifest as it was given, kept as text: a tree of values would be several times as large.
    pub(super) manifest: Box<str>,
    /// Hosts file with the addresses of all replicas.
    pub(super) hosts: Arc<str>,
    /// The runs it replaced; the logs of their pods are deleted with it.
    pub(super) replaced: Vec<RunId>,
    /// Environment variables with the addresses of all replicas.
    pub(super) peers: Arc<[(String, EnvValue)]>,
    /// What was known at submission.
    pub(super) known: SubmitContext,
    /// Demands by role. Rebuilt when missing.
    pub(super) demands: Vec<RoleDemands>,
    pub(super) todo: Todo,
    /// Notes of the current fold for the work list; empty between facts.
    pub(super) notes: Vec<Note>,
}

impl Run {
    /// Returns the manifest as it was given.
    pub fn manifest(&self) -> serde_json::Value {
        serde_json::from_str(&self.manifest).expect("a manifest survives being written down")
    }

    pub fn replaced_runs(&self) -> &[RunId] {
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

    /// Returns when a finished TaskSet expires; `None`: never.
    pub fn expires(&self) -> Option<Time> {
        let span = self.program.set.spec.ttl_seconds_after_finished?;
        Some(self.state.finished?.saturating_add(std::time::Duration::from_secs(span)))
    }

    /// Iterates over replicas whose pods a runtime has.
    pub(super) fn placed(&self) -> impl Iterator<Item = NodeIx> + '_ {
        self.in_phase(ReplicaPhase::placed)
    }

    /// Iterates over replicas that are queued or that a runtime has.
    pub(crate) fn open_pods(&self) -> impl Iterator<Item = (NodeIx, TaskState)> + '_ {
        let all = self.state.replicas.iter().enumerate();
        all.filter_map(|(at, replica)| {
            let state = match replica.phase {
                ReplicaPhase::AttemptPreparing => TaskState::Queued,
                ReplicaPhase::AttemptAssigned | ReplicaPhase::AttemptRunning => TaskState::Placed,
                ReplicaPhase::AttemptDeletionRequested => TaskState::Ending,
                ReplicaPhase::AttemptPending | ReplicaPhase::AttemptRetryPending | ReplicaPhase::Completed => {
                    return None;
                }
            };
            Some((NodeIx(at as u32), state))
        })
    }

    fn in_phase(&self, test: impl Fn(ReplicaPhase) -> bool) -> impl Iterator<Item = NodeIx> {
        let all = self.state.replicas.iter().enumerate();
        all.filter(move |(_, replica)| test(replica.phase)).map(|(at, _)| NodeIx(at as u32))
    }

    /// Returns the gang its pod must start with. A retried pod starts without its gang, which already runs; a preempted one
    /// starts with its gang again if that has too few left.
    pub(crate) fn gang(&self, at: NodeIx) -> Option<Gang> {
        let replica = &self.state.replicas[at.at()];
        if replica.retried > 0 && !replica.makes_room() {
            return None;
        }
        self.gang_of(self.program.role_of(at.0))
    }

    /// Iterates over replicas that have started with their gang in this attempt. Preempted ones have left it.
    pub(crate) fn joined(&self) -> impl Iterator<Item = (NodeIx, Gang)> + '_ {
        let roles = (0..self.program.roles.len()).filter(|_| self.state.at_work());
        let with_gangs = roles.filter_map(|role| Some((&self.program.roles[role], self.gang_of(role)?)));
        with_gangs.flat_map(|(plan, gang)| {
            let replicas = plan.first..plan.first + plan.count;
            let began = |at: &u32| {
                let replica = &self.state.replicas[*at as usize];
                replica.tries.last().is_some_and(|(attempt, _)| *attempt == self.state.attempt) && !replica.makes_room()
            };
            replicas.filter(began).map(move |at| (NodeIx(at), gang.clone()))
        })
    }

    fn gang_of(&self, role: usize) -> Option<Gang> {
        let plan = self.program.roles[role].gang.as_ref()?;
        Some(Gang {
            namespace: self.state.head.namespace.clone(),
            name: plan.name.clone(),
            own: (!plan.shared).then_some(self.id),
            least: plan.least,
            part: self.program.spec(role).name.as_str().into(),
            least_of: Arc::new(plan.details.least_of.clone()),
        })
    }

    /// Returns the last try of a replica.
    pub fn attempt_of(&self, replica: u32) -> Option<AttemptId> {
        self.state.attempt_of(self.id, replica)
    }

    /// Returns every pod there ever was, by name, with the attempt that owns its log.
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

    /// Returns the pod a replica has, or had last in this attempt.
    pub fn pod_of(&self, replica: u32) -> Option<String> {
        let state = &self.state.replicas[replica as usize];
        let (attempt, retried) = *state.tries.last()?;
        (attempt == self.state.attempt && retried == state.number()).then(|| self.pod_name(replica, attempt, retried))
    }

    /// Returns the address of a replica.
    pub fn address_of(&self, replica: u32) -> core::net::Ipv4Addr {
        address(self.id, replica)
    }
}
