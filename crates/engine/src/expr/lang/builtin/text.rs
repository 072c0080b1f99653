//! Functions on text.

use super::Function;
use crate::expr::Value;
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::work::{CallResult, EvalFault, EvalWork};

pub(in crate::expr::lang) const FUNCTIONS: &[Function] = &[
    Function::new("trim", 1, 2, trim),
    Function::new("trimPrefix", 1, 2, |a, _| {
        let (text, prefix) = (a.text(0)?, affix(a)?);
        Ok(Value::from(text.strip_prefix(prefix).unwrap_or(text)))
    }),
    Function::new("trimSuffix", 1, 2, |a, _| {
        let (text, suffix) = (a.text(0)?, affix(a)?);
        Ok(Value::from(text.strip_suffix(suffix).unwrap_or(text)))
    }),
    Function::new("upper", 1, 1, |a, work| {
        work.claim(a.text(0)?.len())?;
        Ok(Value::from(a.text(0)?.to_uppercase()))
    }),
    Function::new("lower", 1, 1, |a, work| {
        work.claim(a.text(0)?.len())?;
        Ok(Value::from(a.text(0)?.to_lowercase()))
    }),
    Function::new("split", 2, 3, |a, work| split(a, work, false)),
    Function::new("splitAfter", 2, 3, |a, work| split(a, work, true)),
    Function::new("replace", 3, 4, |a, work| {
        let most = if a.len() > 3 { a.int(3)? } else { -1 };
        replace(a.text(0)?, a.text(1)?, a.text(2)?, most, work)
    }),
    Function::new("repeat", 2, 2, |a, work| repeat(a.text(0)?, a.int(1)?, a, work)),
    Function::new("join", 1, 2, |a, work| {
        let glue = if a.len() > 1 { a.text(1)? } else { "" };
        let mut parts = Vec::new();
        for (index, item) in a.list(0)?.iter().enumerate() {
            let Value::Str(part) = item else {
                let kind = item.kind();
                return Err(a.fault(format!("element {index} is {kind}, not a string; use map(…, string(#)) first")));
            };
            parts.push(part.as_ref());
        }
        join(&parts, glue, work)
    }),
    Function::new("indexOf", 2, 2, |a, _| Ok(found(a.text(0)?.find(a.text(1)?)))),
    Function::new("lastIndexOf", 2, 2, |a, _| Ok(found(a.text(0)?.rfind(a.text(1)?)))),
    Function::new("hasPrefix", 2, 2, |a, _| Ok(Value::Bool(a.text(0)?.starts_with(a.text(1)?)))),
    Function::new("hasSuffix", 2, 2, |a, _| Ok(Value::Bool(a.text(0)?.ends_with(a.text(1)?)))),
];

fn trim(a: &Arguments<'_>, _: &mut EvalWork) -> CallResult {
    let text = a.text(0)?;
    if a.len() == 1 {
        return Ok(Value::from(text.trim()));
    }
    let unwanted: Vec<char> = a.text(1)?.chars().collect();
    Ok(Value::from(text.trim_matches(unwanted.as_slice())))
}

fn affix<'a>(a: &Arguments<'a>) -> Result<&'a str, EvalFault> {
    if a.len() > 1 { a.text(1) } else { Ok(" ") }
}

fn found(position: Option<usize>) -> Value {
    Value::Int(position.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
}

fn split(a: &Arguments<'_>, work: &mut EvalWork, after: bool) -> CallResult {
    let most = if a.len() > 2 { a.int(2)? } else { -1 };
    let parts = pieces(a.text(0)?, a.text(1)?, most, after, work)?;
    Ok(parts.into_iter().map(Value::from).collect())
}

/// Splits a text at separators into at most this many parts; no limit if negative. An empty separator splits between
/// all characters.
pub(in crate::expr::lang) fn pieces<'t>(
    text: &'t str,
    separator: &str,
    most: i64,
    after: bool,
    work: &mut EvalWork,
) -> Result<Vec<&'t str>, EvalFault> {
    let most = if most < 0 { usize::MAX } else { usize::try_from(most).unwrap_or(usize::MAX) };
    if most == 0 {
        return Ok(Vec::new());
    }
    let cuts = if separator.is_empty() { text.chars().count() } else { text.matches(separator).count() + 1 };
    work.claim_list(cuts.min(most))?;
    let mut parts = Vec::new();
    let mut rest = text;
    while parts.len() + 1 < most {
        let cut = if separator.is_empty() {
            rest.chars().next().map(char::len_utf8).filter(|&length| length < rest.len())
        } else {
            rest.find(separator)
        };
        let Some(cut) = cut else { break };
        let kept = if after { cut + separator.len() } else { cut };
        parts.push(&rest[..kept]);
        rest = &rest[cut + separator.len()..];
    }
    if !(separator.is_empty() && text.is_empty()) {
        parts.push(rest);
    }
    Ok(parts)
}

/// Replaces at most this many occurrences, all if negative. An empty text is found before every character and at the
/// end.
pub(in crate::expr::lang) fn replace(text: &str, old: &str, new: &str, most: i64, work: &mut EvalWork) -> CallResult {
    let most = if most < 0 { usize::MAX } else { usize::try_from(most).unwrap_or(usize::MAX) };
    let count = text.matches(old).count().min(most);
    work.spend(count as u64)?;
    work.claim(text.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(Value::from(text.replacen(old, new, most)))
}

pub(in crate::expr::lang) fn repeat(text: &str, times: i64, a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let times = usize::try_from(times).map_err(|_| a.fault("a text cannot be repeated a negative number of times"))?;
    work.claim(text.len().saturating_mul(times))?;
    Ok(Value::from(text.repeat(times)))
}

pub(in crate::expr::lang) fn join(parts: &[&str], glue: &str, work: &mut EvalWork) -> CallResult {
    let texts: usize = parts.iter().map(|part| part.len()).fold(0, usize::saturating_add);
    let glues = glue.len().saturating_mul(parts.len().saturating_sub(1));
    work.spend(parts.len() as u64)?;
    work.claim(texts.saturating_add(glues))?;
    Ok(Value::from(parts.join(glue)))
}
