//! Templates: inputs, outputs and exactly one way to run. Values may still contain variables; they are substituted for
//! each node.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Artifact, ArtifactLocation, Call, Synchronization,
    body::{ContainerSet, DataTemplate, HttpTemplate, Memoize, Metrics, ResourceTemplate, UserContainer},
};
use crate::{
    scalar::{IntOrText, Text},
    task::podspec::{Container, KeyRef, TemplateMetadata, Volume},
};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Template {
    pub name: String,
    pub inputs: Inputs,
    pub outputs: Outputs,
    pub container: Option<Container>,
    pub script: Option<Script>,
    pub steps: Option<Vec<Vec<Call>>>,
    pub dag: Option<Dag>,
    pub suspend: Option<Suspend>,
    pub container_set: Option<ContainerSet>,
    pub resource: Option<ResourceTemplate>,
    pub http: Option<HttpTemplate>,
    pub data: Option<DataTemplate>,
    pub init_containers: Vec<UserContainer>,
    pub sidecars: Vec<UserContainer>,
    pub daemon: Option<bool>,
    pub memoize: Option<Memoize>,
    pub metrics: Option<Metrics>,
    pub retry_strategy: Option<RetryStrategy>,
    pub active_deadline_seconds: Option<IntOrText>,
    pub timeout: Option<Text>,
    pub parallelism: Option<IntOrText>,
    pub fail_fast: Option<bool>,
    pub synchronization: Option<Synchronization>,
    pub volumes: Vec<Volume>,
    pub metadata: TemplateMetadata,
    pub priority: Option<i32>,
    pub priority_class_name: Option<String>,
    pub node_selector: Option<Value>,
    pub affinity: Option<Value>,
    pub tolerations: Option<Value>,
    pub termination_grace_period_seconds: Option<u64>,
    pub pod_spec_patch: Option<Text>,
    pub archive_location: Option<ArtifactLocation>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inputs {
    pub parameters: Vec<Parameter>,
    pub artifacts: Vec<Artifact>,
}

/// An input parameter or an argument.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Parameter {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Text>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<Text>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ValueFrom>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The source of a parameter's value. At most one source is given; `default` applies when the source yields nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ValueFrom {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// Resource templates: a JSONPath template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_path: Option<String>,
    /// Resource templates: a jq filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jq_filter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supplied: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Text>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Outputs {
    pub parameters: Vec<OutputParameter>,
    pub artifacts: Vec<OutputArtifact>,
}

pub type OutputParameter = Parameter;
pub type OutputArtifact = Artifact;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Script {
    #[serde(flatten)]
    pub container: Container,
    #[serde(default)]
    pub source: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Dag {
    pub tasks: Vec<Call>,
    /// Space-separated names of the tasks that must be reached; empty means every task nothing depends on.
    pub target: Option<String>,
    pub fail_fast: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Suspend {
    pub duration: Option<Text>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryStrategy {
    pub limit: Option<IntOrText>,
    pub retry_policy: Option<String>,
    pub backoff: Option<Backoff>,
    pub expression: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Backoff {
    pub duration: Option<Text>,
    pub factor: Option<IntOrText>,
    pub max_duration: Option<Text>,
    pub cap: Option<Text>,
}
