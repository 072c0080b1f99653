//! Submissions: identity, manifest, and copies of what the manifest refers to. Plain data; content of the first fact of
//! a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ids::{AttemptId, RunId},
    run::previous::PreviousRun,
    time::Time,
};

/// An admitted manifest as given, with the identity drawn on submission and the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub at: Time,
    /// The whole object, defaults not filled in.
    pub manifest: Value,
    /// Copies of the objects it refers to, as of the submission.
    #[serde(default, skip_serializing_if = "Stored::is_empty")]
    pub stored: Stored,
    /// The run that created this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// The attempt of the parent that ordered this run. The parent is told what becomes of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered_by: Option<AttemptId>,
    /// Context of the submission.
    #[serde(rename = "known", default, skip_serializing_if = "SubmitContext::is_empty")]
    pub context: SubmitContext,
    /// Results taken over from the previous run, for a rerun.
    #[serde(rename = "before", default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Box<PreviousRun>>,
}

/// Facts about the host, the submitter and history at the time of submission. They affect when and where tasks run, never
/// what they do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SubmitContext {
    /// Host name of the machine its tasks run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Durations of the newest successful run of the same kind, for estimates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<EarlierDurations>>,
    /// Microseconds by which the wall clock was ahead of the engine's time on submission. Every time in the run's facts
    /// is the engine's plus this: the wall clock as of the submission plus the elapsed time, whatever is done to the
    /// clock later.
    #[serde(skip_serializing_if = "is_zero")]
    pub skew: i64,
    /// The queue of the namespace, for tasks that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Who submitted it: the user that its usage is charged to. `None`: the namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted_by: Option<String>,
    /// The name of who submitted it, if that is not whom it is charged to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_by: Option<String>,
    /// Life hooks hear of the run that ordered this one, and not of this one.
    #[serde(skip_serializing_if = "is_false")]
    pub quiet: bool,
    /// A key pair for the tasks of this run, drawn once if its dialect wants one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Box<KeyPair>>,
}

/// A key pair for ssh as the text of its files.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyPair {
    pub private: String,
    pub public: String,
}

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The private key is nobody's to see in a log.
        out.debug_struct("KeyPair").field("public", &self.public).finish_non_exhaustive()
    }
}

fn is_zero(skew: &i64) -> bool {
    *skew == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Durations of an earlier run and its nodes, in whole seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EarlierDurations {
    pub run: u64,
    /// By node name without the run's name, which is empty for the root.
    pub nodes: BTreeMap<String, u64>,
}

impl SubmitContext {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Copies of the objects a manifest refers to, taken on submission, so that later changes of those do not affect the
/// run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stored {
    /// Templates by `namespaced/<name>/<template>` or `cluster/<name>/<template>`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub templates: BTreeMap<String, Value>,
    /// The specification merged with that of its WorkflowTemplate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<Value>,
    /// `minMember` of each PodGroup, by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, u32>,
    /// Everything else about those PodGroups, of those that say more.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub group_details: BTreeMap<String, GroupDetails>,
    /// Set if a referenced object cannot be read: the run can only end in error, with this message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flaw: Option<String>,
}

/// Fields of a PodGroup beside `minMember`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GroupDetails {
    /// The queue of all members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The priority class of members that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// `minTaskMember`: how many of each role start together.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub least_of: BTreeMap<String, u32>,
    /// `minResources`, as written.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, String>,
}

impl Stored {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
