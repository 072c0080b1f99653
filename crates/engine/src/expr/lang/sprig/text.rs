//! `sprig.*` functions on text. Positions count characters.

use super::case;
use super::coerce;
use crate::expr::Value;
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::builtin::text::{join, pieces, repeat, replace};
use crate::expr::lang::builtin::{Function, MANY};
use crate::expr::lang::work::{CallResult, EvalFault, EvalWork};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("trim", 1, 1, |a, _| Ok(Value::from(a.text(0)?.trim()))),
    Function::new("trimAll", 2, 2, |a, _| {
        let unwanted: Vec<char> = a.text(0)?.chars().collect();
        Ok(Value::from(a.text(1)?.trim_matches(unwanted.as_slice())))
    }),
    // An older spelling of `trimAll`.
    Function::new("trimall", 2, 2, |a, _| {
        let unwanted: Vec<char> = a.text(0)?.chars().collect();
        Ok(Value::from(a.text(1)?.trim_matches(unwanted.as_slice())))
    }),
    Function::new("trimSuffix", 2, 2, |a, _| {
        let text = a.text(1)?;
        Ok(Value::from(text.strip_suffix(a.text(0)?).unwrap_or(text)))
    }),
    Function::new("trimPrefix", 2, 2, |a, _| {
        let text = a.text(1)?;
        Ok(Value::from(text.strip_prefix(a.text(0)?).unwrap_or(text)))
    }),
    Function::new("upper", 1, 1, |a, work| changed(a, work, str::to_uppercase)),
    Function::new("lower", 1, 1, |a, work| changed(a, work, str::to_lowercase)),
    Function::new("title", 1, 1, |a, work| changed(a, work, case::title)),
    Function::new("untitle", 1, 1, |a, work| changed(a, work, case::untitle)),
    Function::new("swapcase", 1, 1, |a, work| changed(a, work, case::swap)),
    Function::new("snakecase", 1, 1, |a, work| changed(a, work, case::snake)),
    Function::new("camelcase", 1, 1, |a, work| changed(a, work, case::camel)),
    Function::new("kebabcase", 1, 1, |a, work| changed(a, work, case::kebab)),
    Function::new("initials", 1, 1, |a, work| {
        changed(a, work, |text| text.split_whitespace().filter_map(|word| word.chars().next()).collect())
    }),
    Function::new("nospace", 1, 1, |a, work| {
        changed(a, work, |text| text.chars().filter(|c| !c.is_whitespace()).collect())
    }),
    Function::new("repeat", 2, 2, |a, work| repeat(a.text(1)?, coerce::int(a.any(0)), a, work)),
    Function::new("substr", 3, 3, substr),
    Function::new("trunc", 2, 2, trunc),
    Function::new("abbrev", 2, 2, abbrev),
    Function::new("contains", 2, 2, |a, _| Ok(Value::Bool(a.text(1)?.contains(a.text(0)?)))),
    Function::new("hasPrefix", 2, 2, |a, _| Ok(Value::Bool(a.text(1)?.starts_with(a.text(0)?)))),
    Function::new("hasSuffix", 2, 2, |a, _| Ok(Value::Bool(a.text(1)?.ends_with(a.text(0)?)))),
    Function::new("quote", 0, MANY, |a, work| quoted(a, work, |text| double(&text))),
    Function::new("squote", 0, MANY, |a, work| quoted(a, work, |text| format!("'{text}'"))),
    Function::new("cat", 0, MANY, |a, work| quoted(a, work, |text| text)),
    Function::new("hello", 0, 0, |_, _| Ok(Value::from("Hello!"))),
    Function::new("indent", 2, 2, |a, work| indent(a, work, "")),
    Function::new("nindent", 2, 2, |a, work| indent(a, work, "\n")),
    Function::new("replace", 3, 3, |a, work| replace(a.text(2)?, a.text(0)?, a.text(1)?, -1, work)),
    Function::new("plural", 3, 3, |a, _| {
        let chosen = if coerce::int(a.any(2)) == 1 { 0 } else { 1 };
        Ok(Value::from(a.text(chosen)?))
    }),
    Function::new("split", 2, 2, |a, work| split_map(a.text(1)?, a.text(0)?, -1, work)),
    Function::new("splitn", 3, 3, |a, work| split_map(a.text(2)?, a.text(0)?, coerce::int(a.any(1)), work)),
    Function::new("splitList", 2, 2, |a, work| {
        let parts = pieces(a.text(1)?, a.text(0)?, -1, false, work)?;
        Ok(parts.into_iter().map(Value::from).collect())
    }),
    Function::new("join", 2, 2, |a, work| {
        let texts = strings(a.any(1), work)?;
        let parts: Vec<&str> = texts.iter().map(String::as_str).collect();
        join(&parts, a.text(0)?, work)
    }),
    Function::new("sortAlpha", 1, 1, |a, work| {
        let mut texts = strings(a.any(0), work)?;
        texts.sort();
        Ok(texts.into_iter().map(Value::from).collect())
    }),
];

