//! Scenarios that are run for real: manifests as processes, and command lines.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use octoflow_manifest::to_yaml;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    files,
    scenario::{differences, documents, texts},
    short,
};

pub(crate) fn all(ending: &str, one: fn(&Value) -> Vec<String>) {
    let mut wrong = Vec::new();
    for file in files(ending) {
        for scenario in documents(&file) {
            let name = format!("{} ({})", short(&file), scenario["name"].as_str().unwrap_or_default());
            wrong.extend(one(&scenario).into_iter().map(|why| format!("{name}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `workflow` or `manifests`, run with more `arguments` if there are any; then `expect` is compared with the final
/// object: `phase`, `message`, `nodes` by display or full name, and `object` for anything else. `exit`, `stdout` and
/// `stderr` are those of the command.
pub(crate) fn process(scenario: &Value) -> Vec<String> {
    let stage = Stage::new();
    let mut manifests = scenario["manifests"].as_array().cloned().unwrap_or_default();
    if let Some(workflow) = scenario.get("workflow") {
        manifests.push(completed(workflow.clone()));
    }
    let text: String = manifests.iter().map(|manifest| format!("---\n{}", to_yaml(manifest))).collect();
    fs::write(stage.path("w.yaml"), text).unwrap();
    let more = words(&scenario["arguments"]);
    let fixed = ["run", "-o", "json", "--quiet", "--timeout", "60s", "w.yaml"];
    let said = stage.octoflow(&fixed.iter().map(|word| (*word).to_owned()).chain(more).collect::<Vec<_>>(), "");
    let expect = &scenario["expect"];
    let mut found = Vec::new();
    said.compare(expect, &mut found);
    let object: Value = serde_json::from_str(&said.out).unwrap_or_default();
    let status = &object["status"];
    for key in ["phase", "message"] {
        if let Some(expected) = expect.get(key) {
            differences(expected, &status[key], key, &mut found);
        }
    }
    for (name, expected) in expect["nodes"].as_object().into_iter().flatten() {
        let mut nodes = status["nodes"].as_object().into_iter().flatten().map(|(_, node)| node);
        let node = nodes.find(|node| node["displayName"] == **name || node["name"] == **name);
        let expected = if expected.is_string() { json!({"phase": expected}) } else { expected.clone() };
        match node {
            Some(node) => differences(&expected, node, &format!("nodes.{name}"), &mut found),
            None => found.push(format!("nodes.{name}: there is no such node")),
        }
    }
    if let Some(expected) = expect.get("object") {
        differences(expected, &object, "object", &mut found);
    }
    if !found.is_empty() {
        found.push(format!("standard error was:\n{}", said.err));
    }
    found
}

/// `files` by name are laid down; then each of `commands` is run in turn, its words after `octoflow` in `run`, and
/// compared by `exit`, `stdout`, `stderr` and, where the output is JSON, `object`.
pub(crate) fn commands(scenario: &Value) -> Vec<String> {
    let stage = Stage::new();
    for (name, text) in scenario["files"].as_object().into_iter().flatten() {
        let text = text.as_str().map_or_else(|| to_yaml(text), str::to_owned);
        fs::create_dir_all(stage.path(name).parent().unwrap()).unwrap();
        fs::write(stage.path(name), text).unwrap();
    }
    let mut found = Vec::new();
    for (at, command) in scenario["commands"].as_array().unwrap().iter().enumerate() {
        let said = stage.octoflow(&words(&command["run"]), command["stdin"].as_str().unwrap_or_default());
        let mut wrong = Vec::new();
        said.compare(command, &mut wrong);
        if let Some(expected) = command.get("object") {
            let object = serde_json::from_str(&said.out).unwrap_or_default();
            differences(expected, &object, "object", &mut wrong);
        }
        found.extend(wrong.into_iter().map(|why| format!("commands[{at}] {}: {why}", command["run"])));
    }
    found
}

fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(line) => line.split_whitespace().map(str::to_owned).collect(),
        list => list.as_array().into_iter().flatten().map(|word| word.as_str().unwrap().to_owned()).collect(),
    }
}

fn completed(mut workflow: Value) -> Value {
    let fields = workflow.as_object_mut().unwrap();
    fields.entry("apiVersion").or_insert_with(|| json!("argoproj.io/v1alpha1"));
    fields.entry("kind").or_insert_with(|| json!("Workflow"));
    fields.entry("metadata").or_insert_with(|| json!({"name": "w"}));
    workflow
}

/// A folder and a data directory of its own.
struct Stage {
    dir: TempDir,
}

struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Stage {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn octoflow(&self, words: &[String], stdin: &str) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_octoflow"));
        command.args(words).current_dir(self.dir.path()).env("OCTOFLOW_DATA_DIR", self.data()).env("TZ", "UTC");
        fs::write(self.path(".stdin"), stdin).unwrap();
        command.stdin(Stdio::from(fs::File::open(self.path(".stdin")).unwrap()));
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }

    fn data(&self) -> PathBuf {
        Path::new(self.dir.path()).join("data")
    }
}

impl Said {
    fn compare(&self, expected: &Value, found: &mut Vec<String>) {
        if let Some(code) = expected.get("exit").filter(|code| **code != json!(self.code)) {
            found.push(format!("exit: expected {code}, actual {}\n{}\n{}", self.code, self.out, self.err));
        }
        for (key, actual) in [("stdout", &self.out), ("stderr", &self.err)] {
            if let Some(expected) = expected.get(key) {
                texts(expected, actual, key, found);
            }
        }
    }
}
