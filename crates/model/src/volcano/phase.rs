//! Phases of a job and of its pods, with the allowed transitions. The engine makes transitions and is checked against this
//! list.

use serde::{Deserialize, Serialize};

use crate::phases;

phases! {
    /// The phase of a job, in the original's words.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum JobPhase {
        /// Fewer than `minAvailable` pods run or have ended.
        #[default]
        Pending = "Pending" -> [Running, Restarting, Aborting, Completing, Terminating],
        /// `minAvailable` pods run or have ended.
        Running = "Running" -> [Pending, Restarting, Aborting, Completing, Terminating, Completed, Failed],
        /// Pods are being ended and will be created again, or the last attempt is over.
        Restarting = "Restarting" -> [Pending, Failed, Aborting, Completing, Terminating],
        /// All pods are being ended; the job can be resumed.
        Aborting = "Aborting" -> [Aborted, Restarting, Terminating],
        /// Nothing runs; the job can be resumed.
        Aborted = "Aborted" -> [Restarting, Terminating],
        /// All pods are being ended; the job has succeeded.
        Completing = "Completing" -> [Completed],
        /// All pods are being ended; the job has not succeeded.
        Terminating = "Terminating" -> [Terminated],
        /// Succeeded. Final; pods that are left are being ended.
        Completed = "Completed" -> [],
        /// Not succeeded, or restarted too often. Final; pods that are left are being ended.
        Failed = "Failed" -> [],
        /// Ended by a policy or a person. Final.
        Terminated = "Terminated" -> [],
    }
}

impl JobPhase {
    /// Reports whether it never changes again.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Terminated)
    }

    /// Reports whether missing pods are created.
    pub const fn creates_pods(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

phases! {
    /// The phase of a pod, by its place in the job. The pod of an index is created again after it is gone.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum PodPhase {
        /// There is no pod.
        #[default]
        Absent = "Absent" -> [Queued],
        /// Waits for room.
        Queued = "Queued" -> [Starting, Failed, Absent],
        /// Given to a runtime.
        Starting = "Starting" -> [Running, BackOff, Terminating, Succeeded, Failed],
        /// The main container runs, or is being started again.
        Running = "Running" -> [BackOff, Terminating, Succeeded, Failed],
        /// The container ended and is started again in the same place, after a while.
        BackOff = "BackOff" -> [Running, Terminating, Failed],
        /// Being ended.
        Terminating = "Terminating" -> [Absent, Failed],
        /// Ended with exit code 0; kept until the job restarts it.
        Succeeded = "Succeeded" -> [Absent],
        /// Ended otherwise; kept until the job restarts it.
        Failed = "Failed" -> [Absent],
    }
}

impl PodPhase {
    /// Reports whether a runtime has the pod.
    pub const fn placed(self) -> bool {
        matches!(self, Self::Starting | Self::Running | Self::Terminating)
    }

    /// Reports whether it ended by itself and is kept.
    pub const fn ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}
