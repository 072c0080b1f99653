//! Run phases that every dialect shares, and how a run is ended early. The engine makes transitions and is checked
//! against the list.

pub mod lock;
pub mod mark;
pub mod meter;
pub mod node;
pub mod outputs;
pub mod phase;
pub mod previous;
pub mod stop;
pub mod submission;

use serde::{Deserialize, Serialize};

use crate::phases;

phases! {
    /// The phase of a run. It goes from `Pending` straight to its end if it is stopped before it began or its arguments
    /// turn out unusable.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum RunPhase {
        /// Accepted; nothing has been started yet.
        #[default]
        Pending = "Pending" -> [Running, Failed, Error],
        /// Executing, or suspended.
        Running = "Running" -> [Succeeded, Failed, Error],
        /// The work and its exit handlers ended successfully. Final.
        Succeeded = "Succeeded" -> [],
        /// User code failed, a deadline passed, or a user stopped it. Final.
        Failed = "Failed" -> [],
        /// The engine or its environment failed. Final.
        Error = "Error" -> [],
    }
}

impl RunPhase {
    pub fn finished(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Error)
    }
}

/// Ways of ending a run early.
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
