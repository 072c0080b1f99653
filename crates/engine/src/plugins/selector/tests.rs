//! Tests of selectors: precedence, whole and partial matches, mistakes with their columns, hostile texts.

use octoflow_manifest::Path;
use octoflow_model::plugin::{ConditionSpec, SelectorSpec};
use serde_json::{Value, json};

use super::*;

fn spec(conditions: &[(&str, &str, &str)], expression: &str) -> SelectorSpec {
    let condition = |(name, key, expect): &(&str, &str, &str)| ConditionSpec {
        name: (*name).to_owned(),
        key: (*key).to_owned(),
        expect: (*expect).to_owned(),
    };
    SelectorSpec {
        conditions: conditions.iter().map(condition).collect(),
        expression: expression.to_owned(),
        states: Vec::new(),
    }
}

fn matches(conditions: &[(&str, &str, &str)], expression: &str, header: &Value) -> bool {
    JobSelector::compile(&spec(conditions, expression), &Path::root()).unwrap().matches(header)
}

fn refusal(conditions: &[(&str, &str, &str)], expression: &str) -> String {
    let problems = JobSelector::compile(&spec(conditions, expression), &Path::root()).unwrap_err();
    problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>().join("; ")
}

#[test]
fn pl_13_an_expression_of_a_whole_match_and_a_negated_search() {
    let conditions = [("type", "type", "debug"), ("user", "user_role", "/admin|master/")];
    let holds =
        |kind: &str, role: &str| matches(&conditions, "type && !user", &json!({"type": kind, "user_role": role}));
    assert!(holds("debug", "guest"));
    assert!(!holds("debug", "admin"));
    assert!(!holds("train", "guest"));
}

#[test]
fn pl_14_plain_text_matches_the_whole_value() {
    let holds = |header: Value| matches(&[("c", "type", "debug")], "c", &header);
    assert!(holds(json!({"type": "debug"})));
    assert!(!holds(json!({"type": "debugger"})));
    assert!(!holds(json!({"type": "a debug"})));
    assert!(!holds(json!({"type": "debug\n"})));
    assert!(!holds(json!({})));
    // A missing value is tested as the empty one.
    assert!(matches(&[("c", "type", ".*")], "c", &json!({})));
    assert!(matches(&[("c", "type", "")], "c", &json!({})));
    // An alternative is not cut off by what stands around it.
    assert!(matches(&[("c", "type", "a|ab")], "c", &json!({"type": "ab"})));
    assert!(!matches(&[("c", "type", "a|ab")], "c", &json!({"type": "abc"})));
}

#[test]
fn pl_16_keys_walk_into_members_and_values_are_tested_as_json() {
    let holds = |key: &str, expect: &str, header: Value| matches(&[("c", key, expect)], "c", &header);
    assert!(holds("team.name", "x", json!({"team": {"name": "x"}})));
    assert!(holds("gpu", "8", json!({"gpu": 8})));
    assert!(holds("big", "true", json!({"big": true})));
    assert!(holds("list.0", "", json!({"list": ["a"]})));
    assert!(holds("o", r#"/"a":1/"#, json!({"o": {"a": 1}})));
}

#[test]
fn a_search_may_ignore_case() {
    let holds = |expect: &str, value: &str| matches(&[("c", "k", expect)], "c", &json!({"k": value}));
    assert!(holds("/ADMIN/i", "an admin"));
    assert!(!holds("/ADMIN/", "an admin"));
    assert!(holds("/a|b/i", "xB"));
    // Neither is a search: there is no second slash, or something else behind it.
    assert!(holds("/a", "/a"));
    assert!(holds("/a/x", "/a/x"));
}

#[test]
fn not_binds_closer_than_and_and_and_closer_than_or() {
    let conditions = [("a", "a", "1"), ("b", "b", "1"), ("c", "c", "1")];
    for bits in 0..8 {
        let (a, b, c) = (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0);
        let header = json!({"a": u8::from(a), "b": u8::from(b), "c": u8::from(c)});
        for (text, expected) in [
            ("a || b && c", a || (b && c)),
            ("(a || b) && c", (a || b) && c),
            ("!a && b", !a && b),
            ("!(a && b)", !(a && b)),
            ("!!a", a),
            ("a && !!b\n||\tc", (a && b) || c),
            ("*", true),
        ] {
            assert_eq!(matches(&conditions, text, &header), expected, "{text} of {header}");
        }
    }
}

#[test]
fn every_mistake_is_told_with_its_column() {
    for (expression, wanted) in [
        ("", "column 1: it is empty"),
        ("a &&", "column 5: it ends"),
        ("a b", "column 3: `b` follows"),
        ("a & b", "column 3: a single `&`"),
        ("(a && b", "column 1: this parenthesis is never closed"),
        ("a)", "column 2: this parenthesis was never opened"),
        ("a!", "column 2: `!` follows"),
        ("a()", "column 2: `(` follows"),
        ("&& a", "column 1: `&&` where"),
        ("a && *", "column 6: `*` stands alone"),
        ("a && x", "column 6: there is no condition `x`"),
        ("a # b", "column 3: `#` means nothing"),
        ("1a", "column 1: `1` means nothing"),
    ] {
        let told = refusal(&[("a", "a", "1"), ("b", "b", "1")], expression);
        assert!(told.contains(wanted), "{expression}: {told}");
    }
    let all = refusal(&[("a", "", "["), ("a", "k", "x"), ("9", "k", "x)(")], "nope");
    for wanted in ["needs a key", "there twice", "`9` is no name", "not valid", "no condition `nope`"] {
        assert!(all.contains(wanted), "{wanted}: {all}");
    }
}

#[test]
fn hostile_texts_are_refused_and_exhaust_nothing() {
    assert!(refusal(&[("a", "a", "1")], &format!("{}a{}", "(".repeat(8000), ")".repeat(8000))).contains("nested"));
    assert!(refusal(&[("a", "a", "1")], &format!("{}a", "!".repeat(10_000))).contains("nested"));
    assert!(refusal(&[("a", "a", "1")], &"a&&".repeat(10_000)).contains("longer than"));
    assert!(refusal(&[("a", "a", "((a{100}){100}){100}")], "a").contains("too large"));
    assert!(refusal(&[("a", "a", "x)|(?:y")], "a").contains("not valid"));
    let long = "a || ".repeat(3000) + "a";
    assert!(!matches(&[("a", "a", "(a+)+b")], &long, &json!({"a": "a".repeat(10_000)})));
}
