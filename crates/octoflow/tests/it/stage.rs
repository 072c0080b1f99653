//! Test harness for the binary: a directory per test, manifests, and the result of a command.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) use crate::wire::{processes::signal, said::Said, waiting::eventually};

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

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_octoflow"));
        command.args(words).env("OCTOFLOW_DATA_DIR", self.data_dir()).env("TZ", "UTC").env_remove("NO_COLOR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn octoflow(&self, words: &[&str]) -> Said {
        self.command(words).output().unwrap().into()
    }

    /// Runs the command and requires success.
    pub(crate) fn good(&self, words: &[&str]) -> Said {
        let said = self.octoflow(words);
        assert_eq!(said.code, 0, "{words:?}\n{said}");
        said
    }

    pub(crate) fn start(&self, words: &[&str]) -> Child {
        self.command(words).spawn().unwrap()
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let said = self.good(words);
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}\n{said}"))
    }
}

/// Request that submits a workflow which waits until it is resumed.
pub(crate) fn suspended(name: &str) -> Value {
    serde_json::json!({"workflow": {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name},
        "spec": {"entrypoint": "main", "templates": [{"name": "main", "suspend": {}}]},
    }})
}

/// A workflow with one step that runs a shell command.
pub(crate) fn one_step(name: &str, command: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  name: {name}
spec:
  entrypoint: main
  templates:
  - name: main
    container:
      image: busybox
      command: [sh, -c]
      args: [{}]
",
        serde_json::to_string(command).unwrap()
    )
}

/// One step in a workflow of steps, so that its name differs from the run's.
pub(crate) fn in_steps(name: &str, step: &str, command: &str, more: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  name: {name}
spec:
  entrypoint: main
{more}
  templates:
  - name: main
    steps:
    - - name: {step}
        template: leaf
  - name: leaf
    container:
      image: busybox
      command: [sh, -c]
      args: [{}]
  - name: bye
    container:
      image: busybox
      command: [sh, -c]
      args: [\"echo the exit handler ran\"]
",
        serde_json::to_string(command).unwrap()
    )
}

pub(crate) const DIAMOND: &str = r#"
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  generateName: dag-diamond-
spec:
  entrypoint: diamond
  templates:
  - name: echo
    inputs:
      parameters:
      - name: message
    container:
      image: alpine:3.7
      command: [echo, "{{inputs.parameters.message}}"]
  - name: diamond
    dag:
      tasks:
      - name: A
        template: echo
        arguments: {parameters: [{name: message, value: say-A}]}
      - name: B
        dependencies: [A]
        template: echo
        arguments: {parameters: [{name: message, value: say-B}]}
      - name: C
        dependencies: [A]
        template: echo
        arguments: {parameters: [{name: message, value: say-C}]}
      - name: D
        dependencies: [B, C]
        template: echo
        arguments: {parameters: [{name: message, value: say-D}]}
"#;
