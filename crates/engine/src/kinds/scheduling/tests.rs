//! Queues, PodGroups and classes are admitted by their own rules, and queues by those of their tree; everything that is
//! wrong is told at once, with its path.

use octoflow_manifest::Problem;
use serde_json::{Value, json};

use super::*;
use crate::schedule::{MAX_DEPTH, spec::QueueSpec};

fn told(problems: &[Problem]) -> Vec<String> {
    let path = |problem: &Problem| problem.path.as_ref().map(ToString::to_string).unwrap_or_default();
    problems.iter().map(|problem| format!("{} {}: {}", problem.code, path(problem), problem.message)).collect()
}

fn object(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec})
}

fn alike(told: &[String], wanted: &[&str]) {
    assert_eq!(told.len(), wanted.len(), "{told:#?}");
    for wanted in wanted {
        assert!(told.iter().any(|one| one.starts_with(wanted)), "{wanted} in {told:#?}");
    }
}

fn put(tree: &mut QueueTree, name: &str, spec: Value) {
    tree.put(queue(&object(name, spec)), false);
}

fn checked(tree: &QueueTree, name: &str, spec: Value) -> Vec<String> {
    told(&tree.check(&queue(&object(name, spec)), |name| name == "busy"))
}

#[test]
fn a_queue_is_read_as_it_is_written() {
    let mut full = object(
        "a",
        json!({
            "parent": "p", "weight": 3, "priority": 5, "guarantee": {"resource": {"cpu": "500m"}},
            "deserved": {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": "1"}, "capability": {"cpu": "4"},
            "reclaimable": false, "dequeueStrategy": "strict",
        }),
    );
    full["metadata"]["annotations"] = json!({PLACEMENT: "spread", LONGEST_WAIT: "90m"});
    let (problems, warnings) = QUEUE.check(&full);
    assert!(problems.is_empty() && warnings.is_empty(), "{problems:?} {warnings:?}");
    let spec = queue(&full);
    assert_eq!((spec.parent.as_deref(), spec.weight, spec.priority), (Some("p"), 3, 5));
    assert_eq!(spec.guarantee, [("cpu".to_owned(), 500)].into());
    let deserved = [("cpu", 2000), ("memory", 1 << 30), ("nvidia.com/gpu", 1)];
    assert_eq!(spec.deserved, deserved.map(|(name, amount)| (name.to_owned(), amount)).into());
    assert!(spec.strict && spec.spread && !spec.reclaimable);
    assert_eq!(spec.longest_wait.map(|wait| wait.as_secs()), Some(5400));
    assert_eq!(queue(&object("b", json!({}))), QueueSpec::new("b"));
}

#[test]
fn everything_that_is_wrong_with_a_queue_is_told_at_once() {
    let mut wrong = object(
        "a",
        json!({
            "weight": 0, "guarantee": {"resource": {"cpu": "3", "memory": "-1"}}, "deserved": {"cpu": "2", "a b": "1"},
            "capability": {"cpu": "1", "memory": "9999999E"}, "dequeueStrategy": "loose", "colour": "red",
            "affinity": {},
        }),
    );
    wrong["metadata"]["annotations"] = json!({PLACEMENT: "near", LONGEST_WAIT: "soon"});
    let (problems, warnings) = QUEUE.check(&wrong);
    alike(
        &told(&problems),
        &[
            "OF1041 spec.weight: ",
            "OF1041 spec.dequeueStrategy: ",
            "OF1003 spec.colour: ",
            "OF1010 spec.guarantee.resource.memory: ",
            "OF1041 spec.deserved['a b']: ",
            "OF1041 spec.capability.memory: ",
            "OF1084 spec.guarantee.resource.cpu: guarantee of cpu is 3, more than deserved, which is 2",
            "OF1084 spec.guarantee.resource.cpu: guarantee of cpu is 3, more than capability, which is 1",
            "OF1084 spec.deserved.cpu: ",
            "OF1084 metadata.annotations['octoflow.io/placement']: ",
            "OF1033 metadata.annotations['octoflow.io/longest-wait']: ",
        ],
    );
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

#[test]
fn sums_of_children_never_exceed_what_their_parent_states() {
    let mut tree = QueueTree::default();
    put(&mut tree, "team", json!({"deserved": {"cpu": "8"}, "capability": {"cpu": "10", "memory": "4Gi"}}));
    put(&mut tree, "a", json!({"parent": "team", "deserved": {"cpu": "5"}}));
    assert_eq!(checked(&tree, "b", json!({"parent": "team", "deserved": {"cpu": "3"}})), [] as [&str; 0]);
    // A resource that the parent does not name is not limited by it.
    assert_eq!(checked(&tree, "b", json!({"parent": "team", "deserved": {"example.com/x": "99"}})), [] as [&str; 0]);
    let wanted = json!({"parent": "team", "guarantee": {"resource": {"memory": "5Gi"}}, "deserved": {"cpu": "4"},
        "capability": {"cpu": "11"}});
    alike(
        &checked(&tree, "b", wanted),
        &[
            "OF1084 spec.guarantee.resource.memory: guarantee of memory is 5Gi, with its siblings 5Gi, more than \
             capability of queue `team`, which is 4Gi",
            "OF1084 spec.deserved.cpu: deserved of cpu is 4, with its siblings 9, more than deserved of queue `team`, \
             which is 8",
            "OF1084 spec.capability.cpu: ",
        ],
    );
    // What a queue had before does not count twice.
    assert_eq!(checked(&tree, "a", json!({"parent": "team", "deserved": {"cpu": "8"}})), [] as [&str; 0]);
    alike(&checked(&tree, "team", json!({"deserved": {"cpu": "4"}})), &["OF1084 spec.deserved.cpu: "]);
}

#[test]
fn what_a_queue_far_above_states_bounds_what_is_stated_below() {
    let mut tree = QueueTree::default();
    put(&mut tree, "org", json!({"capability": {"cpu": "4"}, "guarantee": {"resource": {"memory": "1Gi"}}}));
    put(&mut tree, "team", json!({"parent": "org"}));
    put(&mut tree, "a", json!({"parent": "team", "deserved": {"cpu": "3"}}));
    alike(
        &checked(&tree, "b", json!({"parent": "team", "deserved": {"cpu": "2"}, "capability": {"cpu": "10"}})),
        &[
            "OF1084 spec.deserved.cpu: deserved of cpu is 2, with its siblings 5, more than capability of queue `org`",
            "OF1084 spec.capability.cpu: capability of cpu is 10, more than that of queue `org`, which is 4",
        ],
    );
    alike(
        &checked(&tree, "b", json!({"parent": "team", "guarantee": {"resource": {"memory": "2Gi"}}})),
        &["OF1084 spec.guarantee.resource.memory: "],
    );
    alike(&checked(&tree, "org", json!({"deserved": {"cpu": "2"}})), &["OF1084 spec.deserved.cpu: "]);
    put(&mut tree, "a", json!({"parent": "team", "capability": {"cpu": "3"}}));
    alike(&checked(&tree, "org", json!({"capability": {"cpu": "2"}})), &["OF1084 spec.capability.cpu: "]);
    let guarantee = |name: &str, parent: &str, cpu: &str| {
        queue(&object(name, json!({"parent": parent, "guarantee": {"resource": {"cpu": cpu}}})))
    };
    tree.put(guarantee("c", "root", "3"), false);
    assert_eq!(tree.guaranteed(&guarantee("b", "team", "2"), "cpu"), 5000);
    assert_eq!(tree.guaranteed(&guarantee("c", "root", "1"), "cpu"), 1000);
}

#[test]
fn a_parent_exists_is_not_below_its_child_and_has_no_work() {
    let mut tree = QueueTree::default();
    put(&mut tree, "team", json!({}));
    put(&mut tree, "busy", json!({}));
    put(&mut tree, "a", json!({"parent": "team"}));
    alike(&checked(&tree, "b", json!({"parent": "taem"})), &["OF1084 spec.parent: there is no queue `taem`"]);
    alike(&checked(&tree, "team", json!({"parent": "a"})), &["OF1084 spec.parent: queue `team` would be below itself"]);
    alike(&checked(&tree, "b", json!({"parent": "b"})), &["OF1084 spec.parent: there is no queue `b`"]);
    alike(&checked(&tree, "team", json!({"parent": "team"})), &["OF1084 spec.parent: queue `team` would be"]);
    alike(&checked(&tree, "b", json!({"parent": "busy"})), &["OF1084 spec.parent: queue `busy` has work"]);
    alike(&checked(&tree, "b", json!({"parent": "default"})), &["OF1084 spec.parent: the queue `default` takes"]);
    let (problems, _) = QUEUE.check(&object("root", json!({"parent": "team"})));
    alike(&told(&problems), &["OF1084 spec.parent: root is above all"]);
}

#[test]
fn a_tree_is_as_deep_as_the_scheduler_walks_and_no_deeper() {
    let mut tree = QueueTree::default();
    let mut parent = "root".to_owned();
    for level in 1..=MAX_DEPTH {
        let (name, spec) = (format!("q{level}"), json!({"parent": parent}));
        assert_eq!(checked(&tree, &name, spec.clone()), [] as [&str; 0]);
        put(&mut tree, &name, spec);
        parent = name;
    }
    alike(&checked(&tree, "deep", json!({"parent": parent})), &["OF1084 spec.parent: queues would be 9 deep"]);
    // A whole subtree counts when it moves.
    put(&mut tree, "other", json!({}));
    alike(&checked(&tree, "q1", json!({"parent": "other"})), &["OF1084 spec.parent: queues would be 9 deep"]);
}

#[test]
fn what_is_in_use_is_not_deleted_and_what_always_exists_never_is() {
    let mut tree = QueueTree::default();
    put(&mut tree, "team", json!({}));
    put(&mut tree, "a", json!({"parent": "team"}));
    put(&mut tree, "busy", json!({}));
    let refused = |name: &str| tree.check_delete(name, |name| name == "busy").unwrap_err();
    assert!(refused("team").contains("`a`") && refused("busy").contains("octoflow queue close busy"));
    assert!(refused("root").contains("always exists") && refused("default").contains("always exists"));
    assert_eq!(tree.check_delete("a", |_| false), Ok(()));
    tree.remove("a");
    assert_eq!(tree.check_delete("team", |_| false), Ok(()));
    put(&mut tree, "default", json!({"weight": 4}));
    tree.remove("default");
    assert_eq!(tree.get("default").map(|spec| spec.weight), Some(1));
}

#[test]
fn a_queue_below_a_closed_one_takes_nothing() {
    let mut tree = QueueTree::default();
    tree.put(queue(&object("team", json!({}))), true);
    put(&mut tree, "a", json!({"parent": "team"}));
    let states = ["a", "team", "root", "default", "none"].map(|name| tree.state(name));
    use QueueState::{Closed, Inner, Missing, Open};
    assert_eq!(states, [Closed, Inner, Inner, Open, Missing]);
}

#[test]
fn a_group_says_how_many_start_together() {
    let group = |version: &str, spec: Value| json!({"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec});
    for version in [POD_GROUP.api_version(), INCUBATOR_POD_GROUP.api_version()] {
        let spec =
            json!({"minMember": 4, "minTaskMember": {"ps": 1, "worker": 3}, "queue": "q", "priorityClassName": "c"});
        let (problems, warnings) = POD_GROUP.check(&group(&version, spec));
        assert!(problems.is_empty() && warnings.is_empty(), "{problems:?}");
        let (problems, _) = POD_GROUP.check(&group(&version, json!({"minMember": -1})));
        alike(&told(&problems), &["OF1041 spec.minMember: "]);
    }
    let version = POD_GROUP.api_version();
    let (problems, _) = POD_GROUP.check(&group(&version, json!({"minMember": 2, "minTaskMember": {"a": 2, "b": 1}})));
    alike(&told(&problems), &["OF1081 spec.minTaskMember: "]);
    let (problems, _) = POD_GROUP.check(&group(&version, json!({"minMember": 2, "minResources": {"cpu": "many"}})));
    alike(&told(&problems), &["OF1041 spec.minResources.cpu: "]);
    let (problems, _) = POD_GROUP.check(&json!({"apiVersion": "v1", "kind": "PodGroup", "spec": {}}));
    alike(&told(&problems), &["OF1012 apiVersion: ", "OF1016 metadata: "]);
}

#[test]
fn a_class_has_a_value_within_its_range() {
    let class_of = |fields: Value| {
        let mut object =
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "c"}});
        object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        object
    };
    let high = class_of(json!({"value": 1000, "globalDefault": true, "preemptionPolicy": "Never", "description": "d"}));
    let (problems, warnings) = PRIORITY_CLASS.check(&high);
    assert!(problems.is_empty() && warnings.is_empty(), "{problems:?} {warnings:?}");
    let read = class(&high);
    assert_eq!((read.spec.value, read.spec.preempts, read.is_default), (1000, false, true));
    assert!(class(&class_of(json!({"value": -5}))).spec.preempts);
    for (wrong, wanted) in [
        (json!({}), "OF1016 value: "),
        (json!({"value": "high"}), "OF1010 value: "),
        (json!({"value": 2_000_000_000}), "OF1041 value: "),
        (json!({"value": 1, "preemptionPolicy": "Sometimes"}), "OF1041 preemptionPolicy: "),
    ] {
        alike(&told(&PRIORITY_CLASS.check(&class_of(wrong)).0), &[wanted]);
    }
}

#[test]
fn amounts_are_read_and_rendered_alike() {
    for (resource, text) in
        [("cpu", "500m"), ("cpu", "8"), ("memory", "16Gi"), ("memory", "1000"), ("nvidia.com/gpu", "4")]
    {
        let amount = parse_quantity(resource, text).unwrap();
        assert_eq!(render_quantity(resource, amount), text);
    }
    let all = parse_quantities("cpu=8, memory=16Gi,nvidia.com/gpu=4").unwrap();
    assert_eq!(all.into_values().collect::<Vec<_>>(), [8000, 16 << 30, 4]);
    for wrong in ["cpu", "cpu=many", "=3", "cpu=1,cpu=2", "a b=1", "cpu=-1"] {
        assert!(parse_quantities(wrong).is_err(), "{wrong}");
    }
}
