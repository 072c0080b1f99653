//! Implements the operators. Text never becomes a number by itself, nor a number text: mismatched operands are refused
//! with a hint.

use std::cmp::Ordering;

use super::argument::describe;
use super::evaluate::scan;
use super::tree::{Binary, Unary};
use super::work::{CallResult, EvalFault, EvalWork};
use crate::expr::Value;

pub(super) fn unary(operator: Unary, value: &Value) -> CallResult {
    match (operator, value) {
        (Unary::Not, Value::Bool(held)) => Ok(Value::Bool(!held)),
        (Unary::Minus, Value::Int(number)) => {
            number.checked_neg().map(Value::Int).ok_or_else(|| EvalFault::from("the number does not fit 64 bits"))
        }
        (Unary::Minus, Value::Float(number)) => Ok(Value::Float(-number)),
        (Unary::Minus, Value::Duration(length)) => length
            .checked_neg()
            .map(Value::Duration)
            .ok_or_else(|| EvalFault::from("the duration does not fit 64 bits")),
        (Unary::Plus, Value::Int(_) | Value::Float(_)) => Ok(value.clone()),
        (Unary::Not, other) => Err(EvalFault(format!("'!' needs a bool, not {}", describe(other)))),
        (Unary::Minus, other) => Err(EvalFault(format!("'-' needs a number, not {}", describe(other)))),
        (Unary::Plus, other) => Err(EvalFault(format!("'+' needs a number, not {}", describe(other)))),
    }
}

/// Evaluates every binary operator except the three that short-circuit.
pub(super) fn binary(operator: Binary, left: &Value, right: &Value, work: &mut EvalWork) -> CallResult {
    match operator {
        Binary::Equal => equal(left, right, work).map(Value::Bool),
        Binary::Unequal => equal(left, right, work).map(|same| Value::Bool(!same)),
        Binary::Less => compare(operator, left, right, work, Ordering::is_lt),
        Binary::LessOrEqual => compare(operator, left, right, work, Ordering::is_le),
        Binary::Greater => compare(operator, left, right, work, Ordering::is_gt),
        Binary::GreaterOrEqual => compare(operator, left, right, work, Ordering::is_ge),
        Binary::In => contains(left, right, work).map(Value::Bool),
        Binary::Matches => search(operator, left, right, work, |text, pattern, work| {
            Ok(work.pattern(pattern, text)?.regex().is_match(text))
        }),
        Binary::Contains => search(operator, left, right, work, |text, part, _| Ok(text.contains(part))),
        Binary::StartsWith => search(operator, left, right, work, |text, part, _| Ok(text.starts_with(part))),
        Binary::EndsWith => search(operator, left, right, work, |text, part, _| Ok(text.ends_with(part))),
        Binary::Range => range(left, right, work),
        Binary::Add => add(left, right, work),
        Binary::Subtract => subtract(left, right),
        Binary::Multiply => multiply(left, right),
        Binary::Divide => reals(operator, left, right, |a, b| a / b),
        Binary::Modulo => modulo(left, right),
        Binary::Power => reals(operator, left, right, f64::powf),
        Binary::Or | Binary::And | Binary::Coalesce => {
            unreachable!("these decide first whether their right side is evaluated")
        }
    }
}

/// Compares two values, charging every part.
pub(super) fn equal(left: &Value, right: &Value, work: &mut EvalWork) -> Result<bool, EvalFault> {
    work.spend(1)?;
    match (left, right) {
        (Value::Str(a), Value::Str(b)) => {
            work.spend(a.len().min(b.len()) as u64 / 64)?;
            Ok(a == b)
        }
        (Value::List(a), Value::List(b)) => {
            let mut same = a.len() == b.len();
            for (a, b) in a.iter().zip(b.iter()) {
                same = same && equal(a, b, work)?;
            }
            Ok(same)
        }
        (Value::Map(a), Value::Map(b)) => {
            let mut same = a.len() == b.len();
            for ((key, a), (other, b)) in a.iter().zip(b.iter()) {
                same = same && key == other && equal(a, b, work)?;
            }
            Ok(same)
        }
        _ => Ok(left == right),
    }
}

