//! A run of a job: the state folded from facts, and the work list that is dropped on restart. Only the fold can write a
//! `State` that belongs to a run: see [`Folded`].

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use octoflow_model::{
    AttemptId, NodeIx, RunId, Time,
    pod::Terminated,
    submission::SubmitContext,
    task::placement::Assignment,
    volcano::{DelayedAction, JobPhase, LeftWork, PodPhase, PodStop, Sizes},
};

use super::{
    demand::TaskDemands,
    fold::Folded,
    ident,
    phase::Counts,
    program::{Plan, Program},
    todo::{Note, Todo},
};
use crate::{dialects::dialect::TaskState, pod::address::address, run::head::Head, schedule::Gang};

/// State folded from the facts. Two folds of the same facts are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub head: Head,
    pub phase: JobPhase,
    /// The event or command that brought it here.
    pub reason: String,
    pub message: String,
    pub transition: Time,
    /// Number of times that all of its pods were ended. Pods of earlier versions concern nobody.
    pub version: u32,
    /// Number of attempts after the first: restarts of any kind, and resumptions.
    pub retries: u32,
    /// Phases it had, with the time of each, the oldest first.
    pub history: Vec<(JobPhase, Time)>,
    /// Number of times that its phase has changed, those included that are no longer remembered.
    pub changes: u32,
    /// When a pod was up for the first time.
    pub started: Option<Time>,
    pub finished: Option<Time>,
    pub tasks: Vec<Task>,
    pub pods: Vec<Pod>,
    /// Number of pods that there should be.
    pub replicas: u32,
    /// The numbers of pods, once somebody has changed them.
    pub sizes: Option<Box<Sizes>>,
    /// Claims that must be there before pods are created, and since when it waits for them.
    pub awaits: Option<(Time, Vec<String>)>,
    /// Actions that wait for their time, by pod.
    pub delayed: BTreeMap<u32, DelayedAction>,
    /// Decisions about very many pods that are not carried out yet, in order.
    pub left: Vec<LeftWork>,
    /// True if a pod of this version was given to a runtime: its gang was let in.
    pub admitted: bool,
    /// Log lengths of ended attempts that wrote something.
    pub logs: Vec<(AttemptId, u64)>,
    /// Number of pods that were ended for others.
    pub preempted: u32,
    /// True once nothing follows.
    pub over: bool,
}

/// Maximum number of phases that are remembered: a job may be preempted for ever.
pub const MAX_HISTORY: usize = 32;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// Number of pods by phase, in the order of the phases.
    pub counts: [u32; PHASES],
    /// Number of running pods that are ready, of a task with readiness probes.
    pub ready: u32,
    /// True if its pods were created in this version; the tasks it waited for no longer matter.
    pub begun: bool,
}

pub const PHASES: usize = PodPhase::ALL.len();

impl Task {
    pub fn count(&self, phase: PodPhase) -> u32 {
        self.counts[phase as usize]
    }

    /// Returns the number of pods that are up or have succeeded; with readiness probes, of those that are ready.
    pub fn available(&self, probed: bool) -> u32 {
        (if probed { self.ready } else { self.count(PodPhase::Running) }) + self.count(PodPhase::Succeeded)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    pub phase: PodPhase,
    pub message: String,
    pub transition: Time,
    pub started: Option<Time>,
    pub finished: Option<Time>,
    pub terminated: Option<Box<Terminated>>,
    pub reason: String,
    pub closing: Option<PodStop>,
    /// True if it runs and its readiness probes say that it is ready.
    pub ready: bool,
    /// How often its containers were started again in place.
    pub restarts: u32,
    /// Time of its next timer: its deadline, or the end of its back-off.
    pub wake: Option<Time>,
    /// The version of the job at each try. The index is the number of the try.
    pub tries: Vec<u32>,
    /// How often it was created.
    pub created: u32,
    /// When it was first given to a runtime since it was created.
    pub since: Option<Time>,
    /// Since when it waits, or waited before its last start. A preempted one keeps its place.
    pub queued: Time,
    /// Start of its last try, and where that runs or ran, unless on the machine that the run was submitted on.
    pub launched: Time,
    pub on: Option<Box<Assignment>>,
    /// True if a pod of this version has started, so that its gang does not wait for it again.
    pub joined: bool,
    pub preempted: Option<Box<Preemptions>>,
}

/// Preemptions of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preemptions {
    pub count: u32,
    /// Time and reason of the last one.
    pub at: Time,
    pub why: Box<str>,
    /// True until it is started again.
    pub waits: bool,
}

