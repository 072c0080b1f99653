//! TaskSets behind the verbs of the registry: created, refused, changed, watched, deleted and used by workflows, like
//! every other kind of run.

use octoflow_control::{
    expire::{Expirer, RetentionPolicy},
    now,
    registry::{
        Change, DeleteOptions, Deleted, Fault, FieldSelector, ListOptions, LogQuery, Propagation, Registry, Selection,
        WriteOptions, kinds,
    },
};
use octoflow_model::Time;
use serde_json::{Value, json};

use super::registry::{create, kind, map, quick, registry, until};

fn role(name: &str, replicas: u32) -> Value {
    json!({
        "name": name, "replicas": replicas, "completionPolicy": {"maxFailed": 1, "minSucceeded": replicas},
        "template": {"metadata": {"labels": {"app": "demo"}}, "spec": {"containers": [{
            "name": "worker", "image": "busybox", "command": ["true"],
        }]}},
    })
}

fn set(name: &str) -> Value {
    json!({
        "apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet", "metadata": {"name": name},
        "spec": {"roles": [role("ps", 1), role("worker", 2)]},
    })
}

/// A TaskSet that starts nothing until it is resumed.
fn held(name: &str) -> Value {
    let mut set = set(name);
    set["spec"]["suspend"] = json!(true);
    set
}

fn get(registry: &Registry, of: &str, name: &str) -> Option<Value> {
    match registry.get(kind(of), "default", name) {
        Ok(object) => Some(object),
        Err(Fault::NotFound { .. }) => None,
        Err(fault) => panic!("{fault}"),
    }
}

fn over(registry: &Registry, name: &str) -> Value {
    let done = || registry.find_run(kind("TaskSet"), "default", name).is_ok_and(|named| named.row.archived);
    until(registry, done);
    get(registry, "TaskSet", name).unwrap()
}

fn names(registry: &Registry, of: &str, fields: &str) -> Vec<String> {
    let selection = Selection { fields: FieldSelector::parse(fields).unwrap(), ..Selection::default() };
    let listing = registry.list(kind(of), &ListOptions { selection, ..ListOptions::default() }).unwrap();
    listing.items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn update(registry: &Registry, name: &str, change: impl Fn(&mut Value)) -> Result<Value, Fault> {
    registry.update(kind("TaskSet"), "default", name, &WriteOptions::default(), |before| {
        let mut after = before.clone();
        change(&mut after);
        Ok(after)
    })
}

#[test]
fn ts32_a_task_set_runs_beside_a_workflow_of_the_same_name() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "Workflow", quick("demo")).unwrap();
    let made = create(&registry, "TaskSet", set("demo")).unwrap();
    assert_eq!((&made["kind"], &made["metadata"]["name"]), (&json!("TaskSet"), &json!("demo")));
    assert!(made["metadata"]["resourceVersion"].is_string(), "{made}");
    assert!(matches!(create(&registry, "TaskSet", set("demo")), Err(Fault::Exists { .. })));
    let ended = over(&registry, "demo");
    assert_eq!(ended["status"]["state"], "Succeeded", "{ended}");
    until(&registry, || registry.find_run(kind("Workflow"), "default", "demo").unwrap().row.archived);
    assert_eq!(get(&registry, "Workflow", "demo").unwrap()["status"]["phase"], "Succeeded");
    for (of, other) in [("TaskSet", "Workflow"), ("Workflow", "TaskSet")] {
        let latest = registry.find_run(kind(of), "default", "@latest").unwrap().row;
        assert_eq!((latest.kind.as_str(), latest.name.as_str()), (of, "demo"));
        assert!(registry.find_run_by_uid(kind(other), &latest.uid).is_err());
        assert_eq!(names(&registry, of, ""), ["demo"]);
    }
    let options = DeleteOptions::default();
    assert!(matches!(registry.delete(kind("TaskSet"), "default", "demo", &options), Ok(Deleted::Gone(_))));
    assert!(get(&registry, "TaskSet", "demo").is_none() && get(&registry, "Workflow", "demo").is_some());
}

