//! Reasons to stop a single pod of a run. Every dialect that replaces pods uses the same ones.

use serde::{Deserialize, Serialize};

/// Why a pod is being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// The group it belongs to, or the whole run, is decided.
    Cleaning,
    /// A user deleted the pod; it counts as failed.
    Deleted,
    /// The pod was evicted; it counts as failed.
    Evicted,
    /// The pod's own deadline passed; it counts as failed.
    Deadline,
    /// The pod makes room for another; it is tried again, which costs no retry.
    Preempted,
}

impl StopReason {
    /// The word for it in the status of a pod.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cleaning => "Stopped",
            Self::Deleted => "Deleted",
            Self::Evicted => "Evicted",
            Self::Deadline => "DeadlineExceeded",
            Self::Preempted => "Preempted",
        }
    }
}
