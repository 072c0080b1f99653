//! Facts about a Volcano Job. Pods are numbered across all tasks in manifest order; the pod of a number is created again
//! after it is gone. A released fact never changes: new facts may be added, new fields must have defaults.

use serde::{Deserialize, Serialize};

use super::{
    phase::JobPhase,
    spec::{Action, Event},
};
use crate::{task::placement::Assignment, task::pod::Terminated, time::Time};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum JobFact {
    /// The job entered a phase, with these values of `retryCount` and `version` from now on. A phase entered again is an
    /// action that changes no phase.
    Entered {
        phase: JobPhase,
        at: Time,
        retries: u32,
        version: u32,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// `count` pods starting with `first` were created and wait for room.
    Created { first: u32, count: u32, at: Time },
    /// The pod goes to a runtime as a new try. A try's number is never reused.
    Launched {
        pod: u32,
        at: Time,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
        /// Where it runs. `None`: on the machine that the run was submitted on, without devices.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<Box<Assignment>>,
    },
    /// The pod's main container runs.
    Started { pod: u32, at: Time },
    /// The pod is being ended.
    Ending {
        pod: u32,
        at: Time,
        why: PodStop,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// The pod's attempt ended. The fact includes what became of the pod.
    Ended(Box<PodEnd>),
    /// `count` pods starting with `first` are gone: they waited, or had ended and were kept.
    Removed { first: u32, count: u32, at: Time },
    /// An action follows an event of the pod later, unless it is called off. It takes the place of an earlier one.
    Delayed(Box<DelayedAction>),
    /// The action that was to follow an event of the pod is not waited for any more: it is carried out now, or was called
    /// off.
    DelayEnded { pod: u32, at: Time, called_off: bool },
    /// All containers of the running pod are ready, or no longer are. Only pods with readiness probes have it.
    Ready { pod: u32, at: Time, ready: bool },
    /// Somebody changed the numbers of pods, or the priority class. A task that has more pods than ever before gets new
    /// numbers for them, after all that there are.
    Resized(Box<Sizes>),
    /// No pod is created until these claims are there; an empty list ends the wait.
    Awaits { at: Time, claims: Vec<String> },
    /// What was decided and is not done, in order, because it is too much for one commit. It takes the place of the list
    /// before; an empty one says that all is done.
    Left { at: Time, work: Vec<LeftWork> },
}

/// A part of a decision about very many pods. Pods are ranges: the first, and how many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum LeftWork {
    /// These pods are ended.
    Kill(KillWork),
    /// These pods are pending, which policies may wait for.
    Pending { pods: Vec<(u32, u32)> },
}

/// Pods that are ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KillWork {
    pub pods: Vec<(u32, u32)>,
    /// True if pods that have ended are kept.
    pub keep_finished: bool,
    pub why: String,
    /// Delayed actions of these pods that are called off because they are carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_off: Option<Action>,
}

/// The numbers of a job that may change while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    pub at: Time,
    pub min_available: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// All tasks, in manifest order.
    pub tasks: Vec<TaskSize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSize {
    pub replicas: u32,
    pub min_available: u32,
}

/// An action that follows an event after its policy's timeout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayedAction {
    pub pod: u32,
    pub at: Time,
    pub due: Time,
    pub event: Event,
    pub action: Action,
}

/// Why a pod is being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodStop {
    /// By the job. Its end raises no event.
    Killed,
    /// A user deleted it.
    Deleted,
    /// It was evicted.
    Evicted,
    /// Its own deadline passed; it counts as failed.
    Deadline,
    /// It makes room for another, or its node is drained.
    Preempted,
}

impl PodStop {
    /// The reason shown for the pod.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Killed => "Killed",
            Self::Deleted => "Deleted",
            Self::Evicted => "Evicted",
            Self::Deadline => "DeadlineExceeded",
            Self::Preempted => "Preempted",
        }
    }
}

/// What became of a pod whose attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodOutcome {
    Succeeded,
    Failed,
    /// It was ended and is gone.
    Gone,
    /// Its containers are started again in the same place.
    Restarted,
}

/// End of an attempt of a pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodEnd {
    pub pod: u32,
    pub at: Time,
    pub outcome: PodOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// The container's end; `None` if no container was seen to end: it never started, or was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminated: Option<Terminated>,
    /// The reason for the pod's end, if it does not follow from how its container ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// When its containers are started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Time>,
    /// Length of the log in bytes; as in `NodeFinished`.
    #[serde(default, skip_serializing_if = "crate::fact::is_nothing")]
    pub log_bytes: u64,
}