impl Pod {
    /// Reports whether it is being ended for another, or was and it waits again.
    pub fn makes_room(&self) -> bool {
        self.closing == Some(PodStop::Preempted) || self.preempted.as_ref().is_some_and(|preempted| preempted.waits)
    }

    /// Returns the exit code of its main container.
    pub fn exit_code(&self) -> Option<i32> {
        self.terminated.as_ref().map(|end| end.exit_code)
    }
}

impl State {
    /// Returns the number of pods in a phase.
    pub fn count(&self, phase: PodPhase) -> u32 {
        self.tasks.iter().map(|task| task.count(phase)).sum()
    }

    pub(super) fn attempt_of(&self, run: RunId, pod: u32) -> Option<AttemptId> {
        let tries = self.pods[pod as usize].tries.len() as u32;
        Some(AttemptId { run, task: NodeIx(pod), attempt: tries.checked_sub(1)? })
    }

    /// Returns the number of pods that have ended, and of all.
    pub fn progress(&self) -> (u64, u64) {
        let done = self.count(PodPhase::Succeeded) + self.count(PodPhase::Failed);
        (u64::from(done), u64::from(self.replicas))
    }
}

/// Whether the tasks that another waits for have come so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskGate {
    Open,
    Closed,
    /// They never will.
    Never,
}