#[test]
fn ts32_the_name_of_the_definition_does_where_the_group_belongs() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let mut object = set("demo");
    object["apiVersion"] = json!("tasksets.octopus.openi.pcl.cn/v1alpha1");
    let made = create(&registry, "TaskSet", object).unwrap();
    assert_eq!(made["apiVersion"], "octopus.openi.pcl.cn/v1alpha1");
    assert_eq!(kinds::of_plural("tasksets.octopus.openi.pcl.cn", "tasksets"), Some(kind("TaskSet")));
    let mut other = set("other");
    other["apiVersion"] = json!("tasksets.octopus.openi.pcl.cn/v1");
    assert!(matches!(create(&registry, "TaskSet", other), Err(Fault::BadRequest(_))));
}

#[test]
fn ts02_ts03_ts31_ts33_what_cannot_run_is_refused_with_its_places_and_nothing_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let with = |change: &dyn Fn(&mut Value)| {
        let mut object = set("demo");
        change(&mut object);
        object
    };
    type Case = (&'static str, Box<dyn Fn(&mut Value)>);
    let case = |field: &'static str, change: fn(&mut Value)| -> Case { (field, Box::new(change)) };
    let cases = [
        case("spec.roles[1].name", |set| set["spec"]["roles"][1]["name"] = json!("ps")),
        case("spec.roles[0].completionPolicy.minSucceeded", |set| {
            set["spec"]["roles"][0]["completionPolicy"]["minSucceeded"] = json!(0);
        }),
        case("spec.roles[0].completionPolicy.minSucceeded", |set| {
            set["spec"]["roles"][0]["completionPolicy"]["minSucceeded"] = json!(2);
        }),
        case("spec.roles[1].completionPolicy.maxFailed", |set| {
            set["spec"]["roles"][1]["completionPolicy"]["maxFailed"] = json!(3);
        }),
        case("spec.roles[1].completionPolicy.maxFailed", |set| {
            set["spec"]["roles"][1]["completionPolicy"]["maxFailed"] = json!(-2);
        }),
        case("spec.roles[0].eventPolicy[0].event", |set| {
            set["spec"]["roles"][0]["eventPolicy"] = json!([{"event": "RoleLost", "action": "NoAction"}]);
        }),
        case("spec.roles[0].eventPolicy[0].action", |set| {
            set["spec"]["roles"][0]["eventPolicy"] = json!([{"event": "RoleFailed", "action": "Explode"}]);
        }),
        case("spec.roles[0].retryPolicy.maxRetryCount", |set| {
            set["spec"]["roles"][0]["retryPolicy"] = json!({"retry": true, "maxRetryCount": -1});
        }),
        case("spec.roles[0].replicas", |set| set["spec"]["roles"][0]["replicas"] = json!(0)),
        case("spec.roles", |set| set["spec"]["roles"] = json!([])),
        case("spec.roles", |set| set["spec"] = json!({})),
        case("metadata.name", |set| set["metadata"]["name"] = json!("my-job")),
        case("metadata.name", |set| set["metadata"]["name"] = json!("UPPER")),
        case("metadata.name", |set| set["metadata"]["name"] = json!("a".repeat(64))),
    ];
    for (field, change) in cases {
        let object = with(&*change);
        match create(&registry, "TaskSet", object.clone()) {
            Err(Fault::Invalid { causes, .. }) => {
                assert!(causes.iter().any(|cause| cause.field == field), "{field}: {causes:?}");
            }
            other => panic!("{field}: {other:?}"),
        }
        assert!(names(&registry, "TaskSet", "").is_empty() && names(&registry, "ConfigMap", "").is_empty());
    }
    let longest = "a".repeat(63);
    create(&registry, "TaskSet", with(&|set| set["metadata"]["name"] = json!(longest))).unwrap();
    let drawn = with(&|set| set["metadata"] = json!({"generateName": "b".repeat(63)}));
    let made = create(&registry, "TaskSet", drawn).unwrap();
    assert_eq!(made["metadata"]["name"].as_str().unwrap().len(), 63);
}

