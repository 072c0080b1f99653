//! The manifest of a JobFlow. Holds only the fields the engine reads; the field table decides which fields are allowed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Shutdown, meta::Metadata};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobFlow {
    pub metadata: Metadata,
    pub spec: JobFlowSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobFlowSpec {
    pub flows: Vec<FlowEntry>,
    pub job_retain_policy: Option<RetainPolicy>,
    /// The same, in the spelling of the first versions.
    #[serde(rename = "JobRetainPolicy")]
    pub first_retain_policy: Option<RetainPolicy>,
    pub suspend: Option<bool>,
    pub shutdown: Option<Shutdown>,
}

impl JobFlowSpec {
    /// Returns what becomes of the jobs once all are completed.
    pub fn retain_policy(&self) -> RetainPolicy {
        self.job_retain_policy.or(self.first_retain_policy).unwrap_or_default()
    }
}

/// What becomes of the jobs of a flow that has succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RetainPolicy {
    #[default]
    #[serde(alias = "")]
    Retain,
    Delete,
}

/// One job of the flow: a template, and what must have happened before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FlowEntry {
    /// The name of the template, and of the entry.
    pub name: String,
    pub depends_on: Option<DependsOn>,
    pub patch: Option<Patch>,
    pub retry: Option<Retry>,
}

impl FlowEntry {
    /// Returns its probe, if that has conditions.
    pub fn probe(&self) -> Option<&EntryProbe> {
        self.depends_on.as_ref()?.probe.as_ref().filter(|probe| !probe.is_empty())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DependsOn {
    pub targets: Vec<String>,
    pub probe: Option<EntryProbe>,
    pub strategy: Strategy,
}

/// How many of the targets, or of the probe's conditions, must have come so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    #[default]
    All,
    Any,
}

/// Conditions on the tasks of running targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EntryProbe {
    pub http_get_list: Vec<HttpGet>,
    pub tcp_socket_list: Vec<TcpSocket>,
    pub task_status_list: Vec<TaskStatus>,
}

impl EntryProbe {
    /// Returns the number of its conditions. They are numbered in the order http, tcp, status.
    pub fn len(&self) -> usize {
        self.http_get_list.len() + self.tcp_socket_list.len() + self.task_status_list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of conditions that are tested over the network. They come first.
    pub fn tested(&self) -> usize {
        self.http_get_list.len() + self.tcp_socket_list.len()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpGet {
    pub task_name: String,
    pub path: String,
    pub port: u16,
    pub http_header: Option<ProbeHeader>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeHeader {
    pub name: String,
    pub value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpSocket {
    pub task_name: String,
    pub port: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskStatus {
    pub task_name: String,
    /// The phase of a pod in Kubernetes.
    pub phase: String,
}

/// What is changed in the specification of the template's job, under either name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Patch {
    pub job_spec: Option<Value>,
    pub spec: Option<Value>,
}

impl Patch {
    pub fn content(&self) -> Option<&Value> {
        self.job_spec.as_ref().or(self.spec.as_ref())
    }
}

/// How often a failed job is followed by another try.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Retry {
    pub max_retries: u32,
    /// A duration, as written: the time before the first retry, which doubles with each further one.
    pub backoff: Option<String>,
}
