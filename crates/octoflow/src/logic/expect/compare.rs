//! Texts compared in several ways, and parts of objects found by path.

use octoflow_engine::jsonpath::Template;
use serde_json::Value;

use crate::logic::{notation::pattern, test_document::Located};

/// The words of a full comparison.
const WORDS: [&str; 5] = ["equals", "contains", "lacks", "matches", "oneOf"];

/// What was expected, when the text is something else.
pub(in crate::logic) fn differs(expected: &Located<'_>, actual: &str) -> Option<String> {
    if !expected.value.is_object() {
        let text = expected.text();
        return (text != actual).then(|| show(&text));
    }
    for (key, located) in expected.entries() {
        let texts = located.texts();
        let (holds, wanted) = match key {
            "equals" => (texts[0] == actual, show(&texts[0])),
            "contains" => {
                let lacking = texts.iter().find(|text| !actual.contains(text.as_str()));
                (lacking.is_none(), format!("contains {}", show(lacking.unwrap_or(&texts[0]))))
            }
            "lacks" => {
                let found = texts.iter().find(|text| actual.contains(text.as_str()));
                (found.is_none(), format!("does not contain {}", show(found.unwrap_or(&texts[0]))))
            }
            "matches" => {
                (pattern(&texts[0]).is_ok_and(|pattern| pattern.is_match(actual)), format!("matches /{}/", texts[0]))
            }
            _ => (texts.iter().any(|text| text == actual), format!("one of {}", texts.join(", "))),
        };
        if !holds {
            return Some(wanted);
        }
    }
    None
}

pub(super) fn is_matcher(value: &Value) -> bool {
    value.as_object().is_some_and(|map| !map.is_empty() && map.keys().all(|key| WORDS.contains(&key.as_str())))
}

/// A text as it can be seen on a line, even if it is empty.
pub(super) fn show(text: &str) -> String {
    if text.is_empty() || text.trim() != text { format!("{text:?}") } else { text.to_owned() }
}

/// The part of a value at a path: itself where the path means one, a list where it means several, null for none.
pub(super) fn at_path(root: &Value, path: &str) -> Result<Value, String> {
    let dot = if path.starts_with(['.', '[', '$', '{']) { "" } else { "." };
    let text = if path.starts_with('{') { path.to_owned() } else { format!("{{{dot}{path}}}") };
    let template = Template::parse(&text).map_err(|wrong| wrong.to_string())?;
    let mut found = template.values(root);
    Ok(match found.len() {
        0 => Value::Null,
        1 => found.remove(0).clone(),
        _ => Value::Array(found.into_iter().cloned().collect()),
    })
}
