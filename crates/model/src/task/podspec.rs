//! Pods as manifests of every dialect write them: templates, containers, variables, volumes. Holds only the fields the
//! engine reads; the field table decides which fields are allowed. Runtimes are given `pod` and `task` instead.

mod container;
mod volume;

pub use container::{
    Container, ContainerResources, EnvFrom, EnvValueFrom, EnvVar, FieldRef, KeyRef, NameRef, PodContainer,
};
pub use volume::{
    ClaimRef, ClaimTemplate, HostPath, ProjectedItem, ProjectedMap, ProjectedSecret, Volume, VolumeMount,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::task::Labels;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodTemplate {
    pub metadata: TemplateMetadata,
    pub spec: PodSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    pub containers: Vec<PodContainer>,
    pub init_containers: Vec<PodContainer>,
    pub volumes: Vec<Volume>,
    pub restart_policy: Option<String>,
    pub scheduler_name: Option<String>,
    pub service_account_name: Option<String>,
    pub priority: Option<i32>,
    pub active_deadline_seconds: Option<u64>,
    pub termination_grace_period_seconds: Option<u64>,
    /// All other fields, as written.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateMetadata {
    pub labels: Labels,
    pub annotations: Labels,
}
