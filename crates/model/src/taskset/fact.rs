//! What is decided about a TaskSet. Replicas are numbered through all roles in the order they are written.
//! Never changed once released: new ones may be added, new fields must have defaults.

use serde::{Deserialize, Serialize};

use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum SetFact {
    /// An attempt of the whole begins: roles and replicas start afresh, under a new control unit.
    Began { attempt: u32, at: Time, unit: String },
    /// So many replicas from the first on ask for their pods; they wait for room.
    Queued { first: u32, count: u32, at: Time },
    /// Room was found: its pod is given to a runtime as this try, which is never used again.
    Launched {
        replica: u32,
        at: Time,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Time>,
    },
    /// Its main container runs.
    Started { replica: u32, at: Time },
    /// Its pod is told to end: because its role or the whole is over, or because somebody wants it gone.
    Ending {
        replica: u32,
        at: Time,
        why: Closing,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// Its pod is gone. What comes next was decided with it.
    Ended(Box<PodEnd>),
    /// The delay is over: it is tried again.
    Again { replica: u32, at: Time },
    /// It never came to a pod, or to another one, because its role is over.
    Dropped { replica: u32, at: Time },
    /// The role's verdict, frozen.
    RoleJudged { role: u32, at: Time, succeeded: bool, message: String },
    /// None of its replicas is left.
    RoleOver { role: u32, at: Time },
    /// The verdict of the attempt, frozen. `last`: nothing is tried again after it.
    Judged {
        at: Time,
        succeeded: bool,
        message: String,
        #[serde(default, skip_serializing_if = "is_false")]
        last: bool,
    },
    /// Nothing of the attempt is left. The next one comes then, if any.
    Over {
        attempt: u32,
        at: Time,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<Time>,
        /// What people are told while they wait for it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
}

/// Why a pod is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Closing {
    /// Its role, or the whole, has its verdict.
    Cleaning,
    /// Somebody deleted the pod; it counts as failed.
    Deleted,
    /// It had to make room; it counts as failed.
    Evicted,
    /// Its own deadline passed; it counts as failed.
    Deadline,
}

impl Closing {
    /// What `podReason` says.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cleaning => "Stopped",
            Self::Deleted => "Deleted",
            Self::Evicted => "Evicted",
            Self::Deadline => "DeadlineExceeded",
        }
    }
}

/// How a pod went, and what follows for its replica.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodEnd {
    pub replica: u32,
    pub at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// Nothing when no container was seen to end: it never started, or was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminated: Option<Terminated>,
    /// Why the pod is gone, when that is not plain from how its container ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether it counts as succeeded or failed; nothing when it counts as neither, being ended with its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<bool>,
    /// It is tried again then, and counts as nothing yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Time>,
    /// How long the pod's log was; as in `NodeFinished`.
    #[serde(default, skip_serializing_if = "crate::fact::is_nothing")]
    pub log_bytes: u64,
    /// What people are told while the replica waits to be tried again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How the main container of a pod ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terminated {
    pub exit_code: i32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub signal: i32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}
