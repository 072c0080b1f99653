//! Command lines one after another: their exit codes and output.

use std::{process::Child, time::Duration};

use octoflow_manifest::Path;
use serde_json::Value;

use super::stage::Stage;
use crate::{
    scenario::{Misses, Scenario},
    wire::{
        processes::signal,
        said::Said,
        waiting::{PATIENCE, within},
    },
};

/// Keys that a command may have.
const WORDS: [&str; 11] =
    ["run", "stdin", "exit", "stdout", "stderr", "object", "background", "eventually", "signal", "wait", "write"];

/// `files` by name are laid down; then each of `commands` is run in turn, its words after `octoflow` in `run`, and
/// compared by `exit`, `stdout`, `stderr` and, where the output is JSON, `object`. One with `background` goes on while
/// the next ones run, is sent a `signal`, and compared where `wait` stands. One with `eventually` is repeated until it
/// says what is expected. `write` lays down an empty file for workloads that wait for it; `${stage}` in files is the
/// folder they lie in.
pub(crate) fn commands(scenario: &Scenario) -> Misses {
    let root = Path::root();
    scenario.knows(&root, &["covers", "name", "files", "commands"]);
    let stage = Stage::new();
    for (name, contents) in scenario.value()["files"].as_object().into_iter().flatten() {
        stage.file(name, contents);
    }
    let mut found = Misses::new();
    let mut behind = Behind(None);
    for (at, command) in scenario.value()["commands"].as_array().unwrap().iter().enumerate() {
        let place = root.join("commands").join(at);
        scenario.knows(&place, &WORDS);
        let is = |key: &str| command[key].as_bool() == Some(true);
        let (words, stdin) = (words(&command["run"]), command["stdin"].as_str().unwrap_or_default());
        if let Some(name) = command["signal"].as_str() {
            signal(behind.0.as_ref().expect("something was left running before `signal`"), name);
        } else if let Some(name) = command["write"].as_str() {
            stage.file(name, &Value::from(""));
        } else if is("wait") {
            let child = behind.0.take().expect("something was left running before `wait`");
            Said::from(child.wait_with_output().unwrap()).compare(command, &place, &mut found);
        } else if is("background") {
            behind.0 = Some(stage.start(&words, stdin));
        } else {
            let patience = if is("eventually") { PATIENCE } else { Duration::ZERO };
            within(patience, || {
                found.clear();
                stage.octoflow(&words, stdin).compare(command, &place, &mut found);
                found.is_empty()
            });
        }
        // Results after a difference would only be confusing.
        if !found.is_empty() {
            break;
        }
    }
    found
}

/// Command in the background, which does not outlive its scenario.
struct Behind(Option<Child>);

impl Drop for Behind {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A line of words, or a list where words hold spaces.
pub(super) fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(line) => line.split_whitespace().map(str::to_owned).collect(),
        list => list.as_array().into_iter().flatten().map(|word| word.as_str().unwrap().to_owned()).collect(),
    }
}
