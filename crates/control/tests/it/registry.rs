//! The registry on a real disk: every kind behind the same verbs, and deletion.

use std::{path::Path, time::Duration};

use octoflow_control::registry::{
    Change, DeleteOptions, Deleted, Event, Fault, FieldSelector, Kind, LabelSelector, ListOptions, LogQuery,
    Propagation, Registry, Selection, WriteOptions, kinds,
};
use octoflow_engine::{Command, argo::ident};
use serde_json::{Value, json};

use super::open;

pub(crate) fn registry(dir: &Path) -> Registry {
    let registry = Registry::new(open(dir)).unwrap();
    registry.restore_all().unwrap();
    registry
}

pub(crate) fn kind(name: &str) -> &'static Kind {
    kinds::of_key(name).unwrap()
}

pub(crate) fn create(registry: &Registry, of: &str, object: Value) -> Result<Value, Fault> {
    let space = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
    registry.create(kind(of), &space, object, &WriteOptions::default())
}

pub(crate) fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"k": "v"}})
}

/// One step that runs nothing.
pub(crate) fn quick(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"entrypoint": "main", "templates": [
        {"name": "main", "steps": [[{"name": "one", "template": "leaf"}]]},
        {"name": "leaf", "container": {"image": "alpine", "command": ["true"]}},
    ]}})
}

/// A workflow that waits until it is resumed.
pub(crate) fn held(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"entrypoint": "main", "templates": [
        {"name": "main", "steps": [[{"name": "gate", "template": "gate"}], [{"name": "last", "template": "leaf"}]]},
        {"name": "gate", "suspend": {}},
        {"name": "leaf", "container": {"image": "alpine", "command": ["true"]}},
    ]}})
}

/// Waits until the condition holds, checking after every commit.
pub(crate) fn until(registry: &Registry, mut holds: impl FnMut() -> bool) {
    let (bell, rung) = std::sync::mpsc::channel();
    registry.on_change(move |_| {
        let _ = bell.send(());
    });
    let patience = std::time::Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(std::time::Instant::now() < patience, "it never came to be");
        // Logs and the end of a deletion notify too; the limit is only for what was missed before the subscription.
        let _ = rung.recv_timeout(Duration::from_millis(20));
    }
}

fn over(registry: &Registry, name: &str) {
    until(registry, || registry.find_run(kind("Workflow"), "default", name).is_ok_and(|named| named.row.archived));
}

pub(crate) fn get(registry: &Registry, of: &str, name: &str) -> Option<Value> {
    match registry.get(kind(of), "default", name) {
        Ok(object) => Some(object),
        Err(Fault::NotFound { .. }) => None,
        Err(fault) => panic!("{fault}"),
    }
}

fn delete(registry: &Registry, of: &str, name: &str, propagation: Propagation) -> Deleted {
    let options = DeleteOptions { propagation, ..DeleteOptions::default() };
    registry.delete(kind(of), "default", name, &options).unwrap()
}

#[test]
fn a_resource_template_loses_nothing_that_others_change_meanwhile() {
    const COUNT: usize = 60;
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "ConfigMap", map("shared")).unwrap();
    let change = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"step-{{inputs.parameters.n}}": "1"}}"#;
    let resource = json!({"action": "patch", "mergeStrategy": "merge", "manifest": change});
    let arguments = json!({"parameters": [{"name": "n", "value": "{{item}}"}]});
    let step = json!({"name": "a", "template": "change", "withSequence": {"count": COUNT}, "arguments": arguments});
    let manifest = json!({"metadata": {"name": "changes"}, "spec": {"entrypoint": "main", "templates": [
        {"name": "main", "steps": [[step]]},
        {"name": "change", "inputs": {"parameters": [{"name": "n"}]}, "resource": resource},
    ]}});
    create(&registry, "Workflow", manifest).unwrap();
    let mut made = 0;
    while !registry.find_run(kind("Workflow"), "default", "changes").unwrap().row.archived {
        let key = format!("other-{made}");
        if patch(&registry, "ConfigMap", "shared", |object| object["data"][&key] = json!("1")).is_ok() {
            made += 1;
        }
    }
    let run = get(&registry, "Workflow", "changes").unwrap();
    assert_eq!(run["status"]["phase"], "Succeeded", "{}", run["status"]);
    let data = get(&registry, "ConfigMap", "shared").unwrap()["data"].as_object().unwrap().clone();
    let lost = |of: &str, count: usize| (0..count).filter(|n| !data.contains_key(&format!("{of}-{n}"))).count();
    assert!(made > 0);
    assert_eq!((lost("step", COUNT), lost("other", made)), (0, 0), "of {made} changes by others");
}

