//! Artifacts awaiting garbage collection, as the record of a finished run lists them.

use serde::{Deserialize, Serialize};

use crate::task::StoredArtifact;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Garbage {
    /// Id of the node that produced it.
    pub node: String,
    pub name: String,
    pub strategy: GcStrategy,
    pub artifact: StoredArtifact,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GcStrategy {
    /// Not set: the next level (workflow, then default) decides.
    #[default]
    #[serde(rename = "")]
    Unset,
    OnWorkflowCompletion,
    OnWorkflowDeletion,
    Never,
}

impl GcStrategy {
    pub fn word(self) -> &'static str {
        match self {
            Self::Unset => "",
            Self::OnWorkflowCompletion => "OnWorkflowCompletion",
            Self::OnWorkflowDeletion => "OnWorkflowDeletion",
            Self::Never => "Never",
        }
    }
}
