//! Workflows suspended, ended and rerun.

use serde_json::{Value, json};

use crate::host::{Host, eventually};

const HERE: &str = "/api/v1/workflows/default";

#[test]
fn a_workflow_is_suspended_resumed_stopped_and_retried() {
    let host = Host::start();
    let name = host.submit("w-", "sleep 100");
    let put = |verb: &str, body: Value| host.good("PUT", &format!("{HERE}/{name}/{verb}"), &body);
    assert_eq!(put("suspend", Value::Null)["spec"]["suspend"], true);
    assert!(put("resume", json!({"name": name, "namespace": "default"}))["spec"]["suspend"].is_null());
    put("stop", json!({}));
    assert_eq!(host.finished(&name)["status"]["phase"], "Failed");
    for verb in ["stop", "terminate", "suspend", "resume"] {
        let message = host.bad("PUT", &format!("{HERE}/{name}/{verb}"), &json!({}), 400, 9);
        assert!(message.contains("completed workflow"), "{verb}: {message}");
    }
    let again = put("retry", json!({"restartSuccessful": false}));
    assert_eq!((&again["metadata"]["name"], &again["status"]["phase"]), (&json!(name), &json!("Running")));
    let message = host.bad("PUT", &format!("{HERE}/{name}/retry"), &json!({}), 400, 9);
    assert!(message.contains("Cannot retry a workflow in phase Running"), "{message}");
    put("terminate", Value::Null);
    let over = host.finished(&name);
    let uid = over["metadata"]["uid"].as_str().unwrap();
    let beside = put("resubmit", json!({"memoized": false}));
    assert_ne!(beside["metadata"]["name"], json!(name));
    assert_eq!(beside["metadata"]["labels"]["workflows.argoproj.io/resubmitted-from-workflow"], json!(name));
    let archived = format!("/api/v1/archived-workflows/{uid}");
    let third = host.good("PUT", &format!("{archived}/resubmit"), &json!({"uid": uid, "namespace": "default"}));
    assert!(third["metadata"]["name"].is_string());
    host.good("PUT", &format!("{archived}/retry"), &json!({"uid": uid, "namespace": "default"}));
}

#[test]
fn a_node_that_waits_is_given_values_and_let_go() {
    let host = Host::start();
    let workflow = json!({"metadata": {"generateName": "s-"}, "spec": {"entrypoint": "main", "templates": [
        {"name": "main", "steps": [[{"name": "ask", "template": "ask"}],
            [{"name": "use", "template": "use", "arguments": {"parameters": [
                {"name": "m", "value": "{{steps.ask.outputs.parameters.m}}"}]}}]]},
        {"name": "ask", "suspend": {}, "outputs": {"parameters": [{"name": "m", "valueFrom": {"supplied": {}}}]}},
        {"name": "use", "inputs": {"parameters": [{"name": "m"}]},
            "script": {"image": "busybox", "command": ["sh"], "source": "echo {{inputs.parameters.m}}"}}]}});
    let made = host.good("POST", HERE, &json!({"workflow": workflow}));
    let name = made["metadata"]["name"].as_str().unwrap();
    let waits = || {
        let found = host.get(&format!("{HERE}/{name}"));
        found["status"]["nodes"].as_object().unwrap().values().any(|node| node["type"] == "Suspend")
    };
    eventually("a node waits", waits);
    let set = |body: Value, status: u16, code: u64| host.bad("PUT", &format!("{HERE}/{name}/set"), &body, status, code);
    set(json!({}), 400, 3);
    set(json!({"nodeFieldSelector": "displayName=ask", "outputParameters": "[]"}), 400, 3);
    set(json!({"nodeFieldSelector": "displayName=other", "outputParameters": "{\"m\": \"x\"}"}), 400, 9);
    let body = json!({"nodeFieldSelector": "displayName=ask", "outputParameters": "{\"m\": \"given\"}"});
    host.good("PUT", &format!("{HERE}/{name}/set"), &body);
    host.good("PUT", &format!("{HERE}/{name}/resume"), &json!({"nodeFieldSelector": "displayName=ask"}));
    let over = host.finished(name);
    assert_eq!(over["status"]["phase"], "Succeeded", "{over}");
    let log = host.open(&format!("{HERE}/{name}/log"), &[]).whole().unwrap();
    assert!(log.text().contains("\"content\":\"given\""), "{}", log.text());
}

#[test]
fn a_node_that_waits_can_be_stopped_alone() {
    let host = Host::start();
    let workflow = json!({"metadata": {"generateName": "s-"}, "spec": {"entrypoint": "ask", "templates": [
        {"name": "ask", "suspend": {}}]}});
    let made = host.good("POST", HERE, &json!({"workflow": workflow}));
    let name = made["metadata"]["name"].as_str().unwrap();
    let body = json!({"nodeFieldSelector": format!("displayName={name}"), "message": "no more"});
    host.good("PUT", &format!("{HERE}/{name}/stop"), &body);
    let over = host.finished(name);
    assert_eq!(over["status"]["phase"], "Failed");
    assert!(over.to_string().contains("no more"), "{over}");
}
