//! The manifest of a Volcano Job. Holds only the fields the engine reads; the field table decides which fields are allowed.

use std::collections::BTreeMap;

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
    pub scheduler_name: Option<String>,
    pub min_available: Option<u32>,
    pub volumes: Vec<JobVolume>,
    pub tasks: Vec<TaskSpec>,
    pub policies: Vec<Policy>,
    pub plugins: BTreeMap<String, Option<Vec<String>>>,
    pub queue: Option<String>,
    pub max_retry: Option<i32>,
    pub ttl_seconds_after_finished: Option<u64>,
    pub priority_class_name: Option<String>,
    pub min_success: Option<u32>,
    /// A duration, as written.
    pub running_estimate: Option<String>,
    pub suspend: Option<bool>,
    pub shutdown: Option<Shutdown>,
}

/// A directory of all pods: a claim by name, or one that is made for the job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobVolume {
    pub mount_path: String,
    pub volume_claim_name: Option<String>,
    pub volume_claim: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskSpec {
    pub name: String,
    pub replicas: u32,
    pub min_available: Option<u32>,
    pub template: PodTemplate,
    pub policies: Vec<Policy>,
    pub max_retry: Option<i32>,
    pub depends_on: Option<DependsOn>,
    pub partition_policy: Option<PartitionPolicy>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DependsOn {
    pub name: Vec<String>,
    pub iteration: Iteration,
}

/// How many of the named tasks must have come so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Iteration {
    Any,
    #[default]
    All,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PartitionPolicy {
    pub total_partitions: u32,
    pub partition_size: u32,
    pub min_partitions: Option<u32>,
}

/// What follows an event or an exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    pub event: Option<Event>,
    pub events: Vec<Event>,
    pub exit_code: Option<i32>,
    /// `None`: nothing follows.
    pub action: Option<Action>,
    /// A duration, as written.
    pub timeout: Option<String>,
}

impl Policy {
    /// Iterates over its events, in both spellings.
    pub fn all_events(&self) -> impl Iterator<Item = Event> + '_ {
        self.event.into_iter().chain(self.events.iter().copied())
    }
}

/// An event that policies may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Event {
    PodFailed,
    PodEvicted,
    PodPending,
    Unknown,
    TaskCompleted,
    TaskFailed,
    JobUpdated,
    /// Every event.
    #[serde(rename = "*")]
    Any,
}

impl Event {
    pub const WORDS: [&str; 8] =
        ["PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated", "*"];

    pub const fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// An action that a policy or a person asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Action {
    AbortJob,
    RestartJob,
    RestartTask,
    RestartPod,
    RestartPartition,
    TerminateJob,
    CompleteJob,
    ResumeJob,
}

impl Action {
    pub const ALL: [Self; 8] = [
        Self::AbortJob,
        Self::RestartJob,
        Self::RestartTask,
        Self::RestartPod,
        Self::RestartPartition,
        Self::TerminateJob,
        Self::CompleteJob,
        Self::ResumeJob,
    ];
    pub const WORDS: [&str; 8] = [
        "AbortJob",
        "RestartJob",
        "RestartTask",
        "RestartPod",
        "RestartPartition",
        "TerminateJob",
        "CompleteJob",
        "ResumeJob",
    ];

    pub const fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}
