//! Arguments of a function call, extracted by the type the function needs. A wrong type is refused with a sentence that
//! names the function, the argument and both types; nothing is converted.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::work::EvalFault;
use crate::expr::Value;

pub(super) struct Arguments<'a> {
    pub(super) name: &'a str,
    pub(super) values: &'a [Value],
}

impl<'a> Arguments<'a> {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns the argument at `index`; the number of arguments is checked before the call.
    pub(super) fn any(&self, index: usize) -> &'a Value {
        static NIL: Value = Value::Nil;
        self.values.get(index).unwrap_or(&NIL)
    }

    pub(super) fn text(&self, index: usize) -> Result<&'a str, EvalFault> {
        let value = self.any(index);
        value.as_str().ok_or_else(|| self.wrong(index, "a string", value))
    }

    pub(super) fn boolean(&self, index: usize) -> Result<bool, EvalFault> {
        let value = self.any(index);
        value.as_bool().ok_or_else(|| self.wrong(index, "a bool", value))
    }

    /// Returns a whole number; a float that is whole counts.
    pub(super) fn int(&self, index: usize) -> Result<i64, EvalFault> {
        let value = self.any(index);
        value.as_whole().ok_or_else(|| self.wrong(index, "an int", value))
    }

    pub(super) fn real(&self, index: usize) -> Result<f64, EvalFault> {
        let value = self.any(index);
        value.as_real().ok_or_else(|| self.wrong(index, "a number", value))
    }

    pub(super) fn list(&self, index: usize) -> Result<&'a Arc<Vec<Value>>, EvalFault> {
        let value = self.any(index);
        if let Value::List(items) = value { Ok(items) } else { Err(self.wrong(index, "an array", value)) }
    }

    pub(super) fn map(&self, index: usize) -> Result<&'a Arc<BTreeMap<String, Value>>, EvalFault> {
        let value = self.any(index);
        if let Value::Map(entries) = value { Ok(entries) } else { Err(self.wrong(index, "a map", value)) }
    }

    pub(super) fn wrong(&self, index: usize, wanted: &str, given: &Value) -> EvalFault {
        EvalFault(format!("{}() needs {wanted} as argument {}, not {}", self.name, index + 1, describe(given)))
    }

    pub(super) fn fault(&self, message: impl std::fmt::Display) -> EvalFault {
        EvalFault(format!("{}(): {message}", self.name))
    }
}

/// Describes a value by its type, with the value if it is short.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Str(text) => {
            let short: String = text.chars().take(40).collect();
            let more = if short.len() < text.len() { "…" } else { "" };
            format!("string '{short}{more}'")
        }
        Value::List(items) => format!("array of {}", items.len()),
        Value::Map(_) => "map".to_owned(),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Date(_) | Value::Duration(_) => {
            format!("{} {value}", value.kind())
        }
    }
}
