//! A server of its own for each test, on a port nobody else has.

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStderr, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{Coming, Reply, begin};

/// A test that waits longer than this has hung.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const TOKEN: (&str, &str) = ("Authorization", "Bearer admin");

pub(crate) struct Host {
    pub(crate) address: String,
    child: Child,
    /// Read no further, but kept open: the server may want to say something.
    _said: BufReader<ChildStderr>,
    _dir: TempDir,
}

impl Host {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_octoflow"))
            .args(["server", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(dir.path().join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut all = String::new();
        let address = loop {
            let before = all.len();
            assert!(said.read_line(&mut all).unwrap() > 0, "the server did not start:\n{all}");
            if let Some((_, address)) = all[before..].split_once("listens on http://") {
                break address.trim().to_owned();
            }
        };
        Self { address, child, _said: said, _dir: dir }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Reply {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        begin(&self.address, method, path, &[TOKEN], text.as_bytes()).whole()
    }

    /// Insists that it goes well.
    pub(crate) fn good(&self, method: &str, path: &str, body: &Value) -> Value {
        let reply = self.ask(method, path, body);
        assert_eq!(reply.status, 200, "{method} {path}: {}", reply.text());
        assert_eq!(reply.header("grpc-metadata-argo-version"), Some(concat!("v", env!("CARGO_PKG_VERSION"))));
        reply.json()
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.good("GET", path, &Value::Null)
    }

    /// Insists that it is refused, with this status and code, and gives the message.
    pub(crate) fn bad(&self, method: &str, path: &str, body: &Value, status: u16, code: u64) -> String {
        let reply = self.ask(method, path, body);
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.text());
        let told = reply.json();
        assert_eq!(told["code"], code, "{told}");
        told["message"].as_str().unwrap().to_owned()
    }

    pub(crate) fn open(&self, path: &str, headers: &[(&str, &str)]) -> Coming {
        let all = [&[TOKEN], headers].concat();
        begin(&self.address, "GET", path, &all, b"")
    }

    /// Submits a workflow of one step and gives its name.
    pub(crate) fn submit(&self, prefix: &str, command: &str) -> String {
        let made = self.good("POST", "/api/v1/workflows/default", &json!({"workflow": one_step(prefix, command)}));
        made["metadata"]["name"].as_str().unwrap().to_owned()
    }

    /// The workflow once it is over.
    pub(crate) fn finished(&self, name: &str) -> Value {
        let mut found = Value::Null;
        eventually(&format!("{name} is over"), || {
            found = self.get(&format!("/api/v1/workflows/default/{name}"));
            !found["status"]["finishedAt"].is_null()
        });
        found
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits until the server has gone by itself.
    pub(crate) fn gone(mut self) -> i32 {
        let mut code = None;
        eventually("the server is gone", || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // Politely, so that what runs is taken along; then surely.
            for name in self.running() {
                let _ =
                    begin(&self.address, "PUT", &format!("/api/v1/workflows/default/{name}/terminate"), &[TOKEN], b"");
            }
            let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
            let give_up = Instant::now() + Duration::from_secs(15);
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < give_up {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Host {
    fn running(&self) -> Vec<String> {
        if std::thread::panicking() {
            return Vec::new();
        }
        let open = "/api/v1/workflows/default?listOptions.labelSelector=workflows.argoproj.io/completed=false";
        let list = begin(&self.address, "GET", open, &[TOKEN], b"").whole();
        let items = list.json()["items"].as_array().cloned().unwrap_or_default();
        items.iter().filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
    }
}

pub(crate) fn one_step(prefix: &str, command: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"generateName": prefix, "creationTimestamp": null},
        "spec": {"entrypoint": "main", "templates": [{
            "name": "main", "inputs": {}, "outputs": {}, "metadata": {},
            "container": {"name": "", "image": "busybox", "command": ["sh", "-c"], "args": [command], "resources": {}},
        }]},
        "status": {"startedAt": null, "finishedAt": null},
    })
}

/// Waits for something the outside world does; fails the test when it never happens.
pub(crate) fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < give_up, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
