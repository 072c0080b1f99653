//! Bad input: an error in Argo's own words, nothing half stored, and the server lives on.

use serde_json::{Value, json};

use crate::{
    host::{Host, UNNAMED, one_step},
    wire::http::ask,
};

const HERE: &str = "/api/v1/workflows/default";

#[test]
fn who_has_no_token_learns_nothing_but_that() {
    let host = Host::start();
    for token in ["", "Bearer wrong"] {
        let reply = ask(host.server.address, "GET", HERE, &[("authorization", token)], b"");
        assert_eq!((reply.status, &reply.json()["code"]), (401, &json!(16)));
        assert!(reply.json()["message"].is_string());
        assert_eq!(reply.header("grpc-metadata-argo-version"), None);
    }
    let reply = ask(host.server.address, "GET", HERE, &[("authorization", "admin")], b"");
    assert_eq!(reply.status, 200, "some clients send their token as it is");
}

#[test]
fn bodies_that_make_no_sense_are_told_what_is_wrong() {
    let host = Host::start();
    let post = |body: &str| {
        let reply = ask(host.server.address, "POST", HERE, &[UNNAMED], body.as_bytes());
        assert_eq!((reply.status, &reply.json()["code"]), (400, &json!(3)), "{body}: {}", reply.text());
        reply.json()["message"].as_str().unwrap().to_owned()
    };
    assert!(post("{\"workflow\": ").contains("not valid JSON"));
    assert!(post("").contains("workflow"));
    assert!(post("[]").contains("object"));
    assert!(post("{\"workflow\": []}").contains("workflow must be an object"));
    assert!(post("{\"workflow\": {\"metadata\": 3}}").contains("metadata"));
    assert!(post("{\"workflow\": {\"metadata\": {\"name\": 3}, \"spec\": {}}}").contains("name"));
    assert!(post("{\"workflow\": {\"metadata\": {\"name\": \"x\", \"labels\": []}, \"spec\": {}}}").contains("labels"));
    assert!(post("{\"workflow\": {\"kind\": \"Pod\", \"metadata\": {\"name\": \"x\"}}}").contains("Pod"));
    assert!(post("{\"workflow\": {\"spec\": {}}, \"serverDryRun\": \"yes\"}").contains("serverDryRun"));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(post(&deep).contains("not valid JSON"));
    let mut other = one_step("w-", "true");
    other["metadata"]["namespace"] = json!("elsewhere");
    host.bad("POST", HERE, &json!({"workflow": other}), 400, 3);
    assert!(host.get("/api/v1/workflows/")["items"].is_null(), "nothing is stored");
}

#[test]
fn names_that_lead_elsewhere_are_no_names() {
    let host = Host::start();
    for name in ["../../etc/passwd", "a/b", "..", "A", "a\u{0}b", "-a", &"a".repeat(300), "ä"] {
        let mut workflow = one_step("", "true");
        workflow["metadata"] = json!({"name": name});
        host.bad("POST", HERE, &json!({"workflow": workflow}), 400, 3);
        workflow["kind"] = json!("WorkflowTemplate");
        workflow.as_object_mut().unwrap().remove("status");
        host.bad("POST", "/api/v1/workflow-templates/default", &json!({"template": workflow}), 400, 3);
    }
    for namespace in ["..%2f..", "A", "-", "a.b", "%00"] {
        let path = format!("/api/v1/workflows/{namespace}");
        host.bad("POST", &path, &json!({"workflow": one_step("w-", "true")}), 400, 3);
        host.bad("GET", &path, &Value::Null, 400, 3);
    }
    for path in ["/api/v1/workflows/default/..%2f..%2fetc%2fpasswd", "/api/v1/workflows/default/%00"] {
        host.bad("GET", path, &Value::Null, 404, 5);
    }
    assert!(host.get("/api/v1/workflows/")["items"].is_null(), "nothing is stored");
}

#[test]
fn a_body_of_a_hundred_megabytes_is_refused_before_it_is_read() {
    let host = Host::start();
    let length = ("content-length", "104857600");
    let reply = ask(host.server.address, "POST", HERE, &[UNNAMED, length], b"{");
    assert_eq!((reply.status, &reply.json()["code"]), (413, &json!(8)), "{}", reply.text());
    host.get(HERE);
}

#[test]
fn what_is_not_there_is_told_in_the_same_words() {
    let host = Host::start();
    host.bad("GET", &format!("{HERE}/none"), &Value::Null, 404, 5);
    host.bad("GET", "/api/v1/workflows/default/a/b/c", &Value::Null, 404, 5);
    host.bad("PATCH", HERE, &Value::Null, 405, 12);
    for path in ["/api/v1/event-sources/default", "/api/v1/sensors/default/x", "/api/v1/stream/sensors/default"] {
        host.bad("GET", path, &Value::Null, 501, 12);
    }
    assert_eq!(host.good("POST", "/api/v1/tracking/event", &json!({"name": "x"})), json!({}));
    for query in
        ["listOptions.limit=-1", "listOptions.labelSelector=(", "createdAfter=x", "listOptions.fieldSelector=x"]
    {
        host.bad("GET", &format!("{HERE}?{query}"), &Value::Null, 400, 3);
    }
}
