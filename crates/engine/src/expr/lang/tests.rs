//! Tests of the expression language: what texts give, what they refuse, and what they cannot do to the engine.

use std::collections::BTreeMap;

use super::*;

mod environment;
mod functions;
mod hostile;
mod manual;
mod operators;
mod random;
mod sprig;

/// A fixed environment, given as JSON.
struct Fixed(BTreeMap<String, Value>);

impl Env for Fixed {
    fn root(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

fn fixed() -> Fixed {
    let json = serde_json::json!({
        "inputs": {"parameters": {"name": "world", "my-count": "3", "empty": "", "json": "{\"a\":[1,2,{\"b\":\"x\"}]}"}},
        "item": {"n": 7, "name": "seven"},
        "users": [{"name": "ann", "age": 30}, {"name": "bob", "age": 20}, {"name": "cid", "age": 30}],
        "retries": "2",
        "nothing": null,
    });
    let serde_json::Value::Object(entries) = json else { unreachable!("the environment above is an object") };
    Fixed(entries.into_iter().map(|(name, value)| (name, Value::from(value))).collect())
}

fn run(text: &str) -> Result<Value, Error> {
    parse(text)?.evaluate(&fixed())
}

/// Each text gives the value of the JSON beside it.
fn gives(table: &[(&str, &str)]) {
    for (text, expected) in table {
        match run(text) {
            Ok(value) => assert_eq!(value.to_json(), *expected, "{text}"),
            Err(error) => panic!("{text}\n{}\n{error}", error.render(text)),
        }
    }
}

/// Each text is refused at the column with words that contain those beside it.
fn refuses(table: &[(&str, usize, &str)]) {
    for (text, column, words) in table {
        match run(text) {
            Ok(value) => panic!("{text} gives {}", value.to_json()),
            Err(error) => {
                assert!(error.message.contains(words), "{text}: {error}");
                assert_eq!(error.column, *column, "{text}\n{}\n{error}", error.render(text));
            }
        }
    }
}
