//! Parses the conditions of resource templates: terms in the syntax of label selectors over paths into an object, such
//! as `status.phase in (Succeeded, Skipped), status.active < 1`.

use std::fmt;

use serde_json::Value;

use crate::expr::jsonpath;

#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The term as written.
    text: String,
    path: Vec<String>,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

/// Result of evaluating the conditions over an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionResult {
    Succeeded,
    /// Failed; with the term that decided.
    Failed(String),
    Pending,
}

/// Evaluates the conditions. The failure condition comes first: any of its terms is enough. Success needs all of its
/// terms.
pub fn evaluate(success: Option<&Condition>, failure: Option<&Condition>, object: &Value) -> ConditionResult {
    if let Some(bad) = failure.and_then(|failure| failure.terms.iter().find(|term| term.holds(object))) {
        return ConditionResult::Failed(format!("failure condition '{bad}' evaluated true"));
    }
    match success {
        Some(success) if !success.terms.iter().all(|term| term.holds(object)) => ConditionResult::Pending,
        _ => ConditionResult::Succeeded,
    }
}

impl Condition {
    /// Parses a condition; fails with the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let terms = split(text)?.into_iter().map(Term::parse).collect::<Result<Vec<_>, _>>()?;
        if terms.is_empty() { Err("the condition is empty".to_owned()) } else { Ok(Self { terms }) }
    }

    /// Whether the condition reads only fields that change when a run as a whole does.
    pub fn shallow(&self) -> bool {
        self.terms.iter().all(|term| {
            let words: Vec<&str> = term.path.iter().map(String::as_str).collect();
            !matches!(words.as_slice(), ["status", rest, ..] if !matches!(*rest, "phase" | "message" | "finishedAt" | "startedAt"))
                && words.len() > 1
        })
    }
}