fn owned_by(owner: &Value, name: &str) -> Value {
    let mut object = map(name);
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
    }]);
    object
}

fn patch(registry: &Registry, of: &str, name: &str, change: impl Fn(&mut Value)) -> Result<Value, Fault> {
    registry.update(kind(of), "default", name, &WriteOptions::default(), |before| {
        let mut after = before.clone();
        change(&mut after);
        Ok(after)
    })
}

#[test]
fn whoever_goes_on_from_the_list_of_an_empty_store_hears_everything_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let listed = registry.list(kind("Workflow"), &ListOptions::default()).unwrap().revision;
    assert!(listed.0 > 0, "to watch from 0 means to begin with what is there, in no order");
    for name in ["a", "b", "c"] {
        create(&registry, "Workflow", held(name)).unwrap();
    }
    let mut watch = registry.watch(kind("Workflow"), ListOptions::default(), Some(listed)).unwrap();
    let told = watch.poll().unwrap();
    let revisions: Vec<u64> = told.iter().map(|event| revision_of(&event.object)).collect();
    assert!(revisions.is_sorted() && revisions.iter().all(|revision| *revision > listed.0), "{revisions:?}");
    let added = told.iter().filter(|event| event.change == Change::Added).count();
    assert_eq!(added, 3);
}

fn revision_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[test]
fn pods_and_events_are_seen_while_a_run_goes_on_and_after() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "Workflow", quick("w")).unwrap();
    over(&registry, "w");
    let pods = registry.list(kind("Pod"), &ListOptions::default()).unwrap().items;
    assert_eq!(pods.len(), 1);
    let pod = &pods[0];
    let name = pod["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("w-leaf-"), "{name}");
    assert_eq!(pod["status"]["phase"], "Succeeded");
    assert_eq!(pod["spec"]["containers"][0]["image"], "alpine");
    assert_eq!(pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 0);
    assert_eq!(pod["metadata"]["ownerReferences"][0]["name"], "w");
    assert_eq!(get(&registry, "Pod", name).as_ref(), Some(pod));
    assert!(get(&registry, "Pod", "w-leaf-1").is_none() && get(&registry, "Pod", "w").is_none());
    let select = |labels: &str, fields: &str| ListOptions {
        selection: Selection {
            labels: LabelSelector::parse(labels).unwrap(),
            fields: FieldSelector::parse(fields).unwrap(),
        },
        ..ListOptions::default()
    };
    let count = |of: &str, options: &ListOptions| registry.list(kind(of), options).unwrap().items.len();
    assert_eq!(count("Pod", &select("workflows.argoproj.io/workflow=w", "")), 1);
    assert_eq!(count("Pod", &select("workflows.argoproj.io/workflow=x", "")), 0);
    assert_eq!(count("Pod", &select("workflows.argoproj.io/completed=false", "")), 0);
    assert_eq!(count("Pod", &select("", &format!("metadata.name={name}"))), 1);
    let events = registry.list(kind("Event"), &select("", "involvedObject.name=w")).unwrap().items;
    let reasons: Vec<&str> = events.iter().map(|event| event["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons.first(), Some(&"WorkflowRunning"));
    assert!(reasons.contains(&"WorkflowNodeSucceeded") && reasons.contains(&"WorkflowSucceeded"), "{reasons:?}");
    let event = events[0]["metadata"]["name"].as_str().unwrap();
    assert_eq!(get(&registry, "Event", event).unwrap()["reason"], "WorkflowRunning");
    let nodes = registry.list(kind("Node"), &ListOptions::default()).unwrap().items;
    assert_eq!(nodes[0]["status"]["allocatable"]["pods"], "4");
    let denied = registry.create(kind("Pod"), "default", pod.clone(), &WriteOptions::default());
    assert!(denied.is_err(), "a view cannot be written");
}

#[test]
fn lists_of_views_go_on_where_a_page_ended() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    for number in 0..5 {
        let name = format!("w{number}");
        create(&registry, "Workflow", quick(&name)).unwrap();
        over(&registry, &name);
    }
    for of in ["Pod", "Event"] {
        let whole = registry.list(kind(of), &ListOptions::default()).unwrap().items;
        for limit in [1, 2, 3, 100] {
            let (mut items, mut after) = (Vec::new(), None);
            loop {
                let options = ListOptions { limit: Some(limit), after, ..ListOptions::default() };
                let listing = registry.list(kind(of), &options).unwrap();
                assert!(listing.items.len() <= limit);
                items.extend(listing.items);
                after = listing.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(items, whole, "{of} by {limit}");
        }
    }
    let bad = ListOptions { after: Some("x".to_owned()), ..ListOptions::default() };
    assert!(matches!(registry.list(kind("Pod"), &bad), Err(Fault::BadRequest(_))));
}

#[test]
fn a_watch_of_pods_tells_what_changed() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "Workflow", held("w")).unwrap();
    let mut watch = registry.watch(kind("Pod"), ListOptions::default(), None).unwrap();
    assert!(watch.poll().unwrap().is_empty(), "a suspended node is no pod");
    let run = registry.find_run(kind("Workflow"), "default", "w").unwrap().run;
    registry.command(run, Command::Resume { selector: None, supplied: Default::default() }).unwrap();
    over(&registry, "w");
    let events = watch.poll().unwrap();
    assert_eq!(events.last().unwrap().object["status"]["phase"], "Succeeded");
    assert!(watch.poll().unwrap().is_empty());
    delete(&registry, "Workflow", "w", Propagation::Background);
    let events = watch.poll().unwrap();
    assert_eq!(events.iter().map(|event| event.change).collect::<Vec<_>>(), [Change::Deleted]);
}

