//! Features, plugins and their order under `/v1` and over the Kubernetes API: one path, whoever writes.

use axum::http::Method;
use serde_json::{Value, json};

use super::stage::{Reply, Stage};
use crate::{Limits, gate::access::AdminSource};

const FEATURES: &str = "/v1/features";

fn code(reply: &Reply) -> &'static str {
    let word = reply.json()["code"].as_str().unwrap_or_default().to_owned();
    assert_eq!(reply.status, 200, "{}", reply.text);
    String::leak(word)
}

fn feature(name: &str) -> Value {
    json!({
        "name": name, "author": "alice", "description": "d",
        "jobSelector": {"conditions": [{"name": "all", "key": "x", "expect": ".*"}], "expression": "all"},
        "plugins": [{"pluginType": "AccessGate", "callAddress": "http://127.0.0.1:9/gate", "description": "g",
            "jobSelector": {"conditions": [{"name": "own", "key": "y", "expect": "1"}]}}],
    })
}

async fn post(stage: &Stage, feature: &Value) -> Reply {
    stage.ask(Method::POST, FEATURES, "admin", feature).await
}

async fn keys(stage: &Stage) -> Vec<String> {
    let list = stage.get("/v1/plugins/list/AccessGate", "admin").await.json();
    let plugins = list["payload"].as_array().unwrap().clone();
    for (at, plugin) in plugins.iter().enumerate() {
        assert_eq!(plugin["sequence"], at, "a number, in order");
    }
    plugins.iter().map(|plugin| plugin["key"].as_str().unwrap().to_owned()).collect()
}

