//! An artifact that is to be deleted some day, as the record of a finished run keeps it.

use serde::{Deserialize, Serialize};

use crate::task::StoredArtifact;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Garbage {
    /// The id of the node that made it.
    pub node: String,
    pub name: String,
    pub strategy: GcStrategy,
    pub artifact: StoredArtifact,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GcStrategy {
    /// Not said: whoever is asked next decides.
    #[default]
    #[serde(rename = "")]
    Unsaid,
    OnWorkflowCompletion,
    OnWorkflowDeletion,
    Never,
}

impl GcStrategy {
    pub fn word(self) -> &'static str {
        match self {
            Self::Unsaid => "",
            Self::OnWorkflowCompletion => "OnWorkflowCompletion",
            Self::OnWorkflowDeletion => "OnWorkflowDeletion",
            Self::Never => "Never",
        }
    }
}