fn pod_name(run: &str, node: &Value) -> String {
    ident::pod_name(run, node["name"].as_str().unwrap(), node["templateName"].as_str().unwrap())
}

#[test]
fn pods_that_pod_gc_removed_are_not_seen_and_their_logs_stay() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let at_once = |more: Value| {
        let mut policy = json!({"deleteDelayDuration": "0s"});
        policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        policy
    };
    let team = |value: &str| json!({"matchLabels": {"team": value}});
    let cases = [
        ("none", json!({}), 1),
        ("done", at_once(json!({"strategy": "OnPodCompletion"})), 0),
        ("well", at_once(json!({"strategy": "OnPodSuccess"})), 0),
        ("over", at_once(json!({"strategy": "OnWorkflowCompletion"})), 0),
        ("ours", at_once(json!({"strategy": "OnWorkflowCompletion", "labelSelector": team("a")})), 0),
        ("theirs", at_once(json!({"strategy": "OnWorkflowCompletion", "labelSelector": team("b")})), 1),
        ("later", json!({"strategy": "OnPodCompletion", "deleteDelayDuration": "1h"}), 1),
    ];
    for (name, policy, seen) in cases {
        let mut workflow = quick(name);
        workflow["spec"]["podGC"] = policy;
        workflow["spec"]["templates"][1]["metadata"] = json!({"labels": {"team": "a"}});
        create(&registry, "Workflow", workflow).unwrap();
        over(&registry, name);
        let label = format!("workflows.argoproj.io/workflow={name}");
        let selection = Selection { labels: LabelSelector::parse(&label).unwrap(), ..Selection::default() };
        let options = ListOptions { selection, ..ListOptions::default() };
        // Time stamps have whole seconds, so a pod may disappear a moment after its end.
        let list = || registry.list(kind("Pod"), &options).unwrap().items;
        until(&registry, || list().len() == seen);
        let object = get(&registry, "Workflow", name).unwrap();
        let nodes = object["status"]["nodes"].as_object().unwrap();
        let pods: Vec<String> =
            nodes.values().filter(|node| node["type"] == "Pod").map(|node| pod_name(name, node)).collect();
        assert_eq!(get(&registry, "Pod", &pods[0]).is_some(), seen == 1, "{name}");
        let log = LogQuery { namespace: "default".to_owned(), pod: Some(pods[0].clone()), ..LogQuery::default() };
        let of_run = LogQuery { run: Some((kind("Workflow"), name.to_owned())), ..log.clone() };
        assert!(registry.logs(of_run).is_ok() && registry.pod_log_bytes(log).is_ok(), "{name}");
    }
}

