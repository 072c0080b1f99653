//! The common unit of every dialect: a Task says what should run, dialect-free.
//! A DAG node, a replica and a pipeline step all become one of these before a runtime sees them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::location::Location;

use crate::request::Request;

/// Everything a runtime needs to run one attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// What people call it in messages and listings, e.g. the pod name.
    pub name: String,
    pub main: Container,
    /// Files that must exist before the main process starts: scripts, projected ConfigMaps and Secrets, raw artifacts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ArtifactInput>,
    #[serde(default)]
    pub wanted: Wanted,
    #[serde(default)]
    pub resources: Resources,
    /// How long the process group gets between the polite and the final signal.
    pub grace: Duration,
    /// It asks for something instead of running a process; the container means nothing then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<Request>>,
    /// More containers than the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Box<crate::pod::Pod>>,
    /// The environment variable that names the file in which the task may tell how far it is, as `done/total`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Lines in the notation of a hosts file, by which it finds others. Many tasks may share one text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Arc<str>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Container {
    /// The name used in messages (`main: Error (exit code 1)`).
    pub name: String,
    pub image: String,
    /// Empty means the image's entrypoint, which the process runtime looks up in its table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, EnvValue)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The process gets a terminal as its standard input and output.
    #[serde(default)]
    pub tty: bool,
    /// How many bytes of memory it may use at most. How closely that is kept is the runtime's business.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// How many bytes it may write to its own file system. A task that writes more is evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_limit: Option<u64>,
}

/// A value that may be secret; a secret prints as `***` wherever people look.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub enum EnvValue {
    Plain(String),
    Secret(String),
}

impl EnvValue {
    pub fn reveal(&self) -> &str {
        match self {
            Self::Plain(text) | Self::Secret(text) => text,
        }
    }
}

impl std::fmt::Debug for EnvValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plain(text) => write!(f, "{text:?}"),
            Self::Secret(_) => f.write_str("***"),
        }
    }
}

/// A file laid down before the start, at an absolute path inside the task's view of the file system.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct File {
    pub path: String,
    pub contents: Vec<u8>,
    /// Unix permission bits.
    pub mode: u32,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "File({} mode {:o}, {} bytes)", self.path, self.mode, self.contents.len())
    }
}

/// A directory made visible at a path inside the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mount {
    pub path: String,
    pub source: MountSource,
    /// A path below the source, made when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_path: Option<String>,
    #[serde(default)]
    pub read_only: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MountSource {
    /// An empty directory that lives as long as the attempt. Two mounts of one name share it.
    Scratch { name: String },
    /// A directory that outlives attempts, by namespace and claim name; made when it is missing.
    Claim { namespace: String, name: String },
    /// A directory or file of the machine itself.
    Host { path: String },
}

/// An artifact to be placed at a path before the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArtifactInput {
    pub name: String,
    pub path: String,
    pub source: ArtifactSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    #[serde(default)]
    pub recurse_mode: bool,
    /// How to unpack; `None` means: look inside and unpack a tarball.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<Archive>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ArtifactSource {
    Raw {
        data: String,
    },
    /// Saved earlier in the content-addressed store, possibly only a part of it.
    Stored {
        artifact: StoredArtifact,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sub_path: Option<String>,
    },
    /// To be fetched from elsewhere.
    Remote {
        location: Location,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sub_path: Option<String>,
        /// Nothing being there is fine.
        #[serde(default)]
        optional: bool,
    },
}

/// How an artifact's bytes are packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Archive {
    /// The bytes as they are; a directory cannot be kept this way and is stored as a tree.
    #[default]
    None,
    /// A tarball, compressed with gzip unless the level says otherwise.
    Tar {
        level: Option<u32>,
    },
    Zip,
}

/// A saved artifact: where its bytes are and what they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredArtifact {
    /// `sha256:<hex>` of the stored bytes.
    pub digest: String,
    pub size: u64,
    /// What the stored bytes are.
    pub archive: Archive,
    /// The name people see, e.g. `wf/pod/name.tgz`.
    pub key: String,
    /// What the dialect noted of the place it was sent to, without credentials. Absent: the local store only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noted: Option<Value>,
    /// Its bytes were deleted on purpose.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deleted: bool,
}

/// What to collect once the main process has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wanted {
    /// Keep the end of standard output as the result.
    #[serde(default)]
    pub result: bool,
    /// Output parameters: name and path of the file that holds the value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactOutput>,
    /// Keep what it wrote as an artifact too. Its path is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Box<ArtifactOutput>>,
    /// What the main container says of its own end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<LastWords>,
}

/// Where a container's last words are found: in a file of its own, else in the end of its output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastWords {
    /// The file it may write its message into, e.g. `/dev/termination-log`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// When the file says nothing and it ended badly, the end of what it wrote is its message.
    #[serde(default)]
    pub tail: bool,
}

impl Wanted {
    pub fn is_empty(&self) -> bool {
        !self.result
            && self.parameters.is_empty()
            && self.artifacts.is_empty()
            && self.log.is_none()
            && self.message.is_none()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArtifactOutput {
    pub name: String,
    pub path: String,
    pub archive: Archive,
    /// The name people see, e.g. `wf/pod/name.tgz`.
    pub key: String,
    /// Whose key it is; namespaces do not see each other's.
    #[serde(default)]
    pub namespace: String,
    /// Where it is sent once it is saved; absent means the local store is its home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Location>,
    /// What the dialect wants to find again in the saved artifact about that place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noted: Option<Value>,
}

/// What the scheduler counts. Zero means "no claim".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    pub cpu_milli: u64,
    pub memory_bytes: u64,
}

/// Labels as the wire formats carry them.
pub type Labels = BTreeMap<String, String>;

fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_alone_is_something_wanted() {
        assert!(Wanted::default().is_empty());
        let wanted = Wanted { message: Some(LastWords::default()), ..Wanted::default() };
        assert!(!wanted.is_empty());
    }

    #[test]
    fn tasks_written_before_there_were_messages_and_hosts_are_read_and_written_as_they_were() {
        let text = serde_json::to_string(&Task::default()).unwrap();
        assert!(!text.contains("hosts") && !text.contains("message"));
        assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), Task::default());
        let task = Task {
            hosts: Some("127.1.0.2 a\n".into()),
            wanted: Wanted { message: Some(LastWords { path: None, tail: true }), ..Wanted::default() },
            ..Task::default()
        };
        let text = serde_json::to_string(&task).unwrap();
        assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), task);
    }
}
