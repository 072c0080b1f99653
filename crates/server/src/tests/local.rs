//! Local users: the unix socket, the first token, and the default password over TCP.

use std::{
    fs,
    io::{Read, Write},
};

use axum::http::Method;
use serde_json::json;
use tokio::net::TcpListener;

use super::stage::{Reply, Stage, request};
use crate::{
    connect_local,
    gate::access::first,
    listen::{
        self, Endpoint,
        local::{LocalSocket, LocalUser},
    },
};

const WHOAMI: &str = "/api/octoflow/v1/whoami";
const ADMIN: &str = "/api/octoflow/v1/tokens/admin";

const OWNER: LocalUser = LocalUser { uid: 1000, is_owner: true };
const OTHER: LocalUser = LocalUser { uid: 1001, is_owner: false };

async fn by(stage: &Stage, user: LocalUser, token: Option<&str>, path: &str) -> Reply {
    let mut request = request(Method::GET, path, token, None);
    request.extensions_mut().insert(user);
    stage.send(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_password_is_for_the_owner_and_the_error_says_what_to_do() {
    let stage = Stage::ordinary(tempfile::tempdir().unwrap());
    let refused = stage.get(WHOAMI, "admin").await;
    assert_eq!(refused.status, 401);
    for way in ["--allow-default-password", "admin.token", "token set-admin", "kubeconfig"] {
        assert!(refused.text.contains(way), "{}", refused.text);
    }
    assert_eq!(by(&stage, OTHER, Some("admin"), WHOAMI).await.status, 401);
    assert_eq!(by(&stage, OWNER, Some("admin"), WHOAMI).await.json()["name"], "admin");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_needs_no_token_and_is_named_while_other_users_need_one() {
    let stage = Stage::ordinary(tempfile::tempdir().unwrap());
    assert_eq!(by(&stage, OTHER, None, WHOAMI).await.status, 401);
    let who = by(&stage, OWNER, None, WHOAMI).await.json();
    assert_eq!((&who["name"], &who["id"]), (&json!("uid 1000"), &json!("uid 1000")));
    let body = json!({"forwho": "ann", "privileges": ["read_job"]});
    let mut make = request(Method::POST, "/api/octoflow/v1/tokens", None, Some(&body));
    make.extensions_mut().insert(OWNER);
    let made = stage.send(make).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let token = made.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(by(&stage, OTHER, Some(&token), WHOAMI).await.json()["name"], "ann");
    assert_eq!(by(&stage, OWNER, Some(&token), WHOAMI).await.json()["name"], "ann", "a token that is sent counts");
    assert_eq!(by(&stage, OWNER, Some("wrong"), WHOAMI).await.status, 401);
    let audit = by(&stage, OWNER, None, "/api/octoflow/v1/audit").await.json();
    let entry = audit["items"].as_array().unwrap().iter().find(|entry| entry["status"] == 201).unwrap();
    assert_eq!((&entry["who"], &entry["peer"]), (&json!("uid 1000"), &json!("uid 1000")));
    let pretender = json!({"forwho": "uid 1000", "privileges": ["read_job"]});
    let refused = stage.ask(Method::POST, "/api/octoflow/v1/tokens", &token_of(&stage), &pretender).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
}

fn token_of(stage: &Stage) -> String {
    first::read(stage.dir.path()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_token_is_the_admins_until_a_password_is_chosen() {
    let stage = Stage::ordinary(tempfile::tempdir().unwrap());
    let token = token_of(&stage);
    assert_eq!(stage.get(WHOAMI, &token).await.json()["name"], "admin");
    let stage = Stage::ordinary(stage.close());
    assert_eq!(token_of(&stage), token, "a restart keeps it");
    let chosen = stage.ask(Method::PUT, ADMIN, &token, &json!({"token": "chosen-one"})).await;
    assert_eq!(chosen.status, 200, "{}", chosen.text);
    assert_eq!(first::read(stage.dir.path()), None);
    assert_eq!(stage.get(WHOAMI, &token).await.status, 401);
    let stage = Stage::ordinary(stage.close());
    assert_eq!(first::read(stage.dir.path()), None);
    for gone in [token.as_str(), "admin"] {
        assert_eq!(stage.get(WHOAMI, gone).await.status, 401);
        assert_eq!(by(&stage, OWNER, Some(gone), WHOAMI).await.status, 401);
    }
    assert_eq!(by(&stage, OWNER, None, WHOAMI).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_serves_its_owner_and_goes_with_its_server() {
    let stage = Stage::ordinary(tempfile::tempdir().unwrap());
    let local = LocalSocket::bind(stage.dir.path()).unwrap();
    let path = local.path().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint =
        Endpoint { listener, local: Some(local), tls: None, router: stage.router.clone(), app: stage.app.clone() };
    let closing = stage.app.closing.clone();
    let task = tokio::spawn(listen::accept(endpoint, closing.clone()));
    let asked = path.clone();
    let text = tokio::task::spawn_blocking(move || {
        let mut stream = connect_local(&asked).unwrap();
        let head = format!("GET {WHOAMI} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    });
    let text = text.await.unwrap();
    let own = fs::metadata(&path).map(|about| std::os::unix::fs::MetadataExt::uid(&about)).unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.contains(&format!("uid {own}")), "{text}");
    closing.cancel();
    task.await.unwrap();
    assert!(!path.exists(), "the socket goes with its server");
}
