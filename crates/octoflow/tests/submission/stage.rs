//! What these tests share: a server in a place of its own, plugins beside it, features and jobs of few words.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use crate::wire::{said::Said, waiting::eventually};
use crate::{
    plugins::Plugins,
    wire::{
        http,
        server::{ANYWHERE, Server},
    },
};

pub(crate) const DONE: &str = "OPERATION_SUCCEEDED";

pub(crate) struct Stage {
    dir: TempDir,
    server: Option<Server>,
    pub(crate) plugins: Plugins,
}

/// An answer of `/v1`.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) msg: String,
    pub(crate) payload: Value,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let mut stage = Self { dir: tempfile::tempdir().unwrap(), server: None, plugins: Plugins::start() };
        stage.serve(ANYWHERE);
        stage
    }

    fn serve(&mut self, listen: &str) {
        let mut command = Server::command(listen, &self.data_dir(), &["--isolation", "none"]);
        self.server = Some(Server::launch(&mut command));
    }

    /// Kills the server like a power cut.
    pub(crate) fn kill(&mut self) -> String {
        let mut server = self.server.take().unwrap();
        server.kill();
        server.address.to_string()
    }

    pub(crate) fn start_again(&mut self, address: &str) {
        self.serve(address);
    }

    pub(crate) fn kill_and_restart(&mut self) {
        let address = self.kill();
        self.start_again(&address);
    }

    pub(crate) fn restart(&mut self) {
        let mut server = self.server.take().unwrap();
        server.stop();
        self.serve(&server.address.to_string());
    }

    fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    pub(crate) fn octoflow(&self, words: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_octoflow"));
        command.args(words).env("OCTOFLOW_DATA_DIR", self.data_dir()).env("TZ", "UTC").env("USER", "ann");
        if let Some(server) = &self.server {
            command.env("OCTOFLOW_SERVER", format!("http://{}", server.address)).env("OCTOFLOW_TOKEN", http::TOKEN);
        }
        Said::from(command.stdin(Stdio::null()).output().unwrap())
    }

    /// Sends a request to `/v1` as the administrator.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Told {
        self.ask_with(method, path, &[], body)
    }

    pub(crate) fn ask_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Told {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let address = self.server.as_ref().unwrap().address;
        let reply = http::ask(address, method, &format!("/v1{path}"), headers, text.as_bytes());
        let mut told = reply.json();
        let word = |field: &str| told[field].as_str().unwrap_or_else(|| panic!("no {field}: {told}")).to_owned();
        Told { status: reply.status, code: word("code"), msg: word("msg"), payload: told["payload"].take() }
    }

    pub(crate) fn get(&self, path: &str) -> Told {
        self.ask("GET", path, &Value::Null)
    }

    /// Creates an object over the Kubernetes API with a token.
    #[track_caller]
    pub(crate) fn post(&self, path: &str, token: &str, object: &Value) {
        let headers = [("token", token), ("content-type", "application/json")];
        let address = self.server.as_ref().unwrap().address;
        let reply = http::ask(address, "POST", path, &headers, object.to_string().as_bytes());
        assert_eq!(reply.status, 201, "{}", reply.text());
    }

    /// Reads an object over the Kubernetes API.
    pub(crate) fn object(&self, path: &str) -> Option<Value> {
        let reply = http::ask(self.server.as_ref().unwrap().address, "GET", path, &[], b"");
        (reply.status == 200).then(|| reply.json())
    }

    pub(crate) fn task_set(&self, id: &str) -> Option<Value> {
        self.object(&format!("/apis/octopus.openi.pcl.cn/v1alpha1/namespaces/default/tasksets/{id}"))
    }

    /// Registers a feature with one plugin for every job, and enables it.
    pub(crate) fn plugin(&self, plugin_type: &str, name: &str, address: &str) {
        self.feature(name, json!([{"pluginType": plugin_type, "callAddress": address}]));
    }

    /// Registers a feature whose plugins are for every job, and enables it.
    pub(crate) fn feature(&self, name: &str, plugins: Value) {
        let feature = json!({"name": name, "author": "test", "jobSelector": {"expression": "*"}, "plugins": plugins});
        let told = self.ask("POST", "/features", &feature);
        assert_eq!(told.code, DONE, "{}", told.msg);
        self.switch(name, true);
    }

    pub(crate) fn switch(&self, name: &str, on: bool) {
        let word = if on { "turn-on" } else { "turn-off" };
        assert_eq!(self.ask("PUT", &format!("/features/{word}/{name}"), &Value::Null).code, DONE);
    }

    pub(crate) fn submit(&self, job: &Value) -> String {
        self.submit_with(job, json!({}))
    }

    pub(crate) fn submit_with(&self, job: &Value, header: Value) -> String {
        let told = self.ask("POST", "/job", &submission(job, header));
        assert_eq!(told.code, DONE, "{}", told.msg);
        told.payload["jobID"].as_str().unwrap().to_owned()
    }

    pub(crate) fn job(&self, id: &str) -> Value {
        let told = self.get(&format!("/job/detail/{id}"));
        assert_eq!(told.code, DONE, "{}", told.msg);
        told.payload
    }

    pub(crate) fn trace(&self, id: &str) -> Value {
        self.get(&format!("/job/trace/{id}")).payload
    }

    /// Waits until a job is in a state, and returns its detail document.
    #[track_caller]
    pub(crate) fn until(&self, id: &str, state: &str) -> Value {
        let mut seen = Value::Null;
        let over = |state: &Value| ["succeeded", "failed", "stopped"].map(Value::from).contains(state);
        eventually(&format!("{id} is {state}"), || {
            seen = self.job(id);
            seen["job"]["state"] == state || over(&seen["job"]["state"])
        });
        assert_eq!(seen["job"]["state"], state, "{:#}\n{:#}", seen["job"], self.trace(id));
        seen
    }

    /// Submits a job that must fail before it runs, and returns the reason.
    #[track_caller]
    pub(crate) fn fails(&self, job: &Value) -> String {
        let id = self.submit(job);
        self.until(&id, "failed");
        assert!(self.task_set(&id).is_none(), "nothing was handed over");
        self.trace(&id)["message"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn submission(job: &Value, header: Value) -> Value {
    json!({"userID": "u1", "jobName": "a job", "jobKind": job["kind"], "header": header, "job": job})
}

/// A TaskSet of one task that runs a command.
pub(crate) fn task_set(command: &str) -> Value {
    json!({
        "apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet",
        "spec": {"roles": [{
            "name": "main", "replicas": 1, "completionPolicy": {"maxFailed": 1, "minSucceeded": 1},
            "template": {"spec": {"restartPolicy": "Never", "containers": [
                {"name": "main", "image": "busybox", "command": ["sh", "-c", command],
                    "resources": {"limits": {"cpu": "100m"}}},
            ]}},
        }]},
    })
}

/// The pod template of a TaskSet's only role.
pub(crate) fn pod(set: &mut Value) -> &mut Value {
    &mut set["spec"]["roles"][0]["template"]["spec"]
}