#[test]
fn a_watch_tells_that_pod_gc_removed_a_pod_though_nothing_happens_to_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let mut workflow = held("w");
    let steps = json!([[{"name": "first", "template": "leaf"}], [{"name": "gate", "template": "gate"}]]);
    workflow["spec"]["templates"][0]["steps"] = steps;
    workflow["spec"]["podGC"] = json!({"strategy": "OnWorkflowCompletion", "deleteDelayDuration": "1s"});
    create(&registry, "Workflow", workflow).unwrap();
    let mut whole = registry.watch(kind("Pod"), ListOptions::default(), None).unwrap();
    until(&registry, || whole.poll().unwrap().iter().any(|event| event.object["status"]["phase"] == "Succeeded"));
    let run = registry.find_run(kind("Workflow"), "default", "w").unwrap().run;
    let resume = || registry.command(run, Command::Resume { selector: None, supplied: Default::default() }).is_ok();
    until(&registry, resume);
    over(&registry, "w");
    let mut later = registry.watch(kind("Pod"), ListOptions::default(), Some(registry.revision().unwrap())).unwrap();
    for (watch, what) in [(&mut whole, "from the start"), (&mut later, "from a revision on")] {
        let mut changes = Vec::new();
        until(&registry, || {
            let quiet = watch.is_quiet();
            let events = watch.poll().unwrap();
            assert!(!quiet || events.is_empty(), "{what}");
            changes.extend(events.into_iter().map(|event| event.change));
            changes.last() == Some(&Change::Deleted)
        });
        assert_eq!(watch.due_in(), None, "{what}");
        assert_eq!(changes.iter().filter(|change| **change == Change::Deleted).count(), 1, "{what}");
    }
}

#[test]
fn what_is_written_on_a_run_changes_open_and_over_and_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "Workflow", held("w")).unwrap();
    let label = |registry: &Registry, value: &str| {
        patch(registry, "Workflow", "w", |after| {
            after["metadata"]["labels"]["team"] = json!(value);
            after["metadata"]["annotations"]["note"] = json!(value);
        })
    };
    let before = get(&registry, "Workflow", "w").unwrap();
    let after = label(&registry, "a").unwrap();
    assert_eq!(after["metadata"]["labels"]["team"], "a");
    assert_ne!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    let listed = |registry: &Registry, value: &str| {
        let labels = LabelSelector::parse(&format!("team={value}")).unwrap();
        let selection = Selection { labels, ..Selection::default() };
        let options = ListOptions { selection, ..ListOptions::default() };
        registry.list(kind("Workflow"), &options).unwrap().items.len()
    };
    assert_eq!((listed(&registry, "a"), listed(&registry, "b")), (1, 0));
    let same = label(&registry, "a").unwrap();
    assert_eq!(same["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"], "nothing changed");
    registry.close().unwrap();

    let registry = super::registry::registry(dir.path());
    let again = get(&registry, "Workflow", "w").unwrap();
    assert_eq!(again["metadata"]["annotations"]["note"], "a");
    let stale = registry.replace(kind("Workflow"), "default", "w", before, &WriteOptions::default());
    assert!(matches!(stale, Err(Fault::Conflict { .. })), "{stale:?}");
    let run = registry.find_run(kind("Workflow"), "default", "w").unwrap().run;
    registry.command(run, Command::Resume { selector: None, supplied: Default::default() }).unwrap();
    over(&registry, "w");
    let after = label(&registry, "b").unwrap();
    assert_eq!(after["status"]["phase"], "Succeeded");
    assert_eq!((listed(&registry, "a"), listed(&registry, "b")), (0, 1));
    assert_eq!(after["metadata"]["labels"]["workflows.argoproj.io/phase"], "Succeeded");
}

