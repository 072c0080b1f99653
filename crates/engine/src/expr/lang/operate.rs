//! Implements the operators. Text never becomes a number by itself, nor a number text: mismatched operands are refused
//! with a hint.

use std::cmp::Ordering;

use super::argument::describe;
use super::evaluate::scan;
use super::tree::{Binary, Unary};
use super::work::{CallResult, Fault, Work};
use crate::expr::Value;
use crate::expr::number;

pub(super) fn unary(operator: Unary, value: &Value) -> CallResult {
    match (operator, value) {
        (Unary::Not, Value::Bool(held)) => Ok(Value::Bool(!held)),
        (Unary::Minus, Value::Int(number)) => {
            number.checked_neg().map(Value::Int).ok_or_else(|| Fault::from("the number does not fit 64 bits"))
        }
        (Unary::Minus, Value::Float(number)) => Ok(Value::Float(-number)),
        (Unary::Minus, Value::Duration(length)) => {
            length.checked_neg().map(Value::Duration).ok_or_else(|| Fault::from("the duration does not fit 64 bits"))
        }
        (Unary::Plus, Value::Int(_) | Value::Float(_)) => Ok(value.clone()),
        (Unary::Not, other) => Err(Fault(format!("'!' needs a bool, not {}", describe(other)))),
        (Unary::Minus, other) => Err(Fault(format!("'-' needs a number, not {}", describe(other)))),
        (Unary::Plus, other) => Err(Fault(format!("'+' needs a number, not {}", describe(other)))),
    }
}

/// Evaluates every binary operator except the three that short-circuit.
pub(super) fn binary(operator: Binary, left: &Value, right: &Value, work: &mut Work) -> CallResult {
    match operator {
        Binary::Equal => equal(left, right, work).map(Value::Bool),
        Binary::Unequal => equal(left, right, work).map(|same| Value::Bool(!same)),
        Binary::Less | Binary::LessOrEqual | Binary::Greater | Binary::GreaterOrEqual => {
            work.spend(scan(left).min(scan(right)))?;
            compare(operator, left, right)
        }
        Binary::In => contains(left, right, work).map(Value::Bool),
        Binary::Matches | Binary::Contains | Binary::StartsWith | Binary::EndsWith => {
            search(operator, left, right, work)
        }
        Binary::Range => range(left, right, work),
        Binary::Add => add(left, right, work),
        Binary::Subtract => subtract(left, right),
        Binary::Multiply | Binary::Divide | Binary::Modulo | Binary::Power => scale(operator, left, right),
        Binary::Or | Binary::And | Binary::Coalesce => {
            unreachable!("these decide first whether their right side is evaluated")
        }
    }
}

/// Compares two values, charging every part.
pub(super) fn equal(left: &Value, right: &Value, work: &mut Work) -> Result<bool, Fault> {
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

pub(super) fn truth(value: &Value, operator: &str) -> Result<bool, Fault> {
    value.as_bool().ok_or_else(|| Fault(format!("{operator} needs a bool, not {}", describe(value))))
}

/// Reports whether `needle` is an element of a list or a key of a map.
pub(super) fn contains(needle: &Value, haystack: &Value, work: &mut Work) -> Result<bool, Fault> {
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
        (Value::Str(_), Value::Str(_)) => Err(Fault::from(
            "'in' looks into arrays and maps; for text within text use 'contains', the other way round",
        )),
        _ => Err(Fault(format!("'in' needs an array or a map on its right side, not {}", describe(haystack)))),
    }
}

fn compare(operator: Binary, left: &Value, right: &Value) -> CallResult {
    let same = kinds_match(left, right);
    if !same {
        return Err(mismatch(operator, left, right));
    }
    let order = left.order(right);
    Ok(Value::Bool(match operator {
        Binary::Less => order == Some(Ordering::Less),
        Binary::LessOrEqual => order.is_some_and(Ordering::is_le),
        Binary::Greater => order == Some(Ordering::Greater),
        _ => order.is_some_and(Ordering::is_ge),
    }))
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

fn search(operator: Binary, left: &Value, right: &Value, work: &mut Work) -> CallResult {
    match (left, right) {
        (Value::Nil, _) | (_, Value::Nil) => Ok(Value::Bool(false)),
        (Value::Str(text), Value::Str(part)) => {
            work.spend(scan(left) + scan(right))?;
            Ok(Value::Bool(match operator {
                Binary::Matches => work.pattern(part, text)?.regex().is_match(text),
                Binary::StartsWith => text.starts_with(part.as_ref()),
                Binary::EndsWith => text.ends_with(part.as_ref()),
                _ => text.contains(part.as_ref()),
            }))
        }
        _ => Err(mismatch(operator, left, right)),
    }
}

fn range(left: &Value, right: &Value, work: &mut Work) -> CallResult {
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

fn add(left: &Value, right: &Value, work: &mut Work) -> CallResult {
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
        _ => match (left.as_real(), right.as_real()) {
            (Some(a), Some(b)) => Ok(Value::Float(a + b)),
            _ => Err(mismatch(Binary::Add, left, right)),
        },
    }
}

fn subtract(left: &Value, right: &Value) -> CallResult {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.checked_sub(*b).map(Value::Int).ok_or_else(overflow),
        (Value::Date(a), Value::Date(b)) => Ok(Value::Duration(a.since(*b))),
        (Value::Date(date), Value::Duration(length)) => date.minus(*length).map(Value::Date).ok_or_else(overflow),
        (Value::Duration(a), Value::Duration(b)) => a.checked_sub(*b).map(Value::Duration).ok_or_else(overflow),
        _ => match (left.as_real(), right.as_real()) {
            (Some(a), Some(b)) => Ok(Value::Float(a - b)),
            _ => Err(mismatch(Binary::Subtract, left, right)),
        },
    }
}

