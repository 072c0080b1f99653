//! Meaning of texts, and error messages for invalid ones.

use octoflow_manifest::{Document, Limits, Path, Problems, number_text, read};
use serde_json::{Value, json};

fn documents(text: &str) -> Vec<Document> {
    read("wf.yaml", text.as_bytes(), &Limits::default()).unwrap_or_else(|problems| panic!("{problems}"))
}

fn value(text: &str) -> Value {
    let documents = documents(text);
    assert_eq!(documents.len(), 1, "{text:?}");
    documents[0].value.clone()
}

fn problems(text: &str) -> Problems {
    read("wf.yaml", text.as_bytes(), &Limits::default()).expect_err(text)
}

fn assert_problem(text: &str, expected: &str) {
    assert_eq!(problems(text).to_string(), expected, "{text:?}");
}

fn path(text: &str) -> Path {
    text.parse().expect("a path")
}

#[test]
fn many_documents_are_read_and_empty_ones_left_out() {
    let text = "\u{feff}# only a comment\n---\n---\na: 1\n---\n# nothing\n---\n- b\n...\n---\n\n---\nnull\n";
    let documents = documents(text);
    let values: Vec<&Value> = documents.iter().map(|document| &document.value).collect();
    assert_eq!(values, [&json!({"a": 1}), &json!(["b"]), &json!(null)]);
    let lines: Vec<usize> = documents.iter().map(|document| document.line).collect();
    assert_eq!(lines, [4, 8, 13]);
    for text in ["", "\n\n", "# comment", "---", "---\n...\n"] {
        assert!(read("s", text.as_bytes(), &Limits::default()).unwrap().is_empty(), "{text:?}");
    }
}