#[test]
fn ts32_a_task_set_is_steered_and_marked_and_nothing_else_of_it_changes() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "TaskSet", held("demo")).unwrap();
    assert_eq!(get(&registry, "TaskSet", "demo").unwrap()["status"]["state"], "Waiting");
    let labelled = update(&registry, "demo", |set| set["metadata"]["labels"] = json!({"a": "b"})).unwrap();
    assert_eq!(labelled["metadata"]["labels"], json!({"a": "b"}));
    match update(&registry, "demo", |set| set["spec"]["roles"][0]["replicas"] = json!(3)) {
        Err(Fault::Invalid { causes, .. }) => {
            assert_eq!(causes[0].field, "spec.roles");
            assert!(causes[0].message.contains("TaskSet"), "{causes:?}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(names(&registry, "TaskSet", "status.state=Waiting"), ["demo"]);
    assert!(names(&registry, "TaskSet", "status.state=Running").is_empty());
    update(&registry, "demo", |set| set["spec"]["suspend"] = json!(false)).unwrap();
    assert_eq!(over(&registry, "demo")["status"]["state"], "Succeeded");
    assert_eq!(names(&registry, "TaskSet", "status.state=Succeeded,metadata.name=demo"), ["demo"]);
    assert_eq!(names(&registry, "TaskSet", "status.phase=TaskSetCompleted"), ["demo"]);
    assert!(names(&registry, "TaskSet", "status.phase!=TaskSetCompleted").is_empty());
    let after = update(&registry, "demo", |set| set["metadata"]["labels"] = json!({})).unwrap();
    assert!(after["metadata"]["labels"].is_null() && after["status"]["state"] == "Succeeded", "{after}");

    create(&registry, "TaskSet", held("other")).unwrap();
    update(&registry, "other", |set| set["spec"]["shutdown"] = json!("Terminate")).unwrap();
    assert_eq!(over(&registry, "other")["status"]["state"], "Failed");
}

#[test]
fn ts32_a_watch_tells_of_task_sets_only_and_of_one_from_its_beginning_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let revision = registry.revision().unwrap();
    let mut watch = registry.watch(kind("TaskSet"), ListOptions::default(), Some(revision)).unwrap();
    create(&registry, "Workflow", quick("w")).unwrap();
    create(&registry, "TaskSet", held("demo")).unwrap();
    let mut seen = watch.poll().unwrap();
    update(&registry, "demo", |set| set["spec"]["suspend"] = json!(false)).unwrap();
    until(&registry, || {
        seen.extend(watch.poll().unwrap());
        seen.last().is_some_and(|event| event.object["status"]["state"] == "Succeeded")
    });
    assert_eq!(seen.last().unwrap().change, Change::Modified);
    registry.delete(kind("TaskSet"), "default", "demo", &DeleteOptions::default()).unwrap();
    until(&registry, || {
        seen.extend(watch.poll().unwrap());
        seen.last().is_some_and(|event| event.change == Change::Deleted)
    });
    assert!(seen.iter().all(|event| event.object["kind"] == "TaskSet" && event.object["metadata"]["name"] == "demo"));
    assert_eq!(seen[0].change, Change::Added);
    assert_eq!(seen.last().unwrap().object["status"]["state"], "Succeeded");
}

#[test]
fn ts25_a_task_set_that_is_held_goes_with_its_control_unit() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "ConfigMap", map("mine")).unwrap();
    create(&registry, "TaskSet", held("demo")).unwrap();
    let options = DeleteOptions { propagation: Propagation::Foreground, ..DeleteOptions::default() };
    registry.delete(kind("TaskSet"), "default", "demo", &options).unwrap();
    until(&registry, || get(&registry, "TaskSet", "demo").is_none());
    assert_eq!(names(&registry, "ConfigMap", ""), ["mine"]);
    assert!(names(&registry, "Pod", "").is_empty());
}

