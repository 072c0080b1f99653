//! Lenient conversions of `sprig.*`: what is not a number counts as zero, as its users expect. Only functions of this
//! family may use them.

use crate::expr::Value;
use crate::expr::lang::work::{EvalFault, EvalWork};
use crate::expr::number;

/// Converts any value to a whole number, or zero.
pub(super) fn int(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        Value::Float(real) => number::whole(*real).unwrap_or(0),
        Value::Bool(held) => i64::from(*held),
        Value::Str(text) => parsed(text),
        Value::Duration(length) => i64::try_from(length.as_nanos()).unwrap_or(0),
        Value::Nil | Value::List(_) | Value::Map(_) | Value::Date(_) => 0,
    }
}

fn parsed(text: &str) -> i64 {
    let text = text.trim();
    if let Some(digits) = text.strip_prefix("0x") {
        return i64::from_str_radix(digits, 16).unwrap_or(0);
    }
    text.parse().unwrap_or_else(|_| {
        // `3.0` is three, `3.5` is no whole number.
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "x"));
        if fraction.bytes().all(|digit| digit == b'0') { whole.parse().unwrap_or(0) } else { 0 }
    })
}

/// Converts any value to a number, or zero.
pub(super) fn real(value: &Value) -> f64 {
    match value {
        Value::Str(text) => text.trim().parse().unwrap_or(0.0),
        Value::Bool(held) => f64::from(u8::from(*held)),
        Value::Int(_) | Value::Float(_) => value.as_real().unwrap_or(0.0),
        Value::Nil | Value::List(_) | Value::Map(_) | Value::Date(_) | Value::Duration(_) => 0.0,
    }
}

/// Converts any value to text.
pub(super) fn text(value: &Value, work: &mut EvalWork) -> Result<String, EvalFault> {
    let plain = crate::expr::lang::builtin::text_of(value, work)?;
    let text = plain.to_string();
    work.claim(text.len())?;
    Ok(text)
}

/// Reports whether a value is empty: nil, false, zero, or without content.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::Bool(held) => !held,
        Value::Int(number) => *number == 0,
        Value::Float(number) => *number == 0.0,
        Value::Str(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(entries) => entries.is_empty(),
        Value::Duration(length) => length.is_zero(),
        Value::Date(_) => false,
    }
}
