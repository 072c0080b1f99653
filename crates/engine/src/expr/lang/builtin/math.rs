//! Functions on numbers.

use super::Function;
use crate::expr::Value;
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::work::{CallResult, EvalFault};

pub(in crate::expr::lang) const FUNCTIONS: &[Function] = &[
    Function::new("abs", 1, 1, |a, _| {
        if let Value::Int(number) = a.any(0) {
            return number.checked_abs().map(Value::Int).ok_or_else(|| a.fault("the result does not fit 64 bits"));
        }
        Ok(Value::Float(a.real(0)?.abs()))
    }),
    Function::new("ceil", 1, 1, |a, _| Ok(Value::Float(a.real(0)?.ceil()))),
    Function::new("floor", 1, 1, |a, _| Ok(Value::Float(a.real(0)?.floor()))),
    Function::new("round", 1, 1, |a, _| Ok(Value::Float(a.real(0)?.round()))),
    Function::new("bitand", 2, 2, |a, _| Ok(Value::Int(a.int(0)? & a.int(1)?))),
    Function::new("bitor", 2, 2, |a, _| Ok(Value::Int(a.int(0)? | a.int(1)?))),
    Function::new("bitxor", 2, 2, |a, _| Ok(Value::Int(a.int(0)? ^ a.int(1)?))),
    Function::new("bitnand", 2, 2, |a, _| Ok(Value::Int(a.int(0)? & !a.int(1)?))),
    Function::new("bitnot", 1, 1, |a, _| Ok(Value::Int(!a.int(0)?))),
    Function::new("bitshl", 2, 2, |a, _| shift(a, |number, by| number.checked_shl(by).unwrap_or(0))),
    Function::new("bitshr", 2, 2, |a, _| {
        shift(a, |number, by| number.checked_shr(by).unwrap_or(if number < 0 { -1 } else { 0 }))
    }),
    Function::new("bitushr", 2, 2, |a, _| {
        shift(a, |number, by| number.cast_unsigned().checked_shr(by).unwrap_or(0).cast_signed())
    }),
];

fn shift(a: &Arguments<'_>, apply: fn(i64, u32) -> i64) -> CallResult {
    let by = a.int(1)?;
    if by < 0 {
        return Err(EvalFault(format!("{}() cannot shift by the negative number {by}", a.name)));
    }
    Ok(Value::Int(apply(a.int(0)?, u32::try_from(by).unwrap_or(u32::MAX))))
}
