//! Queues, PriorityClasses, PodGroups and nodes in the registry: what is stored reaches the scheduler in order, survives a
//! restart, and is true when it is read.

use octoflow_control::registry::{Change, DeleteOptions, Fault, ListOptions, Registry, WriteOptions, kinds};
use octoflow_store::Reader;
use serde_json::{Value, json};

use super::registry::{create, get, kind, quick, registry, until};

fn queue(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

fn causes(made: Result<Value, Fault>) -> Vec<String> {
    match made.unwrap_err() {
        Fault::Invalid { causes, .. } => causes.into_iter().map(|cause| cause.field).collect(),
        fault => panic!("{fault}"),
    }
}

fn delete(registry: &Registry, of: &str, name: &str) -> Result<(), Fault> {
    registry.delete(kind(of), "", name, &DeleteOptions::default()).map(drop)
}

fn patch(registry: &Registry, of: &str, name: &str, patch: &Value) -> Result<Value, Fault> {
    registry.update(kind(of), "", name, &WriteOptions::default(), |before| {
        let mut after = before.clone();
        octoflow_control::registry::patch::merge(&mut after, patch);
        Ok(after)
    })
}

fn names(registry: &Registry, of: &str) -> Vec<String> {
    let listed = registry.list(kind(of), &ListOptions::default()).unwrap().items;
    listed.iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// A workflow of one step in this queue.
fn in_queue(name: &str, queue: &str) -> Value {
    let mut workflow = quick(name);
    workflow["metadata"]["labels"] = json!({"volcano.sh/queue-name": queue});
    workflow
}

fn is_over(registry: &Registry, name: &str) -> bool {
    registry.find_run(kind("Workflow"), "default", name).is_ok_and(|found| found.row.archived)
}

#[test]
fn root_and_default_always_exist_and_can_be_changed_but_not_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    assert_eq!(names(&registry, "Queue"), ["default", "root"]);
    assert_eq!(get(&registry, "Queue", "default").unwrap()["spec"]["parent"], "root");
    for name in ["default", "root"] {
        assert!(matches!(delete(&registry, "Queue", name), Err(Fault::Conflict { .. })));
    }
    let changed = patch(&registry, "Queue", "default", &json!({"spec": {"weight": 7}})).unwrap();
    assert_eq!(changed["spec"]["weight"], 7);
    assert!(matches!(delete(&registry, "Queue", "default"), Err(Fault::Conflict { .. })));
    assert_eq!(names(&registry, "Queue"), ["default", "root"]);
    assert!(get(&registry, "Queue", "other").is_none());
    registry.close().unwrap();
}

#[test]
fn a_tree_is_admitted_as_a_whole_and_everything_wrong_is_told_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "Queue", queue("team", json!({"deserved": {"cpu": "4"}}))).unwrap();
    create(&registry, "Queue", queue("a", json!({"parent": "team", "deserved": {"cpu": "3"}}))).unwrap();
    let wrong = json!({"parent": "team", "deserved": {"cpu": "2"}, "capability": {"cpu": "1", "memory": "much"}});
    let told = causes(create(&registry, "Queue", queue("b", wrong)));
    // Not an amount; more than its own capability; with its sibling more than its parent's.
    assert_eq!(told, ["spec.capability.memory", "spec.deserved.cpu", "spec.deserved.cpu"]);
    assert_eq!(causes(create(&registry, "Queue", queue("b", json!({"parent": "tema"})))), ["spec.parent"]);
    assert_eq!(causes(patch(&registry, "Queue", "team", &json!({"spec": {"parent": "a"}}))), ["spec.parent"]);
    assert_eq!(
        causes(patch(&registry, "Queue", "team", &json!({"spec": {"deserved": {"cpu": "1"}}}))),
        ["spec.deserved.cpu"]
    );
    assert_eq!(names(&registry, "Queue"), ["a", "default", "root", "team"]);
    assert!(matches!(delete(&registry, "Queue", "team"), Err(Fault::Conflict { why, .. }) if why.contains("`a`")));
    delete(&registry, "Queue", "a").unwrap();
    delete(&registry, "Queue", "team").unwrap();
    registry.close().unwrap();
}

