//! Manifests that try to monopolise the engine, submitted to a real server: it serves others meanwhile, also after it
//! was killed, and the run ends.

use std::{net::SocketAddr, time::Duration};

use serde_json::{Value, json};

use crate::{
    pace,
    stage::Stage,
    wire::{
        http::{self, Answer, call},
        server::Server,
        waiting::within,
    },
};

const RUNS: &str = "/api/v1/workflows/default";

/// Time until a run's budget is used up, on a busy machine and without optimisation.
const LONGEST: Duration = Duration::from_secs(240);

fn ask(to: SocketAddr, method: &str, path: &str, body: Option<&Value>) -> Answer {
    call(to, method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

fn workflow(name: &str, spec: &Value) -> Value {
    let metadata = json!({"name": name});
    json!({"workflow":
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": metadata, "spec": spec}})
}

/// A hundred thousand items, each with a condition that would practically never end.
fn endless(name: &str) -> Value {
    let condition = "{{=len(map(1..3000, map(1..3000, map(1..3000, #)))) == 0}}";
    let step = json!({"name": "a", "template": "work", "withSequence": {"count": 100_000}, "when": condition});
    let templates = json!([
        {"name": "main", "steps": [[step]]},
        {"name": "work", "container": {"image": "busybox", "command": ["true"]}},
    ]);
    workflow(name, &json!({"entrypoint": "main", "templates": templates}))
}

fn suspended(name: &str) -> Value {
    workflow(name, &json!({"entrypoint": "main", "templates": [{"name": "main", "suspend": {}}]}))
}

/// Checks that others are served: probes, submissions, lists, reads.
fn serves(address: SocketAddr, name: &str) {
    let made = ask(address, "POST", RUNS, Some(&suspended(name)));
    assert_eq!(made.status, 200, "{}", made.body);
    let listed = ask(address, "GET", &format!("{RUNS}?fields=items.metadata.name,items.status.phase"), None);
    assert_eq!(listed.status, 200, "{}", listed.body);
    let names = listed.body["items"].as_array().unwrap();
    assert!(names.iter().any(|item| item["metadata"]["name"] == name), "{}", listed.body);
    let read = ask(address, "GET", &format!("{RUNS}/{name}"), None);
    assert_eq!(read.status, 200, "{}", read.body);
    let ended = ask(address, "PUT", &format!("{RUNS}/{name}/terminate"), Some(&json!({})));
    assert_eq!(ended.status, 200, "{}", ended.body);
    let ready = http::ask(address, "GET", "/readyz", &[], b"");
    assert_eq!(ready.status, 200, "{}", ready.text());
    let health = ask(address, "GET", "/api/octoflow/v1/health", None);
    assert_eq!(health.status, 200, "{}", health.body);
}

fn status(address: SocketAddr, name: &str) -> Value {
    let found = ask(address, "GET", &format!("{RUNS}/{name}?fields=status.phase,status.message"), None);
    assert_eq!(found.status, 200, "{}", found.body);
    found.body["status"].clone()
}

fn over(status: &Value) -> bool {
    matches!(status["phase"].as_str(), Some("Succeeded" | "Failed" | "Error"))
}

#[test]
fn an_expression_never_stops_the_server_also_after_a_restart() {
    let stage = Stage::new();
    let mut server = Server::start(&stage.data_dir(), &[]);
    let terminate = |name: &str| {
        pace::once(|| {
            let ended = ask(server.address, "PUT", &format!("{RUNS}/{name}/terminate"), Some(&json!({})));
            assert_eq!(ended.status, 200, "{}", ended.body);
        })
    };
    let made = ask(server.address, "POST", RUNS, Some(&suspended("calm")));
    assert_eq!(made.status, 200, "{}", made.body);
    let before = terminate("calm");
    for name in ["endless", "ended"] {
        let made = ask(server.address, "POST", RUNS, Some(&endless(name)));
        assert_eq!(made.status, 200, "{}", made.body);
    }
    serves(server.address, "w0");
    let took = terminate("ended");
    assert!(took < pace::limit(before), "it took {took:?} to terminate it, and {before:?} to terminate a calm one");
    serves(server.address, "w1");
    server.kill();

    let mut server = Server::start(&stage.data_dir(), &[]);
    serves(server.address, "w2");
    let ends = |name: &str| {
        let mut last = Value::Null;
        let over = within(LONGEST, || {
            last = status(server.address, name);
            over(&last)
        });
        assert!(over, "{name} does not end: {last}");
        last
    };
    let terminated = ends("ended");
    assert_eq!(terminated["phase"], "Failed", "{terminated}");
    let spent = ends("endless");
    assert!(matches!(spent["phase"].as_str(), Some("Failed" | "Error")), "{spent}");
    let message = spent["message"].as_str().unwrap_or_default();
    assert!(message.contains("map(1..3000") && message.contains("too many steps"), "{spent}");
    serves(server.address, "w3");
    server.stop();
}

#[test]
fn a_workflow_with_more_nodes_than_an_answer_holds_is_refused_with_the_way_to_ask() {
    let stage = Stage::new();
    let mut server = Server::start(&stage.data_dir(), &[]);
    let step = json!({"name": "a", "template": "work", "withSequence": {"count": 160_000}, "when": "1 == 2"});
    let templates = json!([
        {"name": "main", "steps": [[step], [{"name": "b", "template": "work"}], [{"name": "c", "template": "wait"}]]},
        {"name": "work", "container": {"image": "busybox", "command": ["true"]}},
        {"name": "wait", "suspend": {}},
    ]);
    let made = ask(
        server.address,
        "POST",
        RUNS,
        Some(&workflow("wide", &json!({"entrypoint": "main", "templates": templates}))),
    );
    assert_eq!(made.status, 200, "{}", made.body);
    // Once all items are skipped, one task runs.
    let progress = || ask(server.address, "GET", &format!("{RUNS}/wide?fields=status.progress"), None).body;
    let begun = || progress()["status"]["progress"].as_str().is_some_and(|told| told.starts_with("1/"));
    assert!(within(LONGEST, begun), "{}", progress());
    let refused = ask(server.address, "GET", &format!("{RUNS}/wide"), None);
    assert_eq!(refused.status, 413);
    let told = refused.body["message"].as_str().unwrap_or_default().to_owned();
    assert!(told.contains("fields=-status.nodes"), "{told}");
    let trimmed = ask(server.address, "GET", &format!("{RUNS}/wide?fields=-status.nodes"), None);
    assert_eq!((trimmed.status, &trimmed.body["status"]["phase"]), (200, &json!("Running")), "{}", trimmed.body);
    let kube = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows";
    assert_eq!(ask(server.address, "GET", &format!("{kube}/wide"), None).status, 413);
    let listed = ask(server.address, "GET", kube, None);
    assert_eq!(listed.status, 200);
    let conditions = listed.body["items"][0]["status"]["conditions"].to_string();
    assert!(conditions.contains("NodesOmitted"), "{conditions}");
    server.kill();
}
