//! The increment rule by example, against the naive oracle, and under hostile sizes.

use octoflow_manifest::Path;
use proptest::prelude::*;
use serde_json::json;

use super::*;

mod oracle;

fn decorated(old: &Value, new: &Value) -> Result<Increment, Conflict> {
    check(old, new, Mode::Decorate)
}

fn path_of(old: &Value, new: &Value) -> String {
    decorated(old, new).unwrap_err().path
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn task_set() -> Value {
    json!({
        "kind": "TaskSet",
        "metadata": {"name": "j"},
        "spec": {"roles": [{"name": "worker", "template": {"spec": {
            "nodeSelector": {"disk": "ssd"},
            "containers": [{
                "name": "main", "image": "a:1", "command": ["sh", "-c", "sleep 20;exit 0"],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            }],
        }}}]},
    })
}

fn at<'a>(value: &'a mut Value, pointer: &str) -> &'a mut Value {
    value.pointer_mut(pointer).unwrap()
}

const CONTAINER: &str = "/spec/roles/0/template/spec/containers/0";

#[test]
fn pl_26_env_volume_and_container_in_front_are_an_increment() {
    let (old, mut new) = (task_set(), task_set());
    at(&mut new, CONTAINER)["env"].as_array_mut().unwrap().insert(1, json!({"name": "C", "value": "3"}));
    at(&mut new, "/spec/roles/0/template/spec")["volumes"] = json!([{"name": "v"}]);
    at(&mut new, "/spec/roles/0/template/spec/containers").as_array_mut().unwrap().insert(0, json!({"name": "side"}));
    let added = decorated(&old, &new).unwrap();
    let paths: Vec<&str> = added.added.iter().map(|addition| addition.path.as_str()).collect();
    let base = "spec.roles[0].template.spec";
    let expected = [format!("{base}.containers[0]"), format!("{base}.containers[1].env[1]"), format!("{base}.volumes")];
    assert_eq!(paths, expected);
    assert!(added.moved.is_empty());
    assert_eq!(added.added[1].value, json!({"name": "C", "value": "3"}));
}

#[test]
fn pl_27_changed_image_dropped_member_and_shorter_array_are_named_by_path() {
    let old = task_set();
    let main = "spec.roles[0].template.spec.containers[0]";
    let mut new = task_set();
    at(&mut new, CONTAINER)["image"] = json!("b:1");
    // Also behind an element in front.
    at(&mut new, "/spec/roles/0/template/spec/containers").as_array_mut().unwrap().insert(0, json!({"name": "side"}));
    assert_eq!(path_of(&old, &new), format!("{main}.image"));
    let mut new = task_set();
    at(&mut new, CONTAINER).as_object_mut().unwrap().remove("image");
    let conflict = decorated(&old, &new).unwrap_err();
    assert_eq!(conflict.message, format!("{main}.image was removed"));
    let mut new = task_set();
    at(&mut new, CONTAINER)["env"].as_array_mut().unwrap().remove(0);
    assert_eq!(path_of(&old, &new), format!("{main}.env[0]"));
    let mut new = task_set();
    *at(&mut new, "/spec/roles") = json!({});
    let message = decorated(&old, &new).unwrap_err().message;
    assert!(message.contains("spec.roles was an array and is now an object"), "{message}");
}

#[test]
fn pl_28_commands_are_only_prepended() {
    let judge = |text: &str| {
        let mut new = task_set();
        at(&mut new, CONTAINER)["command"][2] = json!(text);
        decorated(&task_set(), &new)
    };
    let added = judge("echo hi;sleep 20;exit 0").unwrap().added;
    assert_eq!((added.len(), &added[0].value), (1, &json!("echo hi;")));
    for front in ["a; ", "a && ", "a\n", "  "] {
        assert!(judge(&format!("{front}sleep 20;exit 0")).is_ok(), "{front:?}");
    }
    for text in
        ["exit 0;sleep 20", "sleep 20;exit 0;echo hi", "echo hi;exit 0", "no sleep 20;exit 0", "a || sleep 20;exit 0"]
    {
        let conflict = judge(text).unwrap_err();
        assert_eq!(conflict.path, "spec.roles[0].template.spec.containers[0].command[2]", "{text}");
    }
}