#[test]
fn what_the_engine_deserves_and_counts_is_shown_and_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let registry_one = registry(dir.path());
    create(&registry_one, "Queue", queue("a", json!({"weight": 3}))).unwrap();
    let deserved = |registry: &Registry| get(registry, "Queue", "a").unwrap()["status"]["deserved"]["cpu"].clone();
    assert_eq!(deserved(&registry_one), "3", "three quarters of four cores");
    patch(&registry_one, "Queue", "a", &json!({"spec": {"deserved": {"cpu": "2500m"}}})).unwrap();
    assert_eq!(deserved(&registry_one), "2500m");
    create(&registry_one, "Workflow", in_queue("w", "a")).unwrap();
    until(&registry_one, || is_over(&registry_one, "w"));
    registry_one.close().unwrap();
    let usage = Reader::open(dir.path()).unwrap().objects("Usage", None).unwrap();
    assert_eq!(
        usage.iter().map(|one| (one.namespace.as_str(), one.name.as_str())).collect::<Vec<_>>(),
        [("a", "default")]
    );

    let registry_two = registry(dir.path());
    assert_eq!(deserved(&registry_two), "2500m");
    delete(&registry_two, "Queue", "a").unwrap();
    assert!(get(&registry_two, "Queue", "a").is_none());
    registry_two.close().unwrap();
}

#[test]
fn a_queue_that_cannot_take_a_run_refuses_it_with_the_path() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let label = "metadata.labels['volcano.sh/queue-name']";
    create(&registry, "Queue", queue("team", json!({}))).unwrap();
    create(&registry, "Queue", queue("team-a", json!({"parent": "team"}))).unwrap();
    for queue in ["team", "tean-a"] {
        assert_eq!(causes(create(&registry, "Workflow", in_queue("w", queue))), [label], "{queue}");
    }
    let closed = registry.set_queue_closed("team", true).unwrap();
    assert_eq!(closed["status"]["state"], "Closed");
    assert_eq!(get(&registry, "Queue", "team-a").unwrap()["status"]["state"], "Closed", "with the one above it");
    assert_eq!(causes(create(&registry, "Workflow", in_queue("w", "team-a"))), [label]);
    registry.set_queue_closed("team", false).unwrap();
    let mut classed = in_queue("w", "team-a");
    classed["spec"]["podPriorityClassName"] = json!("high");
    assert_eq!(causes(create(&registry, "Workflow", classed.clone())), ["spec.podPriorityClassName"]);
    create(&registry, "PriorityClass", json!({"metadata": {"name": "high"}, "value": 10})).unwrap();
    create(&registry, "Workflow", classed).unwrap();
    assert!(matches!(registry.set_queue_closed("root", true), Err(Fault::Forbidden { .. })));
    assert!(matches!(registry.set_queue_closed("none", true), Err(Fault::NotFound { .. })));
    registry.close().unwrap();
}

#[test]
fn the_queue_of_a_namespace_is_that_of_its_runs() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "Queue", queue("a", json!({}))).unwrap();
    let space = json!({"metadata": {"name": "space", "labels": {"kueue.x-k8s.io/queue-name": "a"}}});
    create(&registry, "Namespace", space).unwrap();
    let run = |name: &str| {
        let mut workflow = quick(name);
        workflow["metadata"]["namespace"] = json!("space");
        create(&registry, "Workflow", workflow)
    };
    registry.set_queue_closed("a", true).unwrap();
    assert_eq!(causes(run("w")), ["metadata.namespace"]);
    registry.set_queue_closed("a", false).unwrap();
    patch(&registry, "Node", &node(&registry), &json!({"spec": {"unschedulable": true}})).unwrap();
    run("w").unwrap();
    until(&registry, || get(&registry, "Queue", "a").unwrap()["status"]["pending"] == 1);
    registry.close().unwrap();
}

