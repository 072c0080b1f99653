//! Phases and types of the nodes that runs of any dialect are displayed as, with the allowed transitions. The engine
//! makes transitions and is checked against this list.

use serde::{Deserialize, Serialize};

use crate::phases;

phases! {
    /// The phase of a node. A node may be created in any phase; `Skipped` and `Omitted` are only ever set on creation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum Phase {
        /// Created; its process is not known to run.
        Pending = "Pending" -> [Running, Succeeded, Failed, Error],
        /// Executing, or waiting for its children. A preempted task waits again.
        Running = "Running" -> [Pending, Succeeded, Failed, Error],
        /// Ended successfully. Final.
        Succeeded = "Succeeded" -> [],
        /// Its `when` was false or its loop was empty; dependents see it as succeeded. Final.
        Skipped = "Skipped" -> [],
        /// User code failed, a deadline passed, or a user stopped it. Final.
        Failed = "Failed" -> [],
        /// The engine or its environment failed: a bad variable, a missing artifact, a lost process. Final.
        Error = "Error" -> [],
        /// Its `depends` can no longer become true. Final; dependents see it as not succeeded.
        Omitted = "Omitted" -> [],
    }
}

impl Phase {
    /// Reports whether the node ran to an end; exit handlers run for these phases only.
    pub fn completed(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Error)
    }

    /// Reports whether the phase is final.
    pub fn fulfilled(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }

    pub fn bad(self) -> bool {
        matches!(self, Self::Failed | Self::Error)
    }
}

/// The type of a node, in the words of `status.nodes[].type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NodeKind {
    /// Runs a task.
    Pod,
    /// A list of groups, one after another.
    Steps,
    /// One group of steps, side by side.
    StepGroup,
    /// A graph of tasks.
    #[serde(rename = "DAG")]
    Dag,
    /// The items of one looped DAG task.
    TaskGroup,
    /// Wraps the attempts of one call.
    Retry,
    /// Never ran: skipped, omitted, or in error before it could start.
    Skipped,
    /// Waits for a person or a duration.
    Suspend,
    /// One container of a set; it runs inside the pod that is its boundary.
    Container,
    /// Sends an HTTP request.
    #[serde(rename = "HTTP")]
    Http,
}

impl NodeKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::Steps => "Steps",
            Self::StepGroup => "StepGroup",
            Self::Dag => "DAG",
            Self::TaskGroup => "TaskGroup",
            Self::Retry => "Retry",
            Self::Skipped => "Skipped",
            Self::Suspend => "Suspend",
            Self::Container => "Container",
            Self::Http => "HTTP",
        }
    }

    /// Reports whether a node of this type is executed as a task of its own by a runtime.
    pub fn tasked(self) -> bool {
        matches!(self, Self::Pod | Self::Http)
    }

    /// Reports whether progress counts nodes of this type.
    pub fn executable(self) -> bool {
        matches!(self, Self::Pod | Self::Http | Self::Container | Self::Suspend)
    }
}
