//! The unit of execution of every dialect: a Task describes what a runtime must run and knows no dialect. A DAG node, a
//! replica and a pipeline step all become one before a runtime sees them.

pub mod garbage;
pub mod location;
pub mod order;
pub mod placement;
pub mod pod;
pub mod podspec;
pub mod request;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::task::location::Location;

use crate::task::request::Request;

/// A task: everything a runtime needs to run one attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Display name in messages and listings, e.g. the pod name.
    pub name: String,
    pub main: TaskContainer,
    /// Files that must exist before the main process starts: scripts, projected ConfigMaps and Secrets, raw artifacts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ArtifactInput>,
    #[serde(default)]
    pub wanted: WantedOutputs,
    #[serde(default)]
    pub resources: Resources,
    /// Grace period of the process group between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// The request to make instead of running a process; the container is ignored then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<Request>>,
    /// Further containers, if there are more than the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Box<pod::Pod>>,
    /// Name of the environment variable that holds the path of the progress file; the task writes `done/total` into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Entries for the task's hosts file, through which it resolves its peers. Shared by many tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Arc<str>>,
    /// Name of the machine as the task sees it, where the runtime can give it one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskContainer {
    /// Container name used in messages (`main: Error (exit code 1)`).
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
    /// Memory limit in bytes. How strictly it is enforced depends on the runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// Limit of bytes written to its own file system. A task that writes more is evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_limit: Option<u64>,
}

/// A value that may be secret; secrets are printed as `***` in debug output.
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

/// A file created before the start, at an absolute path inside the task's file system.
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
    /// A path below the source, created if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_path: Option<String>,
    #[serde(default)]
    pub read_only: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MountSource {
    /// An empty directory with the attempt's lifetime. Mounts of the same name share it.
    Scratch { name: String },
    /// A persistent directory by namespace and claim name; created if missing.
    Claim { namespace: String, name: String },
    /// A directory or file of the host.
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
    /// Packing; `None`: detect and unpack a tarball.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<Archive>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ArtifactSource {
    Raw {
        data: String,
    },
    /// From the content-addressed store, possibly only a part of it.
    Stored {
        artifact: StoredArtifact,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sub_path: Option<String>,
    },
    /// To be fetched from an external store.
    Remote {
        location: Location,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sub_path: Option<String>,
        /// True if the artifact may be missing.
        #[serde(default)]
        optional: bool,
    },
}

/// Packing of an artifact's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Archive {
    /// Unpacked bytes; a directory is stored as a tree instead.
    #[default]
    None,
    /// A tarball, compressed with gzip unless the level says otherwise.
    Tar {
        level: Option<u32>,
    },
    Zip,
}

/// A saved artifact: key, digest and packing of its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredArtifact {
    /// `sha256:<hex>` of the stored bytes.
    pub digest: String,
    pub size: u64,
    /// Packing of the stored bytes.
    pub archive: Archive,
    /// The display key, e.g. `wf/pod/name.tgz`.
    pub key: String,
    /// The dialect's note of the external location it was sent to, without credentials. `None`: the local store only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noted: Option<Value>,
    /// True if its bytes were deleted on purpose.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deleted: bool,
}

/// Outputs to collect once the main process has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WantedOutputs {
    /// Keep the end of standard output as the result.
    #[serde(default)]
    pub result: bool,
    /// Output parameters: name and path of the file that holds the value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactOutput>,
    /// Also save the log as an artifact. The artifact's path is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Box<ArtifactOutput>>,
    /// Source of the main container's termination message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<TerminationMessage>,
}

/// Sources of a container's termination message: a file, or else the end of its output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminationMessage {
    /// The file the container may write its message to, e.g. `/dev/termination-log`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// True if the end of the log is the message when the file is empty and the container failed.
    #[serde(default)]
    pub tail: bool,
}

impl WantedOutputs {
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
    /// The display key, e.g. `wf/pod/name.tgz`.
    pub key: String,
    /// Namespace that owns the key; keys are scoped to it.
    #[serde(default)]
    pub namespace: String,
    /// External location to upload it to after saving; `None` for the local store only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Location>,
    /// The dialect's note of that location, returned with the saved artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noted: Option<Value>,
}

/// Resource requests as the scheduler counts them. Zero means "no claim".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    /// Every other resource by name, such as `nvidia.com/gpu`, in units or bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, u64>,
}

impl Resources {
    /// Iterates over everything that is requested, by resource name: `cpu` in thousandths, `memory` in bytes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let others = self.others.iter().map(|(name, amount)| (name.as_str(), *amount));
        [("cpu", self.cpu_milli), ("memory", self.memory_bytes)]
            .into_iter()
            .chain(others)
            .filter(|(_, amount)| *amount > 0)
    }
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
        assert!(WantedOutputs::default().is_empty());
        let wanted = WantedOutputs { message: Some(TerminationMessage::default()), ..WantedOutputs::default() };
        assert!(!wanted.is_empty());
    }

    #[test]
    fn tasks_written_before_there_were_messages_and_hosts_are_read_and_written_as_they_were() {
        let text = serde_json::to_string(&Task::default()).unwrap();
        assert!(!text.contains("hosts") && !text.contains("message"));
        assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), Task::default());
        let task = Task {
            hosts: Some("127.1.0.2 a\n".into()),
            wanted: WantedOutputs {
                message: Some(TerminationMessage { path: None, tail: true }),
                ..WantedOutputs::default()
            },
            ..Task::default()
        };
        let text = serde_json::to_string(&task).unwrap();
        assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), task);
    }
}
