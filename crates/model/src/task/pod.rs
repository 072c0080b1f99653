//! Tasks with several containers: init containers, main containers and sidecars, and how each ended. They share one
//! file system and one lifetime; the start order is declared here.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    task::{File, Mount, TaskContainer, order::Exit},
    time::Time,
};

/// All containers of a task, the main one included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pod {
    /// In manifest order: init containers, main containers, sidecars.
    pub members: Vec<Member>,
    /// Maximum number of restarts of a main container that failed.
    #[serde(default)]
    pub retries: u32,
    /// Delay before a restart.
    #[serde(default)]
    pub pause: Duration,
}

/// One container of a pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    pub part: Part,
    pub container: TaskContainer,
    /// Files to create before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Indices of the main containers that must have succeeded before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u32>,
    /// How to see that it is ready. Without one it is ready while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Box<Probe>>,
}

/// A check that is repeated while a container runs: whether it is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    pub check: Check,
    /// Delay before the first check.
    pub delay: Duration,
    /// Time between checks.
    pub period: Duration,
    /// How long a check may take.
    pub timeout: Duration,
    /// Consecutive successes that make it ready.
    pub successes: u32,
    /// Consecutive failures after which it is no longer ready.
    pub failures: u32,
}

/// One check of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Check {
    /// A command inside the container ends with code 0.
    Exec { command: Vec<String> },
    /// A GET is answered with a code from 200 to 399.
    Http { address: String, port: u16, path: String, headers: Vec<(String, String)> },
    /// A connection is accepted.
    Tcp { address: String, port: u16 },
}

/// The role of a container in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// Runs to completion before the next one starts.
    Init,
    /// Does the work. The task is over when all main containers are.
    Main,
    /// Runs next to the main containers and is ended after them.
    Sidecar,
}

/// The state or end of one container of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberEnd {
    pub name: String,
    /// Start time; `None` if it never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// `None` if it never started or still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
}

impl MemberEnd {
    /// Reports whether it ran and exited with code 0.
    pub fn well(&self) -> bool {
        self.exit == Some(Exit::Code(0))
    }
}

/// End of the main container of a pod, in Kubernetes' words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terminated {
    pub exit_code: i32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub signal: i32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}
