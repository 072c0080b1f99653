//! The states a workflow and its nodes can be in, with their arrows.
//! Transitions are the engine's; here is only what each state means.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A node's state. Arrows: `Pending → Running → {Succeeded, Failed, Error}`; a node may be born in any state,
/// and may leave `Pending` straight for `Failed` or `Error`. `Skipped` and `Omitted` are only ever born.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Exists, but its process is not known to run. → `Running`, `Failed`, `Error`, `Succeeded`.
    Pending,
    /// At work, or waiting for its children. → `Succeeded`, `Failed`, `Error`.
    Running,
    /// Ended well. Final.
    Succeeded,
    /// Its `when` was false or its loop was empty; counts as well for dependents. Final.
    Skipped,
    /// User code ended badly, a deadline passed, or someone stopped it. Final.
    Failed,
    /// The engine or its surroundings could not do it: a bad variable, a missing artifact, a lost process. Final.
    Error,
    /// Its `depends` can no longer become true. Final; dependents see it as not succeeded.
    Omitted,
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

    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Skipped => "Skipped",
            Self::Failed => "Failed",
            Self::Error => "Error",
            Self::Omitted => "Omitted",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
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
