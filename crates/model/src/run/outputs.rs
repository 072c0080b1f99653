//! Outputs of a node as the journal keeps them: parameters, artifacts, result and exit code. Data only.

use serde::{Deserialize, Serialize};

use crate::task::{StoredArtifact, order::Fetched};

/// What a node has put out, with the values of its task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputValues {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<OutputArtifactValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<String>,
    /// Digest and size of each input fetched from an external store, by input name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fetched: Vec<(String, Fetched)>,
}

impl OutputValues {
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
            && self.artifacts.is_empty()
            && self.result.is_none()
            && self.exit_code.is_none()
            && self.fetched.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputArtifactValue {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub artifact: StoredArtifact,
}
