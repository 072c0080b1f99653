//! Templates, schedules, bindings and limits.

use serde_json::{Value, json};

use crate::host::{Host, one_step};

fn template(kind: &str, name: &str) -> Value {
    let mut object = one_step("", "echo {{workflow.parameters.x}}");
    object["kind"] = json!(kind);
    object["metadata"] = json!({"name": name, "creationTimestamp": null});
    object["spec"]["arguments"] = json!({"parameters": [{"name": "x", "value": "1"}, {"name": "y", "value": "2"}]});
    object.as_object_mut().unwrap().remove("status");
    object
}

#[test]
fn templates_are_kept_changed_listed_and_deleted() {
    let host = Host::start();
    for (kind, base) in [
        ("WorkflowTemplate", "/api/v1/workflow-templates/default"),
        ("ClusterWorkflowTemplate", "/api/v1/cluster-workflow-templates"),
    ] {
        assert!(host.get(base)["items"].is_null());
        let body = json!({"template": template(kind, "tmpl")});
        host.good("POST", &format!("{base}/lint"), &body);
        let made = host.good("POST", base, &body);
        assert_eq!(made["kind"], kind);
        assert!(made["metadata"]["uid"].is_string() && made["spec"].is_object());
        host.bad("POST", base, &body, 409, 6);
        let one = format!("{base}/tmpl");
        let mut changed = host.get(&one);
        changed["spec"]["priority"] = json!(3);
        let kept = host.good("PUT", &one, &json!({"template": changed, "name": "tmpl"}));
        assert_eq!(kept["spec"]["priority"], 3);
        host.bad("PUT", &one, &json!({"template": changed, "name": "tmpl"}), 409, 10);
        let list = host.get(base);
        assert_eq!(list["items"][0]["metadata"]["name"], "tmpl");
        assert!(list["metadata"]["resourceVersion"].is_string());
        assert!(host.get(&format!("{base}?namePattern=zzz"))["items"].is_null());
        let mut wrong = template(kind, "wrong");
        wrong["spec"]["templates"][0]["container"]["args"] = json!(["{{inputs.parameters.none}}"]);
        host.bad("POST", &format!("{base}/lint"), &json!({"template": wrong}), 400, 3);
        host.bad("POST", base, &json!({"template": wrong}), 400, 3);
        assert_eq!(host.good("DELETE", &one, &Value::Null), json!({}));
        host.bad("GET", &one, &Value::Null, 404, 5);
    }
}

#[test]
fn a_workflow_is_submitted_from_a_template_with_wishes() {
    let host = Host::start();
    host.good("POST", "/api/v1/workflow-templates/default", &json!({"template": template("WorkflowTemplate", "tmpl")}));
    let cluster = json!({"template": template("ClusterWorkflowTemplate", "big")});
    host.good("POST", "/api/v1/cluster-workflow-templates", &cluster);
    let submit = "/api/v1/workflows/default/submit";
    let body = json!({"namespace": "default", "resourceKind": "WorkflowTemplate", "resourceName": "tmpl", "submitOptions": {
        "parameters": ["x=a=b"], "labels": "team=red,zone=n", "annotations": "note=yes", "priority": 5,
        "generateName": "mine-", "serviceAccount": "robot"}});
    let made = host.good("POST", submit, &body);
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("mine-"));
    assert_eq!(made["metadata"]["labels"]["team"], "red");
    assert_eq!(made["metadata"]["labels"]["workflows.argoproj.io/workflow-template"], "tmpl");
    assert_eq!(made["metadata"]["annotations"]["note"], "yes");
    assert_eq!((&made["spec"]["priority"], &made["spec"]["serviceAccountName"]), (&json!(5), &json!("robot")));
    assert_eq!(host.finished(name)["status"]["phase"], "Succeeded");
    let log = host.open(&format!("/api/v1/workflows/default/{name}/log"), &[]).whole().unwrap();
    assert!(log.text().contains("a=b"), "{}", log.text());
    let body = json!({"resourceKind": "cwft", "resourceName": "big", "submitOptions": {"name": "exact"}});
    let made = host.good("POST", submit, &body);
    assert_eq!(made["metadata"]["name"], "exact");
    assert_eq!(made["metadata"]["labels"]["workflows.argoproj.io/cluster-workflow-template"], "big");
    let body = json!({"resourceKind": "WorkflowTemplate", "resourceName": "tmpl", "submitOptions": {"name": "dry", "dryRun": true}});
    assert_eq!(host.good("POST", submit, &body)["metadata"]["name"], "dry");
    host.bad("GET", "/api/v1/workflows/default/dry", &Value::Null, 404, 5);
    host.bad("POST", submit, &json!({"resourceKind": "Pod", "resourceName": "x"}), 400, 3);
    host.bad("POST", submit, &json!({"resourceKind": "WorkflowTemplate", "resourceName": "none"}), 404, 5);
    let body =
        json!({"resourceKind": "WorkflowTemplate", "resourceName": "tmpl", "submitOptions": {"parameters": ["x"]}});
    host.bad("POST", submit, &body, 400, 3);
}

