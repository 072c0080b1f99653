//! Arguments of a function call, extracted by the type the function needs. A wrong type is refused with a sentence that
//! names the function, the argument and both types; nothing is converted.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::work::Fault;
use crate::expr::Value;
use crate::expr::number;

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

    pub(super) fn text(&self, index: usize) -> Result<&'a str, Fault> {
        match self.any(index) {
            Value::Str(text) => Ok(text),
            other => Err(self.wrong(index, "a string", other)),
        }
    }

    pub(super) fn boolean(&self, index: usize) -> Result<bool, Fault> {
        match self.any(index) {
            Value::Bool(value) => Ok(*value),
            other => Err(self.wrong(index, "a bool", other)),
        }
    }

    /// Returns a whole number; a float that is whole counts.
    pub(super) fn int(&self, index: usize) -> Result<i64, Fault> {
        match self.any(index) {
            Value::Int(value) => Ok(*value),
            Value::Float(value) if value.fract() == 0.0 && number::whole(*value).is_some() => {
                Ok(number::whole(*value).unwrap_or_default())
            }
            other => Err(self.wrong(index, "an int", other)),
        }
    }

    pub(super) fn real(&self, index: usize) -> Result<f64, Fault> {
        let value = self.any(index);
        value.as_real().ok_or_else(|| self.wrong(index, "a number", value))
    }

    pub(super) fn list(&self, index: usize) -> Result<&'a Arc<Vec<Value>>, Fault> {
        match self.any(index) {
            Value::List(items) => Ok(items),
            other => Err(self.wrong(index, "an array", other)),
        }
    }

    pub(super) fn map(&self, index: usize) -> Result<&'a Arc<BTreeMap<String, Value>>, Fault> {
        match self.any(index) {
            Value::Map(entries) => Ok(entries),
            other => Err(self.wrong(index, "a map", other)),
        }
    }

    pub(super) fn wrong(&self, index: usize, wanted: &str, given: &Value) -> Fault {
        Fault(format!("{}() needs {wanted} as argument {}, not {}", self.name, index + 1, describe(given)))
    }

    pub(super) fn fault(&self, message: impl std::fmt::Display) -> Fault {
        Fault(format!("{}(): {message}", self.name))
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
        other => format!("{} {other}", other.kind()),
    }
}
