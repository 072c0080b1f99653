//! Every route of the table with every kind of caller. The cases come from the table, so new routes are covered.

use axum::http::Method;
use serde_json::json;

use super::stage::{Stage, request};
use crate::{
    gate::access::Privileges,
    route::{self, Need},
};

const EACH: [&str; 6] = ["read_job", "write_job", "read_feature", "write_feature", "read_token", "write_token"];

/// Fills a pattern with names that do not exist.
fn filled(pattern: &str) -> String {
    let parts = pattern.split('/').map(|part| if part.starts_with('{') { "nobody" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_lets_in_whom_it_should_and_nobody_else() {
    let stage = Stage::new();
    let mut callers = vec![("admin", Privileges::ALL, "admin".to_owned())];
    for word in EACH {
        let body = json!({"forwho": word, "privileges": [word]});
        let made = stage.ask(Method::POST, "/api/octoflow/v1/tokens", "admin", &body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let token = made.json()["token"].as_str().unwrap().to_owned();
        callers.push((word, Privileges::read([word]).unwrap(), token));
    }
    let mut tried = 0;
    for route in route::all() {
        let path = filled(&route.path);
        let what = format!("{} {}", route.method, route.path);
        for token in [None, Some("wrong")] {
            let answer = stage.answer(request(route.method.clone(), &path, token, None)).await;
            let open = route.need == Need::Nothing;
            assert_eq!(answer.status() == 401, !open, "{what} with {token:?}: {}", answer.status());
            assert_eq!(answer.headers().contains_key("www-authenticate"), !open, "{what}");
        }
        for (who, privileges, token) in &callers {
            // The admin may do everything; an unusable body keeps these routes from having an effect.
            let answer = stage.answer(request(route.method.clone(), &path, Some(token), None)).await;
            let allowed = route.need.missing(*privileges).is_none();
            let status = answer.status().as_u16();
            assert_ne!(status, 401, "{what} as {who}");
            assert_eq!(status != 403, allowed, "{what} as {who}: {status}");
            tried += 1;
        }
    }
    assert!(tried >= 7 * 10, "only {tried} cases were tried");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_in_the_table_is_not_there_and_says_so_in_the_words_of_its_face() {
    let stage = Stage::new();
    let kube = stage.get("/apis/nothing/here", "admin").await;
    assert_eq!((kube.status, kube.json()["kind"].as_str()), (404, Some("Status")));
    let argo = stage.get("/api/v1/workflow-nothing", "admin").await;
    assert_eq!((argo.status, argo.json()["code"].as_u64()), (404, Some(5)));
    let own = stage.ask(Method::PATCH, "/livez", "admin", &json!({})).await;
    assert_eq!((own.status, own.json()["error"]["code"].as_u64()), (405, Some(405)));
}

#[test]
fn no_route_is_in_the_table_twice_and_writing_needs_more_than_a_token() {
    let mut seen = std::collections::HashSet::new();
    for route in route::all() {
        let shape: Vec<String> = route
            .path
            .split('/')
            .map(|part| if part.starts_with('{') { "{}".to_owned() } else { part.to_owned() })
            .collect();
        assert!(seen.insert((route.method.clone(), shape)), "{} {} stands twice", route.method, route.path);
        if [Method::PUT, Method::PATCH, Method::DELETE].contains(&route.method) {
            assert!(!matches!(route.need, Need::Nothing), "{} {} is open", route.method, route.path);
        }
    }
}
