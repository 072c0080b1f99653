//! Conversion functions.

use octoflow_model::base64;

use super::Function;
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::jsonpath;
use crate::expr::lang::work::{CallResult, EvalFault, EvalWork};
use crate::expr::{Value, json, number};

pub(in crate::expr::lang) const FUNCTIONS: &[Function] = &[
    Function::new("int", 1, 1, |a, _| integer(a)),
    Function::new("asInt", 1, 1, |a, _| integer(a)),
    Function::new("float", 1, 1, |a, _| real(a)),
    Function::new("asFloat", 1, 1, |a, _| real(a)),
    Function::new("string", 1, 1, |a, work| text_of(a.any(0), work)),
    Function::new("type", 1, 1, |a, _| Ok(Value::from(a.any(0).kind()))),
    Function::new("len", 1, 1, |a, work| {
        let length = match a.any(0) {
            Value::Str(text) => {
                work.spend(text.len() as u64 / 64)?;
                text.chars().count()
            }
            Value::List(items) => items.len(),
            Value::Map(entries) => entries.len(),
            value @ (Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Date(_)
            | Value::Duration(_)) => return Err(a.wrong(0, "a string, an array or a map", value)),
        };
        Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
    }),
    Function::new("toJSON", 1, 1, |a, work| to_json(a, json::Style::PRETTY, work)),
    Function::new("toJson", 1, 1, |a, work| to_json(a, json::Style::COMPACT, work)),
    Function::new("fromJSON", 1, 1, |a, work| from_json(a, a.text(0)?, work)),
    Function::new("toBase64", 1, 1, |a, work| {
        work.claim(a.text(0)?.len())?;
        Ok(Value::from(base64::encode(a.text(0)?.as_bytes())))
    }),
    Function::new("fromBase64", 1, 1, |a, work| {
        work.claim(a.text(0)?.len().saturating_mul(8))?;
        decoded(a, base64::decode(a.text(0)?), "base64")
    }),
    Function::new("jsonpath", 2, 2, |a, work| {
        let document = from_json(a, a.text(0)?, work)?;
        jsonpath::query(&document, a.text(1)?, work).map_err(|fault| a.fault(fault.0))
    }),
];

fn integer(a: &Arguments<'_>) -> CallResult {
    match a.any(0) {
        Value::Int(number) => Ok(Value::Int(*number)),
        Value::Float(real) => number::whole(*real)
            .map(Value::Int)
            .ok_or_else(|| a.fault(format!("{} is not a whole number of 64 bits", number::plain(*real)))),
        Value::Duration(length) => {
            i64::try_from(length.as_nanos()).map(Value::Int).map_err(|_| a.fault("the duration does not fit 64 bits"))
        }
        Value::Str(text) => {
            text.parse().map(Value::Int).map_err(|_| a.fault(format!("'{}' is not a whole number", shorten(text))))
        }
        value @ (Value::Nil | Value::Bool(_) | Value::List(_) | Value::Map(_) | Value::Date(_)) => {
            Err(a.wrong(0, "a number or a string", value))
        }
    }
}

fn real(a: &Arguments<'_>) -> CallResult {
    let value = a.any(0);
    if let Some(text) = value.as_str() {
        return text.parse().map(Value::Float).map_err(|_| a.fault(format!("'{}' is not a number", shorten(text))));
    }
    value.as_real().map(Value::Float).ok_or_else(|| a.wrong(0, "a number or a string", value))
}

/// Converts any value to plain text, within the bytes left.
pub(in crate::expr::lang) fn text_of(value: &Value, work: &mut EvalWork) -> CallResult {
    if let Value::Str(_) = value {
        return Ok(value.clone());
    }
    // JSON is at least as long as plain text but for the brackets, and its writer can stop in time.
    if matches!(value, Value::List(_) | Value::Map(_)) {
        let room = work.room();
        let lenient = json::Style::RAW.write_within(value, room);
        if lenient == Err(json::JsonRefusal::TooLong) {
            work.claim(usize::MAX)?;
        }
    }
    Ok(Value::from(value.to_string()))
}

pub(in crate::expr::lang) fn to_json(a: &Arguments<'_>, style: json::Style, work: &mut EvalWork) -> CallResult {
    match style.write_within(a.any(0), work.room()) {
        Ok(text) => Ok(Value::from(text)),
        Err(json::JsonRefusal::NotANumber(number)) => Err(a.fault(format!("JSON has no {}", number::plain(number)))),
        Err(json::JsonRefusal::TooLong) => {
            work.claim(usize::MAX)?;
            unreachable!("there is never room for everything")
        }
    }
}

pub(in crate::expr::lang) fn from_json(a: &Arguments<'_>, text: &str, work: &mut EvalWork) -> CallResult {
    work.spend(text.len() as u64 / 16)?;
    // A value takes several times the bytes of its text; lists of small numbers take the most.
    work.claim(text.len().saturating_mul(4))?;
    serde_json::from_str::<serde_json::Value>(text).map(Value::from).map_err(|error| {
        let place = format!("line {} column {}", error.line(), error.column());
        EvalFault(format!("{}(): '{}' is not JSON (at {place})", a.name, shorten(text)))
    })
}

pub(in crate::expr::lang) fn decoded(a: &Arguments<'_>, bytes: Result<Vec<u8>, usize>, what: &str) -> CallResult {
    let bytes = bytes.map_err(|at| a.fault(format!("the text is not {what} (at character {})", at + 1)))?;
    String::from_utf8(bytes).map(Value::from).map_err(|_| a.fault("the decoded bytes are not text"))
}

fn shorten(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
