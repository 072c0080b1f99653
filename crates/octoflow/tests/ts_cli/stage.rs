//! What these tests share: a data directory of their own, TaskSets of few words, and what a command said.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use crate::wire::{
    processes::{left_behind, signal},
    said::{Said, shows},
    waiting::eventually,
};

pub(crate) struct Stage {
    dir: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file and gives its path as an argument.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Writes a TaskSet of these roles.
    pub(crate) fn set(&self, name: &str, roles: Value) -> String {
        self.file(&format!("{name}.yaml"), set(name, roles).to_string())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_octoflow"));
        command.args(words).env("OCTOFLOW_DATA_DIR", self.data_dir()).env("TZ", "UTC").env_remove("OCTOFLOW_SERVER");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn octoflow(&self, words: &[&str]) -> Said {
        self.command(words).output().unwrap().into()
    }

    /// Runs it and insists on its exit code.
    #[track_caller]
    pub(crate) fn ends(&self, code: i32, words: &[&str]) -> Said {
        let said = self.octoflow(words);
        assert_eq!(said.code, code, "{words:?}\n{said}");
        said
    }

    pub(crate) fn start(&self, words: &[&str]) -> Child {
        self.command(words).spawn().unwrap()
    }

    /// Runs a file to its end and gives the final object.
    #[track_caller]
    pub(crate) fn run(&self, code: i32, file: &str) -> Value {
        let said = self.ends(code, &["run", file, "-o", "json", "--timeout", "60s"]);
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}\n{said}"))
    }

    pub(crate) fn object(&self, name: &str) -> Value {
        serde_json::from_str(&self.ends(0, &["get", name, "-o", "json"]).out).unwrap()
    }
}

pub(crate) fn set(name: &str, roles: Value) -> Value {
    json!({"apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet", "metadata": {"name": name},
           "spec": {"roles": roles}})
}

/// A role whose replicas run a shell command; all must succeed and none may fail.
pub(crate) fn role(name: &str, replicas: u32, command: &str) -> Value {
    json!({"name": name, "replicas": replicas, "completionPolicy": {"maxFailed": 1, "minSucceeded": replicas},
           "template": {"spec": {"containers": [
               {"name": "main", "image": "busybox", "command": ["sh", "-c", command]}]}}})
}

/// The same with more said of it.
pub(crate) fn with(mut role: Value, more: Value) -> Value {
    role.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    role
}

/// The replica of a role in a status.
pub(crate) fn replica(object: &Value, role: usize, index: usize) -> &Value {
    &object["status"]["roleStatus"][role]["replicaStatus"][index]
}
