//! Workflows made, read, listed and deleted.

use serde_json::{Value, json};

use crate::host::{Host, eventually, one_step};

const HERE: &str = "/api/v1/workflows/default";

#[test]
fn a_workflow_is_running_when_it_is_accepted_and_can_be_read_until_it_is_deleted() {
    let host = Host::start();
    let made = host.good("POST", HERE, &json!({"workflow": one_step("hello-", "echo hi"), "namespace": "default"}));
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("hello-"));
    assert_eq!(made["status"]["phase"], "Running", "clients stop waiting for what is not running");
    assert_eq!(made["metadata"]["labels"]["workflows.argoproj.io/creator"], "admin");
    let over = host.finished(name);
    assert_eq!(over["status"]["phase"], "Succeeded");
    for node in over["status"]["nodes"].as_object().unwrap().values() {
        assert!(["id", "name", "type"].iter().all(|field| node[field].is_string()), "{node}");
    }
    let latest = host.get(&format!("{HERE}/@latest"));
    assert_eq!(latest["metadata"]["name"], name);
    let uid = over["metadata"]["uid"].as_str().unwrap();
    assert_eq!(host.get(&format!("{HERE}/other?uid={uid}"))["metadata"]["name"], name);
    assert_eq!(host.good("DELETE", &format!("{HERE}/{name}"), &Value::Null), json!({}));
    host.bad("GET", &format!("{HERE}/{name}"), &Value::Null, 404, 5);
    host.bad("DELETE", &format!("{HERE}/{name}"), &Value::Null, 404, 5);
}

#[test]
fn a_running_workflow_can_be_deleted_and_its_name_is_free_again() {
    let host = Host::start();
    let mut workflow = one_step("", "sleep 100");
    workflow["metadata"] = json!({"name": "long"});
    host.good("POST", HERE, &json!({"workflow": workflow}));
    let message = host.bad("POST", HERE, &json!({"workflow": workflow}), 409, 6);
    assert!(message.contains("already exists"), "{message}");
    host.good("DELETE", &format!("{HERE}/long"), &Value::Null);
    eventually("what ran has ended and the workflow is gone", || {
        host.ask("GET", &format!("{HERE}/long"), &Value::Null).status == 404
    });
    host.good("POST", HERE, &json!({"workflow": workflow}));
}

