//! The expression languages: `when` conditions, `{{= }}` expressions and `depends` logic. Everything here is pure: text
//! and values in, a value or an [`Error`] with a column out. Nothing here reads a clock, draws random numbers or does
//! IO, and no input can exhaust the stack.

pub mod jsonpath;

pub(crate) mod base32;
pub mod budget;
pub(crate) mod calendar;
pub mod depends;
pub(crate) mod digest;
mod error;
pub mod jq;
mod json;
pub mod lang;
mod nearest;
mod number;
pub(crate) mod pattern;
pub mod random;
mod value;
pub mod when;

pub use budget::Meter;
pub use calendar::OffsetDateTime;
pub use error::Error;
pub(crate) use error::Span;
pub use nearest::nearest;
pub use value::Value;

/// Maximum nesting a parser follows. A person loses count at ten; sixty-four leaves room for generated text, and the
/// deepest call chain it allows fits four times into the 2 MiB stack of a plain thread, even unoptimised.
pub(crate) const NESTING: usize = 64;

/// Maximum length of a text, in bytes. Expressions are written by hand; a mebibyte holds a `when` into which a large
/// parameter was substituted, and bounds the work of a parser to a few milliseconds.
pub(crate) const TEXT: usize = 1024 * 1024;
