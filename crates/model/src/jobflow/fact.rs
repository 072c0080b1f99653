//! Facts about a JobFlow. Entries are numbered in manifest order; each try of an entry is a job of its own. A released fact
//! never changes: new facts may be added, new fields must have defaults.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ids::RunId, time::Time, volcano::JobPhase};

/// Number of pods by task and by phase in Kubernetes.
pub type TaskCounts = BTreeMap<String, BTreeMap<String, u32>>;

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
