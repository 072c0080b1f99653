//! Volumes and volume mounts as manifests write them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meta::Metadata;

/// A volume: a name and exactly one source. Sources the process runtime does not support are refused at admission.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    pub name: String,
    pub empty_dir: Option<Value>,
    pub persistent_volume_claim: Option<ClaimRef>,
    pub config_map: Option<ProjectedMap>,
    pub secret: Option<ProjectedSecret>,
    pub host_path: Option<HostPath>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimRef {
    pub claim_name: String,
    pub read_only: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectedMap {
    pub name: String,
    pub items: Vec<ProjectedItem>,
    pub default_mode: Option<u32>,
    pub optional: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectedSecret {
    pub secret_name: String,
    pub items: Vec<ProjectedItem>,
    pub default_mode: Option<u32>,
    pub optional: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProjectedItem {
    pub key: String,
    pub path: String,
    pub mode: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostPath {
    pub path: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimTemplate {
    pub metadata: Metadata,
    pub spec: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeMount {
    pub name: String,
    pub mount_path: String,
    pub sub_path: Option<String>,
    pub read_only: bool,
}
