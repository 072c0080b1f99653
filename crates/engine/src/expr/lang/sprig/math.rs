//! `sprig.*` arithmetic: whole numbers, and with an `f` at the end of the name decimal fractions.

use super::coerce;
use crate::expr::Value;
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::builtin::{Function, MANY};
use crate::expr::lang::work::{CallResult, EvalFault};
use crate::expr::number;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("add", 0, MANY, |a, _| whole(a, 0, i64::checked_add)),
    Function::new("add1", 1, 1, |a, _| {
        let sum = coerce::int(a.any(0)).checked_add(1);
        sum.map(Value::Int).ok_or_else(|| overflow(a))
    }),
    Function::new("sub", 2, 2, |a, _| both(a, i64::checked_sub)),
    Function::new("mul", 1, MANY, |a, _| whole(a, 1, i64::checked_mul)),
    Function::new("div", 2, 2, |a, _| divided(a, i64::checked_div)),
    Function::new("mod", 2, 2, |a, _| divided(a, |x, y| x.checked_rem(y).or(Some(0)))),
    Function::new("max", 1, MANY, |a, _| extreme(a, |x, y| x.max(y))),
    Function::new("biggest", 1, MANY, |a, _| extreme(a, |x, y| x.max(y))),
    Function::new("min", 1, MANY, |a, _| extreme(a, |x, y| x.min(y))),
    Function::new("maxf", 1, MANY, |a, _| Ok(Value::Float(reals(a).fold(f64::NEG_INFINITY, f64::max)))),
    Function::new("minf", 1, MANY, |a, _| Ok(Value::Float(reals(a).fold(f64::INFINITY, f64::min)))),
    Function::new("floor", 1, 1, |a, _| Ok(Value::Float(coerce::real(a.any(0)).floor()))),
    Function::new("ceil", 1, 1, |a, _| Ok(Value::Float(coerce::real(a.any(0)).ceil()))),
    Function::new("round", 2, 3, |a, _| Ok(Value::Float(round(a)))),
    Function::new("addf", 0, MANY, |a, _| Ok(Value::Float(reals(a).fold(0.0, |x, y| decimal(x, y, '+'))))),
    Function::new("add1f", 1, 1, |a, _| Ok(Value::Float(decimal(coerce::real(a.any(0)), 1.0, '+')))),
    Function::new("subf", 1, MANY, |a, _| Ok(Value::Float(chain(a, |x, y| decimal(x, y, '-'))))),
    Function::new("mulf", 1, MANY, |a, _| Ok(Value::Float(chain(a, |x, y| decimal(x, y, '*'))))),
    Function::new("divf", 1, MANY, |a, _| {
        if reals(a).skip(1).any(|divisor| divisor == 0.0) {
            return Err(a.fault("division by zero"));
        }
        Ok(Value::Float(chain(a, |x, y| x / y)))
    }),
];

fn whole(a: &Arguments<'_>, start: i64, step: fn(i64, i64) -> Option<i64>) -> CallResult {
    let total = a.values.iter().try_fold(start, |total, value| step(total, coerce::int(value)));
    total.map(Value::Int).ok_or_else(|| overflow(a))
}

fn both(a: &Arguments<'_>, step: fn(i64, i64) -> Option<i64>) -> CallResult {
    let result = step(coerce::int(a.any(0)), coerce::int(a.any(1)));
    result.map(Value::Int).ok_or_else(|| overflow(a))
}

fn divided(a: &Arguments<'_>, step: fn(i64, i64) -> Option<i64>) -> CallResult {
    if coerce::int(a.any(1)) == 0 {
        return Err(a.fault("division by zero"));
    }
    both(a, step)
}

fn extreme(a: &Arguments<'_>, choose: fn(i64, i64) -> i64) -> CallResult {
    let chosen = a.values.iter().map(coerce::int).reduce(choose);
    Ok(Value::Int(chosen.unwrap_or_default()))
}

fn overflow(a: &Arguments<'_>) -> EvalFault {
    a.fault("the result does not fit 64 bits")
}

fn reals<'a>(a: &Arguments<'a>) -> impl Iterator<Item = f64> + use<'a> {
    a.values.iter().map(coerce::real)
}

fn chain(a: &Arguments<'_>, step: fn(f64, f64) -> f64) -> f64 {
    reals(a).reduce(step).unwrap_or_default()
}

/// Rounds to this many digits after the point; halves (or the threshold in the third argument) go up.
fn round(a: &Arguments<'_>) -> f64 {
    let value = coerce::real(a.any(0));
    let digits = i32::try_from(coerce::int(a.any(1)).clamp(-300, 300)).unwrap_or(0);
    let half = if a.len() > 2 { coerce::real(a.any(2)) } else { 0.5 };
    let scale = 10f64.powi(digits);
    let scaled = value * scale;
    if !scaled.is_finite() {
        return value;
    }
    let cut = scaled.trunc();
    let up = if (scaled - cut).abs() >= half { scaled.signum() } else { 0.0 };
    (cut + up) / scale
}

/// Computes in exact decimal arithmetic, so that 0.1 + 0.2 is 0.3; falls back to doubles if the digits do not fit.
fn decimal(x: f64, y: f64, sign: char) -> f64 {
    let exact = || {
        let (a, left) = digits(x)?;
        let (b, right) = digits(y)?;
        let (value, scale) = if sign == '*' {
            (a.checked_mul(b)?, left + right)
        } else {
            let scale = left.max(right);
            let a = a.checked_mul(10i128.checked_pow(scale - left)?)?;
            let b = b.checked_mul(10i128.checked_pow(scale - right)?)?;
            (if sign == '-' { a.checked_sub(b)? } else { a.checked_add(b)? }, scale)
        };
        format!("{value}e-{scale}").parse().ok()
    };
    exact().unwrap_or(match sign {
        '+' => x + y,
        '-' => x - y,
        _ => x * y,
    })
}

/// Splits a number into its digits and the number of those after the point.
fn digits(value: f64) -> Option<(i128, u32)> {
    let text = number::json(value)?;
    if text.contains('e') {
        return None;
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let all = format!("{whole}{fraction}").parse().ok()?;
    Some((all, u32::try_from(fraction.len()).ok()?))
}
