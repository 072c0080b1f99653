//! Fair scheduling: a small run is not delayed by a large one that came before it.

use serde_json::{Value, json};

use crate::wire::{http::call, server::Server, waiting::eventually};

const RUNS: &str = "/api/v1/workflows/default";
/// Tasks of the large run.
const MANY: u64 = 60;

fn submit(server: &Server, name: &str, count: u64) {
    let body = json!({"workflow": {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name},
        "spec": {"entrypoint": "main", "templates": [
            {"name": "main", "steps": [[{"name": "s", "template": "nap", "withSequence": {"count": count.to_string()}}]]},
            {"name": "nap", "container": {"image": "bash", "command": ["sleep", "0.2"]}},
        ]},
    }});
    let answer = call(server.address, "POST", RUNS, Some(&body)).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
}

fn status(server: &Server, name: &str) -> Value {
    call(server.address, "GET", &format!("{RUNS}/{name}"), None).unwrap().body["status"].clone()
}

/// How many of its tasks are done.
fn done(server: &Server, name: &str) -> u64 {
    let progress = status(server, name)["progress"].as_str().unwrap_or_default().to_owned();
    progress.split('/').next().and_then(|done| done.parse().ok()).unwrap_or(0)
}

#[test]
fn a_run_of_one_step_does_not_wait_for_all_steps_of_another() {
    let place = tempfile::tempdir().unwrap();
    let mut server = Server::start(&place.path().join("data"), &["--parallelism", "2"]);
    submit(&server, "large", MANY);
    eventually("the large run is under way", || done(&server, "large") > 0);
    let before = done(&server, "large");
    submit(&server, "small", 1);
    eventually("the small run is over", || status(&server, "small")["phase"] == "Succeeded");
    let after = done(&server, "large");
    assert!(after < MANY / 2 + before, "the small run waited for {} tasks of {MANY}", after - before);
    let stop = call(server.address, "PUT", &format!("{RUNS}/large/terminate"), Some(&json!({}))).unwrap();
    assert_eq!(stop.status, 200, "{}", stop.body);
    eventually("the large run is over", || status(&server, "large")["phase"] == "Failed");
    server.stop();
}
