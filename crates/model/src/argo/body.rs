//! Template bodies other than plain containers and calls: container sets, resource templates, HTTP requests, data
//! templates, memoization and metrics. Holds only the fields the engine reads; the field table decides which fields are
//! allowed.

use serde::{Deserialize, Serialize};

use super::Artifact;
use crate::{
    scalar::{IntOrText, Text},
    task::podspec::{Container, KeyRef, VolumeMount},
};

/// Several containers that share one pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerSet {
    pub containers: Vec<SetContainer>,
    pub volume_mounts: Vec<VolumeMount>,
    pub retry_strategy: Option<SetRetry>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SetContainer {
    #[serde(flatten)]
    pub container: Container,
    #[serde(default)]
    pub dependencies: Vec<String>,
}

/// Retry policy for the containers of a set, applied inside the pod: the number of retries and the delay between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SetRetry {
    pub retries: Option<IntOrText>,
    pub duration: Option<Text>,
}

/// A user container that runs next to the main one: an init container or a sidecar.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserContainer {
    #[serde(flatten)]
    pub container: Container,
    /// Mounts the main container's volumes at the same paths.
    #[serde(default)]
    pub mirror_volume_mounts: Option<bool>,
}

/// Creates, changes, deletes or reads a stored object or a run, as a `resource` template asks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceTemplate {
    pub action: String,
    pub merge_strategy: Option<String>,
    pub manifest: Option<Text>,
    pub manifest_from: Option<ManifestFrom>,
    pub set_owner_reference: bool,
    pub success_condition: Option<String>,
    pub failure_condition: Option<String>,
    pub flags: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ManifestFrom {
    pub artifact: Option<Artifact>,
}

/// An HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpTemplate {
    pub url: String,
    pub method: Option<String>,
    pub headers: Vec<HttpHeader>,
    pub timeout_seconds: Option<IntOrText>,
    pub success_condition: Option<String>,
    pub body: Option<Text>,
    pub body_from: Option<BodyFrom>,
    pub insecure_skip_verify: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpHeader {
    pub name: String,
    pub value: Option<Text>,
    pub value_from: Option<HeaderFrom>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeaderFrom {
    pub secret_key_ref: Option<KeyRef>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BodyFrom {
    /// Base64, as JSON carries bytes.
    pub bytes: Option<String>,
}

/// Lists stored artifacts and transforms the list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataTemplate {
    pub source: DataSource,
    pub transformation: Vec<TransformationStep>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DataSource {
    /// An artifact location, as written.
    pub artifact_paths: Option<serde_json::Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TransformationStep {
    pub expression: String,
}

/// Reuses the outputs of an earlier node with the same key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Memoize {
    pub key: Text,
    pub cache: Option<MemoCache>,
    pub max_age: Option<Text>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemoCache {
    pub config_map: Option<KeyRef>,
}

/// Custom metrics that a workflow or a template publishes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metrics {
    pub prometheus: Vec<Prometheus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prometheus {
    pub name: String,
    pub help: String,
    pub labels: Vec<MetricLabel>,
    pub when: Option<String>,
    pub counter: Option<Counter>,
    pub gauge: Option<Gauge>,
    pub histogram: Option<Histogram>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricLabel {
    pub key: String,
    pub value: Text,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counter {
    pub value: Text,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gauge {
    pub value: Text,
    /// Tracks the running node's duration instead of being set once at its end.
    pub realtime: bool,
    pub operation: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Histogram {
    pub value: Text,
    pub buckets: Vec<Text>,
}