#[test]
fn pl_28_command_elements_come_only_in_front_of_all() {
    let judge = |old: Value, new: Value| decorated(&json!({"command": old}), &json!({"command": new}));
    assert!(judge(json!(["run", "a"]), json!(["run", "a"])).unwrap().is_empty());
    let added = judge(json!(["run", "a"]), json!(["wrap", "--", "run", "x;a"])).unwrap().added;
    let added: Vec<_> = added.iter().map(|added| (added.path.as_str(), added.value.as_str().unwrap())).collect();
    assert_eq!(added, [("command[0]", "wrap"), ("command[1]", "--"), ("command[3]", "x;")]);
    for new in [json!(["run", "b", "a"]), json!(["run", "a", "b"]), json!(["a", "run"]), json!(["run"]), json!([])] {
        assert!(judge(json!(["run", "a"]), new).is_err());
    }
    assert!(judge(json!([]), json!(["run"])).is_ok());
    // Anything else of that name is an ordinary value, and so is a list of another name.
    assert!(judge(json!([1, 2]), json!([2, 3, 1])).is_ok());
    assert!(decorated(&json!({"args": ["a", "b"]}), &json!({"args": ["b", "c", "a"]})).is_ok());
    assert!(judge(json!(["a"]), json!("a")).is_err());
}