async fn sequence(stage: &Stage, before: &str, after: &str) -> &'static str {
    let body = json!({"beforeKey": before, "afterKey": after, "pluginType": "AccessGate"});
    code(&stage.ask(Method::PUT, "/v1/plugins/sequence", "admin", &body).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn pl_07_and_10_what_does_not_compile_is_refused_whole_and_the_server_starts_again() {
    let stage = Stage::new();
    let without = |field: &str| {
        let mut feature = feature("f");
        feature.as_object_mut().unwrap().remove(field);
        feature
    };
    let with = |pointer: &str, value: Value| {
        let mut feature = feature("f");
        *feature.pointer_mut(pointer).unwrap() = value;
        feature
    };
    let gate = feature("f")["plugins"][0].clone();
    let bad = [
        (json!({}), "LACK_OF_PARAM"),
        (json!([]), "LACK_OF_PARAM"),
        (without("name"), "LACK_OF_PARAM"),
        (without("author"), "LACK_OF_PARAM"),
        (without("jobSelector"), "LACK_OF_PARAM"),
        (with("/author", json!("All")), "WRONG_PARAM"),
        (with("/name", json!(7)), "WRONG_PARAM"),
        (with("/name", json!("a/b")), "WRONG_PARAM"),
        (with("/name", json!("x".repeat(200))), "WRONG_PARAM"),
        (with("/plugins/0/pluginType", json!("Foo")), "UNSUPPORTED_PLUGIN_TYPE"),
        (with("/plugins/0/callAddress", json!("")), "LACK_OF_PARAM"),
        (with("/plugins/0/callAddress", json!("nowhere")), "WRONG_PARAM"),
        (with("/plugins/0/callAddress", json!("builtin:nothing")), "WRONG_PARAM"),
        (with("/plugins", json!([gate, gate])), "WRONG_PARAM"),
        (with("/plugins", json!("x")), "WRONG_PARAM"),
        (with("/jobSelector/expression", json!("all &&")), "WRONG_PARAM"),
        (with("/jobSelector/expression", json!("(all")), "WRONG_PARAM"),
        (with("/jobSelector/conditions/0/expect", json!("(")), "WRONG_PARAM"),
        (with("/jobSelector/conditions/0/name", json!("")), "WRONG_PARAM"),
        (with("/description", json!([])), "WRONG_PARAM"),
        (
            with(
                "/plugins/0",
                json!({"pluginType": "LifeHook", "callAddress": "http://h", "jobSelector": {"expression": "all"}}),
            ),
            "LACK_OF_PARAM",
        ),
        (
            with(
                "/plugins/0",
                json!({"pluginType": "LifeHook", "callAddress": "http://h",
                "jobSelector": {"expression": "all", "states": ["flying"]}}),
            ),
            "WRONG_PARAM",
        ),
    ];
    for (body, expected) in &bad {
        assert_eq!(code(&post(&stage, body).await), *expected, "{body}");
    }
    let mut odd = feature("f");
    odd["pluginz"] = json!([]);
    assert_eq!(code(&post(&stage, &odd).await), "WRONG_PARAM");
    let stage = Stage::again(stage.close(), Limits::default(), AdminSource::Stored);
    assert_eq!(stage.get("/v1/features/list/all", "admin").await.json()["payload"], json!([]), "nothing was stored");
    assert_eq!(keys(&stage).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pl_08_a_plugin_has_its_key_its_merged_selector_and_its_place() {
    let stage = Stage::new();
    assert_eq!(code(&post(&stage, &feature("f")).await), "OPERATION_SUCCEEDED");
    let list = stage.get("/v1/plugins/list/AccessGate/", "admin").await.json();
    let plugin = &list["payload"][0];
    assert_eq!(plugin["key"], "AccessGate.f.alice");
    assert_eq!(plugin["sequence"], 0);
    let names: Vec<&str> = plugin["jobSelector"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!((names, &plugin["jobSelector"]["expression"]), (vec!["own", "all"], &json!("all")));
    let one = stage.get("/v1/plugins/detail/AccessGate.f.alice", "admin").await.json();
    assert_eq!(one["payload"], *plugin);
    assert_eq!(code(&stage.get("/v1/plugins/detail/nothing", "admin").await), "OPERATION_TARGET_NOT_FOUND");
    assert_eq!(code(&stage.get("/v1/plugins/list/Foo", "admin").await), "UNSUPPORTED_PLUGIN_TYPE");
    let detail = stage.get("/v1/features/detail/f", "admin").await.json()["payload"].clone();
    assert_eq!((&detail["enabled"], &detail["authorization"]), (&json!(false), &json!("")));
    assert_eq!(detail["jobSelector"], feature("f")["jobSelector"], "the global selector is shown as it was posted");
    assert_eq!(detail["plugins"], json!([plugin]));
    // Whoever posts what was read is understood.
    assert_eq!(code(&post(&stage, &detail).await), "OPERATION_SUCCEEDED");
}

#[tokio::test(flavor = "multi_thread")]
async fn pl_09_the_switch_of_a_feature_outlives_new_versions_and_restarts() {
    let stage = Stage::new();
    let enabled =
        async |stage: &Stage| stage.get("/v1/features/detail/f", "admin").await.json()["payload"]["enabled"] == true;
    let put = async |stage: &Stage, word: &str| {
        code(&stage.ask(Method::PUT, &format!("/v1/features/{word}/f"), "admin", &json!({})).await)
    };
    assert_eq!(put(&stage, "turn-on").await, "OPERATION_TARGET_NOT_FOUND");
    let mut on = feature("f");
    on["enabled"] = json!(true);
    post(&stage, &on).await;
    assert!(enabled(&stage).await, "what is said of a new feature counts");
    for _ in 0..2 {
        assert_eq!(put(&stage, "turn-off").await, "OPERATION_SUCCEEDED");
    }
    post(&stage, &on).await;
    assert!(!enabled(&stage).await, "later the switch decides");
    assert_eq!(put(&stage, "turn-on").await, "OPERATION_SUCCEEDED");
    post(&stage, &feature("f")).await;
    let stage = Stage::again(stage.close(), Limits::default(), AdminSource::Stored);
    assert!(enabled(&stage).await);
    let delete = async || code(&stage.ask(Method::DELETE, "/v1/features/f", "admin", &json!({})).await);
    assert_eq!(delete().await, "OPERATION_SUCCEEDED");
    assert_eq!(delete().await, "OPERATION_TARGET_NOT_FOUND");
    assert_eq!(code(&stage.get("/v1/features/detail/f", "admin").await), "OPERATION_TARGET_NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_of_plugins_moves_only_what_must_move_and_is_durable() {
    let stage = Stage::new();
    for name in ["d", "a", "c", "b"] {
        post(&stage, &feature(name)).await;
    }
    let key = |name: &str| format!("AccessGate.{name}.alice");
    let order = |names: &[&str]| names.iter().map(|name| key(name)).collect::<Vec<_>>();
    assert_eq!(keys(&stage).await, order(&["d", "a", "c", "b"]), "in the order of their registration");
    assert_eq!(sequence(&stage, &key("d"), &key("b")).await, "OPERATION_SUCCEEDED");
    assert_eq!(keys(&stage).await, order(&["d", "a", "c", "b"]), "it was so already");
    assert_eq!(sequence(&stage, &key("b"), &key("a")).await, "OPERATION_SUCCEEDED");
    assert_eq!(keys(&stage).await, order(&["d", "b", "a", "c"]));
    assert_eq!(sequence(&stage, &key("nobody"), &key("a")).await, "OPERATION_TARGET_NOT_FOUND");
    assert_eq!(sequence(&stage, &key("a"), &key("a")).await, "WRONG_PARAM");
    assert_eq!(sequence(&stage, "", &key("a")).await, "LACK_OF_PARAM");
    let odd = json!({"beforeKey": key("a"), "afterKey": key("b"), "pluginType": "Foo"});
    let odd = stage.ask(Method::PUT, "/v1/plugins/sequence", "admin", &odd).await;
    assert_eq!(code(&odd), "UNSUPPORTED_PLUGIN_TYPE");
    // A new version keeps its places, a deleted feature leaves none, and a restart changes nothing.
    post(&stage, &feature("b")).await;
    stage.ask(Method::DELETE, "/v1/features/d", "admin", &json!({})).await;
    let stage = Stage::again(stage.close(), Limits::default(), AdminSource::Stored);
    assert_eq!(keys(&stage).await, order(&["b", "a", "c"]));
    post(&stage, &feature("d")).await;
    assert_eq!(keys(&stage).await, order(&["b", "a", "c", "d"]), "what comes again comes last");
    // A version without the plugin takes it out at once.
    let mut without = feature("a");
    without["plugins"] = json!([]);
    post(&stage, &without).await;
    assert_eq!(keys(&stage).await, order(&["b", "c", "d"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_written_and_never_read_whatever_face_is_asked() {
    let stage = Stage::new();
    let (word, other) = ("c2VjcmV0LXdvcmQ=", "signing-key-7");
    let mut posted = feature("f");
    posted["authorization"] = json!(word);
    posted["secret"] = json!(other);
    assert_eq!(code(&post(&stage, &posted).await), "OPERATION_SUCCEEDED");
    // As kubectl applies: what was applied stands in an annotation too.
    let kube = "/apis/octoflow.io/v1alpha1/features";
    let mut applied = json!({
        "apiVersion": "octoflow.io/v1alpha1", "kind": "Feature", "metadata": {"name": "g"},
        "spec": {"author": "bob", "authorization": word, "secret": other, "jobSelector": {"expression": "*"},
            "plugins": [{"pluginType": "AccessGate", "callAddress": "http://127.0.0.1:9/"}]},
    });
    applied["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": applied.to_string()});
    let made = stage.ask(Method::POST, kube, "admin", &applied).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let patch = json!({"spec": {"authorization": other}});
    let mut request = super::stage::request(Method::PATCH, &format!("{kube}/g"), Some("admin"), Some(&patch));
    request.headers_mut().insert("content-type", "application/merge-patch+json".parse().unwrap());
    let patched = stage.send(request).await;
    assert_eq!(patched.status, 200, "{}", patched.text);
    let mut answers = vec![made, patched];
    for path in [
        kube,
        "/apis/octoflow.io/v1alpha1/features/g",
        "/v1/features/list/all",
        "/v1/features/detail/f",
        "/v1/plugins/list/AccessGate",
        "/openapi.json",
    ] {
        answers.push(stage.get(path, "admin").await);
    }
    for answer in &answers {
        assert!(answer.status < 300, "{}", answer.text);
        assert!(!answer.text.contains(word) && !answer.text.contains(other), "{}", answer.text);
    }
    assert_eq!(keys(&stage).await, ["AccessGate.f.alice", "AccessGate.g.bob"], "one path, whoever writes");
    let secrets = |stage: &Stage| {
        let table = stage.app.registry.plugins().unwrap();
        table.by_key("AccessGate.f.alice").unwrap().secrets.clone()
    };
    assert_eq!(secrets(&stage).authorization.as_deref(), Some(word));
    // A new version that does not name them keeps them; an empty text removes one.
    let mut next = feature("f");
    next["secret"] = json!("");
    post(&stage, &next).await;
    assert_eq!((secrets(&stage).authorization.as_deref(), secrets(&stage).signing), (Some(word), None));
    let dir = stage.close();
    for entry in std::fs::read_dir(dir.path()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).unwrap();
        for text in [word, other] {
            let found = bytes.windows(text.len()).any(|window| window == text.as_bytes());
            assert!(!found, "{text} stands in {}", entry.path().display());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_only_write_jobs_writes_no_feature_on_any_face() {
    let stage = Stage::new();
    let body = json!({"forwho": "ann", "privileges": ["write_job", "read_job"]});
    let token = stage.ask(Method::POST, "/v1/tokens", "admin", &body).await.json()["payload"]["token"].clone();
    let token = token.as_str().unwrap();
    assert_eq!(stage.ask(Method::POST, FEATURES, token, &feature("f")).await.status, 403);
    let object =
        json!({"metadata": {"name": "f"}, "spec": {"author": "a", "jobSelector": {"expression": "*"}, "plugins": []}});
    let kube = "/apis/octoflow.io/v1alpha1/features";
    assert_eq!(stage.ask(Method::POST, kube, token, &object).await.status, 403);
    assert_eq!(stage.get(kube, token).await.status, 403);
    assert_eq!(stage.get("/v1/features/list/all", token).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_features_have_no_plugins_of_the_same_key() {
    let stage = Stage::new();
    let with = |name: &str, author: &str| {
        let mut feature = feature(name);
        feature["author"] = json!(author);
        feature["authorization"] = json!("c2VjcmV0");
        feature
    };
    assert_eq!(code(&post(&stage, &with("a", "b.c")).await), "OPERATION_SUCCEEDED");
    let refused = post(&stage, &with("a.b", "c")).await;
    assert_eq!(code(&refused), "WRONG_PARAM");
    assert!(refused.text.contains("AccessGate.a.b.c") && refused.text.contains("`a`"), "{}", refused.text);
    // One that exists cannot become it either.
    assert_eq!(code(&post(&stage, &with("a.b", "d")).await), "OPERATION_SUCCEEDED");
    assert_eq!(code(&post(&stage, &with("a.b", "c")).await), "WRONG_PARAM");
    // Another type makes another key.
    let mut decorator = with("a.b", "c");
    decorator["plugins"][0]["pluginType"] = json!("TemplateDecorator");
    assert_eq!(code(&post(&stage, &decorator).await), "OPERATION_SUCCEEDED");
    let kube = "/apis/octoflow.io/v1alpha1/features";
    let object = json!({
        "apiVersion": "octoflow.io/v1alpha1", "kind": "Feature", "metadata": {"name": "x.y"},
        "spec": {"author": "z", "authorization": "c2VjcmV0", "jobSelector": {"expression": "*"},
            "plugins": [{"pluginType": "AccessGate", "callAddress": "http://127.0.0.1:9/"}]},
    });
    assert_eq!(code(&post(&stage, &with("x", "y.z")).await), "OPERATION_SUCCEEDED");
    for path in [kube.to_owned(), format!("{kube}?dryRun=All")] {
        let reply = stage.ask(Method::POST, &path, "admin", &object).await;
        assert_eq!(reply.status, 422, "{}", reply.text);
        assert!(reply.text.contains("AccessGate.x.y.z") && !reply.text.contains("c2VjcmV0"), "{}", reply.text);
    }
    let table = stage.app.registry.plugins().unwrap();
    let known: Vec<(&str, &str)> = table.all().map(|plugin| (&*plugin.feature, &*plugin.key)).collect();
    let gates = [("a", "AccessGate.a.b.c"), ("x", "AccessGate.x.y.z"), ("a.b", "TemplateDecorator.a.b.c")];
    assert_eq!(known.len(), 3, "{known:?}");
    assert!(gates.iter().all(|one| known.contains(one)), "nothing was stored: {known:?}");
    // The name is free once the other is gone.
    assert!(stage.ask(Method::DELETE, "/v1/features/x", "admin", &Value::Null).await.status == 200);
    assert_eq!(stage.ask(Method::POST, kube, "admin", &object).await.status, 201);
}
