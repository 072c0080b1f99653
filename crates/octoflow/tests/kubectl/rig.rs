//! A server of ours in a place of its own, the real kubectl beside it, and requests that kubectl would never send.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::wire::{
    http::{self, Reply},
    server::{ANYWHERE, Server},
};
pub(crate) use crate::wire::{
    said::{Said, shows},
    waiting::eventually,
};

pub(crate) struct Rig {
    pub(crate) server: Server,
    dir: TempDir,
}

impl Rig {
    /// None where there is no kubectl, which is said aloud; in CI that is a failure.
    pub(crate) fn with_kubectl() -> Option<Self> {
        Self::isolated_by("none")
    }

    /// The same with a server that gives tasks views of the file system of their own, for volumes and files in them.
    #[allow(dead_code, reason = "not every test needs volumes")]
    pub(crate) fn with_volumes() -> Option<Self> {
        Self::isolated_by("overlay")
    }

    fn isolated_by(isolation: &str) -> Option<Self> {
        static THERE: OnceLock<bool> = OnceLock::new();
        let there = THERE.get_or_init(|| {
            let asked = Command::new("kubectl").args(["version", "--client"]).output();
            asked.is_ok_and(|output| output.status.success())
        });
        if !there {
            assert!(std::env::var_os("CI").is_none(), "kubectl is not installed; `cargo xtask setup` does it");
            eprintln!("SKIPPED: kubectl is not installed, so nothing was tested; `cargo xtask setup` installs it");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut command = Server::command(ANYWHERE, &dir.path().join("data"), &["--isolation", isolation]);
        let rig = Self { server: Server::launch(&mut command), dir };
        let config =
            rig.octoflow(&["kubeconfig", "--server", &format!("http://{}", rig.server.address), "--token", "admin"]);
        assert_eq!(config.code, 0, "{config}");
        fs::write(rig.path("kubeconfig"), config.out).unwrap();
        Some(rig)
    }

    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { server: serve(ANYWHERE, &dir.path().join("data")), dir }
    }

    /// Ends the server and starts another one in its place.
    pub(crate) fn restart(&mut self) {
        self.server.stop();
        self.server = serve(&self.server.address.to_string(), &self.path("data"));
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

    pub(crate) fn octoflow(&self, words: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_octoflow"));
        command.args(words).env("OCTOFLOW_DATA_DIR", self.path("elsewhere")).stdin(Stdio::null());
        command.env_remove("OCTOFLOW_SERVER").env_remove("OCTOFLOW_TOKEN").env("HOME", self.dir.path());
        command.output().unwrap().into()
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.args(words).env("KUBECONFIG", self.path("kubeconfig")).env("HOME", self.dir.path());
        command.env("EDITOR", "false").env_remove("KUBE_EDITOR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn kubectl(&self, words: &[&str]) -> Said {
        self.command(words).output().unwrap().into()
    }

    /// What kubectl prints when it ends well, which it must.
    pub(crate) fn good(&self, words: &[&str]) -> String {
        let said = self.kubectl(words);
        assert_eq!(said.code, 0, "kubectl {}\n{said}", words.join(" "));
        said.out
    }

    /// What kubectl complains of, which it must.
    pub(crate) fn bad(&self, words: &[&str]) -> String {
        let said = self.kubectl(words);
        assert_ne!(said.code, 0, "kubectl {}\n{said}", words.join(" "));
        said.err
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let text = self.good(&[words, &["-o", "json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// The version of kubectl after the `1.`.
    pub(crate) fn minor(&self) -> u32 {
        let said = self.json(&["version", "--client"]);
        let minor = said["clientVersion"]["minor"].as_str().unwrap_or_default().to_owned();
        minor.trim_end_matches(|letter: char| !letter.is_ascii_digit()).parse().unwrap()
    }

    /// One request; `body` is sent as JSON unless a header says otherwise.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        http::ask(self.server.address, method, path, headers, body)
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], b"")
    }

    /// The lines of an answer that has no end of its own.
    pub(crate) fn lines(&self, path: &str) -> impl Iterator<Item = Value> + use<> {
        let lines = http::begin(self.server.address, "GET", path, &[], b"").unwrap().lines();
        lines
            .map_while(Result::ok)
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }
}

fn serve(listen: &str, data: &Path) -> Server {
    // Steps of these tests see files that the tests make.
    Server::launch(&mut Server::command(listen, data, &["--isolation", "none"]))
}

impl Reply {
    /// Insists on a Status of the Kubernetes API with this code and reason.
    pub(crate) fn is_status(&self, code: u16, reason: &str) -> Value {
        let body = self.json();
        assert_eq!(self.status, code, "{body}");
        assert_eq!((&body["kind"], &body["status"]), (&Value::from("Status"), &Value::from("Failure")), "{body}");
        assert_eq!((&body["code"], &body["reason"]), (&Value::from(code), &Value::from(reason)), "{body}");
        assert!(!body["message"].as_str().unwrap().is_empty(), "{body}");
        body
    }
}

/// A workflow with one step that runs a shell command.
pub(crate) fn one_step(name: &str, command: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  name: {name}
  labels:
    app: tests
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
