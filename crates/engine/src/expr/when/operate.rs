//! Implements the operators of conditions. It never converts a text to a number: mismatched operands are refused.

use std::cmp::Ordering;

use super::token::Sign;
use super::{Span, WhenFault};
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
) -> Result<Value, WhenFault> {
    match sign {
        Sign::Equal => Ok(Value::Bool(left == right)),
        Sign::Unequal => Ok(Value::Bool(left != right)),
        Sign::Less => compare(sign, left, right, place, Ordering::is_lt),
        Sign::LessOrEqual => compare(sign, left, right, place, Ordering::is_le),
        Sign::Greater => compare(sign, left, right, place, Ordering::is_gt),
        Sign::GreaterOrEqual => compare(sign, left, right, place, Ordering::is_ge),
        Sign::Matches => matches(left, right, place, budget).map(Value::Bool),
        Sign::MatchesNot => matches(left, right, place, budget).map(|found| Value::Bool(!found)),
        Sign::In => {
            // A list of one element looks like a value in parentheses.
            Ok(Value::Bool(if let Value::List(items) = right { items.contains(left) } else { left == right }))
        }
        Sign::Plus if left.as_str().is_some() || right.as_str().is_some() => join(left, right, place, budget),
        Sign::Plus => arithmetic(sign, left, right, place, |a, b| a + b),
        Sign::Minus => arithmetic(sign, left, right, place, |a, b| a - b),
        Sign::Times => arithmetic(sign, left, right, place, |a, b| a * b),
        Sign::Divide => arithmetic(sign, left, right, place, |a, b| a / b),
        Sign::Modulo => arithmetic(sign, left, right, place, |a, b| a % b),
        Sign::Power => arithmetic(sign, left, right, place, f64::powf),
        Sign::BitAnd => bits(sign, left, right, place, |a, b| a & b),
        Sign::BitOr => bits(sign, left, right, place, |a, b| a | b),
        Sign::BitXor => bits(sign, left, right, place, |a, b| a ^ b),
        Sign::ShiftLeft => bits(sign, left, right, place, |a, b| a.checked_shl(shift(b)).unwrap_or(0)),
        Sign::ShiftRight => {
            bits(sign, left, right, place, |a, b| a.checked_shr(shift(b)).unwrap_or(if a < 0 { -1 } else { 0 }))
        }
        Sign::And
        | Sign::Or
        | Sign::Not
        | Sign::BitNot
        | Sign::Question
        | Sign::Colon
        | Sign::Coalesce
        | Sign::Open
        | Sign::Close
        | Sign::Comma => unreachable!("'{}' is not evaluated on two values", sign.spelling()),
    }
}

pub(super) fn negate(sign: Sign, value: &Value, place: Span) -> Result<Value, WhenFault> {
    match (sign, value) {
        (Sign::Not, Value::Bool(held)) => Ok(Value::Bool(!held)),
        (Sign::Not, other) => {
            let reason = format!("'!' needs true or false, but '{other}' is neither");
            Err(WhenFault::new(place, reason).with_quote_hint())
        }
        (_, Value::Float(number)) if sign == Sign::Minus => Ok(Value::Float(-number)),
        _ => integer(sign, value, place).map(|whole| Value::Float(number::real(!whole))),
    }
}

fn compare(
    sign: Sign,
    left: &Value,
    right: &Value,
    place: Span,
    holds: fn(Ordering) -> bool,
) -> Result<Value, WhenFault> {
    let comparable = matches!((left, right), (Value::Float(_), Value::Float(_)) | (Value::Str(_), Value::Str(_)));
    if !comparable {
        let reason = format!(
            "'{}' compares two numbers or two texts, not {} with {}",
            sign.spelling(),
            describe(left),
            describe(right)
        );
        return Err(WhenFault::new(place, reason));
    }
    Ok(Value::Bool(left.order(right).is_some_and(holds)))
}

fn matches(left: &Value, right: &Value, place: Span, budget: &mut Budget) -> Result<bool, WhenFault> {
    let (Value::Str(text), Value::Str(source)) = (left, right) else {
        let reason = format!("a match needs a text and a pattern, not {} and {}", describe(left), describe(right));
        return Err(WhenFault::new(place, reason));
    };
    let pattern = Pattern::new(source).map_err(|reason| WhenFault::new(place, reason))?;
    let cost = pattern.cost(text) + COMPILING;
    budget.steps = budget
        .steps
        .checked_sub(cost)
        .ok_or_else(|| WhenFault::new(place, "matching this pattern against this text would take too long"))?;
    Ok(pattern.regex().is_match(text))
}

fn join(left: &Value, right: &Value, place: Span, budget: &mut Budget) -> Result<Value, WhenFault> {
    let text = format!("{left}{right}");
    budget.bytes = budget
        .bytes
        .checked_sub(text.len())
        .ok_or_else(|| WhenFault::new(place, format!("it joins more than {BYTES} bytes of text")))?;
    Ok(Value::from(text))
}

fn arithmetic(
    sign: Sign,
    left: &Value,
    right: &Value,
    place: Span,
    compute: fn(f64, f64) -> f64,
) -> Result<Value, WhenFault> {
    let (Value::Float(a), Value::Float(b)) = (left, right) else {
        let reason =
            format!("'{}' computes with numbers, not with {} and {}", sign.spelling(), describe(left), describe(right));
        return Err(WhenFault::new(place, reason).with_quote_hint());
    };
    Ok(Value::Float(compute(*a, *b)))
}

fn bits(
    sign: Sign,
    left: &Value,
    right: &Value,
    place: Span,
    compute: fn(i64, i64) -> i64,
) -> Result<Value, WhenFault> {
    // The operands are refused as those of any other arithmetic first.
    arithmetic(sign, left, right, place, |a, _| a)?;
    let (a, b) = (integer(sign, left, place)?, integer(sign, right, place)?);
    Ok(Value::Float(number::real(compute(a, b))))
}

/// The width of a shift. A shift by the width of the number or more yields zero.
fn shift(by: i64) -> u32 {
    u32::try_from(by).unwrap_or(u32::MAX)
}

fn integer(sign: Sign, value: &Value, place: Span) -> Result<i64, WhenFault> {
    let whole = if let Value::Float(number) = value { number::whole(*number) } else { None };
    whole.ok_or_else(|| {
        let reason = format!("'{}' needs a number, but {} is none", sign.spelling(), describe(value));
        WhenFault::new(place, reason).with_quote_hint()
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
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Map(_) | Value::Date(_) | Value::Duration(_) => {
            value.to_string()
        }
    }
}