fn changed(a: &Arguments<'_>, work: &mut EvalWork, change: fn(&str) -> String) -> CallResult {
    work.claim(a.text(0)?.len().saturating_mul(2))?;
    Ok(Value::from(change(a.text(0)?)))
}

fn substr(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let (start, end, text) = (coerce::int(a.any(0)), coerce::int(a.any(1)), a.text(2)?);
    work.claim(text.len())?;
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let start = start.clamp(0, length);
    let end = if end < 0 || end > length { length } else { end }.max(start);
    Ok(Value::from(middle(text, start, end)))
}

fn trunc(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let (wanted, text) = (coerce::int(a.any(0)), a.text(1)?);
    work.claim(text.len())?;
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    Ok(Value::from(if wanted < 0 {
        middle(text, length.saturating_add(wanted).max(0), length)
    } else {
        middle(text, 0, wanted.min(length))
    }))
}

fn abbrev(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let (width, text) = (coerce::int(a.any(0)), a.text(1)?);
    work.claim(text.len())?;
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if width < 4 || length <= width {
        return Ok(Value::from(text));
    }
    Ok(Value::from(format!("{}...", middle(text, 0, width - 3))))
}

fn middle(text: &str, start: i64, end: i64) -> String {
    let start = usize::try_from(start).unwrap_or(0);
    let end = usize::try_from(end).unwrap_or(0);
    text.chars().skip(start).take(end.saturating_sub(start)).collect()
}

/// Quotes all arguments but nil ones, joined by blanks.
fn quoted(a: &Arguments<'_>, work: &mut EvalWork, quote: fn(String) -> String) -> CallResult {
    let mut texts = Vec::new();
    for value in a.values.iter().filter(|value| !value.is_nil()) {
        texts.push(quote(coerce::text(value, work)?));
    }
    Ok(Value::from(texts.join(" ")))
}

/// Returns a text in double quotes, with invisible characters escaped as in Go.
fn double(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn indent(a: &Arguments<'_>, work: &mut EvalWork, before: &str) -> CallResult {
    let text = a.text(1)?;
    let width = usize::try_from(coerce::int(a.any(0))).unwrap_or(0);
    let lines = text.matches('\n').count() + 1;
    work.claim(lines.saturating_mul(width).saturating_add(text.len()))?;
    let pad = " ".repeat(width);
    Ok(Value::from(format!("{before}{pad}{}", text.replace('\n', &format!("\n{pad}")))))
}

/// Returns the parts as a map with the keys `_0`, `_1`, …
fn split_map(text: &str, separator: &str, most: i64, work: &mut EvalWork) -> CallResult {
    let parts = pieces(text, separator, most, false, work)?;
    let entries = parts.into_iter().enumerate();
    Ok(entries.map(|(index, part)| (format!("_{index}"), Value::from(part))).collect())
}

/// Converts every element to text, leaving out nil; a single value counts as an array of one.
pub(super) fn strings(value: &Value, work: &mut EvalWork) -> Result<Vec<String>, EvalFault> {
    let items = if let Value::List(items) = value { items.as_slice() } else { std::slice::from_ref(value) };
    items.iter().filter(|item| !item.is_nil()).map(|item| coerce::text(item, work)).collect()
}