#[test]
fn of_a_run_only_what_can_change_changes_and_the_rest_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "Workflow", held("w")).unwrap();
    let fields = |outcome: Result<Value, Fault>| match outcome {
        Err(Fault::Invalid { causes, .. }) => causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let refused = patch(&registry, "Workflow", "w", |after| {
        after["spec"]["entrypoint"] = json!("other");
        after["spec"]["activeDeadlineSeconds"] = json!(5);
        after["spec"]["shutdown"] = json!("Now");
        after["status"]["phase"] = json!("Succeeded");
    });
    assert_eq!(fields(refused), ["spec.activeDeadlineSeconds", "spec.entrypoint", "status", "spec.shutdown"]);
    let suspended = patch(&registry, "Workflow", "w", |after| after["spec"]["suspend"] = json!(true)).unwrap();
    assert_eq!(suspended["spec"]["suspend"], true);
    let resumed = patch(&registry, "Workflow", "w", |after| {
        after["spec"].as_object_mut().unwrap().remove("suspend");
    });
    assert!(resumed.unwrap()["spec"]["suspend"].is_null());
    create(&registry, "Workflow", held("x")).unwrap();
    patch(&registry, "Workflow", "x", |after| after["spec"]["shutdown"] = json!("Terminate")).unwrap();
    over(&registry, "x");
    assert_eq!(get(&registry, "Workflow", "x").unwrap()["status"]["phase"], "Failed");
}

#[test]
fn an_open_run_is_ended_and_then_gone_and_its_name_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "Workflow", held("w")).unwrap();
    match delete(&registry, "Workflow", "w", Propagation::Background) {
        Deleted::Going(object) => assert!(object["metadata"]["deletionTimestamp"].is_string(), "{object}"),
        Deleted::Gone(object) => assert!(object["metadata"]["deletionTimestamp"].is_string(), "{object}"),
    }
    until(&registry, || get(&registry, "Workflow", "w").is_none());
    create(&registry, "Workflow", quick("w")).unwrap();
    over(&registry, "w");
    assert!(matches!(delete(&registry, "Workflow", "w", Propagation::Background), Deleted::Gone(_)));
    assert!(get(&registry, "Workflow", "w").is_none());
}

#[test]
fn finalizers_hold_back_runs_and_objects_also_across_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let guarded = |mut object: Value| {
        object["metadata"]["finalizers"] = json!(["octoflow.io/test"]);
        object
    };
    create(&registry, "ConfigMap", guarded(map("c"))).unwrap();
    create(&registry, "Workflow", guarded(held("w"))).unwrap();
    for (of, name) in [("ConfigMap", "c"), ("Workflow", "w")] {
        assert!(matches!(delete(&registry, of, name, Propagation::Background), Deleted::Going(_)));
    }
    over(&registry, "w");
    registry.close().unwrap();
    let registry = super::registry::registry(dir.path());
    for (of, name) in [("ConfigMap", "c"), ("Workflow", "w")] {
        let object = get(&registry, of, name).unwrap();
        assert!(object["metadata"]["deletionTimestamp"].is_string());
        let more = patch(&registry, of, name, |after| {
            after["metadata"]["finalizers"] = json!(["octoflow.io/test", "octoflow.io/late"]);
        });
        assert!(matches!(more, Err(Fault::Invalid { .. })), "{more:?}");
        patch(&registry, of, name, |after| after["metadata"]["finalizers"] = json!([])).unwrap();
        assert!(get(&registry, of, name).is_none());
    }
}