#[test]
fn only_one_class_is_the_default() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let class = |name: &str| json!({"metadata": {"name": name}, "value": 10, "globalDefault": true});
    create(&registry, "PriorityClass", class("one")).unwrap();
    assert_eq!(causes(create(&registry, "PriorityClass", class("two"))), ["globalDefault"]);
    patch(&registry, "PriorityClass", "one", &json!({"globalDefault": false})).unwrap();
    create(&registry, "PriorityClass", class("two")).unwrap();
    let other = json!({"value": 11, "preemptionPolicy": "Never"});
    let refused = causes(patch(&registry, "PriorityClass", "one", &other));
    assert_eq!(refused, ["value", "preemptionPolicy"], "those who wait would change places");
    patch(&registry, "PriorityClass", "one", &json!({"description": "d"})).unwrap();
    let huge = json!({"metadata": {"name": "huge"}, "value": 2_000_000_000});
    assert_eq!(causes(create(&registry, "PriorityClass", huge)), ["value"]);
    registry.close().unwrap();
}

#[test]
fn a_pod_group_of_one_group_is_the_same_object_in_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let (volcano, older) = (&kinds::scheduling::POD_GROUP, &kinds::scheduling::INCUBATOR_POD_GROUP);
    let group = json!({"metadata": {"name": "g"}, "spec": {"minMember": 2}});
    let made = registry.create(older, "default", group, &WriteOptions::default()).unwrap();
    assert_eq!(made["apiVersion"], "scheduling.incubator.k8s.io/v1alpha1");
    let seen = registry.get(volcano, "default", "g").unwrap();
    assert_eq!(seen["apiVersion"], "scheduling.volcano.sh/v1beta1");
    assert_eq!((&seen["metadata"]["uid"], &seen["spec"]), (&made["metadata"]["uid"], &made["spec"]));
    assert_eq!(seen["status"]["phase"], "Pending");
    registry.delete(volcano, "default", "g", &DeleteOptions::default()).unwrap();
    assert!(matches!(registry.get(older, "default", "g"), Err(Fault::NotFound { .. })));
    registry.close().unwrap();
}

fn node(registry: &Registry) -> String {
    names(registry, "Node").remove(0)
}

#[test]
fn a_cordoned_node_starts_nothing_until_it_is_uncordoned_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let registry_one = registry(dir.path());
    let name = node(&registry_one);
    let mut watch = registry_one.watch(kind("Node"), ListOptions::default(), None).unwrap();
    assert_eq!(watch.poll().unwrap().len(), 1);
    let changes =
        json!({"metadata": {"labels": {"rack": "7", "kubernetes.io/os": null}}, "spec": {"unschedulable": true}});
    let changed = patch(&registry_one, "Node", &name, &changes).unwrap();
    assert_eq!(
        (&changed["spec"]["unschedulable"], &changed["metadata"]["labels"]["rack"]),
        (&json!(true), &json!("7"))
    );
    let events = watch.poll().unwrap();
    assert_eq!((events.len(), events[0].change), (1, Change::Modified));
    create(&registry_one, "Workflow", quick("w")).unwrap();
    until(&registry_one, || get(&registry_one, "Queue", "default").unwrap()["status"]["pending"] == 1);
    registry_one.close().unwrap();

    let registry_two = registry(dir.path());
    let kept = get(&registry_two, "Node", &name).unwrap();
    assert_eq!((&kept["spec"]["unschedulable"], &kept["metadata"]["labels"]["rack"]), (&json!(true), &json!("7")));
    assert!(kept["metadata"]["labels"]["kubernetes.io/os"].is_null());
    assert!(!is_over(&registry_two, "w"));
    patch(&registry_two, "Node", &name, &json!({"spec": {"unschedulable": null}})).unwrap();
    until(&registry_two, || is_over(&registry_two, "w"));
    registry_two.close().unwrap();
}