#[test]
fn ts26_pods_of_the_past_keep_their_logs_and_events_tell_how_it_went() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "TaskSet", set("demo")).unwrap();
    over(&registry, "demo");
    assert!(names(&registry, "Pod", "").is_empty(), "pods of what is over are gone");
    let pod = "demo-worker-0-0-1";
    let query = |pod: &str| LogQuery {
        namespace: "default".to_owned(),
        pod: Some(pod.to_owned()),
        container: Some("worker".to_owned()),
        ..LogQuery::default()
    };
    assert!(registry.pod_log_bytes(query(pod)).unwrap().read().unwrap().finished);
    assert!(matches!(registry.pod_log_bytes(query("demo-worker-0-0-2")), Err(Fault::NotFound { .. })));
    let events = registry.list(kind("Event"), &ListOptions::default()).unwrap().items;
    let reasons: Vec<&str> = events.iter().map(|event| event["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons.first(), Some(&"TaskSetCreated"), "{reasons:?}");
    assert!(reasons.contains(&"RoleSucceeded") && reasons.contains(&"TaskSetSucceeded"), "{reasons:?}");
    let fields = "involvedObject.name=demo,involvedObject.kind=TaskSet";
    assert_eq!(names(&registry, "Event", fields).len(), events.len());
}

#[test]
fn ts23_the_pods_of_workflows_are_nobodys_to_delete() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "Workflow", quick("w")).unwrap();
    until(&registry, || registry.find_run(kind("Workflow"), "default", "w").unwrap().row.archived);
    let pods = names(&registry, "Pod", "");
    let options = DeleteOptions::default();
    match registry.delete(kind("Pod"), "default", &pods[0], &options) {
        Err(Fault::Forbidden { why, .. }) => assert!(why.contains("workflow w"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(registry.delete(kind("Pod"), "default", "nobody", &options), Err(Fault::NotFound { .. })));
    assert!(matches!(registry.evict("default", "nobody", &options), Err(Fault::NotFound { .. })));
}

#[test]
fn ts25_task_sets_go_when_their_time_is_up_and_with_what_they_belong_to() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let mut soon = set("soon");
    soon["spec"]["ttlSecondsAfterFinished"] = json!(0);
    create(&registry, "TaskSet", soon).unwrap();
    create(&registry, "TaskSet", set("kept")).unwrap();
    for name in ["soon", "kept"] {
        let done = || registry.find_run(kind("TaskSet"), "default", name).is_ok_and(|named| named.row.archived);
        until(&registry, done);
    }
    let later = Time(now().0 + 1_000_000);
    Expirer::new(RetentionPolicy::default()).run_due(registry.controller(), later).unwrap();
    assert_eq!(names(&registry, "TaskSet", ""), ["kept"]);
    Expirer::new("succeeded=0".parse().unwrap()).run_due(registry.controller(), later).unwrap();
    assert!(names(&registry, "TaskSet", "").is_empty());

    let owner = create(&registry, "ConfigMap", map("owner")).unwrap();
    let mut owned = held("owned");
    owned["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
    }]);
    create(&registry, "TaskSet", owned).unwrap();
    registry.delete(kind("ConfigMap"), "default", "owner", &DeleteOptions::default()).unwrap();
    until(&registry, || get(&registry, "TaskSet", "owned").is_none());

    let mut elsewhere = held("elsewhere");
    elsewhere["metadata"]["namespace"] = json!("team");
    create(&registry, "TaskSet", elsewhere).unwrap();
    registry.delete(kind("Namespace"), "", "team", &DeleteOptions::default()).unwrap();
    until(&registry, || matches!(registry.get(kind("Namespace"), "", "team"), Err(Fault::NotFound { .. })));
}

#[test]
fn ts33_a_pod_group_is_kept_and_judged() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let group = |least: i64| json!({"metadata": {"name": "pg"}, "spec": {"minMember": least}});
    assert!(matches!(create(&registry, "PodGroup", group(-1)), Err(Fault::Invalid { .. })));
    let made = create(&registry, "PodGroup", group(3)).unwrap();
    assert_eq!(made["apiVersion"], "scheduling.volcano.sh/v1beta1");
    let mut gang = set("gang");
    for role in gang["spec"]["roles"].as_array_mut().unwrap() {
        role["template"]["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "pg"});
    }
    create(&registry, "TaskSet", gang).unwrap();
    assert_eq!(over(&registry, "gang")["status"]["state"], "Succeeded");
}

/// A workflow with one step, of this resource template.
fn asks(name: &str, resource: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"entrypoint": "main", "templates": [
        {"name": "main", "resource": resource,
         "outputs": {"parameters": [{"name": "state", "valueFrom": {"jsonPath": "{.status.state}", "default": "-"}}]}},
    ]}})
}

fn ended(registry: &Registry, workflow: &str) -> Value {
    until(registry, || registry.find_run(kind("Workflow"), "default", workflow).unwrap().row.archived);
    get(registry, "Workflow", workflow).unwrap()
}

fn output(workflow: &Value) -> &Value {
    let nodes = workflow["status"]["nodes"].as_object().unwrap();
    &nodes.values().next().unwrap()["outputs"]["parameters"][0]["value"]
}

