//! Kill -9 of the real command in the middle of its work, resumed each time: nothing acknowledged is lost, nothing
//! that finished runs again, the tree is the same, no process stays behind.

#[path = "../wire/wire.rs"]
mod wire;

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::wire::{
    processes::{left_behind, naming},
    waiting::eventually,
};

const GROUPS: usize = 10;
const ITEMS: usize = 100;
const KILLS: usize = 20;

/// A thousand steps; each leaves one line in a file outside its own view.
fn manifest(host: &Path) -> String {
    let groups: String = (0..GROUPS)
        .map(|group| {
            format!(
                "    - - name: g{group}\n        template: mark\n        withSequence: {{count: \"{ITEMS}\"}}\n        arguments:\n          parameters: [{{name: who, value: \"g{group}-{{{{item}}}}\"}}]\n"
            )
        })
        .collect();
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata:\n  name: thousand\nspec:\n  entrypoint: main\n  volumes:\n  - name: out\n    hostPath: {{path: {}}}\n  templates:\n  - name: main\n    steps:\n{groups}  - name: mark\n    inputs:\n      parameters: [{{name: who}}]\n    container:\n      image: bash\n      command: [bash, -c]\n      args: [\"echo {{{{inputs.parameters.who}}}} >> /out/marks; sleep 0.01\"]\n      volumeMounts: [{{name: out, mountPath: /out}}]\n",
        host.display()
    )
}

fn octoflow(data_dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_octoflow"));
    command.arg("--data-dir").arg(data_dir).stdin(Stdio::null());
    command
}

/// Starts a run, lets it report this many events, and kills it.
fn kill_after(mut command: Command, events: usize) {
    let mut child: Child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command starts");
    let talk = BufReader::new(child.stderr.take().expect("its talk is piped"));
    let said: Vec<String> = talk.lines().take(events).map_while(Result::ok).collect();
    child.kill().expect("it can be killed");
    child.wait().expect("it can be waited for");
    assert_eq!(said.len(), events, "the run ended before it could be killed:\n{}", said.join("\n"));
}

fn marks(host: &Path) -> BTreeMap<String, usize> {
    let mut marks = BTreeMap::new();
    for line in fs::read_to_string(host.join("marks")).unwrap_or_default().lines() {
        *marks.entry(line.to_owned()).or_insert(0) += 1;
    }
    marks
}

fn tree(object: &Value) -> BTreeMap<String, String> {
    let nodes = object["status"]["nodes"].as_object().expect("the object has nodes");
    let text = |node: &Value, field: &str| node[field].as_str().unwrap_or_default().to_owned();
    nodes.values().map(|node| (text(node, "name"), format!("{} {}", text(node, "type"), text(node, "phase")))).collect()
}

#[test]
fn a_run_killed_twenty_times_ends_as_if_it_had_not_been() {
    let calm = tempfile::tempdir().unwrap();
    let file = calm.path().join("calm.yaml");
    fs::write(&file, manifest(calm.path())).unwrap();
    let output =
        octoflow(&calm.path().join("data")).args(["run", "-o", "json", "--quiet"]).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = tree(&serde_json::from_slice(&output.stdout).unwrap());

    let rough = tempfile::tempdir().unwrap();
    let data_dir = rough.path().join("data");
    let file = rough.path().join("rough.yaml");
    fs::write(&file, manifest(rough.path())).unwrap();
    // Irregular but repeatable distances between the kills.
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    for kill in 0..KILLS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let events = 5 + (state >> 33) as usize % 70;
        let mut command = octoflow(&data_dir);
        if kill == 0 {
            command.arg("run").arg(&file);
        } else {
            command.args(["run", "--resume", "thousand"]);
        }
        kill_after(command, events);
    }
    let output = octoflow(&data_dir).args(["run", "--resume", "thousand", "-o", "json", "--quiet"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["status"]["phase"], "Succeeded");
    assert_eq!(tree(&object), expected);

    let marks = marks(rough.path());
    let again: Vec<_> = marks.iter().filter(|(_, count)| **count != 1).collect();
    assert!(again.is_empty(), "steps that ran more than once: {again:?}");
    assert_eq!(marks.len(), GROUPS * ITEMS);
    assert_eq!(left_behind(&data_dir), Vec::<String>::new());
}

/// A daemon that stays up beside a step which waits for a file.
fn with_daemon(host: &Path) -> String {
    let path = host.display();
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata:\n  name: served\nspec:\n  entrypoint: main\n  volumes:\n  - name: out\n    hostPath: {{path: {path}}}\n  templates:\n  - name: main\n    steps:\n    - - {{name: server, template: server}}\n    - - {{name: client, template: client}}\n  - name: server\n    daemon: true\n    container:\n      image: bash\n      command: [bash, -c]\n      args: [\"echo up >> /out/begun; while :; do sleep 0.1; done # {path}\"]\n      volumeMounts: [{{name: out, mountPath: /out}}]\n  - name: client\n    container:\n      image: bash\n      command: [bash, -c]\n      args: [\"echo up > /out/client; until [ -e /out/go ]; do sleep 0.05; done\"]\n      volumeMounts: [{{name: out, mountPath: /out}}]\n"
    )
}

#[test]
fn a_daemon_survives_the_command_and_not_the_run() {
    let place = tempfile::tempdir().unwrap();
    let (data_dir, file) = (place.path().join("data"), place.path().join("served.yaml"));
    fs::write(&file, with_daemon(place.path())).unwrap();
    let serving = format!("# {}", place.path().display());
    let mut child = octoflow(&data_dir)
        .arg("run")
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    eventually("the client runs", || place.path().join("client").exists());
    child.kill().expect("it can be killed");
    child.wait().expect("it can be waited for");
    assert!(!naming(&serving).is_empty(), "the daemon is up though nobody watches the run");

    fs::write(place.path().join("go"), "").unwrap();
    let output = octoflow(&data_dir).args(["run", "--resume", "served", "-o", "json", "--quiet"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(tree(&object)["served[0].server"], "Pod Succeeded");
    assert_eq!(fs::read_to_string(place.path().join("begun")).unwrap(), "up\n", "the daemon was started once");
    assert_eq!(naming(&serving), Vec::<String>::new(), "a run that is over leaves no daemon");
    assert_eq!(left_behind(&data_dir), Vec::<String>::new());
}
