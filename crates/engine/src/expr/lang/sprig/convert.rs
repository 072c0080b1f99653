//! `sprig.*` conversions, defaults, encodings and checksums.

use octoflow_model::base64;

use super::coerce;
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::builtin::{Function, MANY, decoded, from_json, to_json};
use crate::expr::lang::work::{CallResult, EvalWork};
use crate::expr::{Value, base32, digest, json};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("atoi", 1, 1, |a, _| Ok(Value::Int(a.text(0)?.parse().unwrap_or(0)))),
    Function::new("int64", 1, 1, |a, _| Ok(Value::Int(coerce::int(a.any(0))))),
    Function::new("int", 1, 1, |a, _| Ok(Value::Int(coerce::int(a.any(0))))),
    Function::new("float64", 1, 1, |a, _| Ok(Value::Float(coerce::real(a.any(0))))),
    Function::new("toString", 1, 1, |a, work| Ok(Value::from(coerce::text(a.any(0), work)?))),
    Function::new("toDecimal", 1, 1, |a, work| {
        let octal = coerce::text(a.any(0), work)?;
        Ok(Value::Int(i64::from_str_radix(&octal, 8).unwrap_or(0)))
    }),
    Function::new("default", 2, 2, |a, _| {
        let given = a.any(1);
        Ok(if coerce::is_empty(given) { a.any(0) } else { given }.clone())
    }),
    Function::new("empty", 1, 1, |a, _| Ok(Value::Bool(coerce::is_empty(a.any(0))))),
    Function::new("coalesce", 0, MANY, |a, _| {
        let first = a.values.iter().find(|value| !coerce::is_empty(value));
        Ok(first.cloned().unwrap_or_default())
    }),
    Function::new("ternary", 3, 3, |a, _| Ok(a.any(if a.boolean(2)? { 0 } else { 1 }).clone())),
    Function::new("all", 0, MANY, |a, _| Ok(Value::Bool(!a.values.iter().any(coerce::is_empty)))),
    Function::new("any", 0, MANY, |a, _| Ok(Value::Bool(!a.values.iter().all(coerce::is_empty)))),
    Function::new("fail", 1, 1, |a, _| Err(a.fault(a.text(0)?))),
    Function::new("fromJson", 1, 1, |a, work| from_json(a, a.text(0)?, work)),
    Function::new("toJson", 1, 1, |a, work| to_json(a, json::Style::COMPACT, work)),
    Function::new("toPrettyJson", 1, 1, |a, work| to_json(a, json::Style::PRETTY, work)),
    Function::new("toRawJson", 1, 1, |a, work| to_json(a, json::Style::RAW, work)),
    Function::new("b64enc", 1, 1, |a, work| encoded(a, work, base64::encode)),
    Function::new("b32enc", 1, 1, |a, work| encoded(a, work, base32::encode)),
    Function::new("b64dec", 1, 1, |a, work| {
        work.claim(a.text(0)?.len().saturating_mul(8))?;
        decoded(a, base64::decode(a.text(0)?), "base64")
    }),
    Function::new("b32dec", 1, 1, |a, work| {
        work.claim(a.text(0)?.len().saturating_mul(8))?;
        decoded(a, base32::decode(a.text(0)?), "base32")
    }),
    Function::new("sha1sum", 1, 1, |a, work| encoded(a, work, digest::sha1)),
    Function::new("sha256sum", 1, 1, |a, work| encoded(a, work, digest::sha256)),
    Function::new("sha512sum", 1, 1, |a, work| encoded(a, work, digest::sha512)),
    Function::new("adler32sum", 1, 1, |a, work| encoded(a, work, digest::adler32)),
];

fn encoded(a: &Arguments<'_>, work: &mut EvalWork, encode: fn(&[u8]) -> String) -> CallResult {
    let text = a.text(0)?;
    work.spend(text.len() as u64 / 4)?;
    work.claim(text.len())?;
    Ok(Value::from(encode(text.as_bytes())))
}
