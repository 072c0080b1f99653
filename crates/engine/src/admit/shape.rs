//! Closed schemas of objects: the single table behind admission, JSON schemas and the support lists of the
//! documentation. It describes and [`check()`]s fields; how values combine is checked by the dialects.

mod check;
mod schema;
#[cfg(test)]
mod tests;

pub(crate) use check::short;
pub use check::{Checked, MAX_PROBLEMS, check};
pub use schema::schema;

/// The shape of a value.
#[derive(Debug)]
pub enum Shape {
    /// Known fields only. The groups are concatenated, so that objects may share fields.
    Object(&'static [&'static [Field]]),
    List(&'static Shape),
    /// Any keys, values of one shape.
    Map(&'static Shape),
    Text,
    /// One of these words, exactly.
    Word(&'static [&'static str]),
    Bool,
    /// A whole number within these bounds, both included.
    Int {
        least: i64,
        most: i64,
    },
    /// A whole number, or a text that stands for one and may contain variables.
    IntOrText,
    /// A text, a number or a boolean.
    Scalar,
    /// An amount such as `500m` or `2Gi`, or a text with variables.
    Quantity,
    /// A text, number or boolean in its own notation; `fits` returns what is wrong with an invalid one.
    Like {
        noun: &'static str,
        fits: fn(&str) -> Result<(), String>,
    },
    /// A short form (a text, number or boolean) or a full one (a list or mapping).
    Either(&'static Shape, &'static Shape),
    Any,
}

/// One field of an object.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub shape: &'static Shape,
    pub support: Support,
    /// The purpose of the field, in one sentence without a full stop.
    pub about: &'static str,
    /// Replacement for a field that will never be accepted.
    pub instead: Option<&'static str>,
}

/// Level of support of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// Supported.
    Yes,
    /// Accepted without effect, with a warning that says why.
    Ignored(&'static str),
    /// Known, but a manifest that uses it is not accepted.
    Refused,
}

/// Error codes of shape checks.
pub mod code {
    pub const UNKNOWN_FIELD: &str = "OF1003";
    pub const WRONG_TYPE: &str = "OF1010";
    pub const UNSUPPORTED: &str = "OF1011";
    pub const IGNORED: &str = "OF1013";
    pub const OUT_OF_RANGE: &str = "OF1041";
}

/// Any whole number of 64 bits.
pub static INT: Shape = Shape::Int { least: i64::MIN, most: i64::MAX };
/// Fits the 32 bits of the wire format.
pub static INT32: Shape = Shape::Int { least: i32::MIN as i64, most: i32::MAX as i64 };
/// From zero.
pub static COUNT: Shape = Shape::Int { least: 0, most: i64::MAX };
/// From one.
pub static POSITIVE: Shape = Shape::Int { least: 1, most: i64::MAX };
/// Permission bits of a file.
pub static MODE: Shape = Shape::Int { least: 0, most: 0o7777 };
pub static BOOL: Shape = Shape::Bool;
pub static TEXT: Shape = Shape::Text;
pub static SCALAR: Shape = Shape::Scalar;
pub static INT_OR_TEXT: Shape = Shape::IntOrText;
pub static QUANTITY: Shape = Shape::Quantity;
pub static ANY: Shape = Shape::Any;
pub static TEXTS: Shape = Shape::List(&TEXT);
pub static TEXT_MAP: Shape = Shape::Map(&TEXT);
pub static QUANTITY_MAP: Shape = Shape::Map(&QUANTITY);
/// An object without fields, whose presence alone matters.
pub static EMPTY: Shape = Shape::Object(&[]);

impl Field {
    pub const fn yes(name: &'static str, shape: &'static Shape, about: &'static str) -> Self {
        Self { name, shape, support: Support::Yes, about, instead: None }
    }

    /// Accepted with a warning; `why` completes "… is accepted but has no effect: ".
    pub const fn ignored(name: &'static str, why: &'static str, about: &'static str) -> Self {
        Self { name, shape: &ANY, support: Support::Ignored(why), about, instead: None }
    }

    pub const fn refused(name: &'static str, about: &'static str) -> Self {
        Self { name, shape: &ANY, support: Support::Refused, about, instead: None }
    }

    /// Refused for good; `instead` says in one sentence what does the same here.
    pub const fn refused_for(name: &'static str, about: &'static str, instead: &'static str) -> Self {
        Self { name, shape: &ANY, support: Support::Refused, about, instead: Some(instead) }
    }
}

impl Shape {
    /// Returns the fields of an object, in table order; empty for everything else.
    pub fn fields(&self) -> impl Iterator<Item = &'static Field> + use<> {
        let groups: &'static [&'static [Field]] = if let Self::Object(groups) = self { groups } else { &[] };
        groups.iter().copied().flatten()
    }

    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields().find(|field| field.name == name)
    }

    /// Returns the noun for it in messages.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Object(_) | Self::Map(_) => "a mapping",
            Self::List(_) => "a list",
            Self::Text | Self::Word(_) => "text",
            Self::Bool => "true or false",
            Self::Int { .. } => "a whole number",
            Self::IntOrText => "a whole number or text",
            Self::Scalar => "text, a number or true/false",
            Self::Quantity => "a quantity such as 500m or 2Gi, not negative",
            Self::Like { noun, .. } => noun,
            // A wrong value is compared with one of the two, never with both.
            Self::Either(short, _) => short.noun(),
            Self::Any => "any value",
        }
    }
}
