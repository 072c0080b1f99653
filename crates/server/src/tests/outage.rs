//! A full or broken disk as clients see it: writes are refused in the format of each face with a `Retry-After`, reads
//! continue, the probes report it, and everything recovers by itself.

use std::time::{Duration, Instant};

use axum::http::Method;
use octoflow_store::{
    Batch,
    faults::{Fault as DiskFault, install},
};
use serde_json::{Value, json};

use super::stage::Stage;

const KUBE: &str = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows";
const ARGO: &str = "/api/v1/workflows/default";

fn workflow(name: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name},
        "spec": {"entrypoint": "main", "templates": [{"name": "main", "container": {"image": "x", "command": ["true"]}}]},
    })
}

/// Requests of every face that are refused when the disk is full.
fn refusals() -> [(&'static str, Value); 3] {
    let token = json!({"who": "ci", "privileges": ["read_job"]});
    [(KUBE, workflow("w")), (ARGO, json!({"workflow": workflow("w")})), ("/api/octoflow/v1/tokens", token)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_507_on_every_face_and_goes_by_itself() {
    let disk = install();
    let stage = Stage::new();
    assert_eq!(stage.ask(Method::POST, KUBE, "admin", &workflow("before")).await.status, 201);
    assert_eq!(stage.get("/readyz", "admin").await.status, 200);
    disk.fail_all(Some(DiskFault::Full));
    for (path, body) in refusals() {
        let heard = stage.ask(Method::POST, path, "admin", &body).await;
        assert_eq!(heard.status, 507, "{path}: {}", heard.text);
        assert_eq!(heard.headers["retry-after"], "5", "{path}");
        let dir = stage.dir.path().display().to_string();
        assert!(heard.text.contains("free some space") && heard.text.contains(&dir), "{path}: {}", heard.text);
        let json = heard.json();
        match path {
            KUBE => {
                assert_eq!((&json["kind"], &json["code"]), (&json!("Status"), &json!(507)), "{json}");
                assert_eq!(json["details"]["retryAfterSeconds"], 5);
            }
            ARGO => assert_eq!(json["code"], 8, "{json}"),
            _ => assert_eq!(json["error"]["reason"], "InsufficientStorage", "{json}"),
        }
    }
    assert_eq!(stage.get("/livez", "admin").await.status, 200, "it is alive");
    let ready = stage.get("/readyz", "admin").await;
    assert!(ready.status == 503 && ready.text.contains("free some space"), "{}", ready.text);
    for path in [KUBE, ARGO, &format!("{KUBE}/before"), "/metrics"] {
        let heard = stage.get(path, "admin").await;
        assert_eq!(heard.status, 200, "what is there can be read: {path}: {}", heard.text);
    }

    disk.fail_all(None);
    let until = Instant::now() + Duration::from_secs(30);
    while stage.get("/readyz", "admin").await.status != 200 {
        assert!(Instant::now() < until, "it never goes on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let heard = stage.ask(Method::POST, KUBE, "admin", &workflow("w")).await;
    assert_eq!(heard.status, 201, "nothing of what was refused is there: {}", heard.text);
    stage.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_disk_is_503() {
    let disk = install();
    let stage = Stage::new();
    disk.fail_all(Some(DiskFault::Broken));
    for (path, body) in refusals() {
        let heard = stage.ask(Method::POST, path, "admin", &body).await;
        assert_eq!(heard.status, 503, "{path}: {}", heard.text);
        assert!(heard.headers.contains_key("retry-after"), "{path}");
    }
    disk.fail_all(None);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_one_of_its_threads_it_is_neither_alive_nor_ready() {
    let stage = Stage::new();
    stage.app.registry.controller().store().commit(Batch::new(), |_| panic!("a fault put there by the test"));
    let until = Instant::now() + Duration::from_secs(30);
    while stage.get("/livez", "admin").await.status == 200 {
        assert!(Instant::now() < until, "nobody notices");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let heard = stage.get("/livez", "admin").await;
    assert!(heard.status == 503 && heard.text.contains("event-loop"), "{}", heard.text);
    assert_eq!(stage.get("/readyz", "admin").await.status, 503);
}
