//! Facts about a TaskSet. Replicas are numbered across all roles in manifest order. A released fact never changes: new
//! facts may be added, new fields must have defaults.

use serde::{Deserialize, Serialize};

pub use crate::task::pod::Terminated;
use crate::{run::stop::StopReason, task::placement::Assignment, time::Time};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum SetFact {
    /// An attempt of the whole TaskSet begins: roles and replicas start afresh, under a new control unit.
    Began { attempt: u32, at: Time, unit: String },
    /// `count` replicas starting with `first` were queued; their pods wait for room.
    Queued { first: u32, count: u32, at: Time },
    /// The scheduler admitted the replica's pod, and it goes to a runtime as a new try. A try's number is never reused.
    Launched {
        replica: u32,
        at: Time,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
        /// Where it runs. `None`: on the machine that the run was submitted on, without devices.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<Box<Assignment>>,
    },
    /// The replica's main container runs.
    Started { replica: u32, at: Time },
    /// The replica's pod is being stopped: its role or the whole TaskSet is over, or the pod was deleted or preempted.
    Ending {
        replica: u32,
        at: Time,
        why: StopReason,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// The replica's pod ended. The fact includes what follows for the replica.
    Ended(Box<PodEnd>),
    /// The retry delay is over: the replica is tried again.
    Again { replica: u32, at: Time },
    /// The replica got no pod, or no further one, because its role is over.
    Dropped { replica: u32, at: Time },
    /// The verdict on the role. It never changes afterwards.
    RoleJudged { role: u32, at: Time, succeeded: bool, message: String },
    /// All replicas of the role are final.
    RoleOver { role: u32, at: Time },
    /// The verdict on the attempt. It never changes afterwards. With `last` there is no further attempt.
    Judged {
        at: Time,
        succeeded: bool,
        message: String,
        #[serde(default, skip_serializing_if = "is_false")]
        last: bool,
    },
    /// All pods of the attempt have ended. The next attempt, if any, begins at `next`.
    Over {
        attempt: u32,
        at: Time,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<Time>,
        /// Message shown while waiting for the next attempt.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
}

/// End of a pod, and what follows for its replica.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodEnd {
    pub replica: u32,
    pub at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// The container's end; `None` if no container was seen to end: it never started, or was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminated: Option<Terminated>,
    /// The reason for the pod's end, if it does not follow from how its container ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether it counts as succeeded or failed; `None` if it counts as neither, because it was stopped with its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<bool>,
    /// Time of the next try, if there is one; the replica has no outcome until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Time>,
    /// Length of the pod's log in bytes; as in `NodeFinished`.
    #[serde(default, skip_serializing_if = "crate::fact::is_nothing")]
    pub log_bytes: u64,
    /// Message shown while the replica waits for its next try.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// True if the pod was preempted and the replica waits again: it has no outcome, and this was no retry.
    #[serde(default, skip_serializing_if = "is_false")]
    pub requeued: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}