#[test]
fn pl_31_escapes_numbers_and_long_arrays_are_judged_by_value() {
    let old = parse(r#"{"s": "say \"hi\"\\ \u00e9\n", "n": -1, "f": 1.5, "e": 1e3, "l": [0,1,2,3,4,5,6,7,8,9,10,11]}"#);
    let new =
        parse(r#"{"l": [0,1,2,3,4,5,6,7,8,9,10,11,12], "e": 1000, "f": 15e-1, "n": -1.0, "s": "say \"hi\"\\ é\n"}"#);
    let added = decorated(&old, &new).unwrap();
    assert_eq!(added.added.len(), 1);
    assert_eq!((added.added[0].path.as_str(), &added.added[0].value), ("l[12]", &json!(12)));
    for (member, other) in [("n", "1"), ("f", "1.25"), ("e", "1001"), ("s", r#""say hi""#), ("n", r#""-1""#)] {
        let mut wrong = new.clone();
        wrong[member] = parse(other);
        assert_eq!(path_of(&old, &wrong), member);
    }
    let mut short = new;
    short["l"] = json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11]);
    assert_eq!(path_of(&old, &short), "l[10]");
}

#[test]
fn pl_31_large_numbers_are_compared_exactly() {
    let same = |old: &str, new: &str| decorated(&parse(old), &parse(new)).is_ok();
    assert!(same("9007199254740993", "9007199254740993"));
    assert!(!same("9007199254740993", "9007199254740992.0"));
    assert!(!same("18446744073709551615", "1.8446744073709552e19"));
    assert!(same("0", "-0.0") && same("1e300", "1e300") && !same("1e300", "1"));
}

#[test]
fn null_becomes_anything_and_nothing_else_changes_its_kind() {
    for new in [json!(null), json!(1), json!({"a": []})] {
        assert!(decorated(&json!({"a": null}), &json!({"a": new})).is_ok());
    }
    assert!(decorated(&json!({"a": null}), &json!({})).is_err());
    assert!(decorated(&json!([null, 1]), &json!([1, 2])).is_ok());
    assert!(decorated(&json!({"a": 0}), &json!({"a": null})).is_err());
    assert!(decorated(&json!({"a": false}), &json!({"a": 0})).is_err());
}

#[test]
fn a_node_selector_may_be_changed_and_dropped() {
    let mut new = task_set();
    at(&mut new, "/spec/roles/0/template/spec")["nodeSelector"] = json!({"gpu": "yes"});
    let added = decorated(&task_set(), &new).unwrap().added;
    assert_eq!((added.len(), &added[0].value), (1, &json!({"gpu": "yes"})));
    at(&mut new, "/spec/roles/0/template/spec").as_object_mut().unwrap().remove("nodeSelector");
    let added = decorated(&task_set(), &new).unwrap().added;
    assert_eq!((added.len(), &added[0].value), (1, &json!(null)));
}

#[test]
fn the_scheduler_is_out_of_reach_of_decorators_and_only_added_by_binders() {
    let named = |name: Value| json!({"roles": [{"name": "w", "template": {"spec": {"schedulerName": name}}}]});
    let (none, one) = (json!({"roles": [{"name": "w", "template": {"spec": {}}}]}), named(json!("gang")));
    let path = "roles[0].template.spec.schedulerName";
    assert_eq!(path_of(&none, &one), path);
    assert_eq!(path_of(&one, &none), path);
    assert_eq!(path_of(&one, &named(json!("other"))), path);
    assert_eq!(path_of(&named(json!("")), &one), path);
    assert!(decorated(&one, &one).is_ok() && decorated(&none, &named(json!(""))).is_ok());
    // Nor with a whole new role.
    let role = json!({"name": "x", "template": {"spec": {"schedulerName": "gang"}}});
    let more = json!({"roles": [role, none["roles"][0]]});
    assert_eq!(path_of(&none, &more), path);
    assert_eq!(path_of(&json!({}), &more), path);
    assert!(check(&none, &more, Mode::Bind).is_ok());
    assert!(check(&none, &one, Mode::Bind).is_ok() && check(&named(json!("")), &one, Mode::Bind).is_ok());
    assert_eq!(check(&one, &named(json!("other")), Mode::Bind).unwrap_err().path, path);
    assert_eq!(check(&one, &none, Mode::Bind).unwrap_err().path, path);
    // A label of that name is a label.
    assert!(decorated(&json!({}), &json!({"labels": {"schedulerName": "x"}})).is_ok());
    assert!(decorated(&json!({"labels": {"nodeSelector": "x"}}), &json!({"labels": {}})).is_err());
}

#[test]
fn an_element_that_names_a_scheduler_stays_the_counterpart_of_the_one_that_did() {
    let old = json!([{"a": 1}, {"a": 1, "schedulerName": "x"}]);
    let new = json!([{"a": 1, "schedulerName": "x"}, {"a": 1}, {"a": 1}]);
    assert!(decorated(&old, &new).is_ok());
    let new = json!([{"a": 1, "schedulerName": "x"}, {"a": 1}, {"a": 1, "schedulerName": "x"}]);
    assert!(decorated(&old, &new).is_err());
}

#[test]
fn elements_find_counterparts_in_any_order_also_when_the_first_choice_is_wrong() {
    let old = json!([{}, {"a": 1}, {"b": 1}]);
    let new = json!([{"a": 1, "b": 1}, {"b": 1}, {}]);
    let added = decorated(&old, &new);
    assert!(added.is_ok(), "{added:?}");
    assert!(decorated(&json!([{}, {"a": 1}]), &json!([{"a": 1}, {}])).is_ok());
    assert!(decorated(&json!([{"a": 1}, {"a": 1}]), &json!([{"a": 1}, {"b": 1}])).is_err());
}

#[test]
fn hostile_documents_are_refused_within_bounded_work() {
    let many = |from: u32| Value::Array((from..from + 3_000).map(|at| json!({"v": at})).collect());
    let conflict = decorated(&many(0), &many(3_000)).unwrap_err();
    assert!(conflict.message.contains("too large to compare"), "{}", conflict.message);
    // What is large but honest is not.
    let mut more = many(0);
    more.as_array_mut().unwrap().insert(0, json!({"v": "new"}));
    assert_eq!(decorated(&many(0), &more).unwrap().added.len(), 1);
    let nested = |depth: usize| (0..depth).fold(json!(1), |value, _| json!([value, {}, {}]));
    assert!(decorated(&nested(40), &nested(40)).is_ok());
    let deep = (0..1_000).fold(json!(1), |value, _| json!([value]));
    assert!(decorated(&deep, &deep).is_err() && decorated(&json!(null), &deep).is_err());
}

#[test]
fn the_record_is_bounded_and_says_so() {
    let many: Vec<Value> = (0..300).map(|at| json!(at)).collect();
    let found = decorated(&json!([]), &Value::Array(many)).unwrap();
    assert_eq!((found.added.len(), found.omitted), (256, 44));
    let found = decorated(&json!({}), &json!({"a": "x".repeat(5_000)})).unwrap();
    assert!(found.added[0].cut && found.added[0].value == json!("(5002 bytes of JSON)"));
    let reversed = decorated(&json!([1, 2]), &json!([2, 1])).unwrap();
    assert_eq!(reversed.moved.len(), 2);
}

#[test]
fn the_last_setter_of_a_conflicting_path_is_named_past_inserted_elements() {
    let start = json!({"env": [{"name": "A"}], "x": {}});
    let first = json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "x": {}});
    let second =
        json!({"env": [{"name": "C"}, {"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "x": {"y": 1}});
    let third =
        json!({"x": {"y": 1}, "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}, {"name": "C"}]});
    let steps = [decorated(&start, &first), decorated(&first, &second), decorated(&second, &third)].map(Result::unwrap);
    let chain = [("one", &steps[0]), ("two", &steps[1]), ("three", &steps[2])];
    let last_setter = |path| blame(path, &chain);
    assert_eq!(last_setter("env[0].value"), Some("one"));
    assert_eq!(last_setter("env[1].value"), Some("one"));
    assert_eq!(last_setter("env[1].name"), None);
    assert_eq!(last_setter("env[2].name"), Some("two"));
    assert_eq!(last_setter("x.y"), Some("two"));
    assert_eq!(last_setter("x"), None);
    assert_eq!(last_setter(""), None);
    let mut fourth = third.clone();
    fourth["env"][0]["value"] = json!("3");
    let conflict = decorated(&third, &fourth).unwrap_err();
    assert_eq!(last_setter(&conflict.path), Some("one"));
    let commands = ["a", "b;a"].map(|text| json!({"command": ["sh", "-c", text]}));
    let step = decorated(&commands[0], &commands[1]).unwrap();
    assert_eq!(blame("command[2]", &[("p", &step)]), Some("p"));
    assert_eq!(blame("command[0]", &[("p", &step)]), None);
}

/// Small documents with few distinct values, so that elements are often alike.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(0)),
        Just(json!("a")),
        Just(json!("b;a")),
        Just(json!("")),
        Just(json!(true)),
    ];
    leaf.prop_recursive(3, 14, 4, |below| {
        let key = prop_oneof![
            4 => Just("a"), 4 => Just("b"), 2 => Just("name"), 1 => Just("command"),
            1 => Just("nodeSelector"), 2 => Just("schedulerName"), 1 => Just("labels"),
        ];
        prop_oneof![
            prop::collection::vec(below.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(key, below, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

/// A document and one that has more, mostly: each array is shuffled and gets elements, each object members.
fn grown(value: &Value, seed: &mut u64) -> Value {
    let mut draw = |sides: u64| {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % sides
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            if draw(40) == 0 {
                json!(7)
            } else {
                value.clone()
            }
        }
        Value::Array(values) => {
            let (swap, insert) = (draw(2) == 0, draw(2) == 0);
            let mut values: Vec<Value> = values.iter().map(|value| grown(value, seed)).collect();
            if swap {
                values.reverse();
            }
            if insert {
                values.insert(values.len() / 2, json!({"a": 0}));
            }
            Value::Array(values)
        }
        Value::Object(members) => {
            let extra = draw(8);
            let mut members: Map<String, Value> =
                members.iter().map(|(key, value)| (key.clone(), grown(value, seed))).collect();
            match extra {
                0 => drop(members.insert("more".to_owned(), json!([1]))),
                1 => drop(members.insert("schedulerName".to_owned(), json!("s"))),
                2 => drop(members.remove("nodeSelector")),
                _ => {}
            }
            Value::Object(members)
        }
    }
}

/// Returns whether each path that the record names holds what it says.
fn is_true_of(found: &Increment, new: &Value) -> bool {
    found.added.iter().all(|addition| {
        let path: Path = addition.path.parse().unwrap();
        let held = path.segments().iter().try_fold(new, |value, segment| match segment {
            octoflow_manifest::Segment::Key(key) => value.get(key),
            octoflow_manifest::Segment::Index(at) => value.get(at),
        });
        match (held, addition.value.as_str()) {
            (None, _) => addition.value.is_null(),
            (Some(Value::String(held)), Some(front)) => held.starts_with(front),
            (Some(held), _) => *held == addition.value,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_two_documents_are_judged_as_the_oracle_does(old in document(), new in document()) {
        for mode in [Mode::Decorate, Mode::Bind] {
            prop_assert_eq!(check(&old, &new, mode).is_ok(), oracle::extends(&old, &new, mode, false));
        }
    }

    #[test]
    fn grown_documents_are_judged_as_the_oracle_does(old in document(), seed: u64) {
        let new = grown(&old, &mut { seed });
        for mode in [Mode::Decorate, Mode::Bind] {
            let found = check(&old, &new, mode);
            prop_assert_eq!(found.is_ok(), oracle::extends(&old, &new, mode, false), "{} {} {:?}", old, new, found);
            if let Ok(found) = found {
                prop_assert!(is_true_of(&found, &new), "{} {} {:?}", old, new, found);
            }
        }
    }

    #[test]
    fn every_document_is_an_increment_of_itself(document in document()) {
        let found = check(&document, &document, Mode::Decorate).unwrap();
        prop_assert!(found.added.is_empty());
    }
}