#[test]
fn an_empty_list_is_null_and_a_full_one_is_newest_first_with_pages() {
    let host = Host::start();
    let empty = host.get(HERE);
    assert!(empty["items"].is_null() && empty["metadata"].is_object(), "{empty}");
    let names: Vec<String> = (0..3).map(|number| host.submit(&format!("n{number}-"), "true")).collect();
    names.iter().for_each(|name| drop(host.finished(name)));
    let listed = |query: &str| -> Vec<String> {
        let list = host.get(&format!("{HERE}?{query}"));
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let newest_first: Vec<String> = names.iter().rev().cloned().collect();
    assert_eq!(listed(""), newest_first);
    let first = host.get(&format!("{HERE}?listOptions.limit=2"));
    assert_eq!(first["metadata"]["continue"], "2");
    assert_eq!(listed("listOptions.limit=2&listOptions.continue=2"), newest_first[2..]);
    assert_eq!(listed("listOptions.fieldSelector=metadata.name%3Dn1&nameFilter=Prefix"), newest_first[1..2]);
    assert_eq!(listed(&format!("listOptions.fieldSelector=metadata.name={}", names[0])), names[..1]);
    assert_eq!(listed("listOptions.labelSelector=workflows.argoproj.io/phase%20in%20(Failed)"), [""; 0]);
    assert_eq!(listed("createdAfter=2100-01-01T00:00:00Z"), [""; 0]);
    assert_eq!(listed("finishedBefore=2100-01-01T00:00:00Z").len(), 3);
    for everywhere in ["/api/v1/workflows/", "/api/v1/workflows"] {
        assert_eq!(host.get(everywhere)["items"].as_array().unwrap().len(), 3);
    }
    assert!(host.get("/api/v1/workflows/elsewhere")["items"].is_null());
}

#[test]
fn fields_are_chosen_or_left_out() {
    let host = Host::start();
    let name = host.submit("w-", "true");
    host.finished(&name);
    let list = host.get(&format!("{HERE}?fields=items.metadata.name,items.status.phase"));
    assert_eq!(list, json!({"items": [{"metadata": {"name": name}, "status": {"phase": "Succeeded"}}]}));
    let list = host.get(&format!("{HERE}?fields=-items.status.nodes,items.spec"));
    assert!(list["items"][0]["status"]["nodes"].is_null() && list["items"][0]["spec"].is_null());
    assert_eq!(list["items"][0]["status"]["phase"], "Succeeded");
    let one = host.get(&format!("{HERE}/{name}?fields=status.phase"));
    assert_eq!(one, json!({"status": {"phase": "Succeeded"}}));
}

#[test]
fn a_dry_run_and_a_lint_keep_nothing_and_say_everything_that_is_wrong() {
    let host = Host::start();
    let dry = host.good("POST", HERE, &json!({"workflow": one_step("w-", "true"), "serverDryRun": true}));
    assert!(dry["metadata"]["name"].as_str().unwrap().starts_with("w-") && dry["spec"].is_object());
    let linted = host.good("POST", &format!("{HERE}/lint"), &json!({"workflow": one_step("w-", "true")}));
    assert_eq!(linted["spec"]["entrypoint"], "main");
    let mut nameless = one_step("", "true");
    nameless["metadata"] = json!({});
    host.good("POST", &format!("{HERE}/lint"), &json!({"workflow": nameless}));
    let mut wrong = one_step("w-", "true");
    wrong["spec"]["entrypoint"] = json!("nowhere");
    wrong["spec"]["templates"][0]["container"]["args"] = json!(["{{inputs.parameters.none}}"]);
    let message = host.bad("POST", &format!("{HERE}/lint"), &json!({"workflow": wrong}), 400, 3);
    assert!(message.contains("nowhere") && message.contains("inputs.parameters.none"), "{message}");
    host.bad("POST", HERE, &json!({"workflow": wrong}), 400, 3);
    assert!(host.get(HERE)["items"].is_null());
}

#[test]
fn what_is_over_is_in_the_archive_with_its_labels() {
    let host = Host::start();
    let mut workflow = one_step("w-", "true");
    workflow["metadata"]["labels"] = json!({"team": "red"});
    let made = host.good("POST", HERE, &json!({"workflow": workflow}));
    let (name, uid) = (made["metadata"]["name"].as_str().unwrap(), made["metadata"]["uid"].as_str().unwrap());
    host.finished(name);
    let long = host.submit("long-", "sleep 100");
    let list = host.get("/api/v1/archived-workflows?namespace=default");
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "what runs is not in the archive");
    assert_eq!(list["items"][0]["metadata"]["name"], name);
    assert_eq!(host.get("/api/v1/archived-workflows?namePrefix=w-")["items"].as_array().unwrap().len(), 1);
    assert!(host.get("/api/v1/archived-workflows?namePrefix=x-")["items"].is_null());
    assert_eq!(host.get(&format!("/api/v1/archived-workflows/{uid}"))["metadata"]["name"], name);
    let by_name = format!("/api/v1/archived-workflows/none?namespace=default&name={name}");
    assert_eq!(host.get(&by_name)["metadata"]["uid"], uid);
    let open = host.get(&format!("{HERE}/{long}"))["metadata"]["uid"].as_str().unwrap().to_owned();
    host.bad("GET", &format!("/api/v1/archived-workflows/{open}"), &Value::Null, 404, 5);
    let keys = host.get("/api/v1/archived-workflows-label-keys");
    assert!(keys["items"].as_array().unwrap().contains(&json!("team")), "{keys}");
    let values = "/api/v1/archived-workflows-label-values?listOptions.labelSelector=team";
    assert_eq!(host.get(values), json!({"items": ["red"]}));
    assert_eq!(host.get(&format!("{values}&namespace=elsewhere")), json!({"items": []}));
    assert_eq!(host.good("DELETE", &format!("/api/v1/archived-workflows/{uid}"), &Value::Null), json!({}));
    host.bad("GET", &format!("/api/v1/archived-workflows/{uid}"), &Value::Null, 404, 5);
}

#[test]
fn a_workflow_may_be_called_like_a_verb() {
    let host = Host::start();
    for name in ["lint", "submit"] {
        let mut workflow = one_step("", "true");
        workflow["metadata"] = json!({"name": name});
        host.good("POST", HERE, &json!({"workflow": workflow}));
        host.finished(name);
        host.good("DELETE", &format!("{HERE}/{name}"), &Value::Null);
    }
}

#[test]
fn a_long_list_is_whole_and_masked_as_a_short_one() {
    let host = Host::start();
    let mut names: Vec<String> = (0..120).map(|_| host.submit("w-", "true")).collect();
    names.iter().for_each(|name| drop(host.finished(name)));
    names.reverse();
    let listed = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap();
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let whole = host.get(HERE);
    assert_eq!(listed(&whole), names);
    assert_eq!(
        (&whole["kind"], &whole["items"][119]["status"]["phase"]),
        (&json!("WorkflowList"), &json!("Succeeded"))
    );
    let masked = host.get(&format!("{HERE}?fields=items.metadata.name"));
    assert_eq!(listed(&masked), names);
    assert_eq!(masked["items"][0], json!({"metadata": {"name": names[0]}}));
    assert!(masked["metadata"].is_null());
    assert_eq!(host.get(&format!("{HERE}?fields=kind")), json!({"kind": "WorkflowList"}));
    let page = host.get(&format!("{HERE}?listOptions.limit=70"));
    assert_eq!((listed(&page), &page["metadata"]["continue"]), (names[..70].to_vec(), &json!("70")));
}
