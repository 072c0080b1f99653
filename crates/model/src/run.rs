//! The states of a run that every dialect shares, and how a run is ended before its time.
//! Transitions are the engine's, which is checked against the arrows.

use serde::{Deserialize, Serialize};

use crate::phases;

phases! {
    /// A run's state. It leaves `Pending` for its end when it is stopped before it began or its arguments turn out unusable.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum RunPhase {
        /// Accepted; nothing has been started yet.
        #[default]
        Pending = "Pending" -> [Running, Failed, Error],
        /// Begun. A suspended run stays here.
        Running = "Running" -> [Succeeded, Failed, Error],
        /// The work ended well, and what had to follow it. Final.
        Succeeded = "Succeeded" -> [],
        /// User code failed, a deadline passed, or someone stopped it. Final.
        Failed = "Failed" -> [],
        /// The engine or its surroundings failed. Final.
        Error = "Error" -> [],
    }
}

impl RunPhase {
    pub fn finished(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Error)
    }
}

/// How a run is being ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Shutdown {
    /// End the work, then run the exit handlers.
    Stop,
    /// End the work and run nothing more.
    Terminate,
}

impl Shutdown {
    pub fn word(self) -> &'static str {
        match self {
            Self::Stop => "Stop",
            Self::Terminate => "Terminate",
        }
    }
}
