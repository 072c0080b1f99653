//! States of a submitted job, with the allowed transitions.

use serde::{Deserialize, Serialize};

use crate::{phases, plugin::LifeState};

phases! {
    /// Where a submitted job is. It follows from its facts and is no fact of its own.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum WalkState {
        /// On its way through the stages.
        #[default]
        Preparing = "preparing" -> [Pending, Running, Suspended, Succeeded, Failed, Stopped],
        /// Handed over; the run that came out does not run yet.
        Pending = "pending" -> [Running, Suspended, Succeeded, Failed, Stopped],
        /// The run that came out runs.
        Running = "running" -> [Suspended, Succeeded, Failed, Stopped],
        /// Held by a gate or by somebody, before the hand-over or after it.
        Suspended = "suspended" -> [Preparing, Pending, Running, Succeeded, Failed, Stopped],
        Succeeded = "succeeded" -> [],
        Failed = "failed" -> [],
        /// Ended by a gate, by a command, or because the run that came out was deleted.
        Stopped = "stopped" -> [],
    }
}

impl WalkState {
    /// Returns the state that lists and life hooks name.
    pub const fn life(self) -> LifeState {
        match self {
            Self::Preparing | Self::Pending => LifeState::Waiting,
            Self::Running => LifeState::Running,
            Self::Suspended => LifeState::Suspended,
            Self::Succeeded => LifeState::Succeeded,
            Self::Failed => LifeState::Failed,
            Self::Stopped => LifeState::Stopped,
        }
    }
}
