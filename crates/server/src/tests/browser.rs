//! Requests that browsers send for pages of other sites, header by header, none of which has any effect; and requests
//! for pages of ours.

use axum::{body::Body, extract::Request, http::Method};
use serde_json::json;

use super::stage::{HOST, Reply, Stage, request};
use crate::route::{self, Face};

const RUNS: &str = "/api/v1/workflows/default";
const OWN: &str = "http://127.0.0.1:2746";
const COOKIE: (&str, &str) = ("cookie", "authorization=Bearer admin");

fn workflow() -> String {
    let spec = json!({"entrypoint": "a", "templates": [{"name": "a", "suspend": {}}]});
    let meta = json!({"generateName": "w-"});
    json!({"workflow": {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": meta, "spec": spec}})
        .to_string()
}

fn sent(method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Request {
    let mut request = request(method, path, None, None);
    for (name, value) in headers {
        request.headers_mut().append(name.parse::<axum::http::HeaderName>().unwrap(), value.parse().unwrap());
    }
    request.map(|_| if body.is_empty() { Body::empty() } else { Body::from(body.to_owned()) })
}

async fn runs(stage: &Stage) -> usize {
    let listed = stage.get(RUNS, "admin").await.json();
    listed["items"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_to_our_names_only() {
    let stage = Stage::new();
    for route in route::all() {
        let path = route.path.replace(['{', '}', '*'], "");
        let mut rebound = request(route.method.clone(), &path, Some("admin"), None);
        rebound.headers_mut().insert("host", "evil.example:2746".parse().unwrap());
        let heard = Reply::of(stage.answer(rebound).await).await;
        assert_eq!(heard.status, 421, "{} {}: {}", route.method, route.path, heard.text);
        assert!(heard.text.contains("--public-name"), "{}", heard.text);
        let field = match route.face {
            Face::Kube => "/reason",
            Face::Argo => "/code",
            Face::Own => "/error/reason",
            Face::Submission => "/code",
        };
        assert!(heard.json().pointer(field).is_some(), "{}: {}", route.path, heard.text);
    }
    let mut nowhere = request(Method::GET, "/nowhere", Some("admin"), None);
    nowhere.headers_mut().insert("host", "evil.example".parse().unwrap());
    assert_eq!(stage.send(nowhere).await.status, 421);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_posted_by_a_page_of_another_site_never_runs() {
    let stage = Stage::new();
    let text = ("content-type", "text/plain;charset=UTF-8");
    let form = ("content-type", "application/x-www-form-urlencoded");
    let parts = ("content-type", "multipart/form-data; boundary=x");
    let json = ("content-type", "application/json");
    // Another port of the same host is the same site to a browser, and a foreign origin to us.
    let port = [("origin", "http://127.0.0.1:9999"), ("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")];
    let site = [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "cors")];
    let opaque = [("origin", "null"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    // A browser that does not send the site; one that sends only the site.
    let (old, silent) = ([("origin", "http://localhost:2746")], [("sec-fetch-site", "same-site")]);
    let two = [("origin", OWN), ("origin", "https://evil.example")];
    for from in [&port[..], &site, &opaque, &old, &silent, &two] {
        for kind in [Some(text), Some(form), Some(parts), Some(json), None] {
            // The cookie or the password that the browser keeps for us is sent too.
            for credential in [COOKIE, ("authorization", "Basic OmFkbWlu"), ("token", "admin")] {
                let headers: Vec<_> = from.iter().copied().chain(kind).chain([credential]).collect();
                let heard = stage.send(sent(Method::POST, RUNS, &headers, &workflow())).await;
                assert_eq!(heard.status, 403, "{headers:?}: {}", heard.text);
                let headers: Vec<_> = from.iter().copied().chain([credential]).collect();
                for (method, path) in [(Method::GET, RUNS), (Method::DELETE, "/api/v1/workflows/default/w")] {
                    assert_eq!(stage.send(sent(method, path, &headers, "")).await.status, 403, "{headers:?}");
                }
            }
        }
    }
    // If a browser says nothing at all about itself, these are the types a page can send without preflight.
    for kind in [text, form, parts] {
        let heard = stage.send(sent(Method::POST, RUNS, &[("token", "admin"), kind], &workflow())).await;
        assert_eq!(heard.status, 415, "{kind:?}");
        assert!(heard.text.contains("Content-Type: application/json"), "{}", heard.text);
    }
    assert_eq!(runs(&stage).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_site_is_never_allowed_to_ask_or_to_read() {
    let stage = Stage::new();
    let from = [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")];
    let asks = [("access-control-request-method", "POST"), ("access-control-request-headers", "token")];
    let preflight: Vec<_> = from.iter().chain(&asks).copied().collect();
    let heard = stage.send(sent(Method::OPTIONS, RUNS, &preflight, "")).await;
    assert!(heard.status >= 400, "{}", heard.status);
    for (path, status) in [("/livez", 200), ("/version", 200), (RUNS, 403), ("/metrics", 403), ("/nowhere", 403)] {
        let heard = stage.send(sent(Method::GET, path, &from, "")).await;
        assert_eq!(heard.status, status, "{path}");
        assert!(!heard.headers.keys().any(|name| name.as_str().starts_with("access-control")), "{:?}", heard.headers);
        assert_eq!(heard.headers["cross-origin-resource-policy"], "same-origin");
        assert_eq!(heard.headers["x-content-type-options"], "nosniff");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_ours_works_with_its_cookie_and_a_cookie_alone_changes_nothing() {
    let stage = Stage::new();
    let json = ("content-type", "application/json");
    let post = async |headers: &[(&str, &str)]| {
        let heard = stage.send(sent(Method::POST, RUNS, headers, &workflow())).await;
        (heard.status, heard.text)
    };
    for own in [("origin", OWN), ("sec-fetch-site", "same-origin")] {
        assert_eq!(post(&[COOKIE, json, own]).await.0, 200);
    }
    let (status, text) = post(&[COOKIE, json]).await;
    assert_eq!(status, 403);
    assert!(text.contains("Authorization: Bearer"), "{text}");
    assert_eq!(post(&[COOKIE, json, ("sec-fetch-site", "none")]).await.0, 403, "nobody types a POST");
    assert_eq!(runs(&stage).await, 2);
    // A read by a person who typed the address or by an old browser.
    for said in [None, Some(("sec-fetch-site", "none")), Some(("sec-fetch-site", "same-origin"))] {
        let headers: Vec<_> = [COOKIE].into_iter().chain(said).collect();
        assert_eq!(stage.send(sent(Method::GET, RUNS, &headers, "")).await.status, 200);
    }
    // A page of ours that sends an untyped body is refused.
    assert_eq!(post(&[COOKIE, ("origin", OWN)]).await.0, 415);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_are_no_browsers_need_say_nothing_about_themselves() {
    let stage = Stage::new();
    for credential in [("token", "admin"), ("authorization", "Basic OmFkbWlu"), ("authorization", "Bearer admin")] {
        for kind in [
            None,
            Some(("content-type", "application/json")),
            Some(("content-type", "application/json; charset=utf-8")),
        ] {
            let headers: Vec<_> = [credential].into_iter().chain(kind).collect();
            let heard = stage.send(sent(Method::POST, RUNS, &headers, &workflow())).await;
            assert_eq!(heard.status, 200, "{headers:?}: {}", heard.text);
        }
    }
    assert!(HOST.starts_with("127."));
}
