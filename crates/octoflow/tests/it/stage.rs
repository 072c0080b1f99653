//! What tests of the binary share: a place of their own, manifests, and what a command said.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// A test that waits longer than this has hung.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    dir: TempDir,
}

/// What a command left behind.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
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

    /// Runs it and insists that it ends well.
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

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.out, self.err)
    }
}

/// Waits for something the outside world does; fails the test when it never happens.
pub(crate) fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < give_up, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal to a process this test started.
pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(status.success());
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
