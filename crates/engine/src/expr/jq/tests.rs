//! Filters against one object, and texts that are no filters.

use serde_json::json;

use super::*;

fn object() -> Value {
    json!({
        "metadata": {"name": "w", "labels": {"a.b/c": "x"}},
        "status": {"phase": "Succeeded", "n": 3, "list": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "none": null},
    })
}

fn filtered(filter: &str) -> Result<String, String> {
    parse(filter)?.render(&object())
}

#[test]
fn filters_give_what_they_give_elsewhere() {
    for (filter, result) in [
        (".status.phase", "Succeeded"),
        (".status.list[0].k", "a"),
        (".status.list[-1].v", "2"),
        (".status.list[].k", "a\nb"),
        (".status.list | map(.v) | add", "3"),
        ("[.status.list[] | select(.v > 1) | .k] | join(\",\")", "b"),
        (".metadata.labels[\"a.b/c\"]", "x"),
        (".metadata.labels.\"a.b/c\"", "x"),
        (".status.missing // \"default\"", "default"),
        (".status.missing.deeper", "null"),
        (".status | keys | length", "4"),
        ("{name: .metadata.name, n: (.status.n + 1)}", "{\"n\":4,\"name\":\"w\"}"),
        ("if .status.n == 3 then \"three\" else \"other\" end", "three"),
        (".status.phase == \"Succeeded\" and (.status.n < 2 | not)", "true"),
        (".status.list[1:]", "[{\"k\":\"b\",\"v\":2}]"),
        (".status.phase[0:4] | ascii_downcase", "succ"),
        ("[..] | length", "16"),
        (".status.list | sort_by(.v) | reverse | first | .k", "b"),
        (".status.list | any(.v == 2)", "true"),
        (".status.phase.no?", ""),
        ("{phase: .status.phase} | tojson", "{\"phase\":\"Succeeded\"}"),
        ("-1 + .status.n * 2", "5"),
    ] {
        assert_eq!(filtered(filter), Ok(result.to_owned()), "{filter}");
    }
}

#[test]
fn mistakes_and_traps_are_told() {
    for (filter, part) in [
        ("", "ends too early"),
        (".a[", "ends too early"),
        (".status | explode", "`explode` is not known"),
        (".status | map", "does not take 0 arguments"),
        (".status.phase.no", "cannot be indexed"),
        (".status.n / 0", "division by zero"),
        (".a ^ 1", "not understood"),
    ] {
        let why = filtered(filter).expect_err(filter);
        assert!(why.contains(part), "{filter}: {why}");
    }
    assert!(filtered(&"(".repeat(10_000)).is_err());
    let doubling = format!("[{}]", ".. | ".repeat(40) + ".");
    assert!(filtered(&doubling).expect_err("it explodes").contains("too many steps"));
}

#[test]
fn what_doubles_its_input_is_stopped_before_it_fills_the_memory() {
    for piece in ["[., .]", "{a: ., b: .}", "(tojson + tojson)", "[.[]?, .]", "(., .)"] {
        let filter = vec![piece; 60].join(" | ");
        assert!(filtered(&filter).expect_err(piece).contains("too many steps"), "{piece}");
    }
}
