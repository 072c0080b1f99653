//! The Workflow manifest. Templates stay raw values, because variables may stand anywhere in them and are substituted
//! for each node.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Arguments, ArtifactGc, Hook, Metrics, RepositoryRef, RetryStrategy, Synchronization};
use crate::{
    Shutdown,
    meta::Metadata,
    scalar::{IntOrText, Text},
    task::{
        Labels,
        podspec::{ClaimTemplate, TemplateMetadata, Volume},
    },
};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workflow {
    #[serde(default)]
    pub metadata: Metadata,
    #[serde(default)]
    pub spec: Spec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    pub entrypoint: Option<String>,
    pub arguments: Arguments,
    /// Raw templates.
    pub templates: Vec<Value>,
    pub on_exit: Option<String>,
    pub hooks: std::collections::BTreeMap<String, Hook>,
    pub parallelism: Option<u64>,
    pub active_deadline_seconds: Option<i64>,
    pub suspend: Option<bool>,
    pub shutdown: Option<Shutdown>,
    pub priority: Option<i32>,
    pub pod_priority: Option<i32>,
    pub pod_priority_class_name: Option<String>,
    pub node_selector: Option<Value>,
    pub affinity: Option<Value>,
    pub tolerations: Option<Value>,
    pub pod_metadata: Option<TemplateMetadata>,
    pub retry_strategy: Option<RetryStrategy>,
    pub synchronization: Option<Synchronization>,
    pub volumes: Vec<Volume>,
    pub volume_claim_templates: Vec<ClaimTemplate>,
    pub service_account_name: Option<String>,
    pub template_defaults: Option<Value>,
    pub workflow_template_ref: Option<WorkflowTemplateRef>,
    pub workflow_metadata: Option<WorkflowMetadata>,
    pub metrics: Option<Metrics>,
    pub pod_spec_patch: Option<Text>,
    pub archive_logs: Option<bool>,
    pub artifact_repository_ref: Option<RepositoryRef>,
    #[serde(rename = "artifactGC")]
    pub artifact_gc: Option<ArtifactGc>,
    pub ttl_strategy: Option<TtlStrategy>,
}

/// Retention of a finished run, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TtlStrategy {
    pub seconds_after_completion: Option<u64>,
    pub seconds_after_success: Option<u64>,
    pub seconds_after_failure: Option<u64>,
}

/// Reference to the WorkflowTemplate that supplies the rest of the specification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkflowTemplateRef {
    pub name: String,
    pub cluster_scope: bool,
}

/// Labels and annotations added to a run when it begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkflowMetadata {
    pub labels: Labels,
    pub annotations: Labels,
    pub labels_from: std::collections::BTreeMap<String, LabelFrom>,
}

/// A label whose value is computed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LabelFrom {
    pub expression: String,
}

/// A limit that may hold variables, in seconds or as a duration text.
pub type Seconds = IntOrText;
