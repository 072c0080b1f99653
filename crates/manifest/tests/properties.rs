//! Properties that hold for any value and any bytes.

use octoflow_manifest::{Document, Limits, Path, Segment, number_text, read, to_yaml};
use proptest::prelude::*;
use serde_json::{Map, Number, Value};

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        any::<f64>().prop_filter_map("JSON has no infinities", Number::from_f64),
        (-1000i32..1000, 1u32..5).prop_filter_map("finite", |(n, d)| Number::from_f64(f64::from(n) / f64::from(d))),
    ]
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~]{0,20}",
        "[ \t\n:#'\"|>a-c-]{0,20}",
        "([a-z ]{0,6}\n){1,4}[a-z]{0,3}",
        "(yes|no|null|~|[0-9]{1,3}(\\.[0-9])?|0x[0-9a-f]{1,3}|<<|---|\\.\\.\\.|[!&*%@`?-] ?[a-z]{0,3})",
        prop::collection::vec(any::<char>(), 0..6).prop_map(String::from_iter),
        "[a-z]{1100,1200}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number().prop_map(Value::Number),
        string().prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((string(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A value as it is after JSON carried it: integral floats are integers.
fn carried(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            let text = number_text(number);
            let integer = text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
            Value::Number(integer.unwrap_or_else(|_| number.clone()))
        }
        Value::Array(items) => items.iter().map(carried).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), carried(value))).collect(),
        other => other.clone(),
    }
}

fn only(text: &str) -> Document {
    match read("value", text.as_bytes(), &Limits::default()) {
        Ok(mut documents) if documents.len() == 1 => documents.remove(0),
        Ok(documents) => panic!("{} documents in {text:?}", documents.len()),
        Err(problems) => panic!("{problems}\n{text}"),
    }
}

/// Returns the value of a scalar cut out of its text. JSON's quotes are its own only in JSON.
fn meaning(scalar: &str) -> Value {
    if scalar.starts_with(['\'', '"']) { only(&format!("[{scalar}]")).value[0].clone() } else { only(scalar).value }
}

fn first_line(text: &str) -> Option<&str> {
    text.split('\n').next().map(str::trim_end)
}

/// The place of every value must show that value: a piece of the text that reads as it.
fn check_places(document: &Document, value: &Value, path: &Path) {
    let span = document.source_map.exact(path).unwrap_or_else(|| panic!("no place for {path}"));
    let text = document.source.slice(span);
    match value {
        Value::Object(map) => {
            assert!(map.is_empty() || !text.is_empty());
            for (key, value) in map {
                let path = path.join(key.as_str());
                let key_text = document.source.slice(document.source_map.key(&path));
                assert_eq!(meaning(key_text), *key, "key at {path}");
                check_places(document, value, &path);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                check_places(document, value, &path.join(index));
            }
        }
        // A block: its lines, trailing blanks not shown.
        Value::String(string) if string.contains('\n') && first_line(string) == first_line(text) => {}
        Value::String(_) => assert_eq!(meaning(text), *value, "value at {path}"),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            assert_eq!(only(&format!("[{text}]")).value[0], *value, "value at {path}")
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(value in value()) {
        let text = to_yaml(&value);
        prop_assert_eq!(only(&text).value, carried(&value), "{}", text);
    }

    #[test]
    fn json_text_is_read_as_json(value in value()) {
        let value = Value::Array(vec![value]);
        prop_assert_eq!(only(&value.to_string()).value, carried(&value));
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(only(&pretty).value, carried(&value));
    }

    #[test]
    fn every_value_has_its_place(value in value()) {
        let value = Value::Array(vec![value]);
        for text in [to_yaml(&value), value.to_string()] {
            let document = only(&text);
            check_places(&document, &document.value, &Path::root());
        }
    }

    #[test]
    fn any_bytes_give_documents_or_problems(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read("bytes", &bytes, &Limits::default()).map_err(|problems| problems.render(true));
    }

    #[test]
    fn any_text_of_yaml_characters_gives_documents_or_problems(text in "[ \t\n\r:#'\"|>a-c0-9\\-\\[\\]{},?&*!%@<~.+\\\\é鍵\u{feff}]{0,60}") {
        if let Err(problems) = read("text", text.as_bytes(), &Limits::default()) {
            prop_assert!(!problems.is_empty());
            prop_assert!(problems.render(false).lines().count() >= problems.len());
        }
    }

    #[test]
    fn any_pieces_of_yaml_give_documents_or_problems(pieces in prop::collection::vec(prop::sample::select(vec![
        "a: ", "- ", "? ", ": ", "\n", "\n  ", "\n    ", "[", "]", "{", "}", ", ", "|", "|2-", ">+", "&a ", "*a ", "!!str ", "!x ", "<<: ", "'", "\"", "# c", "---\n", "...\n", "%TAG ! x\n", "b", "1", "\t", "key: v", "\r\n",
    ]), 0..40)) {
        let text = pieces.concat();
        let _ = read("pieces", text.as_bytes(), &Limits::default()).map_err(|problems| problems.render(false));
    }

    #[test]
    fn a_path_is_parsed_back(segments in prop::collection::vec(prop_oneof![any::<String>().prop_map(Segment::Key), any::<usize>().prop_map(Segment::Index)], 0..6)) {
        let path = Path(segments);
        prop_assert_eq!(path.to_string().parse::<Path>(), Ok(path));
    }
}
