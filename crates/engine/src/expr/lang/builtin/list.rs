//! Functions on arrays that need no closure.

use super::{Function, MANY};
use crate::expr::Value;
use crate::expr::lang::argument::{Arguments, describe};
use crate::expr::lang::operate;
use crate::expr::lang::predicate::{descending, sorted};
use crate::expr::lang::work::{CallResult, EvalFault, EvalWork};

pub(in crate::expr::lang) const FUNCTIONS: &[Function] = &[
    Function::new("concat", 1, MANY, concat),
    Function::new("flatten", 1, 1, |a, work| {
        let mut flat = Vec::new();
        flatten(a.list(0)?, &mut flat, 0, work)?;
        Ok(Value::list(flat))
    }),
    Function::new("uniq", 1, 1, |a, work| uniq(a.list(0)?, work)),
    Function::new("reverse", 1, 1, |a, work| {
        work.claim_list(a.list(0)?.len())?;
        Ok(a.list(0)?.iter().rev().cloned().collect())
    }),
    Function::new("first", 1, 1, |a, _| Ok(a.list(0)?.first().cloned().unwrap_or_default())),
    Function::new("last", 1, 1, |a, _| Ok(a.list(0)?.last().cloned().unwrap_or_default())),
    Function::new("take", 2, 2, |a, work| {
        let count = usize::try_from(a.int(1)?).map_err(|_| a.fault("a negative number of elements cannot be taken"))?;
        work.claim_list(count.min(a.list(0)?.len()))?;
        Ok(a.list(0)?.iter().take(count).cloned().collect())
    }),
    Function::new("sort", 1, 2, sort),
    Function::new("mean", 1, MANY, |a, work| {
        let numbers = numbers(a, work)?;
        let total: f64 = numbers.iter().filter_map(Value::as_real).sum();
        Ok(Value::Float(if numbers.is_empty() { 0.0 } else { total / count(&numbers) }))
    }),
    Function::new("median", 1, MANY, median),
    Function::new("min", 1, MANY, |a, work| extreme(a, work, std::cmp::Ordering::Less)),
    Function::new("max", 1, MANY, |a, work| extreme(a, work, std::cmp::Ordering::Greater)),
];

pub(in crate::expr::lang) fn concat(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let mut all = Vec::new();
    for index in 0..a.len() {
        let items = a.list(index)?;
        work.claim_list(items.len())?;
        all.extend_from_slice(items);
    }
    Ok(Value::list(all))
}

/// Returns the distinct elements, in order of first occurrence.
pub(in crate::expr::lang) fn uniq(items: &[Value], work: &mut EvalWork) -> CallResult {
    let mut kept: Vec<Value> = Vec::new();
    'items: for item in items {
        for known in &kept {
            if operate::equal(item, known, work)? {
                continue 'items;
            }
        }
        kept.push(item.clone());
    }
    Ok(Value::list(kept))
}

fn flatten(items: &[Value], flat: &mut Vec<Value>, depth: usize, work: &mut EvalWork) -> Result<(), EvalFault> {
    // Values from outside were not checked for depth, so it is checked here too.
    if depth > crate::expr::NESTING {
        return Err(EvalFault::from("flatten(): the arrays nest too deep"));
    }
    work.claim_list(items.len())?;
    for item in items {
        if let Value::List(inner) = item {
            flatten(inner, flat, depth + 1, work)?;
        } else {
            flat.push(item.clone());
        }
    }
    Ok(())
}

fn sort(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let items = a.list(0)?;
    work.claim_list(items.len().saturating_mul(2))?;
    let keyed = items.iter().map(|item| (item.clone(), Value::Nil)).collect();
    let sorted = sorted(keyed, descending(a.values.get(1))?, work)?;
    Ok(sorted.into_iter().map(|(item, _)| item).collect())
}

/// Returns all numbers among the arguments and in the arrays among them.
fn numbers(a: &Arguments<'_>, work: &mut EvalWork) -> Result<Vec<Value>, EvalFault> {
    let mut flat = Vec::new();
    flatten(a.values, &mut flat, 0, work)?;
    match flat.iter().find(|item| item.as_real().is_none()) {
        Some(stranger) => Err(a.fault(format!("it works on numbers, not on {}", describe(stranger)))),
        None => Ok(flat),
    }
}

fn median(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let mut numbers: Vec<f64> = numbers(a, work)?.iter().filter_map(Value::as_real).collect();
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    Ok(Value::Float(match numbers.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => numbers[middle],
        _ => f64::midpoint(numbers[middle - 1], numbers[middle]),
    }))
}

fn extreme(a: &Arguments<'_>, work: &mut EvalWork, wanted: std::cmp::Ordering) -> CallResult {
    let mut best: Option<Value> = None;
    for number in numbers(a, work)? {
        if best.as_ref().is_none_or(|best| number.order(best) == Some(wanted)) {
            best = Some(number);
        }
    }
    Ok(best.unwrap_or_default())
}

fn count(items: &[Value]) -> f64 {
    crate::expr::number::real(i64::try_from(items.len()).unwrap_or(i64::MAX))
}
