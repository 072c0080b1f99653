//! What these tests share: a server in a place of its own, templates and flows of few words, and files by which tests and
//! jobs tell each other how far they are.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::wire::{
    http,
    server::{ANYWHERE, Server},
};
pub(crate) use crate::wire::{
    said::{Said, shows},
    waiting::eventually,
};

const FLOWS: &str = "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobflows";
const TEMPLATES: &str = "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobtemplates";
const JOBS: &str = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs";

pub(crate) struct Stage {
    dir: TempDir,
    server: Option<Server>,
}

impl Stage {
    /// A place without a server.
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), server: None }
    }

    pub(crate) fn with_server() -> Self {
        let mut stage = Self::new();
        stage.serve(ANYWHERE);
        stage
    }

    fn serve(&mut self, listen: &str) {
        // Jobs of these tests see files that the tests make.
        let mut command = Server::command(listen, &self.data_dir(), &["--isolation", "none"]);
        self.server = Some(Server::launch(&mut command));
    }

    /// Kills the server like a power cut and starts another one in its place.
    pub(crate) fn kill_and_restart(&mut self) {
        let mut server = self.server.take().unwrap();
        server.kill();
        self.serve(&server.address.to_string());
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

    /// Writes objects into one file.
    pub(crate) fn manifests(&self, name: &str, objects: &[Value]) -> String {
        let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
        self.file(name, texts.join("\n---\n"))
    }

    pub(crate) fn octoflow(&self, words: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_octoflow"));
        command.args(words).env("OCTOFLOW_DATA_DIR", self.data_dir()).env("TZ", "UTC").env_remove("OCTOFLOW_SERVER");
        if let Some(server) = &self.server {
            command.env("OCTOFLOW_SERVER", format!("http://{}", server.address)).env("OCTOFLOW_TOKEN", http::TOKEN);
        }
        command.stdin(Stdio::null());
        command.output().unwrap().into()
    }

    /// Runs it and insists on its exit code.
    #[track_caller]
    pub(crate) fn ends(&self, code: i32, words: &[&str]) -> Said {
        let said = self.octoflow(words);
        assert_eq!(said.code, code, "{words:?}\n{said}");
        said
    }

    /// Runs objects to their end without a server and gives the final object of the flow.
    #[track_caller]
    pub(crate) fn run(&self, code: i32, objects: &[Value]) -> Value {
        let file = self.manifests("run.yaml", objects);
        let said = self.ends(code, &["run", &file, "--isolation", "none", "-o", "json", "--timeout", "60s"]);
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}\n{said}"))
    }

    /// Sends a request to the server; gives status and body.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let answer = http::call(self.server.as_ref().unwrap().address, method, path, body).unwrap();
        (answer.status, answer.body)
    }

    /// Creates objects on the server, which must be taken.
    #[track_caller]
    pub(crate) fn create(&self, objects: &[Value]) {
        for object in objects {
            let (status, body) = self.ask("POST", path_of(object), Some(object));
            assert_eq!(status, 201, "{body:#}");
        }
    }

    /// Replaces the spec of a template.
    #[track_caller]
    pub(crate) fn replace_template(&self, template: &Value) {
        let path = format!("{TEMPLATES}/{}", template["metadata"]["name"].as_str().unwrap());
        let (status, mut object) = self.ask("GET", &path, None);
        assert_eq!(status, 200, "{object:#}");
        object["spec"] = template["spec"].clone();
        let (status, body) = self.ask("PUT", &path, Some(&object));
        assert_eq!(status, 200, "{body:#}");
    }

    #[track_caller]
    pub(crate) fn flow(&self, name: &str) -> Value {
        let (status, body) = self.ask("GET", &format!("{FLOWS}/{name}"), None);
        assert_eq!(status, 200, "{body:#}");
        body
    }

    /// A job of the server; none if it is not there.
    pub(crate) fn job(&self, name: &str) -> Option<Value> {
        let (status, body) = self.ask("GET", &format!("{JOBS}/{name}"), None);
        (status == 200).then_some(body)
    }

    pub(crate) fn delete_job(&self, name: &str) {
        let (status, body) = self.ask("DELETE", &format!("{JOBS}/{name}"), None);
        assert_eq!(status, 200, "{body:#}");
    }

    /// Waits until the flow is in a phase, and gives it then.
    #[track_caller]
    pub(crate) fn until(&self, name: &str, phase: &str) -> Value {
        self.until_status(name, &format!("{name} is {phase}"), |status| status["state"]["phase"] == phase)
    }

    #[track_caller]
    pub(crate) fn until_status(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut flow = Value::Null;
        let held = crate::wire::waiting::within(crate::wire::waiting::PATIENCE, || {
            flow = self.flow(name);
            holds(&flow["status"])
        });
        assert!(held, "waited in vain until {what}: {:#}", flow["status"]);
        flow
    }

    /// Lets jobs that wait for this word go on.
    pub(crate) fn say(&self, word: &str) {
        fs::write(self.path(word), "").unwrap();
    }

    /// A shell command that waits for a word.
    pub(crate) fn waits(&self, word: &str) -> String {
        format!("until [ -e {} ]; do sleep 0.02; done", self.path(word).display())
    }

    /// A shell command that leaves a line behind.
    pub(crate) fn marks(&self, line: &str) -> String {
        format!("echo {line} >> {}", self.path("marks").display())
    }

    /// The lines that jobs have left behind.
    pub(crate) fn marked(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("marks")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

pub(crate) fn path_of(object: &Value) -> &'static str {
    match object["kind"].as_str().unwrap() {
        "JobFlow" => FLOWS,
        "JobTemplate" => TEMPLATES,
        _ => JOBS,
    }
}

/// A template of one pod that runs a shell command.
pub(crate) fn template(name: &str, command: &str) -> Value {
    template_of(name, json!({"tasks": [task("main", 1, command)]}))
}

pub(crate) fn template_of(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate", "metadata": {"name": name}, "spec": spec})
}

pub(crate) fn task(name: &str, replicas: u32, command: &str) -> Value {
    json!({"name": name, "replicas": replicas, "template": {"spec": {"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "busybox", "command": ["sh", "-c", command]}]}}})
}

pub(crate) fn flow(name: &str, entries: Value) -> Value {
    json!({"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": name},
           "spec": {"flows": entries}})
}

/// An entry that waits for others.
pub(crate) fn after(name: &str, targets: &[&str]) -> Value {
    json!({"name": name, "dependsOn": {"targets": targets}})
}

/// The flow of the first example: a, then b, then c and d, then e.
pub(crate) fn diamond(name: &str) -> Value {
    let entries =
        [json!({"name": "a"}), after("b", &["a"]), after("c", &["b"]), after("d", &["b"]), after("e", &["c", "d"])];
    flow(name, json!(entries))
}

/// The names of a list of the status.
pub(crate) fn names<'a>(flow: &'a Value, list: &str) -> Vec<&'a str> {
    flow["status"][list].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}
