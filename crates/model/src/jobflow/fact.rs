//! Facts about a JobFlow. Entries are numbered in manifest order; each try of an entry is a job of its own. A released fact
//! never changes: new facts may be added, new fields must have defaults.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{ids::RunId, time::Time, volcano::JobPhase};

/// Number of pods by task and by phase in Kubernetes.
pub type TaskCounts = BTreeMap<String, BTreeMap<String, u32>>;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum FlowFact {
    /// The flow wants the next try of an entry: its job is ordered. A try's number is never reused.
    Wanted { entry: u32, at: Time },
    /// The job of the current try cannot be made yet; it is made once the reason is gone.
    Held { entry: u32, at: Time, why: String },
    /// The job of the current try was submitted as a run.
    Made { entry: u32, at: Time, run: RunId, name: String, uid: String },
    /// The job of the current try has changed: this is its phase from now on, and how often it was restarted.
    Observed {
        entry: u32,
        at: Time,
        phase: JobPhase,
        #[serde(default)]
        restarts: u32,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        tasks: TaskCounts,
        /// Number of times that the job has changed its phase, this one included; 0: not counted.
        #[serde(default, skip_serializing_if = "is_zero")]
        changes: u32,
    },
    /// A condition of the entry's probe is tested at these addresses from now on, until it holds. Without any, nothing is
    /// tested.
    Probing {
        entry: u32,
        condition: u32,
        at: Time,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        addresses: Vec<String>,
    },
    /// A condition of the entry's probe holds. It stays so.
    ConditionMet { entry: u32, condition: u32, at: Time },
    /// The current try is over, and nothing of its job is left to end. With a time another try follows then.
    Ended {
        entry: u32,
        at: Time,
        end: JobEnd,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again: Option<Time>,
    },
    /// Every job is completed, and all of them are deleted, as the flow's policy wants.
    Removing { at: Time },
    /// The jobs are deleted; with a message, some could not be.
    Removed {
        at: Time,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
}

/// What a flow that is retried knows of an entry from the flow it replaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EntryResult {
    /// Number of tries so far.
    pub tries: u32,
    /// Restarts so far, of all tries.
    pub restarts: u32,
    /// The completed job; the entry is not tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<CompletedJob>,
    /// Phases that its jobs had, with the time at which each began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<(JobPhase, Time)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// Conditions of its probe that hold, or held once.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub met: BTreeSet<u32>,
    /// Jobs of earlier tries, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<FormerJob>,
}

/// A job of an earlier try of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FormerJob {
    pub name: String,
    pub uid: String,
    /// When it was made and when its try ended. Earlier journals do not have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// How its try ended.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A completed job of an earlier run of the flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompletedJob {
    pub name: String,
    pub uid: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: TaskCounts,
}

/// How a try of an entry ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobEnd {
    Completed,
    Failed,
    Terminated,
    /// The job was deleted before its end.
    Deleted,
    /// The job could not be made.
    Refused,
    /// The flow was ended before the job was made.
    Stopped,
}