#[test]
fn scalars_are_typed_by_their_style_and_text() {
    let text = "
a: [yes, 'yes', \"yes\", 010, 0x10, 1_000, 1.0, 1.50, 2024-01-01, 12:30, ~, null, 'null', y, n]
b:
c: |
  1
d: >-
  yes
  no
e: !!str 12
f: !!int '7'
g: !!float 3
h: ! 12
i: 5Gi
";
    let expected = json!({
        "a": [true, "yes", "yes", 8, 16, 1000, 1, 1.5, "2024-01-01", "12:30", null, null, "null", true, false],
        "b": null, "c": "1\n", "d": "yes no", "e": "12", "f": 7, "g": 3, "h": "12", "i": "5Gi",
    });
    assert_eq!(value(text), expected);
}

#[test]
fn keys_that_are_not_text_become_text() {
    assert_eq!(
        value("1: a\n0x10: b\n1.50: c\nyes: d\n'n': e\n"),
        json!({"1": "a", "16": "b", "1.5": "c", "true": "d", "n": "e"})
    );
}

#[test]
fn aliases_and_merge_keys_are_resolved() {
    let text = "
base: &base {image: alpine, env: &env [{name: A}]}
other: &other {image: busybox, user: root}
one: {<<: *base, tag: 1}
two: {image: mine, <<: [*base, *other]}
three: *env
&k key: *k
*k : again
'<<': text
";
    let expected = json!({
        "base": {"image": "alpine", "env": [{"name": "A"}]},
        "other": {"image": "busybox", "user": "root"},
        "one": {"image": "alpine", "env": [{"name": "A"}], "tag": 1},
        "two": {"image": "mine", "env": [{"name": "A"}], "user": "root"},
        "three": [{"name": "A"}],
        "key": "key",
        "<<": "text",
    });
    let text = text.replace("*k : again\n", "");
    assert_eq!(value(&text), expected);
    assert_eq!(value("a: &k key\nb: {*k : v}"), json!({"a": "key", "b": {"key": "v"}}));
}

#[test]
fn json_is_read_with_its_own_escapes() {
    assert_eq!(
        value(r#"{"a": "\ud83d\ude00\u00e9\/\n", "b": [1, -2.50, 1e2, true, null, {}, []]}"#),
        json!({"a": "😀é/\n", "b": [1, -2.5, 100, true, null, {}, []]})
    );
    assert_eq!(value("{a: b, 'c': [d,],}"), json!({"a": "b", "c": ["d"]}), "YAML's own brackets");
    assert_eq!(documents("{\"a\": 1}\n---\n{\"b\": 2}\n").len(), 2);
}

#[test]
fn the_text_of_a_number_stays_available() {
    let document = &documents("v: 1.10\nw: 0x1F\nq: '1.10' # not this\n")[0];
    assert_eq!(document.text(&path("v")), Some("1.10"));
    assert_eq!(document.value["v"].as_number().map(number_text), Some("1.1".to_owned()));
    assert_eq!(document.text(&path("w")), Some("0x1F"));
    assert_eq!(document.text(&path("q")), Some("'1.10'"));
    assert_eq!(document.text(&path("x")), None);
}

#[test]
fn every_place_is_exact() {
    let text = "\
# größe
metadata: {name: 'a''b' , labels: {x.y/z: \"q\\\"\" }} # c
spec:
  templates:
  - name: one
    script: &s |
      echo 'hi'

  -   name: two
      args: [ a,  b ]
      empty:
  - !!map
    same: *s
";
    let document = &documents(text)[0];
    let place = |at: &str| {
        let (key, value) = (document.source_map.key(&path(at)), document.source_map.value(&path(at)));
        let text = |span| document.source.slice(span).to_owned();
        ((key.line, key.column, text(key)), (value.line, value.column, text(value)))
    };
    let expect = |at: &str, key: (usize, usize, &str), value: (usize, usize, &str)| {
        let own = |(line, column, text): (usize, usize, &str)| (line, column, text.to_owned());
        assert_eq!(place(at), (own(key), own(value)), "{at}");
    };
    expect("metadata", (2, 1, "metadata"), (2, 11, "{name: 'a''b' , labels: {x.y/z: \"q\\\"\" }}"));
    expect("metadata.name", (2, 12, "name"), (2, 18, "'a''b'"));
    expect("metadata.labels['x.y/z']", (2, 36, "x.y/z"), (2, 43, "\"q\\\"\""));
    expect("spec.templates[0].name", (5, 5, "name"), (5, 11, "one"));
    expect("spec.templates[0].script", (6, 5, "script"), (6, 16, "|\n      echo 'hi'"));
    expect("spec.templates[1].args[1]", (10, 19, "b"), (10, 19, "b"));
    expect("spec.templates[1].empty", (11, 7, "empty"), (11, 12, ""));
    expect("spec.templates[2]", (13, 5, "same: *s"), (13, 5, "same: *s"));
    expect("spec.templates[2].same", (13, 5, "same"), (13, 11, "*s"));
    assert_eq!(
        (
            document.source_map.value(&path("spec.templates")).line,
            document.source_map.value(&path("spec.templates")).column
        ),
        (5, 3)
    );
    assert_eq!(document.source_map.value(&path("spec")).line, 4);
}

#[test]
fn a_missing_path_is_placed_at_its_nearest_ancestor() {
    let document = &documents("a:\n  b: [1, 2]\n")[0];
    assert_eq!(document.source_map.exact(&path("a.b[2]")), None);
    assert_eq!(document.source_map.key(&path("a.b[2].c")), document.source_map.key(&path("a.b")));
    assert_eq!(document.source_map.value(&path("a.x.y")), document.source_map.value(&path("a")));
    assert_eq!(document.source_map.value(&path("a[0]")), document.source_map.value(&path("a")));
    assert_eq!(document.source_map.value(&path("a.b.c")), document.source_map.value(&path("a.b")));
    assert_eq!(document.source_map.key(&path("zzz")).line, 1);
}

#[test]
fn places_of_a_long_list_are_found_by_index() {
    let text: String = (0..10_000).map(|number| format!("- {{a: {number}, m: [x]}}\n")).collect();
    let document = &documents(&text)[0];
    for index in [0, 1, 4999, 9998, 9999] {
        assert_eq!(document.text(&path(&format!("[{index}].a"))), Some(index.to_string().as_str()));
    }
    assert_eq!(document.source_map.exact(&path("[10000]")), None);
}

#[test]
fn merged_values_keep_the_places_of_their_text() {
    let document = &documents("a: &a {x: 1}\nb:\n  <<: *a\n  z: 2\n")[0];
    assert_eq!(document.source_map.value(&path("b.x")).line, 1);
    assert_eq!(document.source_map.value(&path("b.z")).line, 4);
    assert_eq!(document.source_map.exact(&path("b['<<']")), None);
}

#[test]
fn a_text_that_is_not_utf8_says_which_byte() {
    let problems = read("wf.yaml", b"a: b\nc: \xff\n", &Limits::default()).unwrap_err();
    let expected = "\
error[OF1001]: not UTF-8: byte 0xff at offset 8, line 2, cannot be read
 --> wf.yaml:2:4
  |
2 | c: \u{FFFD}
  |    ^
  = help: save it as UTF-8
";
    assert_eq!(problems.to_string(), expected);
    let utf16 = read("wf.yaml", b"\xff\xfea\0", &Limits::default()).unwrap_err();
    assert_eq!(utf16.0[0].help.as_deref(), Some("it looks like UTF-16; save it as UTF-8"));
}

#[test]
fn duplicate_keys_are_all_reported_with_both_places() {
    let expected = "\
error[OF1004]: duplicate key `name`, first given at 2:5
 --> wf.yaml:3:5 (spec[0].name)
  |
3 |     name: b
  |     ^^^^
  = help: keep one of the two

error[OF1004]: duplicate key `1`, first given at 4:5
 --> wf.yaml:4:11 (x.1)
  |
4 | x: {1: a, '1': b}
  |           ^^^
  = help: keep one of the two
";
    assert_problem("spec:\n  - name: a\n    name: b\nx: {1: a, '1': b}\n", expected);
}

#[test]
fn a_key_that_cannot_be_one_is_refused() {
    let expected = "\
error[OF1002]: a mapping or a list cannot be a key
 --> wf.yaml:1:9 (value)
  |
1 | value: {{inputs.x}}
  |         ^
  = help: a template expression must be quoted: '{{…}}'
";
    assert_problem("value: {{inputs.x}}\n", expected);
    assert_eq!(problems("~: a").0[0].message, "a key is missing or null");
    assert_eq!(problems("? [a, {b: c}]\n: d\n? {e: f}\n: g\n").len(), 2);
}

#[test]
fn numbers_json_cannot_hold_are_refused() {
    let expected = "\
error[OF1006]: `.inf` is a number that JSON cannot hold
 --> wf.yaml:1:8 (a[1])
  |
1 | a: [1, .inf]
  |        ^^^^
  = help: quote it if it is meant as text
";
    assert_problem("a: [1, .inf]\n", expected);
    assert_eq!(problems("{\"a\": 1e400}").0[0].code, "OF1006");
    assert_eq!(value("rev: 7e12345"), json!({"rev": "7e12345"}));
}

#[test]
fn tags_and_aliases_that_fit_nothing_are_refused() {
    for (text, message) in [
        ("a: !secret x", "tag `!secret` does not fit this value"),
        ("a: !!binary aGk=", "tag `!!binary` does not fit this value"),
        ("a: !!int x", "tag `!!int` does not fit this value"),
        ("a: !!map [x]", "tag `!!map` does not fit a list"),
        ("a: !Ref {x: y}", "tag `!Ref` does not fit a mapping"),
        ("a: !x!y z", "a tag uses an undeclared handle"),
        ("a: *.txt", "unknown alias `*.txt`"),
        ("a: &x [*x]", "alias `*x` stands inside the value it names"),
        ("a: &x 1\n---\nb: *x", "alias `*x` names an anchor of another document"),
        ("<<: text", "a merge key `<<` needs a mapping or a list of mappings"),
    ] {
        let problems = problems(text);
        assert_eq!((problems.0[0].code, problems.0[0].message.as_str()), ("OF1007", message), "{text}");
    }
}

#[test]
fn syntax_errors_say_where_and_what_to_do() {
    let expected = "\
error[OF1002]: a tab is used where only spaces may indent
 --> wf.yaml:3:1
  |
3 |     c: d
  | ^^^^
  = help: indent with spaces
";
    assert_problem("a:\n  b: x\n\tc: d\n", expected);
    let expected = "\
error[OF1002]: a `:` starts a value where none can be
 --> wf.yaml:1:5
  |
1 | a: b: c
  |     ^
  = help: quote the text if the `:` belongs to it; otherwise check the indentation of this line and the one before
";
    assert_problem("a: b: c\n", expected);
    for (text, line, message) in [
        ("a: 'b\nc: d\n", 1, "a quote is not closed"),
        ("a: [b, c\nd: e\n", 2, "a `:` starts a value inside an open bracket"),
        ("a: 1\n b: 2\n", 2, "a `:` starts a value where none can be"),
        ("a:\n  - b\n c: d\n", 3, ""),
        ("a: @b\n", 1, "a value cannot start with this character"),
        ("a: ]\n", 1, "a closing bracket without an opening one"),
        ("a: \"\\q\"\n", 1, "an escape inside double quotes is unknown"),
        ("a: 'b' c\n", 1, "text follows a closing quote"),
        ("a: 1\nb\n", 2, "a key without `:`"),
        ("a: - b\n", 1, "a list cannot start here"),
        ("{\"a\": 1,\n \"b\" 2}", 2, ""),
        ("a: \u{1}\n", 1, "control character U+0001 is not allowed"),
        ("a: x\u{9b}\n", 1, "control character U+009B is not allowed"),
    ] {
        let problems = problems(text);
        let problem = &problems.0[0];
        assert_eq!((problem.code, problem.span.map(|span| span.line)), ("OF1002", Some(line)), "{text:?}: {problem}");
        assert!(message.is_empty() || problem.message == message, "{text:?}: {problem}");
    }
    assert_eq!(
        problems("image: {{x}}:tag\n").0.last().unwrap().help.as_deref(),
        Some("a template expression must be quoted: '{{…}}'")
    );
}

#[test]
fn problems_before_a_syntax_error_are_reported_with_it() {
    let problems = problems("a: {x: 1, x: 2}\nb: .nan\nc: 'open\n");
    let codes: Vec<&str> = problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["OF1004", "OF1006", "OF1002"]);
}

#[test]
fn problems_have_a_form_for_programs() {
    let json = problems("a: .nan\n").to_json();
    let expected = json!([{
        "code": "OF1006", "severity": "error", "message": "`.nan` is a number that JSON cannot hold",
        "help": "quote it if it is meant as text", "path": "a", "file": "wf.yaml",
        "line": 1, "column": 4, "offset": 3, "length": 4,
    }]);
    assert_eq!(json, expected);
}

#[test]
fn indentation_inside_brackets_and_quotes_means_nothing() {
    let text = "\
spec:
    args: [
  a,
b: c, {
d: 'e
f', \"g
    h\"
}
]
    text: \"one
two

three\"
    after: [x]
    größe: [
é,
]
    last: yes
";
    let expected = json!({"spec": {
        "args": ["a", {"b": "c"}, {"d": "e f", "g h": null}],
        "text": "one two\nthree", "after": ["x"], "größe": ["é"], "last": true,
    }});
    let document = &documents(text)[0];
    assert_eq!(document.value, expected);
    for (at, place) in [
        ("spec.args[0]", (3, 3)),
        ("spec.args[1].b", (4, 4)),
        ("spec.args[2].d", (5, 4)),
        ("spec.text", (10, 11)),
        ("spec.after[0]", (14, 13)),
        ("spec['größe'][0]", (16, 1)),
        ("spec.last", (18, 11)),
    ] {
        let span = document.source_map.value(&path(at));
        assert_eq!((span.line, span.column), place, "{at}");
    }
    assert_eq!(document.text(&path("spec.args[2].d")), Some("'e\nf'"));
}
