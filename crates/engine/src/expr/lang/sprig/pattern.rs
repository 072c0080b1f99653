//! `sprig.*` functions with regular expressions.

use crate::expr::lang::argument::Arguments;
use crate::expr::lang::builtin::Function;
use crate::expr::lang::work::{CallResult, EvalFault, EvalWork};
use crate::expr::{Value, pattern};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("regexMatch", 2, 2, |a, work| {
        let found = work.pattern(a.text(0)?, a.text(1)?)?.regex().is_match(a.text(1)?);
        Ok(Value::Bool(found))
    }),
    Function::new("regexFind", 2, 2, |a, work| {
        let pattern = work.pattern(a.text(0)?, a.text(1)?)?;
        let found = pattern.regex().find(a.text(1)?);
        Ok(Value::from(found.map_or("", |found| found.as_str())))
    }),
    Function::new("regexFindAll", 3, 3, find_all),
    Function::new("regexReplaceAll", 3, 3, |a, work| replace_all(a, work, true)),
    Function::new("regexReplaceAllLiteral", 3, 3, |a, work| replace_all(a, work, false)),
    Function::new("regexSplit", 3, 3, split),
    Function::new("regexQuoteMeta", 1, 1, |a, work| {
        work.claim(a.text(0)?.len())?;
        Ok(Value::from(pattern::literal(a.text(0)?)))
    }),
];

/// Returns the maximum number of results; all if negative.
fn wanted(a: &Arguments<'_>) -> Result<usize, EvalFault> {
    Ok(usize::try_from(a.int(2)?).unwrap_or(usize::MAX))
}

/// Charges the search for the next match, which may scan all of the rest.
fn again(text: &str, end: usize, work: &mut EvalWork) -> Result<(), EvalFault> {
    work.spend(text.len().saturating_sub(end) as u64 / 16)
}

fn find_all(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let text = a.text(1)?;
    let pattern = work.pattern(a.text(0)?, text)?;
    let mut found = Vec::new();
    for one in pattern.regex().find_iter(text).take(wanted(a)?) {
        work.claim_list(1)?;
        again(text, one.end(), work)?;
        found.push(Value::from(one.as_str()));
    }
    Ok(Value::list(found))
}

fn split(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let text = a.text(1)?;
    let pattern = work.pattern(a.text(0)?, text)?;
    let mut parts = Vec::new();
    let mut end = 0;
    for part in pattern.regex().splitn(text, wanted(a)?) {
        end += part.len();
        work.claim_list(1)?;
        again(text, end, work)?;
        parts.push(Value::from(part));
    }
    Ok(Value::list(parts))
}

fn replace_all(a: &Arguments<'_>, work: &mut EvalWork, expand: bool) -> CallResult {
    let (text, replacement) = (a.text(1)?, a.text(2)?);
    let pattern = work.pattern(a.text(0)?, text)?;
    let mut out = String::new();
    let mut end = 0;
    for found in pattern.regex().captures_iter(text) {
        let Some(whole) = found.get(0) else { continue };
        work.claim_list(1)?;
        again(text, whole.end(), work)?;
        out.push_str(&text[end..whole.start()]);
        if expand {
            // Every group named in the replacement may be as long as the match.
            let groups = replacement.matches('$').count();
            work.claim(replacement.len() + groups.saturating_mul(whole.len()))?;
            found.expand(replacement, &mut out);
        } else {
            work.claim(replacement.len())?;
            out.push_str(replacement);
        }
        end = whole.end();
    }
    work.claim(text.len())?;
    out.push_str(&text[end..]);
    Ok(Value::from(out))
}
