//! A run of a job: the state folded from facts, and the work list that is dropped on restart. Only the fold can write a
//! `State` that belongs to a run: see [`Folded`].

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use octoflow_model::{
    AttemptId, NodeIx, RunId, Time,
    kubejob::{Amendment, ContainerExit, Counted, JobPhase, PodPhase, PodStop, Verdict},
    pod::Terminated,
    submission::SubmitContext,
    task::placement::Assignment,
};

use super::{
    fold::Folded,
    ident,
    indexes::Indexes,
    program::Program,
    todo::{Note, Todo},
};
use crate::{dialects::dialect::TaskState, pod::address::address, run::head::Head, schedule::spec::Demand};

/// State folded from the facts. Two folds of the same facts are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub head: Head,
    /// What may change while the job is open.
    pub settings: Amendment,
    /// Since when it is active without interruption.
    pub started: Option<Time>,
    pub finished: Option<Time>,
    /// Whether it is suspended and since when, if it ever was.
    pub suspension: Option<(bool, Time)>,
    pub judgement: Option<Judgement>,
    /// What the suffixes of the pods' names are computed from.
    pub seed: u32,
    /// By number.
    pub pods: Vec<Pod>,
    /// Pods that have not ended.
    pub open: BTreeSet<u32>,
    /// Number of pods by phase, in the order of the phases.
    pub counts: [u32; PHASES],
    /// Succeeded pods; of a job with indexes, succeeded indexes.
    pub succeeded: u32,
    pub failed: u32,
    pub succeeded_indexes: Indexes,
    pub failed_indexes: Indexes,
    /// Indexes that wait for a pod.
    pub vacant: Indexes,
    /// Number of pods that keep others from getting their index, by index.
    pub taken: BTreeMap<u32, u32>,
    /// Number of active pods whose index is not wanted any more: only a change of the completions leaves some.
    pub beyond: u32,
    /// Failures of each index, of a job that limits them.
    pub failures: BTreeMap<u32, IndexFailures>,
    /// Failures since the last success, and the time of the last one.
    pub failures_in_a_row: u32,
    pub last_failure: Option<Time>,
    /// Container restarts of pods that are active.
    pub restarts: u32,
    /// Log lengths of ended attempts that wrote something.
    pub logs: Vec<(AttemptId, u64)>,
    /// True once nothing follows.
    pub over: bool,
}

pub const PHASES: usize = PodPhase::ALL.len();

/// How the job ends, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    pub at: Time,
    pub reason: String,
    pub message: String,
}

/// Failures of the pods of one index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexFailures {
    pub counted: u32,
    pub ignored: u32,
    pub last: Time,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    pub phase: PodPhase,
    pub index: Option<u32>,
    /// Failures of its index before it: counted and ignored ones.
    pub before: (u32, u32),
    pub created: Time,
    pub transition: Time,
    pub started: Option<Time>,
    /// True if it runs and its readiness probes say that it is ready.
    pub ready: bool,
    pub finished: Option<Time>,
    pub terminated: Option<Box<Terminated>>,
    pub exits: Vec<ContainerExit>,
    pub reason: String,
    pub message: String,
    pub disruption: String,
    pub closing: Option<PodStop>,
    /// What it counts as, once that is decided.
    pub counted: Option<Counted>,
    /// How often its containers were started again in place.
    pub restarts: u32,
    pub tries: u32,
    /// Time of its next timer: its deadline, or the end of its back-off.
    pub wake: Option<Time>,
    /// When it was first given to a runtime.
    pub since: Option<Time>,
    /// Start of its last try, and where that runs or ran, unless on the machine that the run was submitted on.
    pub launched: Time,
    pub on: Option<Box<Assignment>>,
}

impl State {
    /// Returns the number of pods in a phase.
    pub fn count(&self, phase: PodPhase) -> u32 {
        self.counts[phase as usize]
    }

