//! The states a workflow and its nodes can be in, with their arrows.
//! Transitions are the engine's, which is checked against the arrows.

use serde::{Deserialize, Serialize};

use crate::phases;

phases! {
    /// A node's state. A node may be born in any of them; `Skipped` and `Omitted` are only ever born.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum Phase {
        /// Exists, but its process is not known to run.
        Pending = "Pending" -> [Running, Succeeded, Failed, Error],
        /// At work, or waiting for its children.
        Running = "Running" -> [Succeeded, Failed, Error],
        /// Ended well. Final.
        Succeeded = "Succeeded" -> [],
        /// Its `when` was false or its loop was empty; counts as well for dependents. Final.
        Skipped = "Skipped" -> [],
        /// User code ended badly, a deadline passed, or someone stopped it. Final.
        Failed = "Failed" -> [],
        /// The engine or its surroundings could not do it: a bad variable, a missing artifact, a lost process. Final.
        Error = "Error" -> [],
        /// Its `depends` can no longer become true. Final; dependents see it as not succeeded.
        Omitted = "Omitted" -> [],
    }
}

impl Phase {
    /// Ran to an end; exit handlers run for these and no others.
    pub fn completed(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Error)
    }

    /// Nothing more will happen to it.
    pub fn fulfilled(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }

    pub fn bad(self) -> bool {
        matches!(self, Self::Failed | Self::Error)
    }
}

/// What a node is, in the words of `status.nodes[].type`.
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
    /// Never ran: skipped, omitted, or wrong before it could start.
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

    /// Its work is a task of its own, given to a runtime.
    pub fn tasked(self) -> bool {
        matches!(self, Self::Pod | Self::Http)
    }

    /// Progress counts it.
    pub fn executable(self) -> bool {
        matches!(self, Self::Pod | Self::Http | Self::Container | Self::Suspend)
    }
}