fn scale(operator: Binary, left: &Value, right: &Value) -> CallResult {
    if let (Value::Int(a), Value::Int(b)) = (left, right) {
        match operator {
            Binary::Multiply => return a.checked_mul(*b).map(Value::Int).ok_or_else(overflow),
            Binary::Modulo if *b == 0 => return Err(Fault::from("division by zero")),
            Binary::Modulo => return Ok(Value::Int(a.checked_rem(*b).unwrap_or(0))),
            _ => {}
        }
    }
    if let (Value::Duration(length), Value::Int(times)) | (Value::Int(times), Value::Duration(length)) = (left, right)
        && operator == Binary::Multiply
    {
        let nanoseconds = length.as_nanos().checked_mul(i128::from(*times));
        let nanoseconds = nanoseconds.and_then(|all| i64::try_from(all).ok());
        return nanoseconds.map(|all| Value::Duration(jiff::SignedDuration::from_nanos(all))).ok_or_else(overflow);
    }
    let (Some(a), Some(b)) = (left.as_real(), right.as_real()) else {
        return Err(mismatch(operator, left, right));
    };
    Ok(Value::Float(match operator {
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::Power => a.powf(b),
        _ => return Err(Fault::from("'%' needs whole numbers on both sides; use int(…)")),
    }))
}

/// Returns a slice of a list or a text; negative positions count from the end, and positions beyond the end are cut
/// off.
pub(super) fn slice(value: &Value, from: Option<&Value>, to: Option<&Value>, work: &mut Work) -> CallResult {
    let length = match value {
        Value::List(items) => items.len(),
        Value::Str(text) => {
            work.spend(text.len() as u64 / 16)?;
            text.chars().count()
        }
        other => return Err(Fault(format!("only arrays and strings can be sliced, not {}", describe(other)))),
    };
    let end = position(to, length, length)?;
    let start = position(from, 0, length)?.min(end);
    match value {
        Value::List(items) => {
            work.claim_list(end - start)?;
            Ok(Value::list(items[start..end].to_vec()))
        }
        Value::Str(text) => {
            let part: String = text.chars().skip(start).take(end - start).collect();
            work.made(Value::from(part))
        }
        _ => unreachable!("other kinds were refused above"),
    }
}

fn position(given: Option<&Value>, default: usize, length: usize) -> Result<usize, Fault> {
    let Some(value) = given else { return Ok(default) };
    let whole = match value {
        Value::Int(whole) => *whole,
        Value::Float(real) if real.fract() == 0.0 => number::whole(*real).unwrap_or(i64::MAX),
        other => return Err(Fault(format!("a slice needs whole numbers, not {}", describe(other)))),
    };
    let reach = i64::try_from(length).unwrap_or(i64::MAX);
    let counted = if whole < 0 { whole.saturating_add(reach) } else { whole };
    Ok(usize::try_from(counted.clamp(0, reach)).unwrap_or(length))
}

fn mismatch(operator: Binary, left: &Value, right: &Value) -> Fault {
    let texts = [left, right].iter().any(|side| side.as_str().is_some());
    let numbers = [left, right].iter().any(|side| side.as_real().is_some());
    let hint = if texts && numbers {
        "; text and numbers are never converted by themselves: use asInt(…), asFloat(…) or string(…)"
    } else {
        ""
    };
    Fault(format!("'{}' does not work on {} and {}{hint}", operator.spelling(), describe(left), describe(right)))
}

fn overflow() -> Fault {
    Fault::from("the result does not fit 64 bits")
}