#[test]
fn a_declared_capacity_is_hard_and_what_is_wrong_with_a_node_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let name = node(&registry);
    let set = |capacity: Value| {
        registry.update_node_status(&name, &WriteOptions::default(), |before| {
            let mut after = before.clone();
            octoflow_control::registry::patch::merge(&mut after, &json!({"status": {"capacity": capacity}}));
            Ok(after)
        })
    };
    assert_eq!(causes(set(json!({"cpu": "many"}))), ["status.capacity.cpu"]);
    assert_eq!(set(json!({"cpu": "2", "example.com/x": "1"})).unwrap()["status"]["capacity"]["cpu"], "2");
    let total = get(&registry, "Queue", "root").unwrap()["status"]["deserved"].clone();
    assert_eq!((&total["cpu"], &total["example.com/x"]), (&json!("2"), &json!("1")));
    assert_eq!(set(json!({"cpu": null})).unwrap()["status"]["capacity"]["cpu"], "4", "as it was measured");
    let taints = json!([{"key": "a", "effect": "NoSchedule"}, {"key": "", "effect": "NoSchedule"}, {"key": "b", "effect": "Never"}]);
    let refused = patch(&registry, "Node", &name, &json!({"spec": {"taints": taints}}));
    assert_eq!(causes(refused), ["spec.taints[1].key", "spec.taints[2]"]);
    patch(&registry, "Node", &name, &json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})).unwrap();
    create(&registry, "Workflow", quick("w")).unwrap();
    until(&registry, || get(&registry, "Queue", "default").unwrap()["status"]["pending"] == 1);
    patch(&registry, "Node", &name, &json!({"spec": {"taints": []}})).unwrap();
    until(&registry, || is_over(&registry, "w"));
    registry.close().unwrap();
}

/// A workflow of one step that asks for so much cpu, in this queue.
fn asking(name: &str, queue: &str, cpu: &str) -> Value {
    let mut workflow = in_queue(name, queue);
    workflow["spec"]["templates"][1]["container"]["resources"] = json!({"requests": {"cpu": cpu}});
    workflow
}

#[test]
fn what_could_never_start_is_refused_and_a_dry_run_says_when_the_rest_would() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "Queue", queue("small", json!({"capability": {"cpu": "1"}}))).unwrap();
    let field = "spec.templates[1].container.resources.requests.cpu";
    assert_eq!(causes(create(&registry, "Workflow", asking("w", "small", "2"))), [field]);
    // Only measured: it would run alone.
    create(&registry, "Workflow", asking("large", "default", "1000")).unwrap();
    let node = names(&registry, "Node").remove(0);
    patch_status(&registry, &node, "3");
    assert_eq!(causes(create(&registry, "Workflow", asking("w", "small", "5"))), [field, field]);
    assert!(registry.find_run(kind("Workflow"), "default", "w").is_err(), "nothing is stored");
    let dry = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let told = registry.create(kind("Workflow"), "default", asking("w", "small", "1"), &dry).unwrap();
    let expected = &told["metadata"]["annotations"]["octoflow.io/expected-start"];
    assert!(expected == "now" || expected == "unknown", "{told}");
    // An edit acts at once.
    patch(&registry, "Queue", "small", &json!({"spec": {"capability": {"cpu": "3"}}})).unwrap();
    create(&registry, "Workflow", asking("w", "small", "2")).unwrap();
    registry.close().unwrap();
}

fn patch_status(registry: &Registry, node: &str, cpu: &str) {
    let changed = registry.update_node_status(node, &WriteOptions::default(), |before| {
        let mut after = before.clone();
        after["status"]["capacity"]["cpu"] = json!(cpu);
        Ok(after)
    });
    changed.unwrap();
}

