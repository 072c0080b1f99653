//! The manifest of a submitted job. Holds only the fields the engine reads; the field table decides which fields are
//! allowed.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Shutdown, meta::Metadata};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubmittedJob {
    pub metadata: Metadata,
    pub spec: SubmittedSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubmittedSpec {
    #[serde(rename = "userID")]
    pub user_id: String,
    pub job_name: String,
    /// The kind as the user has it. Plugins are selected by it, also after the translation.
    pub job_kind: String,
    /// What the user says about the job beside it; selectors look here.
    pub header: Map<String, Value>,
    /// The job as the user wrote it.
    pub job: Value,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// Who handed it in: the owner of the token. Written by the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub submitted_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown: Option<Shutdown>,
}
