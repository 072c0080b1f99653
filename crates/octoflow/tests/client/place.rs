//! A server of ours in a place of its own, and the command beside it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::wire::server::{ANYWHERE, Server};
pub(crate) use crate::wire::{
    said::{Said, shows},
    waiting::eventually,
};

pub(crate) struct Place {
    pub(crate) server: Server,
    dir: TempDir,
}

impl Place {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { server: serve(ANYWHERE, &dir.path().join("data"), more), dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file and gives its path as an argument.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The command with the server in its environment, and nothing else of this machine.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.bare(words);
        command.env("OCTOFLOW_SERVER", format!("http://{}", self.server.address));
        command
    }

    /// The command without a server; its data directory is empty.
    pub(crate) fn bare(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_octoflow"));
        command.args(words).current_dir(self.dir.path());
        command.env("OCTOFLOW_DATA_DIR", self.path("elsewhere")).env("OCTOFLOW_CONFIG", self.path("config.json"));
        command.env("TZ", "UTC").env("NO_COLOR", "1");
        for variable in ["OCTOFLOW_SERVER", "OCTOFLOW_TOKEN", "OCTOFLOW_CA_FILE"] {
            command.env_remove(variable);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn octoflow(&self, words: &[&str]) -> Said {
        self.command(words).output().unwrap().into()
    }

    /// What it prints when it ends well, which it must.
    #[track_caller]
    pub(crate) fn good(&self, words: &[&str]) -> String {
        let said = self.octoflow(words);
        assert_eq!(said.code, 0, "octoflow {}\n{said}", words.join(" "));
        said.out
    }

    /// What it says when it ends with this code, which it must.
    #[track_caller]
    pub(crate) fn ends(&self, code: i32, words: &[&str]) -> Said {
        let said = self.octoflow(words);
        assert_eq!(said.code, code, "octoflow {}\n{said}", words.join(" "));
        said
    }

    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let text = self.good(&[words, &["-o", "json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    pub(crate) fn phase(&self, name: &str) -> String {
        self.good(&["get", name, "-o", "jsonpath={.status.phase}"])
    }

    /// Another server where the last one was.
    pub(crate) fn start_server(&mut self) {
        self.server = serve(&self.server.address.to_string(), &self.path("data"), &[]);
    }
}

fn serve(listen: &str, data: &Path, more: &[&str]) -> Server {
    // Steps of these tests see files that the tests make.
    Server::launch(Server::command(listen, data, &["--isolation", "none"]).args(more))
}

/// A workflow with one step that runs a shell command.
pub(crate) fn one_step(name: &str, command: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  entrypoint: main
  arguments: {{parameters: [{{name: who, value: nobody}}]}}
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

/// A workflow that waits for a person, who gives it a word.
pub(crate) fn asking(name: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec:
  entrypoint: main
  templates:
  - name: main
    steps:
    - - {{name: ask, template: ask}}
    - - name: tell
        template: tell
        arguments: {{parameters: [{{name: word, value: '{{{{steps.ask.outputs.parameters.word}}}}'}}]}}
  - name: ask
    suspend: {{}}
    outputs:
      parameters:
      - name: word
        valueFrom: {{supplied: {{}}}}
  - name: tell
    inputs: {{parameters: [{{name: word}}]}}
    container: {{image: busybox, command: [sh, -c], args: ['echo the word is {{{{inputs.parameters.word}}}}']}}
"
    )
}
