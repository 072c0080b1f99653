//! Phases of a job and of its pods, with the allowed transitions. Kubernetes keeps conditions and no phase; the phase is the
//! word that `kubectl get jobs` shows for them.

use serde::{Deserialize, Serialize};

use crate::phases;

phases! {
    /// The phase of a job.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum JobPhase {
        /// Not begun.
        #[default]
        Pending = "Pending" -> [Suspended, Running, FailureTarget],
        /// Has no pods until it is resumed.
        Suspended = "Suspended" -> [Running, SuccessCriteriaMet, FailureTarget],
        Running = "Running" -> [Suspended, SuccessCriteriaMet, FailureTarget],
        /// Has succeeded; pods that are left are being ended.
        SuccessCriteriaMet = "SuccessCriteriaMet" -> [Complete],
        /// Has failed; pods that are left are being ended.
        FailureTarget = "FailureTarget" -> [Failed],
        Complete = "Complete" -> [],
        Failed = "Failed" -> [],
    }
}

phases! {
    /// The phase of a pod. A pod that failed is never started again; another one takes its place.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum PodPhase {
        /// Waits for room.
        #[default]
        Queued = "Queued" -> [Starting, Failed, Gone],
        /// Given to a runtime.
        Starting = "Starting" -> [Running, BackOff, Terminating, Succeeded, Failed],
        /// Its containers run, or are being started again.
        Running = "Running" -> [BackOff, Terminating, Succeeded, Failed],
        /// A container failed; they are started again in the same place, after a while.
        BackOff = "BackOff" -> [Running, Terminating, Failed],
        /// Being deleted.
        Terminating = "Terminating" -> [Gone, Failed],
        /// All containers ended with exit code 0. Kept.
        Succeeded = "Succeeded" -> [Gone],
        /// Ended otherwise. Kept.
        Failed = "Failed" -> [Gone],
        /// Deleted.
        Gone = "Gone" -> [],
    }
}

impl PodPhase {
    /// Reports whether a runtime has the pod.
    pub const fn placed(self) -> bool {
        matches!(self, Self::Starting | Self::Running | Self::Terminating)
    }

    /// Reports whether it counts as active: it waits, starts or runs, and is not being deleted.
    pub const fn active(self) -> bool {
        matches!(self, Self::Queued | Self::Starting | Self::Running | Self::BackOff)
    }
}
