//! Values of expressions, and the rules all three languages share: equality, order, formatting. A value is cheap to
//! clone and immutable.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::SignedDuration;

use super::{OffsetDateTime, json, number};

/// A value of an expression.
#[derive(Debug, Clone, Default)]
pub enum Value {
    #[default]
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Arc<str>),
    List(Arc<Vec<Value>>),
    Map(Arc<BTreeMap<String, Value>>),
    Date(OffsetDateTime),
    Duration(SignedDuration),
}

impl Value {
    /// Returns the name of its type, as `type(x)` does.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "string",
            Self::List(_) => "array",
            Self::Map(_) => "map",
            Self::Date(_) => "date",
            Self::Duration(_) => "duration",
        }
    }

    /// Formats the value as JSON text: compact, keys sorted, `<`, `>` and `&` escaped, whole floats without a fraction.
    ///
    /// This is how the dialects' own tools format the same values, and texts are compared.
    /// A number JSON cannot represent becomes `null`; [`Expression::evaluate`](super::lang::Expression::evaluate) never
    /// returns one.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::Style::COMPACT.write(self)
    }

    /// Returns the text to substitute into a template: a string as it is, everything else as JSON.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.as_str().map_or_else(|| self.to_json(), str::to_owned)
    }

    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        let Self::Str(text) = self else { return None };
        Some(text)
    }

    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        let Self::Bool(value) = self else { return None };
        Some(*value)
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(Arc::new(items))
    }

    pub(crate) fn map(entries: BTreeMap<String, Self>) -> Self {
        Self::Map(Arc::new(entries))
    }

    pub(crate) fn is_nil(&self) -> bool {
        matches!(self, Self::Nil)
    }

    /// Returns a number of either kind, as a double.
    pub(crate) fn as_real(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(number::real(*value)),
            Self::Float(value) => Some(*value),
            Self::Nil
            | Self::Bool(_)
            | Self::Str(_)
            | Self::List(_)
            | Self::Map(_)
            | Self::Date(_)
            | Self::Duration(_) => None,
        }
    }

    /// Returns a whole number; a float that is whole counts.
    pub(crate) fn as_whole(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Float(value) if value.fract() == 0.0 => number::whole(*value),
            Self::Nil
            | Self::Bool(_)
            | Self::Float(_)
            | Self::Str(_)
            | Self::List(_)
            | Self::Map(_)
            | Self::Date(_)
            | Self::Duration(_) => None,
        }
    }

    /// Returns the text that the value has as key of a map: strings and whole numbers can be one.
    pub(crate) fn as_key(&self) -> Option<String> {
        match self {
            Self::Str(key) => Some(key.to_string()),
            Self::Int(key) => Some(key.to_string()),
            Self::Nil
            | Self::Bool(_)
            | Self::Float(_)
            | Self::List(_)
            | Self::Map(_)
            | Self::Date(_)
            | Self::Duration(_) => None,
        }
    }

    /// Returns the elements of a list or the values of a map; nothing of any other value.
    pub(crate) fn elements(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        match self {
            Self::List(items) => Box::new(items.iter()),
            Self::Map(entries) => Box::new(entries.values()),
            Self::Nil
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Str(_)
            | Self::Date(_)
            | Self::Duration(_) => Box::new(std::iter::empty()),
        }
    }

    /// Compares two values of one type (the two kinds of number are one); `None` if they have no order.
    pub(crate) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Str(a), Self::Str(b)) => Some(a.cmp(b)),
            (Self::Date(a), Self::Date(b)) => Some(a.at.cmp(&b.at)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::Int(a), Self::Float(b)) => number::order(*a, *b),
            (Self::Float(a), Self::Int(b)) => number::order(*b, *a).map(Ordering::reverse),
            _ => None,
        }
    }
}

/// Numbers of the two kinds can be equal; other values of different types never are.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nil, Self::Nil) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::List(a), Self::List(b)) => Arc::ptr_eq(a, b) || a == b,
            (Self::Map(a), Self::Map(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => self.order(other) == Some(Ordering::Equal),
        }
    }
}

/// Formats as `string(x)` does: `<nil>`, `[1 2]`, `map[a:1]`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => f.write_str("<nil>"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => f.write_str(&number::plain(*value)),
            Self::Str(text) => f.write_str(text),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    let gap = if index > 0 { " " } else { "" };
                    write!(f, "{gap}{item}")?;
                }
                f.write_str("]")
            }
            Self::Map(entries) => {
                f.write_str("map[")?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    let gap = if index > 0 { " " } else { "" };
                    write!(f, "{gap}{key}:{value}")?;
                }
                f.write_str("]")
            }
            Self::Date(moment) => write!(f, "{moment}"),
            Self::Duration(length) => f.write_str(&super::calendar::spell(*length)),
        }
    }
}

/// Whole numbers stay whole, so that large identifiers survive `fromJSON` unharmed.
impl From<serde_json::Value> for Value {
    fn from(json: serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Nil,
            serde_json::Value::Bool(value) => Self::Bool(value),
            serde_json::Value::Number(number) => {
                number.as_i64().map(Self::Int).or_else(|| number.as_f64().map(Self::Float)).unwrap_or_default()
            }
            serde_json::Value::String(text) => Self::from(text),
            serde_json::Value::Array(items) => Self::list(items.into_iter().map(Self::from).collect()),
            serde_json::Value::Object(entries) => {
                Self::map(entries.into_iter().map(|(key, value)| (key, Self::from(value))).collect())
            }
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text.into())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl FromIterator<Self> for Value {
    fn from_iter<I: IntoIterator<Item = Self>>(items: I) -> Self {
        Self::list(items.into_iter().collect())
    }
}

impl FromIterator<(String, Self)> for Value {
    fn from_iter<I: IntoIterator<Item = (String, Self)>>(entries: I) -> Self {
        Self::map(entries.into_iter().collect())
    }
}
