//! A server that is killed with very many unfinished runs resumes all of them.

use std::{collections::BTreeSet, net::SocketAddr, thread};

use serde_json::{Value, json};

use crate::{
    stage::Stage,
    wire::{http::call, server::Server},
};

const RUNS: &str = "/api/v1/workflows/default";

fn suspended(name: &str) -> Value {
    json!({"workflow": {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name},
        "spec": {"entrypoint": "main", "templates": [{"name": "main", "suspend": {}}]},
    }})
}

/// By name, the phase of every workflow there is.
fn phases(address: SocketAddr) -> BTreeSet<(String, String)> {
    let path = format!("{RUNS}?fields=items.metadata.name,items.status.phase");
    let listed = call(address, "GET", &path, None).unwrap();
    assert_eq!(listed.status, 200, "{}", listed.body);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = listed.body["items"].as_array().unwrap();
    items.iter().map(|item| (text(&item["metadata"]["name"]), text(&item["status"]["phase"]))).collect()
}

fn left_unfinished(count: usize) {
    let stage = Stage::new();
    let mut server = Server::start(&stage.data_dir(), &[]);
    let address = server.address;
    thread::scope(|scope| {
        for part in 0..8 {
            scope.spawn(move || {
                for at in (part..count).step_by(8) {
                    let made = call(address, "POST", RUNS, Some(&suspended(&format!("w{at}")))).unwrap();
                    assert_eq!(made.status, 200, "{}", made.body);
                }
            });
        }
    });
    server.kill();

    let mut server = Server::start(&stage.data_dir(), &[]);
    let ready = call(server.address, "GET", "/api/octoflow/v1/health", None).unwrap();
    assert_eq!((ready.status, &ready.body["runsOpen"]), (200, &json!(count)));
    let found = phases(server.address);
    assert_eq!(found, (0..count).map(|at| (format!("w{at}"), "Running".to_owned())).collect());
    // They not only exist: they accept commands.
    let resumed = call(server.address, "PUT", &format!("{RUNS}/w{}/resume", count - 1), Some(&json!({}))).unwrap();
    assert_eq!(resumed.status, 200, "{}", resumed.body);
    server.stop();
}

/// Tokio gives a task 128 units of work at a time, and the start used to wait for an answer once a run.
#[test]
fn three_hundred_unfinished_runs_are_restored() {
    left_unfinished(300);
}

#[test]
fn five_thousand_unfinished_runs_are_restored() {
    left_unfinished(5_000);
}
