//! The phases of a TaskSet, of its roles and of their replicas, with their arrows, in the original's words.
//! Transitions are the engine's, which is checked against the arrows.

use serde::{Deserialize, Serialize};

use crate::phases;

phases! {
    /// How far a TaskSet is. An attempt begins and ends in one decision here, so that two phases of the original, which
    /// wait for a cluster to catch up, are passed at once and never seen: `TaskSetValidation` (admission has judged
    /// before anything is kept) and `TaskSetAttemptCreationRequested`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum SetPhase {
        /// Accepted; nothing has been started yet.
        #[default]
        AttemptPending = "TaskSetAttemptPending" -> [AttemptPreparing, Completed],
        /// Its control unit is there, and no replica has been up yet.
        AttemptPreparing = "TaskSetAttemptPreparing" -> [AttemptRunning, AttemptDeletionRequested],
        /// A replica of this attempt has been up.
        AttemptRunning = "TaskSetAttemptRunning" -> [AttemptDeletionRequested],
        /// The verdict is reached and frozen; what still runs is being ended.
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
    /// How far a role is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum RolePhase {
        /// No replica has been up.
        #[default]
        Waiting = "TaskRoleWaiting" -> [Running, CleaningPending],
        /// A replica has been up.
        Running = "TaskRoleRunning" -> [CleaningPending],
        /// The verdict is reached and frozen; the survivors are being ended.
        CleaningPending = "TaskRoleCleaningPending" -> [Completed],
        /// Every replica is final. Final for this attempt.
        Completed = "TaskRoleCompleted" -> [],
    }
}

phases! {
    /// How far a replica is. The original's `…AttemptCreationRequested` and `…AttemptDeletonPending` are passed at once.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum ReplicaPhase {
        /// Nothing asked for yet: its role waits for others, or everything is suspended.
        #[default]
        AttemptPending = "TaskRoleReplicaAttemptPending" -> [AttemptPreparing, Completed],
        /// Its pod waits to be given room.
        AttemptPreparing = "TaskRoleReplicaAttemptPreparing" -> [AttemptAssigned, AttemptPending, AttemptRetryPending, Completed],
        /// Its pod was given to a runtime.
        AttemptAssigned = "TaskRoleReplicaAttemptAssigned" -> [AttemptRunning, AttemptDeletionRequested, AttemptRetryPending, Completed],
        /// Its main container runs.
        AttemptRunning = "TaskRoleReplicaAttemptRunning" -> [AttemptDeletionRequested, AttemptRetryPending, Completed],
        /// It was told to end.
        AttemptDeletionRequested = "TaskRoleReplicaAttemptDeletionRequested" -> [AttemptRetryPending, Completed],
        /// Waits before the next try.
        AttemptRetryPending = "TaskRoleReplicaAttemptRetryPending" -> [AttemptPending, Completed],
        /// Final for this attempt of the TaskSet.
        Completed = "TaskRoleReplicaCompleted" -> [],
    }
}

impl ReplicaPhase {
    /// A runtime has its pod.
    pub fn placed(self) -> bool {
        matches!(self, Self::AttemptAssigned | Self::AttemptRunning | Self::AttemptDeletionRequested)
    }
}

/// What people are told of a TaskSet or of a role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    #[default]
    Waiting,
    Running,
    Failed,
    Succeeded,
}

impl Standing {
    pub const WORDS: &[&str] = &["Waiting", "Running", "Failed", "Succeeded"];

    pub const fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    pub fn of(succeeded: bool) -> Self {
        if succeeded { Self::Succeeded } else { Self::Failed }
    }
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}
