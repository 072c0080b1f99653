//! Tokens and refusals under `/v1` (PL-01 to PL-06 of the scenarios): the same credentials as those of our own face, in
//! the words of the submission pipeline.

use axum::http::Method;
use serde_json::{Value, json};

use super::stage::{Reply, Stage, request};

const TOKENS: &str = "/v1/tokens";

fn code(reply: &Reply) -> Value {
    reply.json()["code"].clone()
}

async fn made(stage: &Stage, by: &str, privileges: &[&str]) -> String {
    let body = json!({"forwho": "ann", "privileges": privileges, "note": "n"});
    let reply = stage.ask(Method::POST, TOKENS, by, &body).await;
    assert_eq!((reply.status, code(&reply)), (200, json!("OPERATION_SUCCEEDED")), "{}", reply.text);
    reply.json()["payload"]["token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn pl_01_and_02_the_gate_refuses_in_the_words_of_the_face() {
    let stage = Stage::new();
    for path in ["/v1/tokens", "/v1/tokens/", "/v1/plugins/list/AccessGate"] {
        let none = stage.send(request(Method::GET, path, None, None)).await;
        assert_eq!((none.status, code(&none)), (401, json!("PERMISSION_DENIED")), "{path}");
        assert!(none.headers.contains_key("www-authenticate"), "{path}");
        let unknown = stage.get(path, "no-such-token").await;
        assert_eq!((unknown.status, code(&unknown)), (401, json!("PERMISSION_DENIED")), "{path}");
    }
    let nowhere = stage.get("/v1/nothing", "admin").await;
    assert_eq!((nowhere.status, code(&nowhere)), (404, json!("OPERATION_TARGET_NOT_FOUND")));
    let method = stage.ask(Method::PATCH, "/v1/tokens", "admin", &json!({})).await;
    assert_eq!((method.status, code(&method)), (405, json!("UNSUPPORTED_OPERATION")));
    let large = stage.ask(Method::POST, TOKENS, "admin", &json!({"note": "x".repeat(2 << 20)})).await;
    assert_eq!((large.status, code(&large)), (413, json!("WRONG_PARAM")));
    let mut broken = request(Method::POST, TOKENS, Some("admin"), None);
    *broken.body_mut() = axum::body::Body::from("{");
    let broken = stage.send(broken).await;
    assert_eq!((broken.status, code(&broken)), (400, json!("WRONG_PARAM")));
}

#[tokio::test(flavor = "multi_thread")]
async fn pl_03_a_token_may_do_what_it_was_made_for_whatever_header_carries_it() {
    let stage = Stage::new();
    let token = made(&stage, "admin", &["read-plugin", "read_token"]).await;
    assert_eq!(token.len(), 24);
    let mut by_header = request(Method::GET, "/v1/plugins/list/AccessGate/", None, None);
    by_header.headers_mut().insert("token", token.parse().unwrap());
    let listed = stage.send(by_header).await;
    assert_eq!((listed.status, listed.json()), (200, json!({"code": "OPERATION_SUCCEEDED", "msg": "", "payload": []})));
    assert_eq!(stage.get("/v1/plugins/list/AccessGate", &token).await.status, 200);
    let denied = stage.ask(Method::POST, "/v1/features", &token, &json!({})).await;
    assert_eq!((denied.status, code(&denied)), (403, json!("PERMISSION_DENIED")));
    // What suffices for reading tokens does not suffice for making them.
    let denied = stage.ask(Method::POST, TOKENS, &token, &json!({})).await;
    assert_eq!((denied.status, code(&denied)), (403, json!("PERMISSION_DENIED")));
    let all = stage.get(TOKENS, &token).await;
    assert_eq!(all.json()["payload"][0]["forwho"], "ann");
    assert!(!all.text.contains(&token), "the text is never told again");
}

#[tokio::test(flavor = "multi_thread")]
async fn pl_04_what_is_missing_or_unknown_makes_no_token() {
    let stage = Stage::new();
    let bad = [
        json!({}),
        json!({"forwho": "ann"}),
        json!({"privileges": ["read_job"]}),
        json!({"forwho": "ann", "privileges": []}),
        json!({"forwho": "ann", "privileges": ["fly"]}),
        json!({"forwho": "ann", "privileges": "read_job"}),
        json!({"forwho": 7, "privileges": ["read_job"]}),
        json!({"forwho": "ann", "privileges": ["read_job"], "note": []}),
        json!({"forwho": "ann", "privileges": ["read_job"], "note": "x".repeat(2000)}),
        json!(["forwho"]),
    ];
    for body in bad {
        let reply = stage.ask(Method::POST, TOKENS, "admin", &body).await;
        assert!(reply.status == 400, "{body}: {}", reply.text);
        assert!(["WRONG_PARAM", "LACK_OF_PARAM"].map(Value::from).contains(&code(&reply)), "{body}: {}", reply.text);
    }
    let admin = json!({"forwho": "admin", "privileges": ["read_job"]});
    let reply = stage.ask(Method::POST, TOKENS, "admin", &admin).await;
    assert_eq!((reply.status, code(&reply)), (200, json!("UNSUPPORTED_OPERATION")));
    assert_eq!(stage.get(TOKENS, "admin").await.json()["payload"], json!([]), "nothing was stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn pl_05_the_admin_s_password_changes_at_once_and_for_good() {
    let stage = Stage::new();
    let put = |text: &'static str| json!({"token": text});
    for bad in [json!({}), put(""), put(" x1"), put("admin"), json!({"token": 7})] {
        let reply = stage.ask(Method::PUT, "/v1/tokens/admin", "admin", &bad).await;
        assert_eq!((reply.status, code(&reply)), (200, json!("WRONG_PARAM")), "{bad}: {}", reply.text);
    }
    let normal = made(&stage, "admin", &["write_token", "read_token"]).await;
    let denied = stage.ask(Method::PUT, "/v1/tokens/admin", &normal, &put("longer-password")).await;
    assert_eq!((denied.status, code(&denied)), (403, json!("PERMISSION_DENIED")));
    let done = stage.ask(Method::PUT, "/v1/tokens/admin/", "admin", &put("x1")).await;
    assert_eq!((done.status, code(&done)), (200, json!("OPERATION_SUCCEEDED")), "{}", done.text);
    assert_eq!(stage.get(TOKENS, "admin").await.status, 401, "the old one is refused at once");
    assert_eq!(stage.get(TOKENS, "x1").await.status, 200);
    let again = Stage::again(stage.close(), crate::Limits::default(), crate::gate::access::AdminSource::Stored);
    assert_eq!(again.get(TOKENS, "x1").await.status, 200, "it outlives a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn pl_06_a_token_is_changed_and_deleted_by_its_text() {
    let stage = Stage::new();
    let token = made(&stage, "admin", &["read_token"]).await;
    let change = |token: &str, privileges: Value| json!({"token": token, "privileges": privileges});
    let normal = "/v1/tokens/normal";
    let done = stage.ask(Method::PUT, normal, "admin", &change(&token, json!(["read_feature"]))).await;
    assert_eq!(code(&done), "OPERATION_SUCCEEDED");
    assert_eq!(stage.get(TOKENS, &token).await.status, 403);
    assert_eq!(stage.get("/v1/features/list/ALL", &token).await.status, 200);
    let unknown = stage.ask(Method::PUT, normal, "admin", &change("nobody", json!(["read_job"]))).await;
    assert_eq!((unknown.status, code(&unknown)), (200, json!("OPERATION_TARGET_NOT_FOUND")));
    for bad in [json!({}), change(&token, json!([])), change(&token, json!(["fly"])), change("", json!(["read_job"]))] {
        let reply = stage.ask(Method::PUT, normal, "admin", &bad).await;
        assert_eq!(reply.status, 400, "{bad}: {}", reply.text);
    }
    // The rank rule: nobody changes a token that allows more than its own.
    let lesser = made(&stage, "admin", &["write_token", "read_token"]).await;
    let rank = stage.ask(Method::PUT, normal, &lesser, &change(&token, json!(["read_token"]))).await;
    assert_eq!((rank.status, code(&rank)), (403, json!("PERMISSION_DENIED")));
    let rank = stage.ask(Method::DELETE, TOKENS, &lesser, &json!({"token": token})).await;
    assert_eq!((rank.status, code(&rank)), (403, json!("PERMISSION_DENIED")));

    let gone = stage.ask(Method::DELETE, "/v1/tokens/", "admin", &json!({"token": token})).await;
    assert_eq!(code(&gone), "OPERATION_SUCCEEDED");
    assert_eq!(stage.get("/v1/features/list/all", &token).await.status, 401, "on the very next request");
    let again = stage.ask(Method::DELETE, TOKENS, "admin", &json!({"token": token})).await;
    assert_eq!(code(&again), "OPERATION_SUCCEEDED");
    for own in [json!({"token": "admin"}), change("admin", json!(["read_job"]))] {
        let method = if own["privileges"].is_null() { (Method::DELETE, TOKENS) } else { (Method::PUT, normal) };
        let kept = stage.ask(method.0, method.1, "admin", &own).await;
        assert_eq!((kept.status, code(&kept)), (200, json!("UNSUPPORTED_OPERATION")), "{own}");
    }
    let none = stage.ask(Method::DELETE, TOKENS, "admin", &json!({})).await;
    assert_eq!(none.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_is_tried_on_headers_and_nothing_is_stored() {
    let stage = Stage::new();
    let selector = json!({
        "conditions": [{"name": "type", "key": "type", "expect": "debug"},
            {"name": "user", "key": "user_role", "expect": "/admin|master/"}],
        "expression": "type && !user",
    });
    let headers =
        json!([{"type": "debug", "user_role": "guest"}, {"type": "debug", "user_role": "admin"}, {"type": "train"}]);
    let tried = stage
        .ask(Method::POST, "/v1/features/check", "admin", &json!({"jobSelector": selector, "headers": headers}))
        .await;
    let payload = tried.json()["payload"].clone();
    let matches: Vec<bool> = payload.as_array().unwrap().iter().map(|one| one["matches"] == true).collect();
    assert_eq!(matches, [true, false, false], "{payload}");
    assert_eq!(payload[1]["conditions"][1]["holds"], true);
    let wrong = json!({"jobSelector": {"conditions": [], "expression": "a &&"}, "headers": []});
    assert_eq!(code(&stage.ask(Method::POST, "/v1/features/check", "admin", &wrong).await), "WRONG_PARAM");
    assert_eq!(code(&stage.ask(Method::POST, "/v1/features/check", "admin", &json!({})).await), "LACK_OF_PARAM");
}
