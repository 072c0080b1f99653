//! A server of ours in a place of its own, and the command beside it.

use std::{
    fmt, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// A test that waits longer than this has hung.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Place {
    dir: TempDir,
    server: Child,
    pub(crate) address: String,
}

/// What a command left behind.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (server, address) = serve(&dir.path().join("data"), "127.0.0.1:0", more);
        Self { dir, server, address }
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
        command.env("OCTOFLOW_SERVER", format!("http://{}", self.address));
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

    pub(crate) fn stop_server(&mut self) {
        signal(&self.server, "TERM");
        self.server.wait().unwrap();
    }

    /// Another server where the last one was.
    pub(crate) fn start_server(&mut self) {
        (self.server, self.address) = serve(&self.path("data"), &self.address, &[]);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.server.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal(&self.server, "TERM");
            let _ = self.server.wait();
        }
    }
}

fn serve(data: &Path, listen: &str, more: &[&str]) -> (Child, String) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_octoflow"))
        // Steps of these tests see files that the tests make.
        .args(["server", "--isolation", "none", "--listen", listen, "--data-dir"])
        .arg(data)
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
    let address =
        lines.find_map(|line| line.contains("listens on ").then(|| line.rsplit("://").next().unwrap().to_owned()));
    let address = address.expect("the server says where it listens");
    // Somebody has to take what it says from now on, or it would wait for that.
    thread::spawn(move || lines.for_each(drop));
    (server, address.trim().to_owned())
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.out, self.err)
    }
}

/// Waits for something the outside world does; fails the test when it never happens.
#[track_caller]
pub(crate) fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < give_up, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Texts contain these words in this order.
#[track_caller]
pub(crate) fn shows(text: &str, words: &[&str]) {
    let mut rest = text;
    for word in words {
        let at = rest.find(word).unwrap_or_else(|| panic!("`{word}` is missing, or not where it belongs, in\n{text}"));
        rest = &rest[at + word.len()..];
    }
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
