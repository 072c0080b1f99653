//! Idempotency keys: the same request twice makes one run, through any face.

use axum::{
    extract::Request,
    http::{Method, StatusCode},
};
use octoflow_control::registry::{WriteOptions, kinds};
use serde_json::{Value, json};

use super::stage::{Reply, Stage, request};
use crate::{
    answer::{self, fault::Fault},
    call::{Call, Params},
    gate,
    route::{Face, Need, Route, Table},
};

/// Creates a workflow as the faces do.
fn creation() -> Route {
    let mut table = Table::new(Face::Kube);
    table.add(Method::POST, "/made", Need::WriteJob, |mut call: Call| async move {
        let body = call.json().await?;
        let options = WriteOptions { claim: call.claim()?, ..WriteOptions::default() };
        let kind = kinds::of_key("Workflow").unwrap();
        let made = call.create(kind, "default".to_owned(), body, options).await?;
        Ok::<_, Fault>(answer::with_status(StatusCode::CREATED, &made.object))
    });
    table.routes.remove(0)
}

fn keyed(key: &str, token: &str, body: &Value) -> Request {
    let mut request = request(Method::POST, "/made", Some(token), Some(body));
    request.headers_mut().insert("idempotency-key", key.parse().unwrap());
    request
}

fn workflow(prefix: &str) -> Value {
    json!({
        "metadata": {"generateName": prefix},
        "spec": {"entrypoint": "main", "templates": [{"name": "main", "suspend": {}}]},
    })
}

async fn send(stage: &Stage, request: Request) -> Reply {
    Reply::of(gate::handle(stage.app.clone(), creation(), Params::default(), request).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_and_body_is_the_same_run_and_another_body_is_a_conflict() {
    let stage = Stage::new();
    let uid = |heard: &Reply| heard.json()["metadata"]["uid"].as_str().unwrap().to_owned();
    let first = send(&stage, keyed("k1", "admin", &workflow("a-"))).await;
    assert_eq!(first.status, 201, "{}", first.text);
    let again = send(&stage, keyed("k1", "admin", &workflow("a-"))).await;
    assert_eq!((again.status, uid(&again)), (201, uid(&first)));
    let other = send(&stage, keyed("k1", "admin", &workflow("b-"))).await;
    assert_eq!((other.status, other.json()["reason"].as_str()), (409, Some("Conflict")));
    let next = send(&stage, keyed("k2", "admin", &workflow("a-"))).await;
    assert_ne!(uid(&next), uid(&first));
    assert_eq!(send(&stage, keyed(&"k".repeat(300), "admin", &workflow("a-"))).await.status, 400);

    let stage = Stage::again(stage.close(), Default::default(), gate::access::AdminSource::Stored);
    let later = send(&stage, keyed("k1", "admin", &workflow("a-"))).await;
    assert_eq!(uid(&later), uid(&first), "also after a restart");
    let body = json!({"forwho": "ann", "privileges": ["write_job"]});
    let ann = stage.ask(Method::POST, "/api/octoflow/v1/tokens", "admin", &body).await.json();
    let hers = send(&stage, keyed("k1", ann["token"].as_str().unwrap(), &workflow("a-"))).await;
    assert_ne!(uid(&hers), uid(&first), "everybody has their own keys");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_with_one_key_make_one_run() {
    let stage = Stage::new();
    let named = json!({
        "metadata": {"name": "only"},
        "spec": {"entrypoint": "main", "templates": [{"name": "main", "suspend": {}}]},
    });
    for body in [workflow("x-"), named] {
        let key = body["metadata"].to_string().replace('"', "");
        let heard = futures_util::future::join_all((0..16).map(|_| send(&stage, keyed(&key, "admin", &body)))).await;
        let uids: std::collections::HashSet<String> = heard
            .iter()
            .map(|heard| {
                assert_eq!(heard.status, 201, "{}", heard.text);
                heard.json()["metadata"]["uid"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(uids.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_face_that_makes_runs_knows_a_key_again() {
    let stage = Stage::new();
    let whole = workflow("face-");
    let faces = [
        ("/apis/argoproj.io/v1alpha1/namespaces/default/workflows", whole.clone()),
        ("/api/v1/workflows/default", json!({"workflow": whole})),
    ];
    for (path, body) in faces {
        let ask = || {
            let mut request = request(Method::POST, path, Some("admin"), Some(&body));
            request.headers_mut().insert("content-type", "application/json".parse().unwrap());
            request.headers_mut().insert("idempotency-key", "one".parse().unwrap());
            request
        };
        // The key was used for the other face's request, which is a different request.
        let other = stage.send(ask()).await;
        if path.starts_with("/api/v1") {
            assert_eq!(other.status, 409, "{path}: {}", other.text);
            continue;
        }
        let again = stage.send(ask()).await;
        assert_eq!((other.status, again.status), (201, 201), "{}", again.text);
        assert_eq!(other.json()["metadata"]["uid"], again.json()["metadata"]["uid"]);
    }
    let mut twice = Vec::new();
    for _ in 0..2 {
        let mut request =
            request(Method::POST, "/api/v1/workflows/default", Some("admin"), Some(&json!({"workflow": whole})));
        request.headers_mut().insert("idempotency-key", "two".parse().unwrap());
        let made = stage.send(request).await;
        assert_eq!(made.status, 200, "{}", made.text);
        twice.push(made.json()["metadata"]["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(twice[0], twice[1]);
    let resubmit = format!("/api/v1/workflows/default/{}/resubmit", twice[0]);
    let mut made = Vec::new();
    for _ in 0..2 {
        let mut request = request(Method::PUT, &resubmit, Some("admin"), Some(&json!({})));
        request.headers_mut().insert("idempotency-key", "three".parse().unwrap());
        let again = stage.send(request).await;
        assert_eq!(again.status, 200, "{}", again.text);
        made.push(again.json()["metadata"]["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(made[0], made[1]);
    assert_ne!(made[0], twice[0]);
}
