//! The manifest of a `batch/v1` Job. Holds only the fields the engine reads; the field table decides which fields are
//! allowed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Shutdown, meta::Metadata, task::podspec::PodTemplate};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Job {
    pub metadata: Metadata,
    pub spec: JobSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    pub parallelism: Option<u32>,
    pub completions: Option<u32>,
    pub completion_mode: Option<CompletionMode>,
    pub backoff_limit: Option<u32>,
    pub backoff_limit_per_index: Option<u32>,
    pub max_failed_indexes: Option<u32>,
    pub active_deadline_seconds: Option<u64>,
    pub ttl_seconds_after_finished: Option<u64>,
    pub suspend: Option<bool>,
    pub shutdown: Option<Shutdown>,
    pub pod_failure_policy: Option<PodFailurePolicy>,
    pub success_policy: Option<SuccessPolicy>,
    pub pod_replacement_policy: Option<ReplacementPolicy>,
    pub manual_selector: Option<bool>,
    /// A label selector, as written.
    pub selector: Option<Value>,
    pub managed_by: Option<String>,
    pub template: PodTemplate,
}

/// Whether every pod has an index of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompletionMode {
    #[default]
    NonIndexed,
    Indexed,
}

impl CompletionMode {
    pub const WORDS: [&str; 2] = ["NonIndexed", "Indexed"];
}

/// When a pod gets its replacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplacementPolicy {
    /// As soon as it is being deleted, or has failed.
    #[default]
    TerminatingOrFailed,
    /// Once it has ended.
    Failed,
}

impl ReplacementPolicy {
    pub const WORDS: [&str; 2] = ["TerminatingOrFailed", "Failed"];
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodFailurePolicy {
    pub rules: Vec<FailureRule>,
}

/// What follows the failure of a pod. The first rule that applies counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureRule {
    pub action: FailureAction,
    pub on_exit_codes: Option<ExitCodes>,
    pub on_pod_conditions: Vec<PodCondition>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureAction {
    FailJob,
    FailIndex,
    Ignore,
    #[default]
    Count,
}

impl FailureAction {
    pub const WORDS: [&str; 4] = ["FailJob", "FailIndex", "Ignore", "Count"];

    pub const fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExitCodes {
    /// `None`: every container.
    pub container_name: Option<String>,
    pub operator: ExitOperator,
    pub values: Vec<i32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitOperator {
    #[default]
    In,
    NotIn,
}

impl ExitOperator {
    pub const WORDS: [&str; 2] = ["In", "NotIn"];
}

/// A condition of a failed pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodCondition {
    #[serde(rename = "type")]
    pub kind: String,
    /// `None`: `True`.
    pub status: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuccessPolicy {
    pub rules: Vec<SuccessRule>,
}

/// A job has succeeded once one of its rules holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SuccessRule {
    /// Indexes as written, such as `0,3-5`. `None`: all.
    pub succeeded_indexes: Option<String>,
    /// How many of them must have succeeded. `None`: all.
    pub succeeded_count: Option<u32>,
}