#[test]
fn a_workflow_makes_a_task_set_and_waits_for_what_becomes_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let mut child = set("child");
    child["metadata"] = json!({"generateName": "child"});
    let resource = json!({
        "action": "create", "setOwnerReference": true, "manifest": child.to_string(),
        "successCondition": "status.state == Succeeded", "failureCondition": "status.state == Failed",
    });
    create(&registry, "Workflow", asks("w", &resource)).unwrap();
    let workflow = ended(&registry, "w");
    assert_eq!(workflow["status"]["phase"], "Succeeded", "{}", workflow["status"]);
    assert_eq!(output(&workflow), "Succeeded");
    let children = names(&registry, "TaskSet", "");
    let made = get(&registry, "TaskSet", &children[0]).unwrap();
    assert_eq!(made["metadata"]["ownerReferences"][0]["kind"], "Workflow");

    let resource = json!({"action": "get", "flags": ["taskset", children[0]], "manifest": ""});
    let mut asking = asks("getter", &resource);
    asking["spec"]["templates"][0]["resource"]["manifest"] =
        json!(format!("kind: TaskSet\nmetadata: {{name: {}}}", children[0]));
    create(&registry, "Workflow", asking).unwrap();
    assert_eq!(output(&ended(&registry, "getter")), "Succeeded");

    // It belongs to the workflow, and goes with it.
    registry.delete(kind("Workflow"), "default", "w", &DeleteOptions::default()).unwrap();
    until(&registry, || get(&registry, "TaskSet", &children[0]).is_none());
}

#[test]
fn a_task_set_that_a_workflow_made_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let resource = json!({
        "action": "create", "setOwnerReference": true, "manifest": held("child").to_string(),
        "successCondition": "status.state == Succeeded",
    });
    create(&registry, "Workflow", asks("w", &resource)).unwrap();
    until(&registry, || get(&registry, "TaskSet", "child").is_some());
    let stop = |workflow: &Value| {
        let mut after = workflow.clone();
        after["spec"]["shutdown"] = json!("Stop");
        Ok(after)
    };
    registry.update(kind("Workflow"), "default", "w", &WriteOptions::default(), stop).unwrap();
    assert_eq!(ended(&registry, "w")["status"]["phase"], "Failed");
    assert_eq!(over(&registry, "child")["status"]["state"], "Failed");
}

#[test]
fn a_workflow_patches_applies_and_deletes_task_sets() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "TaskSet", held("child")).unwrap();
    let of = |action: &str, manifest: Value| json!({"action": action, "manifest": manifest.to_string()});
    let mut patch = of("patch", json!({"kind": "TaskSet", "metadata": {"name": "child"}, "spec": {"suspend": false}}));
    patch["mergeStrategy"] = json!("merge");
    patch["successCondition"] = json!("status.state == Succeeded");
    create(&registry, "Workflow", asks("patching", &patch)).unwrap();
    let patched = ended(&registry, "patching");
    assert_eq!(patched["status"]["phase"], "Succeeded", "{}", patched["status"]);
    assert_eq!(get(&registry, "TaskSet", "child").unwrap()["status"]["state"], "Succeeded");

    create(&registry, "Workflow", asks("applying", &of("apply", set("fresh")))).unwrap();
    assert_eq!(ended(&registry, "applying")["status"]["phase"], "Succeeded");
    assert_eq!(over(&registry, "fresh")["status"]["state"], "Succeeded");

    let bad = json!({"kind": "TaskSet", "metadata": {"name": "bad-name"}, "spec": {"roles": []}});
    let told = create(&registry, "Workflow", asks("early", &of("create", bad.clone()))).unwrap_err().to_string();
    assert!(told.contains("bad-name"), "what is written out is refused at once: {told}");
    // What a variable completes is refused when it is known.
    let mut late = bad;
    late["metadata"]["labels"] = json!({"of": "{{workflow.name}}"});
    create(&registry, "Workflow", asks("refused", &of("create", late))).unwrap();
    let refused = ended(&registry, "refused");
    assert_eq!(refused["status"]["phase"], "Error");
    assert!(refused["status"]["message"].as_str().unwrap().contains("bad-name"), "{}", refused["status"]["message"]);

    let gone = of("delete", json!({"kind": "TaskSet", "metadata": {"name": "child"}}));
    let mut deleting = asks("deleting", &gone);
    deleting["spec"]["templates"][0]["outputs"] = json!({});
    create(&registry, "Workflow", deleting).unwrap();
    assert_eq!(ended(&registry, "deleting")["status"]["phase"], "Succeeded");
    assert!(get(&registry, "TaskSet", "child").is_none());
}
