//! Implements the operators of conditions. It never converts a text to a number: mismatched operands are refused.

use std::cmp::Ordering;

use super::token::Sign;
use super::{Fault, Span};
use crate::expr::Value;
use crate::expr::number;
use crate::expr::pattern::Pattern;

/// The budget of one condition.
pub(super) struct Budget {
    /// Bytes of text it may still build.
    bytes: usize,
    /// Steps of matching it may still take.
    steps: u64,
}

/// Joining texts copies them; sixteen mebibytes of copies is far beyond any honest condition and done in milliseconds.
const BYTES: usize = 16 * 1024 * 1024;

/// The matching work that a whole expression may do.
const STEPS: u64 = 2_000_000;

/// Compiling a pattern costs about as much as matching this many bytes.
const COMPILING: u64 = 5_000;

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: BYTES, steps: STEPS }
    }
}

pub(super) fn binary(
    sign: Sign,
    left: &Value,
    right: &Value,
    place: Span,
    budget: &mut Budget,
) -> Result<Value, Fault> {
    match sign {
        Sign::Equal => Ok(Value::Bool(left == right)),
        Sign::Unequal => Ok(Value::Bool(left != right)),
        Sign::Less | Sign::LessOrEqual | Sign::Greater | Sign::GreaterOrEqual => {
            compare(sign, left, right, place).map(Value::Bool)
        }
        Sign::Matches => matches(left, right, place, budget).map(Value::Bool),
        Sign::MatchesNot => matches(left, right, place, budget).map(|found| Value::Bool(!found)),
        Sign::In => match right {
            Value::List(items) => Ok(Value::Bool(items.contains(left))),
            // A list of one element looks like a value in parentheses.
            one => Ok(Value::Bool(left == one)),
        },
        Sign::Plus if left.as_str().is_some() || right.as_str().is_some() => join(left, right, place, budget),
        _ => arithmetic(sign, left, right, place),
    }
}

pub(super) fn negate(sign: Sign, value: &Value, place: Span) -> Result<Value, Fault> {
    match (sign, value) {
        (Sign::Not, Value::Bool(held)) => Ok(Value::Bool(!held)),
        (Sign::Not, other) => {
            let reason = format!("'!' needs true or false, but '{other}' is neither");
            Err(Fault::new(place, reason).with_quote_hint())
        }
        (_, Value::Float(number)) if sign == Sign::Minus => Ok(Value::Float(-number)),
        _ => integer(sign, value, place).map(|whole| Value::Float(number::real(!whole))),
    }
}

fn compare(sign: Sign, left: &Value, right: &Value, place: Span) -> Result<bool, Fault> {
    let comparable = matches!((left, right), (Value::Float(_), Value::Float(_)) | (Value::Str(_), Value::Str(_)));
    if !comparable {
        let reason = format!(
            "'{}' compares two numbers or two texts, not {} with {}",
            sign.spelling(),
            describe(left),
            describe(right)
        );
        return Err(Fault::new(place, reason));
    }
    let order = left.order(right);
    Ok(match sign {
        Sign::Less => order == Some(Ordering::Less),
        Sign::LessOrEqual => order.is_some_and(Ordering::is_le),
        Sign::Greater => order == Some(Ordering::Greater),
        _ => order.is_some_and(Ordering::is_ge),
    })
}

fn matches(left: &Value, right: &Value, place: Span, budget: &mut Budget) -> Result<bool, Fault> {
    let (Value::Str(text), Value::Str(source)) = (left, right) else {
        let reason = format!("a match needs a text and a pattern, not {} and {}", describe(left), describe(right));
        return Err(Fault::new(place, reason));
    };
    let pattern = Pattern::new(source).map_err(|reason| Fault::new(place, reason))?;
    let cost = pattern.cost(text) + COMPILING;
    budget.steps = budget
        .steps
        .checked_sub(cost)
        .ok_or_else(|| Fault::new(place, "matching this pattern against this text would take too long"))?;
    Ok(pattern.regex().is_match(text))
}

fn join(left: &Value, right: &Value, place: Span, budget: &mut Budget) -> Result<Value, Fault> {
    let text = format!("{left}{right}");
    budget.bytes = budget
        .bytes
        .checked_sub(text.len())
        .ok_or_else(|| Fault::new(place, format!("it joins more than {BYTES} bytes of text")))?;
    Ok(Value::from(text))
}

fn arithmetic(sign: Sign, left: &Value, right: &Value, place: Span) -> Result<Value, Fault> {
    let (Value::Float(a), Value::Float(b)) = (left, right) else {
        let reason =
            format!("'{}' computes with numbers, not with {} and {}", sign.spelling(), describe(left), describe(right));
        return Err(Fault::new(place, reason).with_quote_hint());
    };
    Ok(Value::Float(match sign {
        Sign::Plus => a + b,
        Sign::Minus => a - b,
        Sign::Times => a * b,
        Sign::Divide => a / b,
        Sign::Modulo => a % b,
        Sign::Power => a.powf(*b),
        _ => {
            let a = integer(sign, left, place)?;
            let b = integer(sign, right, place)?;
            number::real(bits(sign, a, b))
        }
    }))
}

fn bits(sign: Sign, a: i64, b: i64) -> i64 {
    // A shift by the width of the number or more yields zero.
    let by = u32::try_from(b).unwrap_or(u32::MAX);
    match sign {
        Sign::BitAnd => a & b,
        Sign::BitOr => a | b,
        Sign::BitXor => a ^ b,
        Sign::ShiftLeft => a.checked_shl(by).unwrap_or(0),
        _ => a.checked_shr(by).unwrap_or(if a < 0 { -1 } else { 0 }),
    }
}

fn integer(sign: Sign, value: &Value, place: Span) -> Result<i64, Fault> {
    let whole = match value {
        Value::Float(number) => number::whole(*number),
        _ => None,
    };
    whole.ok_or_else(|| {
        let reason = format!("'{}' needs a number, but {} is none", sign.spelling(), describe(value));
        Fault::new(place, reason).with_quote_hint()
    })
}

fn describe(value: &Value) -> String {
    match value {
        Value::Str(text) => {
            let short: String = text.chars().take(40).collect();
            format!("the text '{short}'")
        }
        Value::Float(_) => format!("the number {value}"),
        Value::List(_) => "a list".to_owned(),
        other => format!("{other}"),
    }
}