#[test]
fn schedules_are_kept_held_and_submitted_at_once() {
    let host = Host::start();
    let base = "/api/v1/cron-workflows/default";
    let schedule = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "CronWorkflow", "metadata": {"name": "yearly"},
        "spec": {"schedules": ["0 0 1 1 *"], "workflowSpec": one_step("", "true")["spec"],
            "workflowMetadata": {"labels": {"team": "red"}}}});
    host.good("POST", &format!("{base}/lint"), &json!({"cronWorkflow": schedule}));
    host.good("POST", base, &json!({"cronWorkflow": schedule}));
    assert_eq!(host.get(base)["items"][0]["metadata"]["name"], "yearly");
    assert_eq!(host.good("PUT", &format!("{base}/yearly/suspend"), &json!({}))["spec"]["suspend"], true);
    assert_ne!(host.good("PUT", &format!("{base}/yearly/resume"), &Value::Null)["spec"]["suspend"], true);
    let body = json!({"resourceKind": "cronworkflow", "resourceName": "yearly", "submitOptions": {}});
    let made = host.good("POST", "/api/v1/workflows/default/submit", &body);
    assert_eq!(made["metadata"]["labels"]["workflows.argoproj.io/cron-workflow"], "yearly");
    assert_eq!(made["metadata"]["labels"]["team"], "red");
    assert_eq!(made["metadata"]["ownerReferences"][0]["kind"], "CronWorkflow");
    host.finished(made["metadata"]["name"].as_str().unwrap());
    let mut wrong = schedule;
    wrong["spec"]["schedules"] = json!(["every now and then"]);
    host.bad("POST", &format!("{base}/lint"), &json!({"cronWorkflow": wrong}), 400, 3);
    assert_eq!(host.good("DELETE", &format!("{base}/yearly"), &Value::Null), json!({}));
    host.bad("PUT", &format!("{base}/yearly/suspend"), &json!({}), 404, 5);
}

#[test]
fn an_event_becomes_a_workflow_where_a_binding_takes_it() {
    let host = Host::start();
    let bindings = "/api/v1/workflow-event-bindings/default";
    assert!(host.get(bindings)["items"].is_null());
    host.good("POST", "/api/v1/workflow-templates/default", &json!({"template": template("WorkflowTemplate", "tmpl")}));
    let binding = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowEventBinding", "metadata": {"name": "b"},
        "spec": {"event": {"selector": "payload.hello == \"world\" && discriminator == \"any\""}, "submit": {
            "workflowTemplateRef": {"name": "tmpl"},
            "arguments": {"parameters": [{"name": "x", "valueFrom": {"event": "payload.hello"}}]}}}});
    let made = host.ask("POST", "/apis/argoproj.io/v1alpha1/namespaces/default/workfloweventbindings", &binding);
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(host.get(bindings)["items"][0]["metadata"]["name"], "b");
    for path in ["/api/v1/events/default/", "/api/v1/events/default"] {
        assert_eq!(host.good("POST", path, &json!({"hello": "world"})), json!({}));
    }
    assert_eq!(host.good("POST", "/api/v1/events/default/any", &json!({"hello": "moon"})), json!({}));
    assert!(host.get("/api/v1/workflows/default")["items"].is_null(), "none of these is for the binding");
    assert_eq!(host.good("POST", "/api/v1/events/default/any", &json!({"hello": "world"})), json!({}));
    let latest = host.get("/api/v1/workflows/default/@latest");
    assert_eq!(latest["spec"]["arguments"]["parameters"][0], json!({"name": "x", "value": "world"}));
}

#[test]
fn limits_of_semaphores_are_numbers_in_config_maps() {
    let host = Host::start();
    let (all, one) = ("/api/v1/sync/default", "/api/v1/sync/default/gate");
    let body = json!({"cmName": "locks", "key": "gate", "limit": 2, "type": "CONFIGMAP"});
    host.bad("GET", &format!("{one}?cmName=locks"), &Value::Null, 404, 5);
    host.bad("PUT", one, &body, 404, 5);
    let made = host.good("POST", all, &body);
    assert_eq!((&made["limit"], &made["key"], &made["cmName"]), (&json!(2), &json!("gate"), &json!("locks")));
    host.bad("POST", all, &body, 409, 6);
    host.good("POST", all, &json!({"cmName": "locks", "key": "other", "limit": 7}));
    assert_eq!(host.good("PUT", one, &json!({"cmName": "locks", "limit": 3}))["limit"], 3);
    assert_eq!(host.get(&format!("{one}?cmName=locks"))["limit"], 3);
    assert_eq!(host.get("/api/v1/sync/default/other?cmName=locks")["limit"], 7);
    host.bad("POST", all, &json!({"cmName": "locks", "key": "bad", "limit": 0}), 400, 3);
    host.bad("POST", all, &json!({"cmName": "locks", "key": "../../x", "limit": 1}), 400, 3);
    host.bad("POST", all, &json!({"key": "bad", "limit": 1}), 400, 3);
    host.bad("POST", all, &json!({"cmName": "locks", "key": "db", "limit": 1, "type": "DATABASE"}), 501, 12);
    assert_eq!(host.good("DELETE", &format!("{one}?cmName=locks"), &Value::Null), json!({}));
    host.bad("DELETE", &format!("{one}?cmName=locks"), &Value::Null, 404, 5);
    assert_eq!(host.get("/api/v1/sync/default/other?cmName=locks")["limit"], 7);
}
