//! Request messages: objects with optional fields of fixed types.

use serde_json::{Map, Value};

use crate::{answer::fault::Fault, call::Call};

pub(super) struct Message(Map<String, Value>);

impl Message {
    /// Reads the body; an empty one is an empty message.
    pub(super) async fn of(call: &mut Call) -> Result<Self, Fault> {
        match call.json().await? {
            Value::Null => Ok(Self(Map::new())),
            Value::Object(fields) => Ok(Self(fields)),
            _ => Err(Fault::bad_request("the body must be a JSON object")),
        }
    }

    /// Takes the object that the request is about.
    pub(super) fn object(&mut self, field: &str) -> Result<Value, Fault> {
        match self.0.remove(field) {
            Some(object @ Value::Object(_)) => Ok(object),
            None | Some(Value::Null) => Err(Fault::bad_request(format!("{field} is not specified in the body"))),
            Some(_) => Err(Fault::bad_request(format!("{field} must be an object"))),
        }
    }

    /// Takes a nested message; absent is empty.
    pub(super) fn part(&mut self, field: &str) -> Result<Self, Fault> {
        match self.0.remove(field) {
            None | Some(Value::Null) => Ok(Self(Map::new())),
            Some(Value::Object(fields)) => Ok(Self(fields)),
            Some(_) => Err(Fault::bad_request(format!("{field} must be an object"))),
        }
    }

    pub(super) fn value(&mut self, field: &str) -> Option<Value> {
        self.0.remove(field).filter(|value| !value.is_null())
    }

    /// Takes a non-empty string.
    pub(super) fn text(&mut self, field: &str) -> Result<Option<String>, Fault> {
        match self.0.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            Some(_) => Err(Fault::bad_request(format!("{field} must be a string"))),
        }
    }

    pub(super) fn flag(&mut self, field: &str) -> Result<bool, Fault> {
        match self.0.remove(field) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(Fault::bad_request(format!("{field} must be true or false"))),
        }
    }

    /// Takes a number; clients may send 64 bit numbers as strings.
    pub(super) fn number(&mut self, field: &str) -> Result<Option<i64>, Fault> {
        let wrong = || Fault::bad_request(format!("{field} must be a whole number"));
        match self.0.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => number.as_i64().map(Some).ok_or_else(wrong),
            Some(Value::String(text)) => text.parse().map(Some).map_err(|_| wrong()),
            Some(_) => Err(wrong()),
        }
    }

    pub(super) fn texts(&mut self, field: &str) -> Result<Vec<String>, Fault> {
        let wrong = || Fault::bad_request(format!("{field} must be a list of strings"));
        match self.0.remove(field) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                items.into_iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
            }
            Some(_) => Err(wrong()),
        }
    }
}

/// Parses `name=value` pairs; only the first `=` separates.
pub(super) fn pairs(field: &str, texts: &[String]) -> Result<Vec<(String, String)>, Fault> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Fault::bad_request(format!("{field}: `{text}` is not of the form name=value"))),
    };
    texts.iter().map(pair).collect()
}
