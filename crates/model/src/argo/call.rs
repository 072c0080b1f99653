//! Call sites: a step or a DAG task with its arguments, loop and conditions. Steps and tasks share every field that
//! matters; they differ only in how their lists are ordered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ArtifactGc, ArtifactLocation, template::Parameter};
use crate::scalar::{IntOrText, Text};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Call {
    pub name: String,
    pub template: Option<String>,
    pub template_ref: Option<TemplateRef>,
    /// An inline template, raw, used by this call only.
    pub inline: Option<Value>,
    pub arguments: Arguments,
    pub with_items: Option<Vec<Value>>,
    pub with_param: Option<Text>,
    pub with_sequence: Option<Sequence>,
    pub when: Option<String>,
    pub continue_on: Option<ContinueOn>,
    pub on_exit: Option<String>,
    pub hooks: BTreeMap<String, Hook>,
    /// DAG tasks only.
    pub dependencies: Vec<String>,
    /// DAG tasks only.
    pub depends: Option<String>,
}

impl Call {
    pub fn looped(&self) -> bool {
        self.with_items.is_some() || self.with_param.is_some() || self.with_sequence.is_some()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arguments {
    pub parameters: Vec<Parameter>,
    pub artifacts: Vec<Artifact>,
}

/// An artifact in any of its roles: declared as an input, passed as an argument, or produced as an output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Artifact {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    #[serde(skip_serializing_if = "is_false")]
    pub recurse_mode: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub optional: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_name: Option<String>,
    #[serde(rename = "artifactGC", skip_serializing_if = "Option::is_none")]
    pub artifact_gc: Option<ArtifactGc>,
    #[serde(skip_serializing_if = "is_false")]
    pub deleted: bool,
    #[serde(flatten)]
    pub location: ArtifactLocation,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Raw {
    pub data: String,
}

/// The `archive` field as written: one of three keys, each an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ArchiveChoice {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub none: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tar: Option<TarChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zip: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TarChoice {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression_level: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sequence {
    pub count: Option<IntOrText>,
    pub start: Option<IntOrText>,
    pub end: Option<IntOrText>,
    pub format: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContinueOn {
    pub error: bool,
    pub failed: bool,
}

/// A template of a WorkflowTemplate, or of a ClusterWorkflowTemplate when `cluster_scope` is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateRef {
    pub name: String,
    pub template: String,
    pub cluster_scope: bool,
}

/// A life-cycle hook; the one named `exit` is an exit handler with arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hook {
    pub template: Option<String>,
    pub template_ref: Option<TemplateRef>,
    pub arguments: Arguments,
    pub expression: Option<String>,
}
