//! The machine runs short of something, or loses something, under a real binary: steps wait instead of failing, and
//! lost parts of a log are reported.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    stage::{Stage, eventually, one_step},
    wire::{
        http::{ask, call},
        server::Server,
    },
};

/// So many steps side by side, each with an output to be collected.
fn wide(name: &str, count: usize, script: &str) -> String {
    let script = serde_json::to_string(script).unwrap();
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{name: {name}}}
spec:
  entrypoint: main
  templates:
  - name: main
    steps:
    - - name: leaf
        template: leaf
        withSequence: {{count: '{count}'}}
  - name: leaf
    outputs: {{parameters: [{{name: v, valueFrom: {{path: /tmp/v}}}}]}}
    container: {{image: busybox, command: [sh, -c], args: [{script}]}}
"
    )
}

#[test]
fn with_few_descriptors_steps_wait_and_none_fails() {
    let stage = Stage::new();
    let file = stage.file("wide.yaml", wide("wide", 30, "echo said; sleep 0.2; echo found > /tmp/v"));
    let limited = format!("ulimit -n 64; exec '{}' run '{file}' --parallelism 30", env!("CARGO_BIN_EXE_octoflow"));
    let mut command = Command::new("sh");
    command.args(["-c", &limited]).env("OCTOFLOW_DATA_DIR", stage.data_dir());
    let said = command.stdin(Stdio::null()).output().unwrap();
    let words = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{words}");
    let object = stage.json(&["get", "wide", "-o", "json"]);
    assert_eq!(object["status"]["phase"], "Succeeded");
    let nodes = object["status"]["nodes"].as_object().unwrap();
    let pods: Vec<&Value> = nodes.values().filter(|node| node["type"] == "Pod").collect();
    assert_eq!(pods.len(), 30);
    for pod in pods {
        assert_eq!(pod["outputs"]["parameters"][0]["value"], "found", "{pod}");
    }
}

fn only_log(data: &Path) -> PathBuf {
    let mut found = Vec::new();
    for run in fs::read_dir(data.join("logs")).unwrap().flatten() {
        found.extend(fs::read_dir(run.path()).unwrap().flatten().map(|entry| entry.path()));
    }
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn a_log_that_lost_its_end_is_said_to_be_truncated_and_one_that_is_gone_to_be_missing() {
    let stage = Stage::new();
    let file = stage.file("w.yaml", one_step("w", "echo first; sleep 0.3; echo second"));
    stage.good(&["run", &file]);
    let whole = stage.good(&["logs", "w"]);
    assert!(whole.out.contains("second") && !whole.to_string().contains("truncated"), "{whole}");
    let log = only_log(&stage.data_dir());
    let length = fs::metadata(&log).unwrap().len();
    fs::File::options().write(true).open(&log).unwrap().set_len(length - 3).unwrap();
    // Without a server, and by way of one: its own API, the pod's log, the workflow's.
    let told = |what: &str| {
        let here = stage.good(&["logs", "w"]);
        assert!(here.to_string().contains(what), "{here}");
        let server = Server::start(&stage.data_dir(), &[]);
        for path in [
            "/api/v1/namespaces/default/pods/w/log",
            "/api/v1/namespaces/default/pods/w/log?timestamps=true",
            "/api/v1/workflows/default/w/log?logOptions.container=main",
        ] {
            let answer = ask(server.address, "GET", path, &[], b"");
            assert!(answer.text().contains(what), "{path}: {}", answer.text());
        }
    };
    told("the log is truncated");
    fs::remove_file(&log).unwrap();
    told("the log is missing");
}

fn spawner_of(data: &Path) -> Option<u32> {
    let data = fs::canonicalize(data).unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.contains("__spawner") && line.contains(data.to_str().unwrap())
    })
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_stopped_spawner_does_not_stop_the_server_and_goes_on() {
    let stage = Stage::new();
    let mut server = Server::start(&stage.data_dir(), &[]);
    let address = server.address;
    let spawner = spawner_of(&stage.data_dir()).expect("a server has a spawner");
    kill("-STOP", spawner);
    for at in 0..20 {
        let workflow = json!({"workflow": {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"name": format!("w{at}")},
            "spec": {"entrypoint": "main", "templates": [{"name": "main", "container": {"image": "busybox", "command": ["true"]}}]},
        }});
        let made = call(address, "POST", "/api/v1/workflows/default", Some(&workflow)).unwrap();
        assert_eq!(made.status, 200, "{}", made.body);
    }
    let phases = || {
        let listed = call(address, "GET", "/api/v1/workflows/default?fields=items.status.phase", None).unwrap();
        assert_eq!(listed.status, 200, "{}", listed.body);
        let items = listed.body["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["status"]["phase"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    thread::sleep(Duration::from_secs(1));
    assert!(phases().iter().all(|phase| phase != "Succeeded" && phase != "Error"), "{:?}", phases());
    let probe = |path: &str| ask(address, "GET", path, &[], b"");
    eventually("/readyz to say what to do about the spawner", || {
        let told = probe("/readyz");
        told.status == 503 && told.text().contains(&format!("kill -CONT {spawner}"))
    });
    assert_eq!(probe("/livez").status, 200, "the server itself lives");
    kill("-CONT", spawner);
    eventually("/readyz to be ready again", || probe("/readyz").status == 200);
    eventually("all runs to succeed", || phases().iter().all(|phase| phase == "Succeeded"));
    // Killed under a living server it is replaced, and its tasks follow their retry rules.
    kill("-KILL", spawner);
    eventually("another spawner", || spawner_of(&stage.data_dir()).is_some_and(|pid| pid != spawner));
    server.stop();
}
