//! `sprig.*` functions that test a value's type, in Go's words.

use crate::expr::Value;
use crate::expr::lang::builtin::Function;
use crate::expr::lang::operate;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("kindOf", 1, 1, |a, _| Ok(Value::from(kind(a.any(0))))),
    Function::new("kindIs", 2, 2, |a, _| Ok(Value::Bool(a.text(0)? == kind(a.any(1))))),
    Function::new("typeOf", 1, 1, |a, _| Ok(Value::from(type_of(a.any(0))))),
    Function::new("typeIs", 2, 2, |a, _| Ok(Value::Bool(a.text(0)? == type_of(a.any(1))))),
    // No value is ever a pointer, so `typeIsLike` is `typeIs`.
    Function::new("typeIsLike", 2, 2, |a, _| Ok(Value::Bool(a.text(0)? == type_of(a.any(1))))),
    Function::new("deepEqual", 2, 2, |a, work| operate::equal(a.any(0), a.any(1), work).map(Value::Bool)),
    // Values are immutable, so every copy is deep.
    Function::new("deepCopy", 1, 1, |a, _| Ok(a.any(0).clone())),
];

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Nil => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float64",
        Value::Str(_) => "string",
        Value::List(_) => "slice",
        Value::Map(_) => "map",
        Value::Date(_) => "struct",
        Value::Duration(_) => "int64",
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Nil => "<nil>",
        Value::List(_) => "[]interface {}",
        Value::Map(_) => "map[string]interface {}",
        Value::Date(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => kind(value),
    }
}
