//! The phases of a TaskSet, of its roles and of their replicas, with their arrows, in the original's words.
//! Transitions are the engine's; here is only what each phase means.

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($name:ident: $($variant:ident = $word:literal),* $(,)?) => {
        impl $name {
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),*
                }
            }

            pub const WORDS: &[&str] = &[$($word),*];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

/// How far a TaskSet is. An attempt begins and ends in one decision here, so that two phases of the original, which
/// wait for a cluster to catch up, are passed at once and never seen: `TaskSetValidation` (admission has judged
/// before anything is kept) and `TaskSetAttemptCreationRequested`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetPhase {
    /// Accepted; nothing has been started yet. → `Preparing`, or `Completed` when it is stopped before.
    #[default]
    AttemptPending,
    /// Its control unit is there, and no replica has been up yet. → `Running`, `DeletionPending`.
    AttemptPreparing,
    /// A replica of this attempt has been up. → `DeletionPending`.
    AttemptRunning,
    /// The verdict is reached and frozen; what still runs is being ended. → `AttemptCompleted`.
    AttemptDeletionRequested,
    /// Nothing of the attempt runs any more. → `AttemptRetryPending`, `Completed`.
    AttemptCompleted,
    /// Waits before the next attempt. → `AttemptPreparing`, or `Completed` when it is stopped.
    AttemptRetryPending,
    /// Over. Final.
    Completed,
}

words! { SetPhase:
    AttemptPending = "TaskSetAttemptPending",
    AttemptPreparing = "TaskSetAttemptPreparing",
    AttemptRunning = "TaskSetAttemptRunning",
    AttemptDeletionRequested = "TaskSetAttemptDeletionRequested",
    AttemptCompleted = "TaskSetAttemptCompleted",
    AttemptRetryPending = "TaskSetAttemptRetryPending",
    Completed = "TaskSetCompleted",
}

/// How far a role is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RolePhase {
    /// No replica has been up. → `Running`, `CleaningPending`.
    #[default]
    Waiting,
    /// A replica has been up. → `CleaningPending`.
    Running,
    /// The verdict is reached and frozen; the survivors are being ended. → `Completed`.
    CleaningPending,
    /// Every replica is final. Final for this attempt.
    Completed,
}

words! { RolePhase:
    Waiting = "TaskRoleWaiting",
    Running = "TaskRoleRunning",
    CleaningPending = "TaskRoleCleaningPending",
    Completed = "TaskRoleCompleted",
}

/// How far a replica is. The original's `…AttemptCreationRequested` and `…AttemptDeletonPending` are passed at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaPhase {
    /// Nothing asked for yet: its role waits for others, or everything is suspended. → `Preparing`, `Completed`.
    #[default]
    AttemptPending,
    /// Its pod waits to be given room. → `Assigned`, `AttemptPending`, `AttemptRetryPending`, `Completed`.
    AttemptPreparing,
    /// Its pod was given to a runtime. → `Running`, `DeletionRequested`, `AttemptRetryPending`, `Completed`.
    AttemptAssigned,
    /// Its main container runs. → `DeletionRequested`, `AttemptRetryPending`, `Completed`.
    AttemptRunning,
    /// It was told to end. → `AttemptRetryPending`, `Completed`.
    AttemptDeletionRequested,
    /// Waits before the next try. → `AttemptPreparing`, `AttemptPending`, `Completed`.
    AttemptRetryPending,
    /// Final for this attempt of the TaskSet.
    Completed,
}

words! { ReplicaPhase:
    AttemptPending = "TaskRoleReplicaAttemptPending",
    AttemptPreparing = "TaskRoleReplicaAttemptPreparing",
    AttemptAssigned = "TaskRoleReplicaAttemptAssigned",
    AttemptRunning = "TaskRoleReplicaAttemptRunning",
    AttemptDeletionRequested = "TaskRoleReplicaAttemptDeletionRequested",
    AttemptRetryPending = "TaskRoleReplicaAttemptRetryPending",
    Completed = "TaskRoleReplicaCompleted",
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

words! { Standing:
    Waiting = "Waiting",
    Running = "Running",
    Failed = "Failed",
    Succeeded = "Succeeded",
}

impl Standing {
    pub fn of(succeeded: bool) -> Self {
        if succeeded { Self::Succeeded } else { Self::Failed }
    }
}
