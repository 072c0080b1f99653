//! Object metadata, as Kubernetes spells it. Unknown fields are kept, so that an object is returned as it was given.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::task::Labels;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub annotations: Labels,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The namespace of an object that names none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// A ConfigMap or a Secret: named text values. A Secret's `data` is decoded when it is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyedData {
    #[serde(default)]
    pub labels: Labels,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub annotations: Labels,
    #[serde(default)]
    pub entries: std::collections::BTreeMap<String, Vec<u8>>,
}
