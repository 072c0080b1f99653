//! Orders from the engine to a runtime, and reports from a runtime to the engine. Orders are idempotent by attempt id;
//! everything, failures included, comes back as a report.

use serde::{Deserialize, Serialize};

use crate::{
    ids::AttemptId,
    task::{StoredArtifact, Task, request::Answer},
    time::Time,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Start this attempt. The same attempt sent twice starts once.
    Start { attempt: AttemptId, task: Box<Task> },
    /// End the attempt's process group: SIGTERM, then SIGKILL after the task's grace period.
    Stop { attempt: AttemptId },
    /// End the attempt's process group with SIGKILL.
    Kill { attempt: AttemptId },
    /// The attempt's end is durable: its working files may be deleted. The log stays.
    Forget { attempt: AttemptId },
}

impl Order {
    pub fn attempt(&self) -> AttemptId {
        match self {
            Self::Start { attempt, .. }
            | Self::Stop { attempt }
            | Self::Kill { attempt }
            | Self::Forget { attempt } => *attempt,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// The main process runs.
    Started { attempt: AttemptId, at: Time },
    /// The attempt is over, and the requested outputs have been collected.
    Ended { attempt: AttemptId, at: Time, end: Box<End> },
    /// The attempt's request was answered, or never will be.
    Answered { attempt: AttemptId, at: Time, answer: Box<Answer> },
    /// The attempt's fate is unknown and will stay so.
    Lost { attempt: AttemptId, at: Time, why: String },
    /// One of the attempt's containers started or ended.
    Container { attempt: AttemptId, at: Time, member: Box<crate::task::pod::MemberEnd> },
    /// All probed containers of the attempt are ready, or no longer are.
    Ready { attempt: AttemptId, at: Time, ready: bool },
    /// The task reported its progress.
    Progress { attempt: AttemptId, at: Time, done: u32, total: u32 },
    /// The attempt's request cannot be carried out yet; it is once the reason is gone.
    Waiting { attempt: AttemptId, at: Time, why: String },
}

impl Report {
    pub fn attempt(&self) -> AttemptId {
        match self {
            Self::Started { attempt, .. }
            | Self::Ended { attempt, .. }
            | Self::Answered { attempt, .. }
            | Self::Lost { attempt, .. }
            | Self::Container { attempt, .. }
            | Self::Ready { attempt, .. }
            | Self::Progress { attempt, .. }
            | Self::Waiting { attempt, .. } => *attempt,
        }
    }

    /// Converts every time in the report to another clock.
    pub fn retime(&mut self, told: impl Fn(Time) -> Time) {
        let each = |member: &mut crate::task::pod::MemberEnd| {
            for time in [&mut member.started, &mut member.ended].into_iter().flatten() {
                *time = told(*time);
            }
        };
        match self {
            Self::Started { at, .. }
            | Self::Answered { at, .. }
            | Self::Lost { at, .. }
            | Self::Ready { at, .. }
            | Self::Progress { at, .. }
            | Self::Waiting { at, .. } => {
                *at = told(*at);
            }
            Self::Ended { at, end, .. } => {
                *at = told(*at);
                end.started = end.started.map(&told);
                end.members.iter_mut().for_each(each);
            }
            Self::Container { at, member, .. } => {
                *at = told(*at);
                each(member);
            }
        }
    }
}

/// End of an attempt, and its outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub exit: Exit,
    /// Start time of the main process, by the runtime's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    #[serde(default)]
    pub collected: Collected,
    /// True if log bytes were dropped (disk full, size limit); the log marks where.
    #[serde(default)]
    pub log_truncated: bool,
    /// Length of the log in bytes. A log found shorter has lost its end, since logs are not synced before this report.
    #[serde(default)]
    pub log_bytes: u64,
    /// The end of each container, if the task has several. `exit` is then that of the main one, or of the container
    /// that kept it from running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<crate::task::pod::MemberEnd>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// The kernel killed it because its container exceeded its memory limit.
    OutOfMemory,
    /// The process could not be started because of the manifest or the machine (`executable file not found in $PATH`).
    NotStarted(String),
    /// The environment failed: an input could not be placed, a directory not created. Holds the reason.
    Environment(String),
    /// Evicted: the task exceeded its disk quota, or the free disk space, and was killed. Holds what and how much.
    Evicted(String),
}

impl Exit {
    /// The code a shell would report.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(*code),
            Self::Signal(signal) => Some(128 + signal),
            // As after SIGKILL.
            Self::Evicted(_) => Some(137),
            Self::OutOfMemory => Some(137),
            Self::NotStarted(_) | Self::Environment(_) => None,
        }
    }
}

/// Outputs found where the task declared them. A missing file is data: the dialect decides what it means.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Collected {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, Found<String>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<(String, Found<StoredArtifact>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Found<StoredArtifact>>,
    /// The main container's termination message, if requested and not empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Digest and size of each fetched input, by input name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fetched: Vec<(String, Fetched)>,
}

/// Digest and size of a fetched input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    /// `sha256:<hex>` of the bytes, or `git:<commit>`.
    pub digest: String,
    pub size: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found<T> {
    Here(T),
    Missing,
    /// Found, but could not be collected; holds the reason.
    Failed(String),
}
