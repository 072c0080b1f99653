//! A server for each test, on a free port.

use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use crate::wire::waiting::eventually;
use crate::wire::{
    http::{self, Coming, Reply, begin},
    server::Server,
};

/// Clients need not name the type of what they send.
pub(crate) const UNNAMED: (&str, &str) = ("content-type", "");

pub(crate) struct Host {
    pub(crate) server: Server,
    _dir: TempDir,
}

impl Host {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { server: Server::start(&dir.path().join("data"), &[]), _dir: dir }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Reply {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        http::ask(self.server.address, method, path, &[UNNAMED], text.as_bytes())
    }

    /// Requires success.
    pub(crate) fn good(&self, method: &str, path: &str, body: &Value) -> Value {
        let reply = self.ask(method, path, body);
        assert_eq!(reply.status, 200, "{method} {path}: {}", reply.text());
        assert_eq!(reply.header("grpc-metadata-argo-version"), Some(concat!("v", env!("CARGO_PKG_VERSION"))));
        reply.json()
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.good("GET", path, &Value::Null)
    }

    /// Requires a refusal with this status and code, and returns the message.
    pub(crate) fn bad(&self, method: &str, path: &str, body: &Value, status: u16, code: u64) -> String {
        let reply = self.ask(method, path, body);
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.text());
        let told = reply.json();
        assert_eq!(told["code"], code, "{told}");
        told["message"].as_str().unwrap().to_owned()
    }

    pub(crate) fn open(&self, path: &str, headers: &[(&str, &str)]) -> Coming {
        begin(self.server.address, "GET", path, headers, b"").unwrap()
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
}

impl Drop for Host {
    /// Running tasks are ended too, or they would outlive their server.
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        let here = "/api/v1/workflows/default";
        let open = format!("{here}?listOptions.labelSelector=workflows.argoproj.io/completed=false");
        let Ok(list) = http::call(self.server.address, "GET", &open, None) else { return };
        for item in list.body["items"].as_array().into_iter().flatten() {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            let _ = begin(self.server.address, "PUT", &format!("{here}/{name}/terminate"), &[], b"");
        }
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
