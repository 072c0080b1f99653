//! Phases of a TaskSet, of its roles and of their replicas, with the allowed transitions, in the original's words. The
//! engine makes transitions and is checked against this list.

use serde::{Deserialize, Serialize};

use crate::phases;

phases! {
    /// The phase of a TaskSet. An attempt begins and ends in one decision here, so two phases of the original that wait
    /// for a cluster to catch up are passed at once and never seen: `TaskSetValidation` (admission has already judged
    /// the manifest) and `TaskSetAttemptCreationRequested`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum SetPhase {
        /// Accepted; nothing has been started yet.
        #[default]
        AttemptPending = "TaskSetAttemptPending" -> [AttemptPreparing, Completed],
        /// The control unit exists; no replica has been up yet.
        AttemptPreparing = "TaskSetAttemptPreparing" -> [AttemptRunning, AttemptDeletionRequested],
        /// A replica of this attempt has been up.
        AttemptRunning = "TaskSetAttemptRunning" -> [AttemptDeletionRequested],
        /// The verdict is final; pods that still run are being stopped.
        AttemptDeletionRequested = "TaskSetAttemptDeletionRequested" -> [AttemptCompleted, AttemptRetryPending],
        /// Nothing of the attempt runs any more.
        AttemptCompleted = "TaskSetAttemptCompleted" -> [Completed],
        /// Waits before the next attempt.
        AttemptRetryPending = "TaskSetAttemptRetryPending" -> [AttemptPreparing, Completed],
        /// Over. Final.
        Completed = "TaskSetCompleted" -> [],
    }
}

phases! {
    /// The phase of a role.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum RolePhase {
        /// No replica has been up.
        #[default]
        Waiting = "TaskRoleWaiting" -> [Running, CleaningPending],
        /// A replica has been up.
        Running = "TaskRoleRunning" -> [CleaningPending],
        /// The verdict is final; pods that still run are being stopped.
        CleaningPending = "TaskRoleCleaningPending" -> [Completed],
        /// Every replica is final. Final for this attempt of the TaskSet.
        Completed = "TaskRoleCompleted" -> [],
    }
}

phases! {
    /// The phase of a replica. The original's `…AttemptCreationRequested` and `…AttemptDeletonPending` are passed at
    /// once.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum ReplicaPhase {
        /// Not queued yet: its role waits for other roles, or the run is suspended.
        #[default]
        AttemptPending = "TaskRoleReplicaAttemptPending" -> [AttemptPreparing, Completed],
        /// The pod is queued in the scheduler.
        AttemptPreparing = "TaskRoleReplicaAttemptPreparing" -> [AttemptAssigned, AttemptPending, AttemptRetryPending, Completed],
        /// The pod was given to a runtime.
        AttemptAssigned = "TaskRoleReplicaAttemptAssigned" -> [AttemptRunning, AttemptDeletionRequested, AttemptRetryPending, Completed],
        /// The main container runs.
        AttemptRunning = "TaskRoleReplicaAttemptRunning" -> [AttemptDeletionRequested, AttemptRetryPending, Completed],
        /// The pod is being stopped. A preempted one waits again, unless its role is over before it ends.
        AttemptDeletionRequested = "TaskRoleReplicaAttemptDeletionRequested" -> [AttemptDeletionRequested, AttemptPending, AttemptRetryPending, Completed],
        /// Waits before the next try.
        AttemptRetryPending = "TaskRoleReplicaAttemptRetryPending" -> [AttemptPending, Completed],
        /// Final for this attempt of the TaskSet.
        Completed = "TaskRoleReplicaCompleted" -> [],
    }
}

impl ReplicaPhase {
    /// Reports whether a runtime has its pod.
    pub fn placed(self) -> bool {
        matches!(self, Self::AttemptAssigned | Self::AttemptRunning | Self::AttemptDeletionRequested)
    }
}

/// The summary state shown for a TaskSet or a role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SummaryState {
    #[default]
    Waiting,
    Running,
    Failed,
    Succeeded,
}

impl SummaryState {
    pub const WORDS: &[&str] = &["Waiting", "Running", "Failed", "Succeeded"];

    pub const fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    pub fn of(succeeded: bool) -> Self {
        if succeeded { Self::Succeeded } else { Self::Failed }
    }
}

impl std::fmt::Display for SummaryState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}
