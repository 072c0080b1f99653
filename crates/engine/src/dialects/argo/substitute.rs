//! Fills variables into text: `{{name}}` and `{{=expression}}`.
//! Knows how tags are written; resolving names is the scope's job.

use std::{borrow::Cow, fmt};

use serde_json::Value;

use super::{
    room::LARGEST,
    scope::{Lookup, Scope},
};
use crate::expr::{self, lang};

/// Policy for a tag that names a step, task or item which cannot be resolved.
/// Tags with other names are always left as they are: braces of shells and other template languages survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Leave it: a later pass may resolve it.
    Keep,
    /// Fail: this is the last pass.
    Refuse,
    /// Fail for any unresolved tag, whatever its name.
    RefuseAll,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SubstituteError {
    /// The name is unknown.
    Unresolved {
        tag: String,
    },
    /// The producer was skipped or omitted, so its output is missing.
    Absent {
        tag: String,
    },
    Expression {
        tag: String,
        why: String,
    },
    /// The filled text exceeds the size limit.
    TooLarge,
    /// The run's expression budget is exhausted.
    Exhausted(String),
}

impl fmt::Display for SubstituteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unresolved { tag } => write!(f, "failed to resolve {{{{{tag}}}}}"),
            Self::Absent { tag } => {
                write!(
                    f,
                    "failed to resolve {{{{{tag}}}}}: it is an absent optional value, because what produces it was skipped or omitted; give the output or the input a default"
                )
            }
            Self::TooLarge => {
                write!(f, "a text with its variables put in would take more than {} MiB", LARGEST / 1024 / 1024)
            }
            Self::Expression { tag, why } => {
                write!(f, "failed to evaluate expression {{{{{}}}}}: {why}", shortened(tag))
            }
            Self::Exhausted(why) => f.write_str(why),
        }
    }
}

/// Shortens a text for a message: every node of a loop may keep one, so not a mebibyte of it.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 1_000;
    match text.char_indices().nth(LONGEST) {
        Some((cut, _)) => Cow::Owned(format!("{}…", &text[..cut])),
        None => Cow::Borrowed(text),
    }
}

/// Maximum nesting of tags inside tags. One level is what people write.
const NESTED: usize = 8;

/// Maximum length of a name in bytes. What opens and does not close within it is not a tag.
const MAX_NAME_LENGTH: usize = 4096;

pub(crate) fn fill<'t>(text: &'t str, scope: &Scope<'_>, missing: Missing) -> Result<Cow<'t, str>, SubstituteError> {
    fill_at(text, scope, missing, 0)
}

/// Fills a text once. Filled-in values are never scanned for tags: values are data.
fn fill_at<'t>(
    text: &'t str,
    scope: &Scope<'_>,
    missing: Missing,
    depth: usize,
) -> Result<Cow<'t, str>, SubstituteError> {
    if !text.contains("{{") {
        return Ok(Cow::Borrowed(text));
    }
    // Braces that open behind the last closing ones are not a tag. Looking for their end each time would take quadratic
    // time.
    let last = text.rfind("}}").unwrap_or_default();
    let mut filled = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(open) = text[at..].find("{{").map(|found| at + found).filter(|open| *open < last) {
        let expression = text[open + 2..].trim_start().starts_with('=');
        let close = if expression { close_within(text, open, scope)? } else { closing_of(text, open) };
        filled.push_str(&text[at..open]);
        let Some(close) = close else {
            filled.push_str("{{");
            at = open + 2;
            continue;
        };
        let body = &text[open + 2..close];
        let nested = !expression && body.contains("{{") && depth < NESTED;
        let name = if nested { fill_at(body, scope, missing, depth + 1)? } else { Cow::Borrowed(body) };
        // A name that contains an unresolved tag is left for a later pass, or for ever.
        let known = if nested && name.contains("{{") { None } else { resolve(&name, &scope.nth(open), missing)? };
        match known {
            Some(value) => filled.push_str(&value),
            None => {
                filled.push_str("{{");
                filled.push_str(&name);
                filled.push_str("}}");
            }
        }
        if filled.len() > LARGEST {
            return Err(SubstituteError::TooLarge);
        }
        at = close + 2;
    }
    filled.push_str(&text[at..]);
    scope.meter.fill(filled.len()).map_err(exhausted)?;
    Ok(Cow::Owned(filled))
}

fn exhausted(error: expr::Error) -> SubstituteError {
    SubstituteError::Exhausted(error.to_string())
}

/// Finds where the tag that opens at `open` closes, skipping the tags inside it. Stops at an opening that is too deep,
/// so that no byte is read for more than `NESTED` openings.
fn closing_of(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    let mut at = open + 2;
    let end = text.floor_char_boundary(at + MAX_NAME_LENGTH);
    loop {
        let rest = &text.as_bytes()[at..end];
        at += rest.windows(2).position(|pair| matches!(pair, b"{{" | b"}}"))?;
        match text.as_bytes()[at] {
            b'{' if depth == NESTED => return None,
            b'{' => depth += 1,
            _ if depth == 0 => return Some(at),
            _ => depth -= 1,
        }
        at += 2;
    }
}

/// Whether the whole text is one tag whose producer is absent, so that the caller may fall back to a default.
pub(crate) fn is_absent(text: &str, scope: &Scope<'_>) -> bool {
    let body = text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    body.is_some_and(|body| {
        !body.contains("{{") && !body.trim_start().starts_with('=') && scope.lookup(body.trim()) == Lookup::Absent
    })
}

