//! A task of several containers: what runs before its main container, beside it, or in its place, and how each ended.
//! They share one file system and live and die together; in which order they start is said here.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    order::Exit,
    task::{Container, File, Mount},
    time::Time,
};

/// All containers of a task, the main one included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pod {
    /// In the order they were written: those that come before, the main ones, those beside them.
    pub members: Vec<Member>,
    /// How often a main container is tried again when it ends badly.
    #[serde(default)]
    pub retries: u32,
    /// How long to wait before it is tried again.
    #[serde(default)]
    pub pause: Duration,
}

/// One container of a pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    pub part: Part,
    pub container: Container,
    /// Files that must exist before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// The main containers, by their place in the list, that must have ended well before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u32>,
}

/// What a container is to its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// Runs to its end before the next one starts.
    Init,
    /// The work itself. The task is over when all of these are.
    Main,
    /// Runs beside the main ones and is ended after them.
    Sidecar,
}

/// How one container of a pod stands, or ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberEnd {
    pub name: String,
    /// Nothing when it was never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// Nothing when it was never started, or still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
}

impl MemberEnd {
    /// It ran, and ended as it should.
    pub fn well(&self) -> bool {
        self.exit == Some(Exit::Code(0))
    }
}
