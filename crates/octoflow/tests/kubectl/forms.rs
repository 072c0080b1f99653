//! The forms of an answer: tables, metadata alone, lists of everything at once, and a configuration for kubectl.

use serde_json::{Value, json};

use crate::rig::{Rig, eventually, one_step, shows};

const FLOWS: &str = "/apis/argoproj.io/v1alpha1/namespaces/default/workflows";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

impl Rig {
    fn as_form(&self, path: &str, form: &str) -> Value {
        let accept = format!("application/json;as={form};v=v1;g=meta.k8s.io");
        let reply = self.ask("GET", path, &[("accept", &accept)], b"");
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }
}

#[test]
fn objects_are_told_as_tables_and_as_metadata_alone() {
    let rig = Rig::start();
    let flow = one_step("flow", "true").replace("labels:", "annotations: {note: mine}\n  labels:");
    let made = rig.ask("POST", FLOWS, &[("content-type", "application/yaml")], flow.as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
    rig.ask("POST", MAPS, &[], br#"{"metadata": {"name": "map"}, "data": {"a": "1", "b": "2"}}"#);
    eventually("it is over", || rig.get(&format!("{FLOWS}/flow")).json()["status"]["phase"] == "Succeeded");

    for path in [FLOWS.to_owned(), format!("{FLOWS}/flow"), "/apis/argoproj.io/v1alpha1/workflows".to_owned()] {
        let table = rig.as_form(&path, "Table");
        assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")), "{table}");
        let heads = table["columnDefinitions"].as_array().unwrap();
        let row = &table["rows"][0];
        assert_eq!(row["cells"].as_array().unwrap().len(), heads.len(), "{table}");
        assert_eq!((&row["cells"][0], &row["cells"][1]), (&json!("flow"), &json!("Succeeded")));
        assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(row["object"]["metadata"]["labels"]["app"], "tests");
    }
    let whole = rig.as_form(&format!("{FLOWS}?includeObject=Object"), "Table");
    assert_eq!(whole["rows"][0]["object"]["spec"]["entrypoint"], "main");
    assert_eq!(rig.as_form(&format!("{MAPS}?includeObject=None"), "Table")["rows"][0].get("object"), None);

    let list = rig.as_form(FLOWS, "PartialObjectMetadataList");
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    let metadata = &list["items"][0]["metadata"];
    assert_eq!((&metadata["name"], &metadata["annotations"]["note"]), (&json!("flow"), &json!("mine")));
    assert_eq!(list["items"][0].get("spec"), None);
    assert_eq!(rig.as_form(&format!("{MAPS}/map"), "PartialObjectMetadata")["metadata"]["name"], "map");
    let events = rig.lines(&format!("{MAPS}?watch=1&timeoutSeconds=1"));
    assert_eq!(events.map(|event| event["object"]["kind"].clone()).collect::<Vec<_>>(), ["ConfigMap"]);
}

#[test]
fn everything_there_is_is_told_at_once_to_who_asks() {
    let rig = Rig::start();
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let reply = rig.ask("GET", "/apis", &[("accept", accept)], b"");
    let kind = reply.header("content-type").unwrap();
    assert!(kind.contains("as=APIGroupDiscoveryList"), "{kind}");
    let resources = reply.json()["items"][0]["versions"][0]["resources"].clone();
    assert!(resources.as_array().unwrap().iter().any(|one| one["resource"] == "workflows"), "{resources}");
    assert_eq!(rig.get("/apis").json()["kind"], "APIGroupList");
    assert_eq!(rig.get("/api").json()["versions"], json!(["v1"]));
    let index = rig.get("/openapi/v3").json();
    let place = index["paths"]["apis/argoproj.io/v1alpha1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let document = rig.get(&place).json();
    assert!(document["components"]["schemas"].as_object().unwrap().len() > 20, "{document}");
    let unknown = [("accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf")];
    rig.ask("GET", &place, &unknown, b"").is_status(406, "NotAcceptable");
    for path in ["/apis", "/openapi/v2", "/openapi/v3", "/api/v1"] {
        rig.ask("GET", path, &[("authorization", "Bearer wrong")], b"").is_status(401, "Unauthorized");
    }
}

#[test]
fn a_configuration_for_kubectl_holds_the_token_where_it_is_sent_from() {
    let rig = Rig::start();
    let plain = rig.octoflow(&["kubeconfig", "--server", "http://10.0.0.1:80/", "--token", "a/b c"]);
    shows(&plain.out, &["server:", "http://octoflow:a%2Fb%20c@10.0.0.1:80", "\n"]);
    let safe = rig.octoflow(&["kubeconfig", "--server", "https://flows.example", "--token", "t", "-n", "mine"]);
    shows(&safe.out, &["server: https://flows.example\n", "namespace: mine", "token: t"]);
    for wrong in ["ftp://x", "http://", "http://a@b", "http://a/b", "http://nobody.knows.me"] {
        let said = rig.octoflow(&["kubeconfig", "--server", wrong]);
        assert_ne!(said.code, 0, "{said}");
        assert_eq!(said.out, "");
    }
}