    /// Reports whether the job has an index no more.
    pub(super) fn is_beyond(&self, index: Option<u32>) -> bool {
        self.settings.completions.zip(index).is_some_and(|(all, index)| index >= all)
    }

    /// Returns the number of active pods.
    pub fn active(&self) -> u32 {
        PodPhase::ALL.iter().filter(|phase| phase.active()).map(|phase| self.count(*phase)).sum()
    }

    pub fn phase(&self) -> JobPhase {
        match self.judgement.as_ref().map(|judgement| judgement.verdict) {
            Some(Verdict::Complete) if self.over => JobPhase::Complete,
            Some(Verdict::Failed) if self.over => JobPhase::Failed,
            Some(Verdict::Complete) => JobPhase::SuccessCriteriaMet,
            Some(Verdict::Failed) => JobPhase::FailureTarget,
            None if self.head.suspended => JobPhase::Suspended,
            None if self.started.is_none() => JobPhase::Pending,
            None => JobPhase::Running,
        }
    }

    /// Returns the number of successes, and how many are wanted: one if the job names no number.
    pub fn progress(&self) -> (u64, u64) {
        let wanted = self.settings.completions.unwrap_or(1);
        (u64::from(self.succeeded.min(wanted)), u64::from(wanted))
    }

    /// Returns when the job has been active for too long.
    pub fn deadline(&self) -> Option<Time> {
        let span = self.settings.active_deadline_seconds.filter(|_| !self.head.suspended)?;
        Some(self.started?.saturating_add(Duration::from_secs(span)))
    }

    pub(super) fn attempt_of(&self, run: RunId, pod: u32) -> Option<AttemptId> {
        let tries = self.pods.get(pod as usize)?.tries;
        Some(AttemptId { run, task: NodeIx(pod), attempt: tries.checked_sub(1)? })
    }
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
    /// The demand of every pod. Built when it is first asked for.
    pub(super) demand: OnceCell<Arc<Demand>>,
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
            None => {
                self.todo.job = true;
                self.todo.timer = None;
            }
        }
    }

    /// Returns when a finished job expires; `None`: never.
    pub fn expires(&self) -> Option<Time> {
        let span = self.state.settings.ttl_seconds_after_finished?;
        Some(self.state.finished?.saturating_add(Duration::from_secs(span)))
    }

    /// Iterates over pods that are queued, that a runtime has, or that keep their room.
    pub(crate) fn open_pods(&self) -> impl Iterator<Item = (NodeIx, TaskState)> + '_ {
        self.state.open.iter().filter_map(|at| {
            let state = match self.state.pods[*at as usize].phase {
                PodPhase::Queued => TaskState::Queued,
                PodPhase::Starting | PodPhase::Running => TaskState::Placed,
                PodPhase::Terminating => TaskState::Ending,
                PodPhase::BackOff => TaskState::Held,
                PodPhase::Succeeded | PodPhase::Failed | PodPhase::Gone => return None,
            };
            Some((NodeIx(*at), state))
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
            let name = self.pod_name(at as u32);
            for number in 0..pod.tries {
                let log = if number + 1 == pod.tries { name.clone() } else { ident::earlier_log(&name, number) };
                found.push((log, AttemptId { run: self.id, task: NodeIx(at as u32), attempt: number }));
            }
        }
        found
    }

    pub fn pod_name(&self, pod: u32) -> String {
        let index = self.state.pods[pod as usize].index;
        ident::pod_name(&self.state.head.name, index, self.state.seed, pod)
    }

    pub fn pod_uid(&self, pod: u32) -> String {
        ident::pod_uid(&self.state.head.uid, pod)
    }

    /// Returns the address of a pod. Pods of one index have the same: names lead to it.
    pub fn address_of(&self, pod: u32) -> core::net::Ipv4Addr {
        address(self.id, self.state.pods[pod as usize].index.unwrap_or(pod))
    }
}
