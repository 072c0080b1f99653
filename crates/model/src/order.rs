//! What the engine tells a runtime to do, and what a runtime tells the engine.
//! Orders are idempotent by attempt id; everything, failure included, comes back as a report.

use serde::{Deserialize, Serialize};

use crate::{
    ids::AttemptId,
    request::Answer,
    task::{StoredArtifact, Task},
    time::Time,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Start this attempt. The same attempt sent twice starts once.
    Start { attempt: AttemptId, task: Box<Task> },
    /// End its process group: the polite signal first, the final one after the task's grace.
    Stop { attempt: AttemptId },
    /// End its process group at once.
    Kill { attempt: AttemptId },
    /// Its end is durable: working files may go. The log stays.
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
    /// Its main process runs.
    Started { attempt: AttemptId, at: Time },
    /// It is over and whatever was wanted has been collected.
    Ended { attempt: AttemptId, at: Time, end: Box<End> },
    /// What it asked for is answered, or will not be.
    Answered { attempt: AttemptId, at: Time, answer: Box<Answer> },
    /// Nobody knows what became of it, and nobody will.
    Lost { attempt: AttemptId, at: Time, why: String },
    /// One of its containers began, or ended.
    Container { attempt: AttemptId, at: Time, member: Box<crate::pod::MemberEnd> },
    /// It tells how far it is.
    Progress { attempt: AttemptId, at: Time, done: u32, total: u32 },
}

impl Report {
    pub fn attempt(&self) -> AttemptId {
        match self {
            Self::Started { attempt, .. }
            | Self::Ended { attempt, .. }
            | Self::Answered { attempt, .. }
            | Self::Lost { attempt, .. }
            | Self::Container { attempt, .. }
            | Self::Progress { attempt, .. } => *attempt,
        }
    }

    /// Tells every time in it by another clock.
    pub fn retime(&mut self, told: impl Fn(Time) -> Time) {
        let each = |member: &mut crate::pod::MemberEnd| {
            for time in [&mut member.started, &mut member.ended].into_iter().flatten() {
                *time = told(*time);
            }
        };
        match self {
            Self::Started { at, .. }
            | Self::Answered { at, .. }
            | Self::Lost { at, .. }
            | Self::Progress { at, .. } => {
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

/// How an attempt ended and what it left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub exit: Exit,
    /// When the main process began, by the runtime's own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    #[serde(default)]
    pub collected: Collected,
    /// Log bytes were dropped (disk full, size limit); the log says where.
    #[serde(default)]
    pub log_truncated: bool,
    /// How long the log is. One that is found shorter lost its end, since logs are not synced before this is told.
    #[serde(default)]
    pub log_bytes: u64,
    /// How each container ended, when the task has several. `exit` is then that of the main one, or of the container
    /// that kept it from running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<crate::pod::MemberEnd>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// The kernel ended it because its container wanted more memory than its limit.
    OutOfMemory,
    /// The process could not be started; the user's manifest or machine is the reason (`executable file not found in $PATH`).
    NotStarted(String),
    /// The surroundings failed: an input could not be placed, a directory not made. Says what.
    Environment(String),
    /// It wrote more than it may, or more than the disk can spare, and was killed. Says what and how much.
    Evicted(String),
}

impl Exit {
    /// The code a shell would report.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(*code),
            Self::Signal(signal) => Some(128 + signal),
            // As after any final signal.
            Self::Evicted(_) => Some(137),
            Self::OutOfMemory => Some(137),
            Self::NotStarted(_) | Self::Environment(_) => None,
        }
    }
}

/// What was found where outputs were wanted. A missing file is data: the dialect decides what it means.
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
    /// The main container's last words, when they were wanted and it had any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What was fetched for it, by the name of the input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fetched: Vec<(String, Fetched)>,
}

/// What was found where an input was fetched from.
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
    /// It is there and could not be taken; says why.
    Failed(String),
}