pub(super) fn truth(value: &Value, operator: &str) -> Result<bool, EvalFault> {
    value.as_bool().ok_or_else(|| EvalFault(format!("{operator} needs a bool, not {}", describe(value))))
}

/// Reports whether `needle` is an element of a list or a key of a map.
pub(super) fn contains(needle: &Value, haystack: &Value, work: &mut EvalWork) -> Result<bool, EvalFault> {
    match (needle, haystack) {
        (_, Value::Nil) => Ok(false),
        (_, Value::List(items)) => {
            for item in items.iter() {
                if equal(needle, item, work)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (Value::Str(key), Value::Map(entries)) => Ok(entries.contains_key(key.as_ref())),
        (_, Value::Map(_)) => Ok(false),
        (Value::Str(_), Value::Str(_)) => Err(EvalFault::from(
            "'in' looks into arrays and maps; for text within text use 'contains', the other way round",
        )),
        _ => Err(EvalFault(format!("'in' needs an array or a map on its right side, not {}", describe(haystack)))),
    }
}

fn compare(
    operator: Binary,
    left: &Value,
    right: &Value,
    work: &mut EvalWork,
    holds: fn(Ordering) -> bool,
) -> CallResult {
    work.spend(scan(left).min(scan(right)))?;
    if !kinds_match(left, right) {
        return Err(mismatch(operator, left, right));
    }
    Ok(Value::Bool(left.order(right).is_some_and(holds)))
}

fn kinds_match(left: &Value, right: &Value) -> bool {
    (left.as_real().is_some() && right.as_real().is_some())
        || matches!(
            (left, right),
            (Value::Str(_), Value::Str(_))
                | (Value::Date(_), Value::Date(_))
                | (Value::Duration(_), Value::Duration(_))
        )
}

fn search(
    operator: Binary,
    left: &Value,
    right: &Value,
    work: &mut EvalWork,
    found: fn(&str, &str, &mut EvalWork) -> Result<bool, EvalFault>,
) -> CallResult {
    match (left, right) {
        (Value::Nil, _) | (_, Value::Nil) => Ok(Value::Bool(false)),
        (Value::Str(text), Value::Str(part)) => {
            work.spend(scan(left) + scan(right))?;
            found(text, part, work).map(Value::Bool)
        }
        _ => Err(mismatch(operator, left, right)),
    }
}

fn range(left: &Value, right: &Value, work: &mut EvalWork) -> CallResult {
    let (Value::Int(from), Value::Int(to)) = (left, right) else {
        return Err(mismatch(Binary::Range, left, right));
    };
    let count = if to < from { 0 } else { to.abs_diff(*from).saturating_add(1) };
    work.claim_list(usize::try_from(count).unwrap_or(usize::MAX))?;
    if count == 0 {
        return Ok(Value::list(Vec::new()));
    }
    Ok((*from..=*to).map(Value::Int).collect())
}

fn add(left: &Value, right: &Value, work: &mut EvalWork) -> CallResult {
    match (left, right) {
        (Value::Str(a), Value::Str(b)) => {
            work.claim(a.len() + b.len())?;
            Ok(Value::from(format!("{a}{b}")))
        }
        (Value::Int(a), Value::Int(b)) => a.checked_add(*b).map(Value::Int).ok_or_else(overflow),
        (Value::Date(date), Value::Duration(length)) | (Value::Duration(length), Value::Date(date)) => {
            date.plus(*length).map(Value::Date).ok_or_else(overflow)
        }
        (Value::Duration(a), Value::Duration(b)) => a.checked_add(*b).map(Value::Duration).ok_or_else(overflow),
        _ => reals(Binary::Add, left, right, |a, b| a + b),
    }
}

fn subtract(left: &Value, right: &Value) -> CallResult {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.checked_sub(*b).map(Value::Int).ok_or_else(overflow),
        (Value::Date(a), Value::Date(b)) => Ok(Value::Duration(a.since(*b))),
        (Value::Date(date), Value::Duration(length)) => date.minus(*length).map(Value::Date).ok_or_else(overflow),
        (Value::Duration(a), Value::Duration(b)) => a.checked_sub(*b).map(Value::Duration).ok_or_else(overflow),
        _ => reals(Binary::Subtract, left, right, |a, b| a - b),
    }
}

fn multiply(left: &Value, right: &Value) -> CallResult {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.checked_mul(*b).map(Value::Int).ok_or_else(overflow),
        (Value::Duration(length), Value::Int(times)) | (Value::Int(times), Value::Duration(length)) => {
            let nanoseconds = length.as_nanos().checked_mul(i128::from(*times));
            let nanoseconds = nanoseconds.and_then(|all| i64::try_from(all).ok());
            nanoseconds.map(|all| Value::Duration(jiff::SignedDuration::from_nanos(all))).ok_or_else(overflow)
        }
        _ => reals(Binary::Multiply, left, right, |a, b| a * b),
    }
}

