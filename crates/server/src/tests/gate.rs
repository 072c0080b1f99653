//! The middleware of every request: limits, timeouts, panics, streams, and the audit log.

use std::{convert::Infallible, future::pending, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{Method, Response},
};
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use serde_json::json;

use super::stage::{Reply, Stage, request};
use crate::{
    Limits,
    answer::{self, Answer, fault::Fault},
    call::{Call, Params},
    gate::{self, access::AdminSource},
    route::{Face, Need, Route, Table},
};

/// A route that is in no table.
fn route<F>(face: Face, need: Need, handler: impl Fn(Call) -> F + Send + Sync + 'static) -> Route
where
    F: Future<Output = Result<Answer, Fault>> + Send + 'static,
{
    let mut table = Table::new(face);
    table.add(Method::POST, "/tried", need, handler);
    table.routes.remove(0)
}

async fn pass(stage: &Stage, route: &Route, request: Request) -> Answer {
    gate::handle(stage.app.clone(), route.clone(), Params::default(), request).await
}

fn post(token: &str) -> Request {
    request(Method::POST, "/tried", Some(token), None)
}

fn endless() -> Answer {
    let first = stream::once(async { Ok::<_, Infallible>(Bytes::from_static(b"x")) });
    Response::new(Body::from_stream(first.chain(stream::pending())))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_panics_is_answered_in_the_words_of_its_face_and_the_server_goes_on() {
    let stage = Stage::new();
    for (face, field) in [(Face::Kube, "/reason"), (Face::Argo, "/code"), (Face::Own, "/error/reason")] {
        let broken = route(face, Need::Token, |_| async { panic!("on purpose") });
        let heard = Reply::of(pass(&stage, &broken, post("admin")).await).await;
        assert_eq!(heard.status, 500);
        assert!(heard.json().pointer(field).is_some(), "{}", heard.text);
        assert!(heard.text.contains("bug of ours"), "{}", heard.text);
    }
    let deep = route(Face::Own, Need::Token, |call: Call| async move {
        call.work(|_| -> Result<(), Fault> { panic!("on another thread") }).await?;
        Ok(answer::text("never"))
    });
    assert_eq!(pass(&stage, &deep, post("admin")).await.status(), 500);
    assert_eq!(stage.get("/readyz", "admin").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_takes_too_long_is_given_up() {
    let limits = Limits { request_within: Duration::from_millis(50), ..Limits::default() };
    let stage = Stage::with(limits, AdminSource::Stored);
    let slow = route(Face::Kube, Need::Token, |_| pending());
    let heard = Reply::of(pass(&stage, &slow, post("admin")).await).await;
    assert_eq!((heard.status, heard.json()["reason"].as_str()), (504, Some("Timeout")));
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_headers_and_paths_have_a_longest() {
    let stage = Stage::new();
    let reads = route(Face::Kube, Need::Token, |mut call: Call| async move {
        Ok(answer::text(call.bytes().await?.len().to_string()))
    });
    let body = |bytes: usize| {
        let (mut head, _) = post("admin").into_parts();
        head.headers.remove("content-length");
        Request::from_parts(head, Body::from(vec![b' '; bytes]))
    };
    assert_eq!(pass(&stage, &reads, body(1 << 20)).await.status(), 200);
    assert_eq!(pass(&stage, &reads, body((1 << 20) + 1)).await.status(), 413);
    let mut announced = post("admin");
    announced.headers_mut().insert("content-length", "99999999".parse().unwrap());
    assert_eq!(pass(&stage, &reads, announced).await.status(), 413, "what is announced need not be sent");
    let mut long = post("admin");
    long.headers_mut().insert("x-long", "y".repeat(70 * 1024).parse().unwrap());
    let heard = Reply::of(pass(&stage, &reads, long).await).await;
    assert_eq!((heard.status, heard.json()["kind"].as_str()), (431, Some("Status")));
    let far = format!("/apis/{}", "z".repeat(20 * 1024));
    assert_eq!(stage.get(&far, "admin").await.status, 414);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_stops_coming_is_given_up() {
    let limits = Limits { stalled_after: Duration::from_millis(50), ..Limits::default() };
    let stage = Stage::with(limits, AdminSource::Stored);
    let reads = route(Face::Own, Need::Token, |mut call: Call| async move {
        Ok(answer::text(call.bytes().await?.len().to_string()))
    });
    let (head, _) = post("admin").into_parts();
    let stuck = Request::from_parts(head, endless().into_body());
    assert_eq!(pass(&stage, &reads, stuck).await.status(), 408);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_watches_are_open_at_once_for_one_and_for_all() {
    let limits = Limits { streams: 3, streams_per_token: 2, ..Limits::default() };
    let stage = Stage::with(limits, AdminSource::Stored);
    let body = json!({"forwho": "ann", "privileges": ["read_job"]});
    let made = stage.ask(Method::POST, "/api/octoflow/v1/tokens", "admin", &body).await.json();
    let ann = made["token"].as_str().unwrap();
    let watch = route(Face::Kube, Need::Token, |_| async { Ok(endless()) });
    let first = pass(&stage, &watch, post("admin")).await;
    let second = pass(&stage, &watch, post("admin")).await;
    let third = Reply::of(pass(&stage, &watch, post("admin")).await).await;
    assert_eq!((first.status().as_u16(), second.status().as_u16(), third.status), (200, 200, 429));
    assert!(third.headers.contains_key("retry-after"));
    let other = pass(&stage, &watch, post(ann)).await;
    assert_eq!(other.status(), 200, "others are not affected");
    assert_eq!(pass(&stage, &watch, post(ann)).await.status(), 429, "all together are too many");
    drop((first, second));
    assert_eq!(stage.app.streams.open(), 1);
    assert_eq!(pass(&stage, &watch, post("admin")).await.status(), 200);
    drop(other);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_panics_ends_alone() {
    let stage = Stage::new();
    let broken = route(Face::Kube, Need::Token, |_| async {
        let items = stream::iter(0..2).map(|at| {
            assert!(at == 0, "on purpose");
            Ok::<_, Infallible>(Bytes::from_static(b"x"))
        });
        Ok(Response::new(Body::from_stream(items)))
    });
    let mut body = pass(&stage, &broken, post("admin")).await.into_body();
    assert!(body.frame().await.unwrap().is_ok());
    assert!(body.frame().await.unwrap().is_err());
    assert!(body.frame().await.is_none());
    drop(body);
    assert_eq!(stage.app.streams.open(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_closing_new_requests_are_sent_away() {
    let stage = Stage::new();
    stage.app.closing.cancel();
    let heard = stage.get("/api/octoflow/v1/whoami", "admin").await;
    assert_eq!(heard.status, 503);
    assert!(heard.headers.contains_key("retry-after"));
    assert_eq!(stage.get("/livez", "admin").await.status, 200);
    assert_eq!(stage.get("/readyz", "admin").await.status, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_the_number_of_its_request() {
    let stage = Stage::new();
    let drawn = stage.get("/livez", "admin").await;
    assert!(drawn.headers["x-request-id"].to_str().unwrap().starts_with("test-"));
    let mut own = request(Method::GET, "/livez", None, None);
    own.headers_mut().insert("x-request-id", "abc-1".parse().unwrap());
    assert_eq!(stage.send(own).await.headers["x-request-id"], "abc-1");
    let mut wild = request(Method::GET, "/livez", None, None);
    wild.headers_mut().insert("x-request-id", "a b;c".parse().unwrap());
    assert_ne!(stage.send(wild).await.headers["x-request-id"], "a b;c");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_says_who_did_what_and_never_how_they_got_in() {
    let stage = Stage::new();
    let secret = "a-secret-nobody-may-read";
    let made = route(Face::Kube, Need::WriteJob, |_| async {
        Ok(answer::json(&json!({"kind": "Workflow", "metadata": {"namespace": "n", "name": "w"}})))
    });
    pass(
        &stage,
        &made,
        request(Method::POST, "/tried?dryRun=All&q=hidden", Some("admin"), Some(&json!({"x": secret}))),
    )
    .await;
    stage.get("/api/octoflow/v1/whoami", secret).await;
    stage.get("/api/octoflow/v1/whoami", "admin").await;
    let first = stage.get("/api/octoflow/v1/audit?limit=1", "admin").await.json();
    let denied = &first["items"][0];
    assert_eq!((&denied["status"], &denied["who"]), (&json!(401), &json!(null)));
    let page = format!("/api/octoflow/v1/audit?limit=1&continue={}", first["continue"].as_str().unwrap());
    let second = stage.get(&page, "admin").await.json();
    let entry = &second["items"][0];
    assert_eq!(entry["object"], "Workflow/n/w");
    assert_eq!((&entry["who"], &entry["dryRun"], &entry["path"]), (&json!("admin"), &json!(true), &json!("/tried")));
    assert_eq!(second["continue"], json!(null), "reading is not written down");
    let file = std::fs::read_to_string(stage.dir.path().join("audit/audit.jsonl")).unwrap();
    assert!(!file.contains(secret) && !file.contains("hidden"), "{file}");
    assert_eq!(stage.get("/api/octoflow/v1/audit?limit=x", "admin").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_what_goes_on() {
    let stage = Stage::new();
    stage.get("/livez", "admin").await;
    let heard = stage.get("/metrics", "admin").await;
    assert_eq!(heard.status, 200);
    for line in [
        "argo_workflows_gauge{phase=\"Running\"} 0",
        "octoflow_http_requests_total{face=\"own\",method=\"GET\",code=\"200\"} 1",
        "octoflow_slots_free 4",
        "octoflow_runs_open 0",
        "octoflow_store_commit_seconds_bucket{le=\"+Inf\"}",
        "argo_workflows_operation_duration_seconds_count",
    ] {
        assert!(heard.text.contains(line), "{line} is not in\n{}", heard.text);
    }
    let health = stage.get("/api/octoflow/v1/health", "admin").await.json();
    assert!(health["diskFreeBytes"].as_u64().unwrap() > 0);
    assert_eq!(health["caller"]["name"], "admin");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_watchers_are_possible_when_allowed_and_others_are_not_affected() {
    const MANY: usize = 10_000;
    let limits = Limits { streams: MANY, streams_per_token: MANY, ..Limits::default() };
    let stage = Stage::with(limits, AdminSource::Stored);
    let path = "/api/v1/namespaces/default/configmaps?watch=true";
    let mut open = Vec::with_capacity(MANY);
    for _ in 0..MANY {
        let answer = stage.answer(request(Method::GET, path, Some("admin"), None)).await;
        assert_eq!(answer.status(), 200);
        open.push(answer);
    }
    assert_eq!(stage.app.streams.open(), MANY);
    assert_eq!(stage.get(path, "admin").await.status, 429);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}});
    let made = stage.ask(Method::POST, "/api/v1/namespaces/default/configmaps", "admin", &map).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let mut last = open.pop().unwrap().into_body();
    let first = last.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(String::from_utf8_lossy(&first).contains("\"ADDED\""), "{first:?}");
    drop((last, open));
    assert_eq!(stage.app.streams.open(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_runs_are_restored_it_lives_and_answers_nothing_else() {
    let stage = Stage::starting(tempfile::tempdir().unwrap());
    assert_eq!(stage.get("/livez", "admin").await.status, 200);
    for path in ["/readyz", "/api/v1/workflows/default", "/api/octoflow/v1/health", "/metrics"] {
        let heard = stage.get(path, "admin").await;
        assert_eq!(heard.status, 503, "{path}");
        assert_eq!(heard.headers["retry-after"], "1", "{path}");
        assert!(heard.text.contains("starting: 0 of 0 runs read"), "{path}: {}", heard.text);
    }
    let registry = stage.app.registry.clone();
    tokio::task::spawn_blocking(move || registry.restore_all()).await.unwrap().unwrap();
    for path in ["/readyz", "/api/v1/workflows/default"] {
        assert_eq!(stage.get(path, "admin").await.status, 200, "{path}");
    }
}