impl Term {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}` is not a condition: {why}");
        let make = |path: &str, test: Test| {
            let path = segments(path.trim());
            if path.iter().any(|part| part.is_empty() || part.contains(char::is_whitespace)) {
                return Err(wrong("a path such as `status.phase` must come first"));
            }
            Ok(Self { text: text.to_owned(), path, test })
        };
        if let Some(path) = text.strip_prefix('!') {
            return make(path, Test::Absent);
        }
        for (sign, not) in [("!=", true), ("==", false)] {
            if let Some((path, value)) = text.split_once(sign) {
                let values = vec![plain(value).to_owned()];
                return make(path, if not { Test::NotIn(values) } else { Test::In(values) });
            }
        }
        if let Some((head, list)) = text.split_once('(') {
            let list = list.trim_end().strip_suffix(')').ok_or_else(|| wrong("`)` is missing"))?;
            let values = list.split(',').map(|value| plain(value).to_owned()).collect();
            let mut words = head.split_whitespace();
            return match (words.next(), words.next(), words.next()) {
                (Some(path), Some("in"), None) => make(path, Test::In(values)),
                (Some(path), Some("notin"), None) => make(path, Test::NotIn(values)),
                _ => Err(wrong("write `path in (a, b)` or `path notin (a, b)`")),
            };
        }
        for sign in ['=', '>', '<'] {
            let Some((path, value)) = text.split_once(sign) else { continue };
            let value = plain(value);
            let whole = || value.parse().map_err(|_| wrong("`>` and `<` compare whole numbers"));
            return match sign {
                '>' => make(path, Test::Above(whole()?)),
                '<' => make(path, Test::Below(whole()?)),
                _ => make(path, Test::In(vec![value.to_owned()])),
            };
        }
        make(text, Test::Exists)
    }

    pub fn holds(&self, object: &Value) -> bool {
        let found = find(object, &self.path);
        let text = || found.as_ref().map(jsonpath::plain).unwrap_or_default();
        let number = || found.as_ref().and_then(|value| jsonpath::plain(value).trim().parse::<i64>().ok());
        match &self.test {
            Test::Exists => found.is_some(),
            Test::Absent => found.is_none(),
            Test::In(values) => found.is_some() && values.contains(&text()),
            // A missing field has none of the values.
            Test::NotIn(values) => found.is_none() || !values.contains(&text()),
            Test::Above(bound) => number().is_some_and(|number| number > *bound),
            Test::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Splits at the commas outside of parentheses.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let mut terms = Vec::new();
    let (mut start, mut depth) = (0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                terms.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if depth != 0 {
        return Err(format!("the parentheses of `{text}` do not match"));
    }
    terms.push(text[start..].trim());
    terms.retain(|term| !term.is_empty());
    Ok(terms)
}

fn plain(value: &str) -> &str {
    let value = value.trim();
    let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    quoted.or_else(|| value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''))).unwrap_or(value)
}

/// Splits a path at its dots; one after a backslash belongs to the name. `a[0]` is `a.0`.
fn segments(path: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut letters = path.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                if let (Some(next), Some(last)) = (letters.next(), parts.last_mut()) {
                    last.push(next);
                }
            }
            '.' | '[' => parts.push(String::new()),
            ']' => {}
            other => {
                if let Some(last) = parts.last_mut() {
                    last.push(other);
                }
            }
        }
    }
    parts
}

fn find(object: &Value, path: &[String]) -> Option<Value> {
    let mut at = object;
    for (index, part) in path.iter().enumerate() {
        at = match at {
            Value::Object(map) => map.get(part)?,
            Value::Array(items) if part == "#" && index + 1 == path.len() => return Some(items.len().into()),
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    Some(at.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(text: &str) -> bool {
        let object = json!({
            "status": {"phase": "Succeeded", "succeeded": 1, "conditions": [{"status": "True"}], "ok": true},
            "data": {"a.b": "x"},
        });
        Condition::parse(text).unwrap().terms.iter().all(|term| term.holds(&object))
    }

    #[test]
    fn terms_are_read_as_label_selectors_over_paths() {
        for good in [
            "status.phase == Succeeded",
            "status.phase=Succeeded",
            "status.phase in (Succeeded, Skipped)",
            "status.phase notin (Failed, Error)",
            "status.phase != Failed",
            "status.missing != Failed",
            "status.succeeded > 0",
            "status.succeeded < 2, status.ok == true",
            "status.conditions.0.status == True",
            "status.conditions[0].status == True",
            "status.conditions.# == 1",
            r"data.a\.b == x",
            "status.phase, !status.failed",
        ] {
            assert!(holds(good), "{good}");
        }
        for bad in ["status.failed > 3", "status.phase > 0", "status.missing == a", "status.missing", "!status.phase"] {
            assert!(!holds(bad), "{bad}");
        }
    }

    #[test]
    fn what_is_no_condition_says_why() {
        for (text, part) in [
            ("", "is empty"),
            ("status.n > many", "whole numbers"),
            ("status.phase in (a", "parentheses"),
            ("status.phase of (a)", "path in (a, b)"),
            ("a b == c", "path such as"),
        ] {
            let why = Condition::parse(text).expect_err(text);
            assert!(why.contains(part), "{text}: {why}");
        }
    }

    #[test]
    fn failure_comes_first_and_success_needs_everything() {
        let (success, failure) = (Condition::parse("a == 1, b == 1").unwrap(), Condition::parse("c > 3, d").unwrap());
        let evaluate = |object| evaluate(Some(&success), Some(&failure), &object);
        assert_eq!(
            evaluate(json!({"a": 1, "b": 1, "c": 4})),
            ConditionResult::Failed("failure condition 'c > 3' evaluated true".to_owned())
        );
        assert_eq!(evaluate(json!({"a": 1, "b": 1, "c": 3})), ConditionResult::Succeeded);
        assert_eq!(evaluate(json!({"a": 1})), ConditionResult::Pending);
        assert_eq!(super::evaluate(None, Some(&failure), &json!({})), ConditionResult::Succeeded);
        assert!(Condition::parse("status.phase == Succeeded").unwrap().shallow());
        assert!(!Condition::parse("status.phase == Running, status.progress == 1/2").unwrap().shallow());
    }
}
