//! Requests that no good client sends: each gets a Status that says what is wrong, and nothing is half done.

use serde_json::json;

use crate::rig::Rig;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const FLOWS: &str = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows";

#[test]
fn bodies_that_are_no_objects_are_refused() {
    let rig = Rig::start();
    let post = |body: &[u8]| rig.ask("POST", MAPS, &[], body);
    post(b"").is_status(400, "BadRequest");
    post(b"{\"metadata\": {\"name\"").is_status(400, "BadRequest");
    post(b"[1, 2]").is_status(400, "BadRequest");
    post(b"\"text\"").is_status(400, "BadRequest");
    post(&[b'['; 100_000]).is_status(400, "BadRequest");
    post(br#"{"metadata": "a"}"#).is_status(422, "Invalid");
    post(br#"{"metadata": {"name": 5}}"#).is_status(422, "Invalid");
    let causes = post(br#"{"metadata": {"name": "a"}, "data": {"k": 5}}"#).is_status(422, "Invalid");
    assert_eq!(causes["details"]["causes"][0]["field"], "data.k", "{causes}");
    post(br#"{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}}"#).is_status(400, "BadRequest");
    post(br#"{"metadata": {"name": "a", "namespace": "other"}}"#).is_status(400, "BadRequest");
    post(br#"{"metadata": {}}"#).is_status(422, "Invalid");
    let yaml = |body: &[u8]| rig.ask("POST", MAPS, &[("content-type", "application/yaml")], body);
    yaml(b"a: [b\n").is_status(400, "BadRequest");
    yaml(b"a: &x [*x]\n").is_status(400, "BadRequest");
    yaml(b"a: 1\n---\nb: 2\n").is_status(400, "BadRequest");
    yaml(&[0xff, 0xfe, 0x00]).is_status(400, "BadRequest");
    for kind in ["application/vnd.kubernetes.protobuf", "text/plain", "application/x-www-form-urlencoded"] {
        rig.ask("POST", MAPS, &[("content-type", kind)], b"k8s").is_status(415, "UnsupportedMediaType");
    }
    let strict = rig.ask("POST", &format!("{FLOWS}?fieldValidation=Strict"), &[], br#"{"spec": {"colour": 1}}"#);
    assert!(strict.is_status(400, "BadRequest")["message"].as_str().unwrap().contains("spec.colour"));
    rig.ask("POST", FLOWS, &[], br#"{"metadata": {"name": "a"}, "spec": []}"#).is_status(422, "Invalid");
    assert_eq!(rig.get("/api/v1/configmaps").json()["items"], json!([]));
    assert_eq!(rig.get(FLOWS).json()["items"], json!([]));
}

#[test]
fn bodies_that_are_too_long_are_refused_before_they_are_read() {
    let rig = Rig::start();
    let announced = rig.ask("POST", MAPS, &[("content-length", "104857600")], b"{");
    announced.is_status(413, "RequestEntityTooLarge");
    let chunk = [b"100000\r\n".to_vec(), vec![b' '; 0x10_0000], b"\r\n".to_vec()].concat();
    let endless = rig.ask("POST", MAPS, &[("content-length", ""), ("transfer-encoding", "chunked")], &chunk.repeat(17));
    endless.is_status(413, "RequestEntityTooLarge");
    assert_eq!(rig.get(MAPS).json()["items"], json!([]));
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let rig = Rig::start();
    for name in ["..", "%2e%2e", "a%2f..%2fb", "..%2f..%2fetc%2fpasswd", "a%00b", "a%5cb", "a%25b"] {
        for path in [format!("{MAPS}/{name}"), format!("{FLOWS}/{name}"), format!("/api/v1/namespaces/{name}/secrets")]
        {
            let reply = rig.get(&path);
            assert!(matches!(reply.status, 400 | 404), "{path}: {}", reply.text());
            assert_eq!(reply.json()["kind"], "Status", "{path}");
        }
        let space = format!("/apis/argoproj.io/v1alpha1/namespaces/{name}/workflows");
        let reply = rig.ask("POST", &space, &[], br#"{"metadata": {"name": "a"}}"#);
        assert!(matches!(reply.status, 400 | 404 | 422), "{space}: {}", reply.text());
    }
    for name in ["../up", "a/b", "UPPER", "", "-a", "a b", &"x".repeat(300)] {
        let object = json!({"metadata": {"name": name}}).to_string();
        rig.ask("POST", MAPS, &[], object.as_bytes()).is_status(422, "Invalid");
        let flow = json!({
            "metadata": {"name": name},
            "spec": {"entrypoint": "m", "templates": [{"name": "m", "container": {"image": "i", "command": ["true"]}}]},
        });
        rig.ask("POST", FLOWS, &[], flow.to_string().as_bytes()).is_status(422, "Invalid");
    }
}

#[test]
fn questions_that_make_no_sense_are_refused() {
    let rig = Rig::start();
    for query in [
        "labelSelector=a%20b%20c",
        "fieldSelector=name",
        "limit=many",
        "limit=-1",
        "resourceVersion=new",
        "resourceVersionMatch=Exact",
        "resourceVersion=1&resourceVersionMatch=Roughly",
        "continue=xyz",
        "watch=1&timeoutSeconds=soon",
    ] {
        rig.get(&format!("{MAPS}?{query}")).is_status(400, "BadRequest");
    }
    rig.get("/api/v1/nonsense").is_status(404, "NotFound");
    rig.get("/apis/nobody.io/v1").is_status(404, "NotFound");
    rig.get("/apis/argoproj.io/v1alpha1/namespaces/default/nonsense/a").is_status(404, "NotFound");
    rig.get(&format!("{MAPS}/a/scale")).is_status(404, "NotFound");
    rig.ask("PUT", MAPS, &[], b"{}").is_status(405, "MethodNotAllowed");
    rig.ask("POST", "/api/v1/configmaps", &[], b"{}").is_status(405, "MethodNotAllowed");
    rig.ask("POST", "/api/v1/namespaces/default/pods", &[], b"{}").is_status(405, "MethodNotAllowed");
    rig.ask("GET", MAPS, &[("accept", "application/vnd.kubernetes.protobuf")], b"").is_status(406, "NotAcceptable");
    rig.ask("GET", MAPS, &[("authorization", "Bearer wrong")], b"").is_status(401, "Unauthorized");
    rig.ask("GET", MAPS, &[("authorization", "Basic !")], b"").is_status(401, "Unauthorized");
}

#[test]
fn changes_that_make_no_sense_change_nothing() {
    let rig = Rig::start();
    let made = rig.ask("POST", MAPS, &[], br#"{"metadata": {"name": "a"}, "data": {"k": "v"}}"#).json();
    let one = format!("{MAPS}/a");
    let patch = |kind: &str, body: &str| rig.ask("PATCH", &one, &[("content-type", kind)], body.as_bytes());
    patch("application/json", "{}").is_status(415, "UnsupportedMediaType");
    patch("application/merge-patch+json", "[]").is_status(400, "BadRequest");
    patch("application/merge-patch+json", "{").is_status(400, "BadRequest");
    patch("application/merge-patch+json", r#"{"metadata": {"name": "b"}}"#).is_status(400, "BadRequest");
    patch("application/merge-patch+json", r#"{"metadata": {"resourceVersion": "1000"}}"#).is_status(409, "Conflict");
    patch("application/merge-patch+json", r#"{"metadata": {"uid": "other"}}"#).is_status(409, "Conflict");
    patch("application/merge-patch+json", r#"{"data": {"k": 5}}"#).is_status(422, "Invalid");
    patch("application/json-patch+json", r#"[{"op": "add", "path": "/data/x"}, {"op": "twist"}]"#)
        .is_status(422, "Invalid");
    patch("application/json-patch+json", "{}").is_status(422, "Invalid");
    patch("application/strategic-merge-patch+json", r#"{"$patch": "twist"}"#).is_status(400, "BadRequest");
    rig.ask("PUT", &one, &[], br#"{"metadata": {"name": "b"}}"#).is_status(400, "BadRequest");
    rig.ask("PUT", &one, &[], br#"{"metadata": {"name": "a", "resourceVersion": "1000"}}"#).is_status(409, "Conflict");
    rig.ask("PUT", &format!("{MAPS}/b"), &[], br#"{"metadata": {"name": "b"}}"#).is_status(404, "NotFound");
    for options in
        [r#"{"propagationPolicy": "Sideways"}"#, r#"{"dryRun": ["Some"]}"#, r#"{"gracePeriodSeconds": "x"}"#, "[]", "{"]
    {
        rig.ask("DELETE", &one, &[], options.as_bytes()).is_status(400, "BadRequest");
    }
    for options in [r#"{"preconditions": {"uid": "other"}}"#, r#"{"preconditions": {"resourceVersion": "1000"}}"#] {
        rig.ask("DELETE", &one, &[], options.as_bytes()).is_status(409, "Conflict");
    }
    for query in ["dryRun=Some", "fieldValidation=Maybe", "fieldManager=%0a"] {
        rig.ask("PUT", &format!("{one}?{query}"), &[], br#"{"data": {}}"#).is_status(400, "BadRequest");
    }
    let found = rig.get(&one).json();
    assert_eq!(
        (&found["data"], &found["metadata"]["resourceVersion"]),
        (&made["data"], &made["metadata"]["resourceVersion"])
    );
}
