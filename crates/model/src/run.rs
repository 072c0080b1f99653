//! The states of a run that every dialect shares, and how a run is ended before its time.
//! Transitions are the engine's; here is only what each state means.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A run's state. Arrows: `Pending → Running → {Succeeded, Failed, Error}`; `Pending → Failed` when it is
/// stopped before it began or its arguments turn out unusable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RunPhase {
    /// Accepted; nothing has been started yet.
    #[default]
    Pending,
    /// Begun. A suspended run stays here.
    Running,
    /// The work ended well, and what had to follow it. Final.
    Succeeded,
    /// User code failed, a deadline passed, or someone stopped it. Final.
    Failed,
    /// The engine or its surroundings failed. Final.
    Error,
}

impl RunPhase {
    pub fn finished(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Error)
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Error => "Error",
        }
    }
}

impl fmt::Display for RunPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
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
