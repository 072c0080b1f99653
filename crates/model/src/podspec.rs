//! A pod as manifests of every dialect write it: templates, containers, variables, volumes.
//! Only the fields the engine reads; whether a field may be there at all is the field table's word. What a runtime is given is
//! `pod` and `task`.

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
    /// Everything else, as it was written.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateMetadata {
    pub labels: Labels,
    pub annotations: Labels,
}
