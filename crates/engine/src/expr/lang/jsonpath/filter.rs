//! Filters of JSON paths: comparisons joined by `&&` and `||`, without parentheses.

use std::cmp::Ordering;

use super::path::unquote;
use super::{EvalFault, EvalWork};
use crate::expr::Value;
use crate::expr::lang::operate;

#[derive(Debug)]
pub(in crate::expr::lang) struct ItemFilter {
    /// A disjunction of conjunctions: matches if all tests of one row match.
    rows: Vec<Vec<FilterTest>>,
}

#[derive(Debug)]
struct FilterTest {
    negated: bool,
    left: Side,
    comparison: Option<(&'static str, Side)>,
}

#[derive(Debug)]
enum Side {
    Literal(Value),
    /// A path of names and positions below `@` (or below `$`).
    Path {
        from_root: bool,
        keys: Vec<String>,
    },
}

/// Longer operators first, where one is a prefix of another.
const SIGNS: [&str; 7] = ["==", "!=", "<=", ">=", "=~", "<", ">"];

impl ItemFilter {
    pub(super) fn parse(text: &str) -> Result<Self, EvalFault> {
        let mut rows = Vec::new();
        for row in parts(text, "||") {
            rows.push(parts(row, "&&").into_iter().map(test).collect::<Result<Vec<_>, _>>()?);
        }
        Ok(Self { rows })
    }

    pub(super) fn holds(&self, item: &Value, document: &Value, work: &mut EvalWork) -> Result<bool, EvalFault> {
        for row in &self.rows {
            let mut all = true;
            for test in row {
                all = all && test.holds(item, document, work)?;
            }
            if all {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl FilterTest {
    fn holds(&self, item: &Value, document: &Value, work: &mut EvalWork) -> Result<bool, EvalFault> {
        work.spend(1)?;
        let left = self.left.value(item, document);
        let held = match &self.comparison {
            // A bare path tests for existence.
            None => left.is_some_and(|value| !matches!(value, Value::Nil | Value::Bool(false))),
            Some((sign, right)) => {
                let (Some(left), Some(right)) = (left, right.value(item, document)) else {
                    return Ok(self.negated);
                };
                match *sign {
                    "==" => operate::equal(&left, &right, work)?,
                    "!=" => !operate::equal(&left, &right, work)?,
                    "=~" => match (&left, &right) {
                        (Value::Str(text), Value::Str(pattern)) => work.pattern(pattern, text)?.regex().is_match(text),
                        _ => false,
                    },
                    "<" => left.order(&right) == Some(Ordering::Less),
                    ">" => left.order(&right) == Some(Ordering::Greater),
                    "<=" => left.order(&right).is_some_and(Ordering::is_le),
                    _ => left.order(&right).is_some_and(Ordering::is_ge),
                }
            }
        };
        Ok(held != self.negated)
    }
}

impl Side {
    fn value(&self, item: &Value, document: &Value) -> Option<Value> {
        match self {
            Self::Literal(value) => Some(value.clone()),
            Self::Path { from_root, keys } => {
                let mut at = if *from_root { document } else { item };
                for key in keys {
                    at = match at {
                        Value::Map(entries) => entries.get(key)?,
                        Value::List(items) => super::nth(items, key.parse().ok()?)?,
                        Value::Nil
                        | Value::Bool(_)
                        | Value::Int(_)
                        | Value::Float(_)
                        | Value::Str(_)
                        | Value::Date(_)
                        | Value::Duration(_) => return None,
                    };
                }
                Some(at.clone())
            }
        }
    }
}

fn test(text: &str) -> Result<FilterTest, EvalFault> {
    let text = text.trim();
    let (negated, text) = match text.strip_prefix('!') {
        Some(rest) if !rest.starts_with('=') => (true, rest.trim()),
        _ => (false, text),
    };
    let found = positions(text).find_map(|at| {
        let sign = SIGNS.iter().find(|sign| text[at..].starts_with(**sign))?;
        Some((at, *sign))
    });
    let Some((at, sign)) = found else {
        return Ok(FilterTest { negated, left: side(text)?, comparison: None });
    };
    Ok(FilterTest { negated, left: side(&text[..at])?, comparison: Some((sign, side(&text[at + sign.len()..])?)) })
}

fn side(text: &str) -> Result<Side, EvalFault> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix(['@', '$']) {
        return Ok(Side::Path {
            from_root: text.starts_with('$'),
            keys: keys(rest).ok_or_else(|| EvalFault(format!("the filter's path '{text}' cannot be read")))?,
        });
    }
    let slashed = text.strip_prefix('/').and_then(|inner| inner.strip_suffix('/')).map(str::to_owned);
    if let Some(text) = unquote(text).or(slashed) {
        return Ok(Side::Literal(Value::from(text)));
    }
    serde_json::from_str::<serde_json::Value>(text)
        .map(|json| Side::Literal(Value::from(json)))
        .map_err(|_| EvalFault(format!("the filter's value '{text}' is neither a path, a quoted text, nor a number")))
}

/// Parses `.a.b`, `['a']`, `[0]`.
fn keys(mut rest: &str) -> Option<Vec<String>> {
    let mut keys = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = after.split_once(']')?;
            keys.push(unquote(inside.trim()).unwrap_or_else(|| inside.trim().to_owned()));
            rest = after;
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            keys.push(after[..end].to_owned());
            rest = &after[end..];
        }
    }
    Some(keys)
}

/// Splits a text at separators that are not inside quotes.
fn parts<'t>(text: &'t str, separator: &str) -> Vec<&'t str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for at in positions(text) {
        if at >= start && text[at..].starts_with(separator) {
            parts.push(&text[start..at]);
            start = at + separator.len();
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Iterates over the positions of characters outside quotes.
fn positions(text: &str) -> impl Iterator<Item = usize> {
    let mut quote = None;
    text.char_indices().filter_map(move |(at, c)| {
        match quote {
            Some(open) if c == open => {
                quote = None;
                return None;
            }
            Some(_) => return None,
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None => {}
        }
        quote.is_none().then_some(at)
    })
}