pub(crate) fn fill_value(value: &Value, scope: &Scope<'_>, missing: Missing) -> Result<Value, SubstituteError> {
    Ok(match value {
        Value::String(text) => Value::String(fill(text, scope, missing)?.into_owned()),
        Value::Array(list) => {
            let items = list.iter().enumerate();
            let items = items.map(|(place, item)| fill_value(item, &scope.nth(place), missing));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(map) => {
            let pairs = map.iter().map(|(key, item)| {
                let filled = fill_value(item, &scope.about(key), missing)?;
                Ok((fill(key, scope, missing)?.into_owned(), filled))
            });
            Value::Object(pairs.collect::<Result<_, _>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

/// Finds where the tag that opens at `open` closes. An expression may contain `}}` itself, so it ends where it parses.
pub(crate) fn close_of(text: &str, open: usize) -> Option<usize> {
    close_where(text, open, &mut |source| Ok::<_, expr::Error>(lang::parse(source).is_ok())).ok().flatten()
}

/// Finds the end of a tag; parsing is charged to the scope's budget.
fn close_within(text: &str, open: usize, scope: &Scope<'_>) -> Result<Option<usize>, SubstituteError> {
    let parses = &mut |source: &str| match scope.meter.parse(source) {
        Err(error) if error.is_exhausted() => {
            Err(SubstituteError::Expression { tag: format!("={source}"), why: error.to_string() })
        }
        parsed => Ok(parsed.is_ok()),
    };
    close_where(text, open, parses)
}

fn close_where<E>(
    text: &str,
    open: usize,
    parses: &mut dyn FnMut(&str) -> Result<bool, E>,
) -> Result<Option<usize>, E> {
    let Some(first) = text[open + 2..].find("}}").map(|found| open + 2 + found) else { return Ok(None) };
    let Some(source) = text[open + 2..].trim_start().strip_prefix('=') else { return Ok(Some(first)) };
    let source_at = text.len() - source.len();
    const TRIES: usize = 16;
    let mut close = first;
    for _ in 0..TRIES {
        if parses(&text[source_at..close])? {
            return Ok(Some(close));
        }
        match text[close + 1..].find("}}") {
            Some(next) => close = close + 1 + next,
            None => break,
        }
    }
    Ok(Some(first))
}

/// Resolves a tag to its text; `None` to leave it as it is.
fn resolve(body: &str, scope: &Scope<'_>, missing: Missing) -> Result<Option<String>, SubstituteError> {
    if let Some(source) = body.trim_start().strip_prefix('=') {
        return evaluate(source, scope, missing);
    }
    let name = body.trim();
    let must = match missing {
        Missing::Keep => false,
        Missing::Refuse => matches!(name.split('.').next(), Some("steps" | "tasks" | "item")),
        Missing::RefuseAll => true,
    };
    match scope.lookup(name) {
        Lookup::Text(text) => {
            // The output of a loop is collected from all its items, so it costs more.
            let price =
                if matches!(name.split('.').next(), Some("steps" | "tasks")) { 4 * text.len() } else { text.len() };
            scope.meter.fill(price).map_err(exhausted)?;
            Ok(Some(text))
        }
        Lookup::Absent if missing != Missing::Keep => Err(SubstituteError::Absent { tag: name.to_owned() }),
        Lookup::Unknown if must => Err(SubstituteError::Unresolved { tag: name.to_owned() }),
        Lookup::Absent | Lookup::Unknown => Ok(None),
    }
}

fn evaluate(source: &str, scope: &Scope<'_>, missing: Missing) -> Result<Option<String>, SubstituteError> {
    let wrong = |why: String| SubstituteError::Expression { tag: format!("={source}"), why };
    let program = scope.meter.parse(source).map_err(|error| wrong(error.to_string()))?;
    if missing == Missing::Keep && program.roots().iter().any(|reference| scope.is_late(reference)) {
        return Ok(None);
    }
    match scope.meter.run(&program, scope) {
        Ok(expr::Value::Nil) if missing == Missing::Keep => Ok(None),
        Ok(expr::Value::Nil) => Err(wrong("it has no value".to_owned())),
        Ok(expr::Value::Str(text)) => Ok(Some(text.to_string())),
        Ok(other) => Ok(Some(other.to_json())),
        Err(error) if missing == Missing::Keep && !error.is_exhausted() => Ok(None),
        Err(error) => Err(wrong(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_closes_behind_the_tags_inside_it() {
        let deep = |levels: usize| format!("{}a{}", "{{".repeat(levels), "}}".repeat(levels));
        for (text, close) in [
            ("{{a}}".to_owned(), Some(3)),
            ("{{}}".to_owned(), Some(2)),
            ("{{a{{b}}c}} }}".to_owned(), Some(9)),
            ("{{{a}}}".to_owned(), Some(4)),
            ("{{a{{b}}".to_owned(), None),
            ("{{ä".to_owned(), None),
            (format!("{{{{{}}}}}", "n".repeat(MAX_NAME_LENGTH - 2)), Some(MAX_NAME_LENGTH)),
            (format!("{{{{{}}}}}", "n".repeat(MAX_NAME_LENGTH - 1)), None),
            (format!("{{{{{}}}}}", "ä".repeat(MAX_NAME_LENGTH)), None),
            (deep(NESTED + 1), Some(4 * NESTED + 3)),
            (deep(NESTED + 2), None),
        ] {
            assert_eq!(closing_of(&text, 0), close, "{text:.60}");
        }
    }
}
