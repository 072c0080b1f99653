//! A server that is killed with very many unfinished runs resumes all of them.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    stage::Stage,
    wire::{
        http::{begin, call},
        server::Server,
        waiting::PATIENCE,
    },
};

/// So many that reading their journals can be watched.
const MANY: usize = 5_000;
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

/// What somebody saw who asked a server all the time while it started.
#[derive(Debug, Default)]
struct Start {
    /// How often it was alive and said that it is not ready.
    unready: usize,
    /// The longest time in which `/livez` was answered, and how often it said something else than that it is alive.
    slowest: Duration,
    not_alive: usize,
}

fn probe(address: SocketAddr, path: &str) -> Option<u16> {
    begin(address, "GET", path, &[], b"").ok().map(|coming| coming.reply.status)
}

/// Asks a server that is being started until it is ready.
fn watch_start(address: SocketAddr) -> Start {
    let mut seen = Start::default();
    let give_up = Instant::now() + PATIENCE;
    while Instant::now() < give_up {
        let asked = Instant::now();
        let Some(alive) = probe(address, "/livez") else {
            // Nobody listens yet. Asking without a pause could meet itself on that port.
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        seen.slowest = seen.slowest.max(asked.elapsed());
        match (alive, probe(address, "/readyz")) {
            (200, Some(200)) => return seen,
            (200, Some(503)) => seen.unready += 1,
            (200, ready) => panic!("/readyz said {ready:?}"),
            _ => seen.not_alive += 1,
        }
    }
    panic!("it was never ready: {seen:?}");
}

/// Far more than an answer takes on a busy machine, and far less than thousands of journals do.
const AT_ONCE: Duration = Duration::from_millis(500);

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

    let watcher = thread::spawn(move || watch_start(address));
    let mut server = Server::launch(&mut Server::command(&address.to_string(), &stage.data_dir(), &[]));
    let start = watcher.join().unwrap();
    assert!(start.not_alive == 0 && start.slowest < AT_ONCE, "{start:?}");
    assert!(count < MANY || start.unready > 0, "nobody could ask while the journals were read: {start:?}");
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
fn five_thousand_unfinished_runs_are_restored_and_livez_answers_at_once_meanwhile() {
    left_unfinished(MANY);
}