pub struct Run {
    pub id: RunId,
    /// State folded from the facts, read-only.
    pub state: Folded,
    pub program: Arc<Program>,
    /// The manifest as it was given, kept as text: a tree of values would be several times as large.
    pub(super) manifest: Box<str>,
    /// Hosts file with the addresses of all pods, if they may find each other by name.
    pub(super) hosts: Option<Arc<str>>,
    /// The runs it replaced; the logs of their pods are deleted with it.
    pub(super) replaced: Vec<RunId>,
    /// What was known at submission.
    pub(super) known: SubmitContext,
    /// Demands by task. Rebuilt when missing.
    pub(super) demands: Vec<TaskDemands>,
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
            Some(node) => self.todo.pods.push_back(node.0),
            None => self.todo.job = true,
        }
    }

    /// Returns when a finished job expires, counted from its final phase; `None`: never.
    pub fn expires(&self) -> Option<Time> {
        let span = self.program.job.spec.ttl_seconds_after_finished?;
        let finished = self.state.finished?;
        // The last pods may have taken long to end since then.
        let since = if self.state.phase.is_final() { self.state.transition } else { finished };
        Some(since.saturating_add(Duration::from_secs(span)))
    }

    /// Iterates over pods that are queued, that a runtime has, or that keep their room.
    pub(crate) fn open_pods(&self) -> impl Iterator<Item = (NodeIx, TaskState)> + '_ {
        self.state.pods.iter().enumerate().filter_map(|(at, pod)| {
            let state = match pod.phase {
                PodPhase::Queued => TaskState::Queued,
                PodPhase::Starting | PodPhase::Running => TaskState::Placed,
                PodPhase::Terminating => TaskState::Ending,
                PodPhase::BackOff => TaskState::Held,
                PodPhase::Absent | PodPhase::Succeeded | PodPhase::Failed => return None,
            };
            Some((NodeIx(at as u32), state))
        })
    }

    /// Returns the gang that a pod must start with. One that is restarted alone starts without its gang, which already
    /// runs; a preempted one starts with its gang again if that has too few left.
    pub(crate) fn gang(&self, at: NodeIx) -> Option<Gang> {
        let pod = &self.state.pods[at.at()];
        if pod.joined && !self.has_left(pod) { None } else { self.gang_of(self.program.task_of(at.0)) }
    }

    /// Iterates over pods that have started with their gang in this version. Preempted ones have left it.
    pub(crate) fn joined(&self) -> impl Iterator<Item = (NodeIx, Gang)> + '_ {
        let all = self.state.pods.iter().enumerate().filter(|(_, pod)| pod.joined && !self.has_left(pod));
        all.filter_map(|(at, _)| Some((NodeIx(at as u32), self.gang_of(self.program.task_of(at as u32))?)))
    }

    /// Reports whether a preempted pod has left its gang. The gang of a job whose numbers were changed is not formed again.
    fn has_left(&self, pod: &Pod) -> bool {
        pod.makes_room() && self.state.sizes.is_none()
    }

    fn gang_of(&self, task: usize) -> Option<Gang> {
        let least = self.program.gang_least;
        (least > 1).then(|| Gang {
            namespace: self.state.head.namespace.clone(),
            name: ident::group_name(&self.state.head.name, &self.state.head.uid).into(),
            own: Some(self.id),
            least,
            part: self.program.spec(task).name.as_str().into(),
            least_of: self.program.gang_parts.clone(),
        })
    }

    /// Returns the last try of a pod.
    pub fn attempt_of(&self, pod: u32) -> Option<AttemptId> {
        self.state.attempt_of(self.id, pod)
    }

    /// Returns every try there ever was, by the name of its log.
    pub fn logs(&self) -> Vec<(String, AttemptId)> {
        let mut found = Vec::new();
        for (at, pod) in self.state.pods.iter().enumerate() {
            let (name, last) = (self.pod_name(at as u32), pod.tries.len());
            for number in 0..last {
                let log = if number + 1 == last { name.clone() } else { ident::earlier_log(&name, number) };
                found.push((log, AttemptId { run: self.id, task: NodeIx(at as u32), attempt: number as u32 }));
            }
        }
        found
    }

    pub fn pod_name(&self, pod: u32) -> String {
        let task = self.program.task_of(pod);
        ident::pod_name(&self.state.head.name, &self.program.spec(task).name, self.program.index_of(pod))
    }

    /// Returns the name of a pod among those of its job.
    pub fn short_name(&self, pod: u32) -> String {
        let task = self.program.task_of(pod);
        ident::short_name(&self.program.spec(task).name, self.program.index_of(pod))
    }

    pub fn pod_uid(&self, pod: u32) -> String {
        ident::pod_uid(&self.state.head.uid, &self.pod_name(pod), self.state.pods[pod as usize].created)
    }

    /// Returns the address of a pod.
    pub fn address_of(&self, pod: u32) -> core::net::Ipv4Addr {
        address(self.id, pod)
    }

    /// Returns of every task whether those it waits for have come so far.
    pub(super) fn gates(&self) -> Vec<TaskGate> {
        let mut gates = vec![TaskGate::Open; self.program.tasks.len()];
        for at in self.program.order.iter().copied() {
            gates[at] = self.gate(at, &gates);
        }
        gates
    }

    fn gate(&self, at: usize, gates: &[TaskGate]) -> TaskGate {
        let plan = &self.program.tasks[at];
        if self.state.tasks[at].begun || plan.after.is_empty() {
            return TaskGate::Open;
        }
        let of = |up: &usize| {
            let (needed, task) = (&self.program.tasks[*up], &self.state.tasks[*up]);
            let hopeless = !task.begun && gates[*up] == TaskGate::Never;
            if task.available(needed.probed) >= needed.least {
                TaskGate::Open
            } else if needed.count.saturating_sub(task.count(PodPhase::Failed)) < needed.least || hopeless {
                TaskGate::Never
            } else {
                TaskGate::Closed
            }
        };
        let all: Vec<TaskGate> = plan.after.iter().map(of).collect();
        let (some, every) = (|gate| all.contains(&gate), |gate| all.iter().all(|one| *one == gate));
        match plan.any {
            true if some(TaskGate::Open) => TaskGate::Open,
            true if every(TaskGate::Never) => TaskGate::Never,
            false if every(TaskGate::Open) => TaskGate::Open,
            false if some(TaskGate::Never) => TaskGate::Never,
            true | false => TaskGate::Closed,
        }
    }

    /// Counts the pods as the phase machine sees them.
    pub(super) fn counts(&self) -> Counts {
        let state = &self.state;
        let delayed = !state.delayed.is_empty();
        // An action that is due later may still bring back what they wait for.
        let gates = if delayed { Vec::new() } else { self.gates() };
        let unreachable = gates.iter().zip(&self.program.tasks).filter(|(gate, _)| **gate == TaskGate::Never);
        let absent =
            |plan: &Plan| plan.pods().filter(|pod| state.pods[*pod as usize].phase == PodPhase::Absent).count() as u32;
        let lacks = |(plan, task): &(&Plan, &Task)| task.count(PodPhase::Succeeded) < plan.least;
        let mut pairs = self.program.tasks.iter().zip(&state.tasks);
        let lacking = if self.program.minima { pairs.position(|pair| lacks(&pair)) } else { None };
        Counts {
            replicas: self.program.pods,
            pending: state.count(PodPhase::Queued) + state.count(PodPhase::Starting),
            // A container that is about to be started again is part of a running pod.
            running: state.count(PodPhase::Running) + state.count(PodPhase::BackOff),
            succeeded: state.count(PodPhase::Succeeded),
            failed: state.count(PodPhase::Failed),
            terminating: state.count(PodPhase::Terminating),
            unreachable: unreachable.map(|(_, plan)| absent(plan)).sum(),
            lacking: lacking.map(|task| self.program.spec(task).name.clone()),
            delayed,
        }
    }
}
