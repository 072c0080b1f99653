//! Checks against small tables of their own.

use octoflow_manifest::Problem;
use serde_json::{Value, json};

use super::*;

static ROOT: Shape = Shape::Object(&[
    &[
        Field::yes("name", &TEXT, "A name"),
        Field::yes("size", &SIZE, "A size"),
        Field::yes("parts", &PARTS, "Parts"),
        Field::yes("labels", &TEXT_MAP, "Labels"),
        Field::yes("way", &WAY, "A way"),
        Field::yes("limit", &INT_OR_TEXT, "A limit"),
        Field::yes("memory", &QUANTITY, "Memory"),
        Field::yes("value", &ANY, "Anything"),
        Field::yes("flag", &BOOL, "A flag"),
    ],
    &[Field::ignored("affinity", "there are no nodes", "Where to go"), Field::refused("plugin", "Run a plugin")],
]);
static SIZE: Shape = Shape::Int { least: 1, most: 10 };
static PARTS: Shape = Shape::List(&ROOT);
static WAY: Shape = Shape::Word(&["Up", "Down"]);

fn told(problems: &[Problem]) -> Vec<(&'static str, String)> {
    problems
        .iter()
        .map(|problem| (problem.code, problem.path.as_ref().map(ToString::to_string).unwrap_or_default()))
        .collect()
}

fn wrong(value: &Value) -> Vec<(&'static str, String)> {
    told(&check(value, &ROOT).problems)
}

#[test]
fn everything_wrong_is_told_at_once_with_its_place() {
    let value = json!({
        "nmae": "x", "name": 1, "size": 11, "labels": {"a": true}, "way": "down", "flag": "true", "memory": "much",
        "parts": [{"size": 0}, 5, {"name": "fine", "unheard": 1}], "plugin": {}, "limit": 1.5,
    });
    assert_eq!(
        wrong(&value),
        [
            ("OF1010", "flag"),
            ("OF1010", "labels.a"),
            ("OF1010", "limit"),
            ("OF1010", "memory"),
            ("OF1010", "name"),
            ("OF1003", "nmae"),
            ("OF1041", "parts[0].size"),
            ("OF1010", "parts[1]"),
            ("OF1003", "parts[2].unheard"),
            ("OF1011", "plugin"),
            ("OF1041", "size"),
            ("OF1041", "way"),
        ]
        .map(|(code, path)| (code, path.to_owned()))
    );
}

#[test]
fn helps_name_what_may_be_meant() {
    let help = |value: Value| check(&value, &ROOT).problems.remove(0).help;
    assert_eq!(help(json!({"nmae": 1})).as_deref(), Some("did you mean `name`?"));
    assert_eq!(help(json!({"way": "up"})).as_deref(), Some("did you mean `Up`?"));
    assert_eq!(help(json!({"name": 12})).as_deref(), Some("write it in quotes: \"12\""));
    assert_eq!(help(json!({"size": "2"})).as_deref(), Some("write it without quotes"));
    assert_eq!(
        help(json!({"plugin": {}})).as_deref(),
        Some("it would run a plugin; remove it to run the workflow here")
    );
    assert!(help(json!({"zzzzzz": 1})).unwrap().starts_with("known here: `name`"));
}

#[test]
fn what_is_right_comes_back_without_nulls_and_what_is_wrong_is_left_out() {
    let value = json!({
        "name": null, "size": 3, "value": {"kept": null}, "labels": {"a": "b", "c": null}, "flag": 1,
        "parts": [{"name": "x"}, {"name": 2}],
    });
    let checked = check(&value, &ROOT);
    assert_eq!(
        checked.value,
        json!({"size": 3, "value": {"kept": null}, "labels": {"a": "b"}, "parts": [{"name": "x"}, {}]})
    );
    assert_eq!(checked.broken.iter().map(ToString::to_string).collect::<Vec<_>>(), ["flag", "parts[1].name"]);
    let list = check(&json!({"parts": [{"name": "x"}, 1]}), &ROOT);
    assert_eq!(list.value, json!({}), "a list with a wrong element is left out whole");
}

#[test]
fn an_ignored_field_is_warned_of_once_and_an_empty_refused_one_is_nothing() {
    let value =
        json!({"affinity": {}, "parts": [{"affinity": 1}, {"plugin": false}, {"plugin": []}, {"plugin": null}]});
    let checked = check(&value, &ROOT);
    assert!(checked.problems.is_empty());
    assert_eq!(told(&checked.warnings), [("OF1013", "affinity".to_owned())]);
    assert_eq!(checked.warnings[0].message, "`affinity` is accepted but has no effect: there are no nodes");
}

static NOTED: Shape =
    Shape::Object(&[&[Field::yes("even", &EVEN, "A number"), Field::yes("either", &EITHER, "A word or more")]]);
static EVEN: Shape = Shape::Like { noun: "an even number", fits: is_even };
static EITHER: Shape = Shape::Either(&WAY, &PARTS);

fn is_even(text: &str) -> Result<(), String> {
    if text.ends_with(['0', '2', '4', '6', '8']) { Ok(()) } else { Err(format!("{text} is not even")) }
}

#[test]
fn a_notation_has_its_own_check_and_a_short_form_stands_beside_a_full_one() {
    let wrong = |value: Value| {
        let problems = check(&value, &NOTED).problems;
        problems.into_iter().map(|problem| (problem.path.unwrap().to_string(), problem.message)).collect::<Vec<_>>()
    };
    for fine in [json!({"even": 2, "either": "Up"}), json!({"even": "10", "either": [{"name": "a"}]})] {
        assert_eq!(wrong(fine.clone()), [], "{fine}");
        assert_eq!(check(&fine, &NOTED).value, fine);
    }
    assert_eq!(wrong(json!({"even": 3})), [("even".to_owned(), "3 is not even".to_owned())]);
    assert_eq!(wrong(json!({"even": []}))[0].1, "expected an even number, found a list");
    assert_eq!(wrong(json!({"either": "Sideways"}))[0].0, "either");
    assert_eq!(wrong(json!({"either": [{"size": 11}]}))[0].0, "either[0].size");
    let schema = schema("Noted", &NOTED, &[]);
    assert_eq!(schema["properties"]["either"]["anyOf"].as_array().map(Vec::len), Some(2));
}

#[test]
fn quantities_are_told_from_words() {
    for text in ["1", "0.5", "500m", "2Gi", "1e3", "1E3", "+2k", "{{inputs.parameters.memory}}", "10E", ".5"] {
        assert_eq!(wrong(&json!({ "memory": text })), [], "{text}");
    }
    assert_eq!(wrong(&json!({"memory": 3})), []);
    assert_eq!(wrong(&json!({"memory": -3})).len(), 1);
    for text in ["", "Gi", "1 Gi", "1gi", "-1", "++1", "-500m", "1e", "one", "1.2.3"] {
        assert_eq!(wrong(&json!({ "memory": text })).len(), 1, "{text}");
    }
}

#[test]
fn a_list_of_mistakes_has_an_end_and_so_has_nesting() {
    let parts: Vec<Value> = (0..1_000).map(|_| json!(1)).collect();
    assert_eq!(wrong(&json!({ "parts": parts })).len(), MAX_PROBLEMS);
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({ "parts": [deep] });
    }
    assert_eq!(wrong(&deep).iter().map(|(code, _)| *code).collect::<Vec<_>>(), ["OF1041"]);
}
