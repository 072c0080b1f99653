//! Facts about a `batch/v1` Job. Pods are numbered in the order of their creation, and a number is never used again. A
//! released fact never changes: new facts may be added, new fields must have defaults.

use serde::{Deserialize, Serialize};

use crate::{task::placement::Assignment, task::pod::Terminated, time::Time};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum KubeJobFact {
    /// The job is active from now on: for the first time, or again after a suspension.
    Began { at: Time },
    /// `count` pods, numbered from `first`, were created and wait for room.
    Created {
        first: u32,
        count: u32,
        /// Their completion indexes: inclusive ranges, in the order of the pods. Empty if pods have no index.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        indexes: Vec<(u32, u32)>,
        /// What the suffixes of their names are computed from, beside their numbers.
        seed: u32,
        at: Time,
    },
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
    /// The readiness probes of the pod say that it is ready from now on, or no longer.
    Ready { pod: u32, at: Time, ready: bool },
    /// The pod is being ended.
    Ending {
        pod: u32,
        at: Time,
        why: PodStop,
        /// What it counts as from now on, whatever it ends with. `None`: its end decides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        counted: Option<Counted>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// The pod's attempt ended. The fact includes what became of the pod.
    Ended(Box<PodEnd>),
    /// Pods that waited for room were deleted.
    Removed { pods: Vec<u32>, at: Time, counted: Counted },
    /// The specification was changed while the job is open.
    Amended { at: Time, to: Box<Amendment> },
    /// It is decided how the job ends. Pods that are left are ended first.
    Judged {
        at: Time,
        verdict: Verdict,
        reason: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
}

/// The fields of the specification that may change, as they are from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amendment {
    pub parallelism: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<u32>,
    pub backoff_limit: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failed_indexes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<u64>,
}

/// How a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    Complete,
    Failed,
}

/// What a pod counts as in the status of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Counted {
    Succeeded,
    Failed,
    /// It failed, and its index is not tried again.
    FailedIndex,
    /// It failed, and a rule says that this does not count.
    Ignored,
    /// Neither: the job itself had it deleted.
    Nothing,
}

/// Why a pod is being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodStop {
    /// There are more pods than the job wants.
    Scaled,
    /// The job was suspended.
    Suspended,
    /// The job is over.
    Finished,
    /// A user deleted it.
    Deleted,
    /// It was evicted.
    Evicted,
    /// Its own deadline passed.
    Deadline,
    /// It makes room for another, or its node is drained.
    Preempted,
}

impl PodStop {
    /// The reason shown for the pod.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Scaled => "Scaled",
            Self::Suspended => "Suspended",
            Self::Finished => "JobFinished",
            Self::Deleted => "Deleted",
            Self::Evicted => "Evicted",
            Self::Deadline => "DeadlineExceeded",
            Self::Preempted => "Preempted",
        }
    }

    /// Reports whether the job itself had the pod deleted because it wants fewer.
    pub const fn by_job(self) -> bool {
        matches!(self, Self::Scaled | Self::Suspended)
    }
}

/// What became of a pod whose attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodOutcome {
    Succeeded,
    Failed,
    /// It was deleted.
    Gone,
    /// Its containers are started again in the same place.
    Restarted,
}

/// A container that ended with another exit code than 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerExit {
    pub name: String,
    pub code: i32,
}

/// End of an attempt of a pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodEnd {
    pub pod: u32,
    pub at: Time,
    pub outcome: PodOutcome,
    /// What it counts as. `None` if that was decided before, or is not decided yet because it is started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// The end of the first container; `None` if no container was seen to end: it never started, or was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminated: Option<Terminated>,
    /// The containers that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exits: Vec<ContainerExit>,
    /// The reason for the pod's end, if it does not follow from how its containers ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The reason of its condition `DisruptionTarget`; empty if it was not disrupted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub disruption: String,
    /// When its containers are started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Time>,
    /// Length of the log in bytes; as in `NodeFinished`.
    #[serde(default, skip_serializing_if = "crate::fact::is_nothing")]
    pub log_bytes: u64,
}