#[test]
fn what_belongs_to_others_goes_after_them_before_them_or_stays() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    for (propagation, name) in
        [(Propagation::Background, "b"), (Propagation::Foreground, "f"), (Propagation::Orphan, "o")]
    {
        let owner = create(&registry, "ConfigMap", map(name)).unwrap();
        let child = create(&registry, "Secret", owned_by(&owner, &format!("{name}-child"))).unwrap();
        create(&registry, "ConfigMap", owned_by(&child, &format!("{name}-grandchild"))).unwrap();
        delete(&registry, "ConfigMap", name, propagation);
        until(&registry, || get(&registry, "ConfigMap", name).is_none());
        let (child, grandchild) = (format!("{name}-child"), format!("{name}-grandchild"));
        if propagation == Propagation::Orphan {
            let child = get(&registry, "Secret", &child).unwrap();
            assert!(child["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty), "{child}");
            assert!(get(&registry, "ConfigMap", &grandchild).is_some());
            continue;
        }
        if propagation == Propagation::Foreground {
            assert!(get(&registry, "Secret", &child).is_none(), "children went first");
        }
        until(&registry, || get(&registry, "ConfigMap", &grandchild).is_none());
        assert!(get(&registry, "Secret", &child).is_none());
    }
}

#[test]
fn what_has_another_owner_stays_and_what_never_had_one_that_exists_goes() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let one = create(&registry, "ConfigMap", map("one")).unwrap();
    let two = create(&registry, "Workflow", held("two")).unwrap();
    let mut shared = owned_by(&one, "shared");
    let other = owned_by(&two, "x")["metadata"]["ownerReferences"][0].clone();
    shared["metadata"]["ownerReferences"].as_array_mut().unwrap().push(other);
    create(&registry, "ConfigMap", shared).unwrap();
    delete(&registry, "ConfigMap", "one", Propagation::Background);
    let owners =
        || get(&registry, "ConfigMap", "shared").unwrap()["metadata"]["ownerReferences"].as_array().unwrap().len();
    until(&registry, || owners() == 1);
    delete(&registry, "Workflow", "two", Propagation::Background);
    until(&registry, || get(&registry, "ConfigMap", "shared").is_none());
    let ghost = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "u"}});
    create(&registry, "ConfigMap", owned_by(&ghost, "haunted")).unwrap();
    until(&registry, || get(&registry, "ConfigMap", "haunted").is_none());
}

#[test]
fn a_namespace_is_there_while_anything_is_in_it_and_takes_everything_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let names = || -> Vec<String> {
        let items = registry.list(kind("Namespace"), &ListOptions::default()).unwrap().items;
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(), ["default"]);
    let mut watch = registry.watch(kind("Namespace"), ListOptions::default(), None).unwrap();
    assert_eq!(watch.poll().unwrap().len(), 1);
    let early = registry.revision().unwrap();
    let at = |mut object: Value| {
        object["metadata"]["namespace"] = json!("team");
        object
    };
    create(&registry, "ConfigMap", at(map("c"))).unwrap();
    create(&registry, "Workflow", at(held("w"))).unwrap();
    create(&registry, "Namespace", json!({"metadata": {"name": "empty"}})).unwrap();
    assert_eq!(names(), ["default", "empty", "team"]);
    let told: Vec<(Change, String)> = watch.poll().unwrap().into_iter().map(called).collect();
    assert_eq!(told, [(Change::Added, "team".to_owned()), (Change::Added, "empty".to_owned())]);
    let mut late = registry.watch(kind("Namespace"), ListOptions::default(), Some(early)).unwrap();
    assert_eq!(late.poll().unwrap().into_iter().map(called).collect::<Vec<_>>(), told);
    let options = DeleteOptions::default();
    let gone = registry.delete(kind("Namespace"), "", "team", &options).unwrap();
    assert!(matches!(gone, Deleted::Going(object) if object["status"]["phase"] == "Terminating"));
    until(&registry, || names() == ["default", "empty"]);
    let told = watch.poll().unwrap().into_iter().map(called).next_back();
    assert_eq!(told, Some((Change::Deleted, "team".to_owned())));
    assert!(registry.find_run(kind("Workflow"), "team", "w").is_err());
    assert!(matches!(registry.delete(kind("Namespace"), "", "default", &options), Err(Fault::Forbidden { .. })));
    registry.delete(kind("Namespace"), "", "empty", &options).unwrap();
    until(&registry, || names() == ["default"]);
}

fn called(event: Event) -> (Change, String) {
    (event.change, event.object["metadata"]["name"].as_str().unwrap().to_owned())
}

#[test]
fn what_cannot_be_a_name_is_stored_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    for name in ["../x", "a/b", "..", "A", ""] {
        for (of, object) in [("ConfigMap", map(name)), ("Workflow", quick(name))] {
            let outcome = create(&registry, of, object);
            assert!(matches!(outcome, Err(Fault::Invalid { .. })), "{name}: {outcome:?}");
        }
        let outcome = registry.create(kind("ConfigMap"), name, map("a"), &WriteOptions::default());
        assert!(name.is_empty() || outcome.is_err(), "{name}: {outcome:?}");
    }
}