#[test]
fn a_pod_that_waits_says_why_in_a_condition_and_an_event() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let node = names(&registry, "Node").remove(0);
    patch(&registry, "Node", &node, &json!({"spec": {"unschedulable": true}})).unwrap();
    create(&registry, "Workflow", asking("w", "default", "1")).unwrap();
    let pods = || registry.list(kind("Pod"), &ListOptions::default()).unwrap().items;
    until(&registry, || !pods().is_empty());
    let name = pods()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let pod = get(&registry, "Pod", &name).unwrap();
    let scheduled = &pod["status"]["conditions"][0];
    assert_eq!(scheduled["reason"], "Unschedulable", "{pod}");
    let message = scheduled["message"].as_str().unwrap();
    assert!(
        message.contains("1 node cordoned") && message.contains(&format!("to let it go: uncordon node {node}")),
        "{message}"
    );
    let mut options = ListOptions { namespace: Some("default".to_owned()), ..ListOptions::default() };
    options.selection.fields =
        octoflow_control::registry::FieldSelector::parse(&format!("involvedObject.name={name}")).unwrap();
    let events = registry.list(kind("Event"), &options).unwrap().items;
    assert_eq!(
        (events[0]["reason"].as_str(), events[0]["message"].as_str()),
        (Some("FailedScheduling"), Some(message))
    );
    patch(&registry, "Node", &node, &json!({"spec": {"unschedulable": false}})).unwrap();
    until(&registry, || is_over(&registry, "w"));
    registry.close().unwrap();
}

#[test]
fn pods_of_a_gang_that_waits_say_why_too() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let node = names(&registry, "Node").remove(0);
    patch(&registry, "Node", &node, &json!({"spec": {"unschedulable": true}})).unwrap();
    let set = json!({
        "apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet", "metadata": {"name": "s"},
        "spec": {"roles": [{
            "name": "worker", "replicas": 2, "completionPolicy": {"maxFailed": 1, "minSucceeded": 2},
            "template": {
                "metadata": {"annotations": {"scheduling.k8s.io/group-name": "g"}},
                "spec": {"containers": [{"name": "worker", "image": "busybox", "command": ["true"]}]},
            },
        }]},
    });
    create(&registry, "PodGroup", json!({"metadata": {"name": "g"}, "spec": {"minMember": 2}})).unwrap();
    create(&registry, "TaskSet", set).unwrap();
    let pods = || registry.list(kind("Pod"), &ListOptions::default()).unwrap().items;
    until(&registry, || pods().len() == 2);
    for pod in pods() {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let pod = get(&registry, "Pod", name).unwrap();
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        let waits = conditions.iter().find(|condition| condition["reason"] == "Unschedulable");
        let message = waits.unwrap_or_else(|| panic!("{pod}"))["message"].as_str().unwrap();
        assert!(message.contains("1 node cordoned"), "{message}");
    }
    registry.close().unwrap();
}

#[test]
fn a_pod_group_names_a_queue_and_a_class_that_are_there_and_guarantees_fit_on_the_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "Queue", queue("team", json!({}))).unwrap();
    create(&registry, "Queue", queue("a", json!({"parent": "team"}))).unwrap();
    let group = |queue: &str, class: &str| json!({"metadata": {"name": "g"}, "spec": {"minMember": 1, "queue": queue, "priorityClassName": class}});
    assert_eq!(causes(create(&registry, "PodGroup", group("team", "none"))), ["spec.priorityClassName", "spec.queue"]);
    create(&registry, "PriorityClass", json!({"metadata": {"name": "c"}, "value": 1})).unwrap();
    create(&registry, "PodGroup", group("a", "c")).unwrap();

    let guarantee = |cpu: &str| queue("b", json!({"guarantee": {"resource": {"cpu": cpu}}}));
    let node = node(&registry);
    patch_status(&registry, &node, "3");
    assert_eq!(causes(create(&registry, "Queue", guarantee("4"))), ["spec.guarantee.resource.cpu"]);
    create(&registry, "Queue", guarantee("3")).unwrap();
    registry.close().unwrap();
}
