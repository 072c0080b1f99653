//! Every route of the table with a token for `team-a` against everything of `team-b`: nothing of it is read or changed,
//! whatever path, query and body contain. The cases come from the table, so new routes are covered.

use std::time::Duration;

use axum::http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::{
    samples::{path, samples},
    stage::{Stage, request},
};
use crate::{
    Limits,
    gate::{access::AdminSource, area::Area},
    route::{self, Need},
};

const TOKENS: &str = "/api/octoflow/v1/tokens";
const WHOAMI: &str = "/api/octoflow/v1/whoami";

/// Text in everything that team-b has.
const CANARY: &str = "canary-of-team-b";

/// Time to read from a stream; existing data comes at once.
const LISTEN: Duration = Duration::from_millis(100);

async fn token(stage: &Stage, by: &str, who: &str, namespaces: &[&str]) -> String {
    let all = ["read_job", "write_job", "read_feature", "write_feature", "read_token", "write_token"];
    let body = json!({"forwho": who, "privileges": all, "namespaces": namespaces});
    let made = stage.ask(Method::POST, TOKENS, by, &body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    made.json()["token"].as_str().unwrap().to_owned()
}

/// Creates an object of every kind in this namespace. Returns the workflow's uid.
async fn furnish(stage: &Stage, namespace: &str, mark: &str) -> String {
    let metadata =
        json!({"name": "thing", "namespace": namespace, "labels": {"mark": mark}, "annotations": {"a": mark}});
    let mut uid = String::new();
    for (kind, object) in samples(&metadata, mark).into_iter().filter(|(kind, _)| kind.namespaced) {
        let is_id = kind.dialect().is_some_and(|dialect| dialect.names_are_ids);
        if is_id && namespace != "team-b" {
            // There is one of that name, and others try to reach it.
            continue;
        }
        let path = path(kind, namespace);
        let made = stage.ask(Method::POST, &path, "admin", &object).await;
        assert_eq!(made.status, 201, "{path}: {}", made.text);
        if kind.name == "Workflow" {
            made.json()["metadata"]["uid"].as_str().unwrap().clone_into(&mut uid);
        }
    }
    uid
}

/// Returns what users gave every object of a namespace, as the admin sees it. Progress is not an effect of a request.
async fn kept(stage: &Stage, namespace: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for (kind, _) in samples(&json!({}), "").into_iter().filter(|(kind, _)| kind.namespaced) {
        let path = path(kind, namespace);
        let list = stage.get(&path, "admin").await;
        assert_eq!(list.status, 200, "{path}: {}", list.text);
        let items = list.json()["items"].as_array().cloned().unwrap_or_default();
        // Runs bring along some that are named after them.
        all.extend(items.iter().filter(|item| item["metadata"]["name"] == "thing").map(|item| {
            let about = &item["metadata"];
            json!({
                "kind": kind.api_version() + kind.name, "uid": about["uid"], "mark": about["labels"]["mark"],
                "annotation": about["annotations"]["a"], "deletion": about["deletionTimestamp"],
                "spec": item["spec"], "data": item["data"],
            })
        }));
    }
    all
}

fn filled(pattern: &str, namespace: &str, uid: &str) -> String {
    let part = |part: &str| match part {
        "{namespace}" => namespace.to_owned(),
        "{uid}" => uid.to_owned(),
        "{sort}" => "workflows".to_owned(),
        "{id}" => "thing".to_owned(),
        "{side}" => "outputs".to_owned(),
        "{key}" => "limit".to_owned(),
        other if other.starts_with('{') => "thing".to_owned(),
        other => other.to_owned(),
    };
    pattern.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Returns the status, and as much of the body as comes within the time.
async fn heard(stage: &Stage, method: &Method, path: &str, token: &str, body: Option<&Value>) -> (u16, String) {
    let answer = stage.answer(request(method.clone(), path, Some(token), body)).await;
    let status = answer.status().as_u16();
    let mut body = answer.into_body();
    let mut bytes = Vec::new();
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(LISTEN, body.frame()).await {
        bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
    }
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

/// A body that tries to be about team-b in every field that any route reads.
fn smuggled(uid: &str) -> Value {
    let spec = json!({"entrypoint": "main", "templates": [{"name": "main", "suspend": {}}]});
    let metadata = json!({"name": "thing", "namespace": "team-b", "uid": uid, "labels": {"mark": "overwritten"}});
    let object = json!({"metadata": metadata, "spec": spec});
    json!({
        "metadata": metadata, "spec": spec, "data": {"limit": "9"}, "namespace": "team-b", "name": "thing",
        "resourceKind": "WorkflowTemplate", "resourceName": "thing", "cmName": "thing", "key": "limit", "limit": 9,
        "workflow": object, "template": object, "cronWorkflow": object,
        "forwho": "wider", "privileges": ["read_job"], "namespaces": ["team-b"],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_one_namespace_neither_reads_nor_changes_another() {
    let stage = Stage::new();
    furnish(&stage, "team-a", "own").await;
    let uid = furnish(&stage, "team-b", CANARY).await;
    token(&stage, "admin", CANARY, &["team-b"]).await;
    let ann = token(&stage, "admin", "ann", &["team-a"]).await;
    let before = kept(&stage, "team-b").await;
    assert_eq!(before.len(), samples(&json!({}), "").iter().filter(|(kind, _)| kind.namespaced).count(), "{before:?}");
    let body = smuggled(&uid);
    let (mut tried, mut refused) = (0, 0);
    for route in route::all() {
        let what = format!("{} {}", route.method, route.path);
        // Routes that affect the server itself, or tokens, are tried once; ann's own token must survive.
        let sent = (route.method != Method::GET).then_some(&body);
        let there = filled(&route.path, "team-b", &uid);
        let mut paths = vec![there.clone(), format!("{there}?namespace=team-b&name=thing&cmName=thing&uid={uid}")];
        if route.area == Area::Path {
            let here = filled(&route.path, "team-a", &uid);
            paths.push(format!(
                "{here}?namespace=team-b&name=missing&cmName=thing&uid={uid}&resourceVersion=0\
                 &fieldSelector=metadata.namespace%3Dteam-b&listOptions.fieldSelector=metadata.namespace%3Dteam-b"
            ));
        }
        for (at, path) in paths.iter().enumerate() {
            let (status, text) = heard(&stage, &route.method, path, &ann, sent).await;
            assert!(!text.contains(CANARY), "{what} as {path} tells of team-b: {text}");
            let foreign = at < 2 && route.need != Need::Nothing && route.area != Area::Shared;
            if foreign {
                assert!(matches!(status, 403 | 404), "{what} as {path}: {status} {text}");
                refused += 1;
            }
            tried += 1;
        }
    }
    assert!(tried > 300 && refused > 200, "{tried} tried, {refused} refused");
    assert_eq!(kept(&stage, "team-b").await, before, "something of team-b was changed");
    assert_eq!(stage.get(WHOAMI, &ann).await.json()["namespaces"], json!(["team-a"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn within_its_namespaces_a_token_works_as_any_other() {
    let stage = Stage::new();
    let uid = furnish(&stage, "team-a", "own").await;
    let ann = token(&stage, "admin", "ann", &["team-a", "team-c"]).await;
    let good = [
        "/apis/argoproj.io/v1alpha1/namespaces/team-a/workflows/thing",
        "/api/v1/namespaces/team-a/pods",
        "/api/v1/namespaces/team-a",
        "/api/v1/workflows/team-a",
        "/api/octoflow/v1/runs?namespace=team-a",
        "/api/v1/archived-workflows?namespace=team-a",
        "/api/v1/cluster-workflow-templates",
        "/apis/argoproj.io/v1alpha1/clusterworkflowtemplates",
        "/apis",
        "/openapi/v2",
        "/api/octoflow/v1/health",
        "/api/v1/info",
    ];
    for path in good {
        let heard = stage.get(path, &ann).await;
        assert_eq!(heard.status, 200, "{path}: {}", heard.text);
    }
    let bad = [
        "/apis/argoproj.io/v1alpha1/workflows",
        "/api/v1/workflows/",
        "/api/octoflow/v1/runs",
        "/api/v1/archived-workflows",
        "/api/v1/namespaces",
        "/api/v1/nodes",
        "/metrics",
        "/api/octoflow/v1/audit",
        "/api/octoflow/v1/tokens/admin",
    ];
    for path in bad {
        let heard = stage.get(path, &ann).await;
        assert_eq!(heard.status, 403, "{path}: {}", heard.text);
        assert!(heard.text.contains("team-a, team-c"), "{}", heard.text);
    }
    assert_eq!(stage.get(&format!("/api/v1/archived-workflows/{uid}"), &ann).await.status, 404, "it is not over");
    let health = stage.get("/api/octoflow/v1/health", &ann).await.json();
    assert!(health["runsOpen"].is_null() && health["caller"]["namespaces"] == json!(["team-a", "team-c"]), "{health}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gives_a_token_for_more_namespaces_than_their_own_and_it_outlives_a_restart() {
    let stage = Stage::new();
    let ann = token(&stage, "admin", "ann", &["team-a", "team-c"]).await;
    let narrower = token(&stage, &ann, "bob", &["team-a"]).await;
    let wish = |namespaces: &[&str]| json!({"forwho": "x", "privileges": ["read_job"], "namespaces": namespaces});
    for wider in [&[][..], &["team-b"], &["team-a", "team-b"]] {
        let heard = stage.ask(Method::POST, TOKENS, &ann, &wish(wider)).await;
        assert_eq!(heard.status, 403, "{wider:?}: {}", heard.text);
    }
    assert_eq!(stage.ask(Method::POST, TOKENS, "admin", &wish(&["Team B"])).await.status, 400);
    let widened = json!({"privileges": ["read_job"], "namespaces": []});
    assert_eq!(stage.ask(Method::PUT, &format!("{TOKENS}/bob"), &ann, &widened).await.status, 403);
    assert_eq!(stage.ask(Method::PUT, &format!("{TOKENS}/ann"), &narrower, &widened).await.status, 404);
    assert_eq!(stage.ask(Method::DELETE, &format!("{TOKENS}/ann"), &narrower, &json!({})).await.status, 404);
    assert_eq!(stage.get(TOKENS, &narrower).await.json()["items"].as_array().unwrap().len(), 1);
    let stage = Stage::again(stage.close(), Limits::default(), AdminSource::Stored);
    assert_eq!(stage.get(WHOAMI, &ann).await.json()["namespaces"], json!(["team-a", "team-c"]));
    assert_eq!(stage.get("/api/v1/workflows/team-b", &ann).await.status, 403);
    assert_eq!(stage.get("/api/v1/workflows/team-c", &ann).await.status, 200);
    let back = stage.ask(Method::PUT, &format!("{TOKENS}/ann"), "admin", &widened).await;
    assert_eq!(back.status, 200, "{}", back.text);
    assert_eq!(stage.get("/api/v1/workflows/team-b", &ann).await.status, 200, "the admin may widen it");
}
