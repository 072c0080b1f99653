//! What was accepted: identity, manifest, and copies of what the manifest refers to. Plain data of the first fact.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{before::Before, ids::RunId, time::Time};

/// What was accepted: identity drawn at the edge, the manifest as given, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub at: Time,
    /// The whole object, defaults not filled in.
    pub manifest: Value,
    /// What it refers to, as it was then.
    #[serde(default, skip_serializing_if = "Stored::is_empty")]
    pub stored: Stored,
    /// The run that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// What was known about it where it was submitted.
    #[serde(default, skip_serializing_if = "Known::is_empty")]
    pub known: Known,
    /// What it takes over from the run it comes after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<Before>>,
}

/// What only the place knows where a run is submitted; nothing of it changes what the run does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Known {
    /// The name of the machine its tasks run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// How long the newest run like it took that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<Earlier>>,
    /// How many microseconds the wall clock was ahead of the engine's time. Every time in the run's facts is the engine's
    /// plus this: the wall clock as it was then, and the time that has passed since, whatever is done to the clock.
    #[serde(skip_serializing_if = "is_zero")]
    pub skew: i64,
}

fn is_zero(skew: &i64) -> bool {
    *skew == 0
}

/// How long an earlier run and its nodes took, in whole seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Earlier {
    pub run: u64,
    /// By the node's name without the run's, which is empty for the root.
    pub nodes: BTreeMap<String, u64>,
}

impl Known {
    pub fn is_empty(&self) -> bool {
        self.host.is_none() && self.earlier.is_none() && self.skew == 0
    }
}

/// What a manifest takes from WorkflowTemplates, copied when it is submitted: the run never changes with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stored {
    /// By `namespaced/<name>/<template>` or `cluster/<name>/<template>`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub templates: BTreeMap<String, Value>,
    /// The specification merged with that of its WorkflowTemplate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<Value>,
    /// How many members a PodGroup wants together, by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, u32>,
    /// Something it refers to cannot be read: the run can only end in error, with this message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flaw: Option<String>,
}

impl Stored {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
