//! `sprig.*` functions on arrays. None mutates an array: each returns a new one.

use super::coerce;
use super::text::strings;
use crate::expr::Value;
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::builtin::list::{concat, uniq};
use crate::expr::lang::builtin::{Function, MANY};
use crate::expr::lang::operate;
use crate::expr::lang::work::{CallResult, EvalWork};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("list", 0, MANY, |a, _| Ok(Value::list(a.values.to_vec()))),
    Function::new("tuple", 0, MANY, |a, _| Ok(Value::list(a.values.to_vec()))),
    Function::new("first", 1, 1, |a, _| Ok(a.list(0)?.first().cloned().unwrap_or_default())),
    Function::new("last", 1, 1, |a, _| Ok(a.list(0)?.last().cloned().unwrap_or_default())),
    Function::new("rest", 1, 1, |a, work| part(a.list(0)?, 1, usize::MAX, work)),
    Function::new("initial", 1, 1, |a, work| part(a.list(0)?, 0, a.list(0)?.len().saturating_sub(1), work)),
    Function::new("append", 2, 2, |a, work| {
        work.claim_list(a.list(0)?.len() + 1)?;
        Ok(a.list(0)?.iter().chain([a.any(1)]).cloned().collect())
    }),
    Function::new("push", 2, 2, |a, work| {
        work.claim_list(a.list(0)?.len() + 1)?;
        Ok(a.list(0)?.iter().chain([a.any(1)]).cloned().collect())
    }),
    Function::new("prepend", 2, 2, |a, work| {
        work.claim_list(a.list(0)?.len() + 1)?;
        Ok([a.any(1)].into_iter().chain(a.list(0)?.iter()).cloned().collect())
    }),
    Function::new("concat", 0, MANY, concat),
    Function::new("reverse", 1, 1, |a, work| {
        work.claim_list(a.list(0)?.len())?;
        Ok(a.list(0)?.iter().rev().cloned().collect())
    }),
    Function::new("uniq", 1, 1, |a, work| uniq(a.list(0)?, work)),
    Function::new("without", 1, MANY, without),
    Function::new("has", 2, 2, |a, work| operate::contains(a.any(0), a.any(1), work).map(Value::Bool)),
    Function::new("compact", 1, 1, |a, work| {
        work.claim_list(a.list(0)?.len())?;
        let kept = a.list(0)?.iter().filter(|item| !coerce::is_empty(item));
        Ok(kept.cloned().collect())
    }),
    Function::new("slice", 1, 3, |a, work| {
        let length = a.list(0)?.len();
        let from = place(a, 1, 0, length);
        let to = place(a, 2, length, length);
        part(a.list(0)?, from, to, work)
    }),
    Function::new("chunk", 2, 2, |a, work| {
        let size = usize::try_from(coerce::int(a.any(0))).ok().filter(|size| *size > 0);
        let size = size.ok_or_else(|| a.fault("a part has at least one element"))?;
        work.claim_list(a.list(1)?.len().saturating_mul(2))?;
        Ok(a.list(1)?.chunks(size).map(|part| Value::list(part.to_vec())).collect())
    }),
    Function::new("until", 1, 1, |a, work| {
        let end = coerce::int(a.any(0));
        steps(0, end, if end < 0 { -1 } else { 1 }, work)
    }),
    Function::new("untilStep", 3, 3, |a, work| {
        steps(coerce::int(a.any(0)), coerce::int(a.any(1)), coerce::int(a.any(2)), work)
    }),
    Function::new("seq", 0, 3, seq),
    Function::new("toStrings", 1, 1, |a, work| Ok(strings(a.any(0), work)?.into_iter().map(Value::from).collect())),
];

fn part(items: &[Value], from: usize, to: usize, work: &mut EvalWork) -> CallResult {
    let to = to.min(items.len());
    let from = from.min(to);
    work.claim_list(to - from)?;
    Ok(Value::list(items[from..to].to_vec()))
}

fn place(a: &Arguments<'_>, index: usize, default: usize, length: usize) -> usize {
    match a.values.get(index) {
        Some(value) => usize::try_from(coerce::int(value)).unwrap_or(0).min(length),
        None => default,
    }
}

fn without(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let mut kept = Vec::new();
    'items: for item in a.list(0)?.iter() {
        for unwanted in &a.values[1..] {
            if operate::equal(item, unwanted, work)? {
                continue 'items;
            }
        }
        kept.push(item.clone());
    }
    Ok(Value::list(kept))
}

/// Returns the numbers from `start` up to, but excluding, `stop`.
fn steps(start: i64, stop: i64, step: i64, work: &mut EvalWork) -> CallResult {
    let towards = (stop > start && step > 0) || (stop < start && step < 0);
    if !towards {
        return Ok(Value::list(Vec::new()));
    }
    let count = stop.abs_diff(start).div_ceil(step.unsigned_abs());
    work.claim_list(usize::try_from(count).unwrap_or(usize::MAX))?;
    let numbers = (0..count).map(|index| {
        let index = i64::try_from(index).unwrap_or(i64::MAX);
        Value::Int(start.saturating_add(step.saturating_mul(index)))
    });
    Ok(numbers.collect())
}

/// Returns numbers as one text, both ends included: `seq(5)`, `seq(2, 5)`, `seq(0, 2, 10)`.
fn seq(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let number = |index| coerce::int(a.any(index));
    let (start, step, end) = match a.len() {
        0 => return Ok(Value::from("")),
        1 => (1, if number(0) < 1 { -1 } else { 1 }, number(0)),
        2 => (number(0), if number(1) < number(0) { -1 } else { 1 }, number(1)),
        _ => (number(0), number(1), number(2)),
    };
    if step == 0 {
        return Ok(Value::from(""));
    }
    let Value::List(numbers) = steps(start, end.saturating_add(step.signum()), step, work)? else {
        unreachable!("steps are an array")
    };
    let texts: Vec<String> = numbers.iter().map(Value::to_string).collect();
    Ok(Value::from(texts.join(" ")))
}
