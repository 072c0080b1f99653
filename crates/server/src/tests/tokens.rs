//! Tokens and the admin's password from creation to end (PL-01 to PL-06 of the scenarios).

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::http::Method;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::json;

use super::stage::{Reply, Stage, request, request_from};
use crate::{
    Limits,
    gate::access::{AdminSource, digest},
};

const TOKENS: &str = "/api/octoflow/v1/tokens";
const WHOAMI: &str = "/api/octoflow/v1/whoami";

async fn made(stage: &Stage, by: &str, who: &str, privileges: &[&str]) -> Reply {
    stage.ask(Method::POST, TOKENS, by, &json!({"forwho": who, "privileges": privileges, "note": "n"})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn pl_01_and_02_without_a_valid_token_nobody_gets_in() {
    let stage = Stage::new();
    let none = stage.send(request(Method::GET, WHOAMI, None, None)).await;
    assert_eq!(none.status, 401);
    assert!(none.headers.contains_key("www-authenticate"));
    assert_eq!(stage.get(WHOAMI, "no-such-token").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn pl_03_and_04_a_token_may_do_what_it_was_made_for_and_is_shown_once() {
    let stage = Stage::new();
    let first = made(&stage, "admin", "ann", &["read_token"]).await.json();
    let second = made(&stage, "admin", "ann", &["read_token"]).await.json();
    let token = first["token"].as_str().unwrap();
    assert_ne!(token, second["token"].as_str().unwrap());
    assert_eq!(token.len(), 24);
    let who = stage.get(WHOAMI, token).await.json();
    assert_eq!((&who["name"], &who["privileges"]), (&json!("ann"), &json!(["read_token"])));
    let list = stage.get(TOKENS, token).await;
    assert_eq!(list.status, 200);
    assert!(!list.text.contains(token), "the token itself is never told again");
    assert_eq!(made(&stage, token, "bob", &["read_token"]).await.status, 403);
    let dir = stage.close();
    for entry in std::fs::read_dir(dir.path()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).unwrap();
        let found = bytes.windows(token.len()).any(|window| window == token.as_bytes());
        assert!(!found, "the token stands in {}", entry.path().display());
    }
    let stage = Stage::again(dir, Limits::default(), AdminSource::Stored);
    assert_eq!(stage.get(WHOAMI, token).await.status, 200, "it outlives a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn pl_05_a_new_admin_password_counts_at_once_and_after_a_restart() {
    let stage = Stage::new();
    let path = format!("{TOKENS}/admin");
    assert!(stage.app.access.credentials.has_default());
    assert_eq!(stage.ask(Method::PUT, &path, "admin", &json!({"token": "admin"})).await.status, 400);
    assert_eq!(stage.ask(Method::PUT, &path, "admin", &json!({"token": ""})).await.status, 400);
    let chosen = stage.ask(Method::PUT, &path, "admin", &json!({"token": "x1"})).await;
    assert_eq!((chosen.status, chosen.json()["warnings"].as_array().unwrap().len()), (200, 1), "{}", chosen.text);
    assert_eq!(stage.get(WHOAMI, "admin").await.status, 401);
    assert_eq!(stage.get(TOKENS, "x1").await.status, 200);
    let stage = Stage::again(stage.close(), Limits::default(), AdminSource::Stored);
    assert!(!stage.app.access.credentials.has_default());
    assert_eq!(stage.get(WHOAMI, "admin").await.status, 401);
    for _ in 0..2 {
        assert_eq!(stage.get(WHOAMI, "x1").await.json()["privileges"].as_array().unwrap().len(), 6);
    }
    assert_eq!(stage.ask(Method::DELETE, &path, "x1", &json!({})).await.status, 409, "there is always an admin");
}

#[tokio::test(flavor = "multi_thread")]
async fn pl_06_a_deleted_token_is_refused_on_the_very_next_request() {
    let stage = Stage::new();
    let one = made(&stage, "admin", "ann", &["read_job"]).await.json();
    let token = one["token"].as_str().unwrap();
    assert_eq!(stage.get(WHOAMI, token).await.status, 200);
    assert_eq!(stage.ask(Method::DELETE, &format!("{TOKENS}/ann"), "admin", &json!({})).await.status, 200);
    assert_eq!(stage.get(WHOAMI, token).await.status, 401);
    assert_eq!(stage.ask(Method::DELETE, &format!("{TOKENS}/ann"), "admin", &json!({})).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_has_a_token_gets_in_while_another_one_is_being_written() {
    let stage = Arc::new(Stage::new());
    let one = made(&stage, "admin", "ann", &["read_job"]).await.json();
    let token = one["token"].as_str().unwrap();
    // A disk that takes its time: the writer's thread waits here after the next commit.
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let stalled = Arc::new(AtomicBool::new(false));
    let told = stalled.clone();
    stage.app.registry.on_change(move |_| {
        told.store(true, Ordering::Release);
        let _ = wait.lock().unwrap().recv();
    });
    let map = json!({"metadata": {"name": "m"}, "data": {"a": "b"}});
    let (first, second) = (stage.clone(), stage.clone());
    let first = tokio::spawn(async move {
        first.ask(Method::POST, "/api/v1/namespaces/default/configmaps", "admin", &map).await.status
    });
    while !stalled.load(Ordering::Acquire) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let second = tokio::spawn(async move { made(&second, "admin", "bob", &["read_job"]).await.status });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!second.is_finished(), "the disk takes its time");
    let asked = tokio::time::timeout(Duration::from_secs(10), stage.get(WHOAMI, token)).await;
    drop(go);
    assert_eq!(asked.expect("nobody waits for the disk to be let in").status, 200);
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (201, 201));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gives_or_takes_more_than_they_have() {
    let stage = Stage::new();
    let limited = made(&stage, "admin", "limited", &["write_token", "read_job"]).await.json();
    let limited = limited["token"].as_str().unwrap();
    assert_eq!(made(&stage, limited, "friend", &["read_job"]).await.status, 201);
    assert_eq!(made(&stage, limited, "friend2", &["write_job"]).await.status, 403);
    assert_eq!(made(&stage, limited, "friend3", &["admin"]).await.status, 403);
    made(&stage, "admin", "boss", &["write_job"]).await;
    assert_eq!(stage.ask(Method::DELETE, &format!("{TOKENS}/boss"), limited, &json!({})).await.status, 403);
    let wider = json!({"privileges": ["write_job"]});
    assert_eq!(stage.ask(Method::PUT, &format!("{TOKENS}/friend"), limited, &wider).await.status, 403);
    assert_eq!(stage.ask(Method::PUT, &format!("{TOKENS}/friend"), "admin", &wider).await.status, 200);
    let six = made(&stage, "admin", "deputy", &["admin"]).await.json();
    let audit = stage.get("/api/octoflow/v1/audit", six["token"].as_str().unwrap()).await;
    assert_eq!(audit.status, 200, "whoever has all six is an admin");
}

#[tokio::test(flavor = "multi_thread")]
async fn wishes_that_make_no_sense_are_refused_and_say_why() {
    let stage = Stage::new();
    let cases = [
        (json!({"forwho": "a", "privileges": []}), "at least one"),
        (json!({"forwho": "a", "privileges": ["fly"]}), "`fly`"),
        (json!({"forwho": "", "privileges": ["read_job"]}), "forwho"),
        (json!({"forwho": "admin", "privileges": ["read_job"]}), "one admin"),
        (json!({"privileges": ["read_job"]}), "forwho"),
        (json!({"forwho": "a", "privileges": ["read_job"], "expires": "tomorrow"}), "tomorrow"),
        (json!({"forwho": "a", "privileges": ["read_job"], "expires": "2001-01-01T00:00:00Z"}), "past"),
        (json!({"forwho": "a", "privileges": ["read_job"], "colour": "red"}), "colour"),
        (json!([1]), "expected"),
    ];
    for (body, why) in cases {
        let heard = stage.ask(Method::POST, TOKENS, "admin", &body).await;
        assert_eq!(heard.status, 400, "{body}");
        assert!(heard.text.contains(why), "{body}: {}", heard.text);
    }
    assert!(stage.get(TOKENS, "admin").await.json()["items"].as_array().unwrap().is_empty(), "nothing was stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_lets_nobody_in() {
    let stage = Stage::new();
    let body = json!({"forwho": "a", "privileges": ["read_job"], "expiresInSeconds": 1});
    let made = stage.ask(Method::POST, TOKENS, "admin", &body).await.json();
    let token = made["token"].as_str().unwrap();
    // The clock is the machine's, so the test just waits until the token expires.
    while stage.get(WHOAMI, token).await.status == 200 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let heard = stage.get(WHOAMI, token).await;
    assert_eq!(heard.status, 401);
    assert!(heard.text.contains("expired"), "{}", heard.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_guesses_is_slowed_down_and_those_who_know_are_not() {
    let stage = Stage::new();
    let ann = made(&stage, "admin", "ann", &["read_job"]).await.json();
    let peer = IpAddr::from([192, 0, 2, 77]);
    let guess = |token: String| {
        stage.send(request_from(peer, Method::GET, WHOAMI, Some(Box::leak(token.into_boxed_str())), None))
    };
    for number in 0..10 {
        assert_eq!(guess(format!("guess-{number}")).await.status, 401);
    }
    let held = guess("guess-more".to_owned()).await;
    assert_eq!(held.status, 429);
    assert!(held.headers["retry-after"].to_str().unwrap().parse::<u32>().unwrap() > 0);
    let known = guess(ann["token"].as_str().unwrap().to_owned()).await;
    assert_eq!(known.status, 200, "a valid token from the same address is let in");
    assert_eq!(stage.get(WHOAMI, "guess-elsewhere").await.status, 401, "other addresses are not held");
    assert_eq!(stage.send(request_from(peer, Method::GET, WHOAMI, None, None)).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_file_only_what_it_says_lets_the_admin_in() {
    let stage = Stage::with(Limits::default(), AdminSource::File(digest(b"from-the-file")));
    assert!(!stage.app.access.credentials.has_default());
    assert_eq!(stage.get(WHOAMI, "admin").await.status, 401);
    assert_eq!(stage.get(WHOAMI, "from-the-file").await.json()["name"], "admin");
    let change =
        stage.ask(Method::PUT, &format!("{TOKENS}/admin"), "from-the-file", &json!({"token": "another-one"})).await;
    assert_eq!(change.status, 409, "{}", change.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_does_not_lock_the_right_password_out() {
    let stage = Stage::new();
    let chosen =
        stage.ask(Method::PUT, "/api/octoflow/v1/tokens/admin", "admin", &json!({"token": "the-right-one"})).await;
    assert_eq!(chosen.status, 200, "{}", chosen.text);
    // After a restart no match is cached, so it is verified like every guess.
    let stage = Stage::again(stage.close(), Limits::default(), AdminSource::Stored);
    let (neighbour, other) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([192, 0, 2, 9]));
    let ask = |peer: IpAddr, token: &str| stage.send(request_from(peer, Method::GET, WHOAMI, Some(token), None));
    for _ in 0..20 {
        assert_eq!(ask(neighbour, "guessed-again").await.status, 401, "what was wrong once costs nothing again");
    }
    // A queue of guesses, and the right password from another client.
    let guesses: Vec<_> = (0..200)
        .map(|number| {
            let request = request_from(neighbour, Method::GET, WHOAMI, Some(&format!("guess-{number}")), None);
            let router = stage.router.clone();
            tokio::spawn(async move { TowerToHyperService::new(router).call(request).await.unwrap().status().as_u16() })
        })
        .collect();
    let right = ask(other, "the-right-one").await;
    assert_eq!(right.status, 200, "{}", right.text);
    assert!(guesses.iter().any(|guess| !guess.is_finished()), "it did not wait for all of them");
    // From then on it is never delayed, wherever it comes from.
    assert_eq!(ask(neighbour, "the-right-one").await.status, 200);
    guesses.iter().for_each(tokio::task::JoinHandle::abort);
    // An address with many failures is admitted as well.
    let stage = Stage::again(stage.close(), Limits::default(), AdminSource::Stored);
    let ask = |peer: IpAddr, token: &str| stage.send(request_from(peer, Method::GET, WHOAMI, Some(token), None));
    for number in 0..12 {
        assert_eq!(ask(neighbour, &format!("wrong-{number}")).await.status, 401);
    }
    assert_eq!(ask(neighbour, "the-right-one").await.status, 200);
}