fn modulo(left: &Value, right: &Value) -> CallResult {
    match (left, right) {
        (Value::Int(_), Value::Int(0)) => Err(EvalFault::from("division by zero")),
        (Value::Int(a), Value::Int(b)) => Ok(Value::Int(a.checked_rem(*b).unwrap_or(0))),
        _ if left.as_real().is_some() && right.as_real().is_some() => {
            Err(EvalFault::from("'%' needs whole numbers on both sides; use int(…)"))
        }
        _ => Err(mismatch(Binary::Modulo, left, right)),
    }
}

/// Computes with two numbers of either kind.
fn reals(operator: Binary, left: &Value, right: &Value, compute: fn(f64, f64) -> f64) -> CallResult {
    let (Some(a), Some(b)) = (left.as_real(), right.as_real()) else {
        return Err(mismatch(operator, left, right));
    };
    Ok(Value::Float(compute(a, b)))
}

/// Returns a slice of a list or a text; negative positions count from the end, and positions beyond the end are cut
/// off.
pub(super) fn slice(value: &Value, from: Option<&Value>, to: Option<&Value>, work: &mut EvalWork) -> CallResult {
    let bounds = |length: usize| {
        let end = position(to, length, length)?;
        Ok::<_, EvalFault>((position(from, 0, length)?.min(end), end))
    };
    match value {
        Value::List(items) => {
            let (start, end) = bounds(items.len())?;
            work.claim_list(end - start)?;
            Ok(Value::list(items[start..end].to_vec()))
        }
        Value::Str(text) => {
            work.spend(text.len() as u64 / 16)?;
            let (start, end) = bounds(text.chars().count())?;
            let part: String = text.chars().skip(start).take(end - start).collect();
            work.made(Value::from(part))
        }
        Value::Nil
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Map(_)
        | Value::Date(_)
        | Value::Duration(_) => {
            Err(EvalFault(format!("only arrays and strings can be sliced, not {}", describe(value))))
        }
    }
}

fn position(given: Option<&Value>, default: usize, length: usize) -> Result<usize, EvalFault> {
    let Some(value) = given else { return Ok(default) };
    // A whole float that does not fit 64 bits lies beyond every end.
    let beyond = value.as_real().is_some_and(|real| real.fract() == 0.0).then_some(i64::MAX);
    let Some(whole) = value.as_whole().or(beyond) else {
        return Err(EvalFault(format!("a slice needs whole numbers, not {}", describe(value))));
    };
    let reach = i64::try_from(length).unwrap_or(i64::MAX);
    let counted = if whole < 0 { whole.saturating_add(reach) } else { whole };
    Ok(usize::try_from(counted.clamp(0, reach)).unwrap_or(length))
}

fn mismatch(operator: Binary, left: &Value, right: &Value) -> EvalFault {
    let texts = [left, right].iter().any(|side| side.as_str().is_some());
    let numbers = [left, right].iter().any(|side| side.as_real().is_some());
    let hint = if texts && numbers {
        "; text and numbers are never converted by themselves: use asInt(…), asFloat(…) or string(…)"
    } else {
        ""
    };
    EvalFault(format!("'{}' does not work on {} and {}{hint}", operator.spelling(), describe(left), describe(right)))
}

fn overflow() -> EvalFault {
    EvalFault::from("the result does not fit 64 bits")
}
