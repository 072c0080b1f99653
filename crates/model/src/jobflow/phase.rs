//! Phases of a JobFlow, with the allowed transitions.

use serde::{Deserialize, Serialize};

use crate::phases;

phases! {
    /// The phase of a flow, in the original's words. It follows from the flow's jobs and is no fact of its own.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum FlowPhase {
        /// No job has begun.
        #[default]
        Pending = "Pending" -> [Running, Succeed, Failed, Terminating],
        /// A job has begun, and something is active or may still start.
        Running = "Running" -> [Succeed, Failed, Terminating],
        /// Every job is completed.
        Succeed = "Succeed" -> [Terminating],
        /// Not every job is completed, and nothing is active or may still start.
        Failed = "Failed" -> [Terminating],
        /// The flow is being deleted.
        Terminating = "Terminating" -> [],
    }
}
