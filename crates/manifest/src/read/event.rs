//! Events that the scanners of both notations send to the composer, with byte ranges of the text.

use std::borrow::Cow;

/// A YAML tag, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tag {
    None,
    Text,
    Integer,
    Float,
    Bool,
    Null,
    Map,
    List,
    Merge,
    Other(String),
}

/// Notation of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Unquoted: its type depends on its text.
    Plain,
    /// Quoted or as a block: always text.
    Text,
    /// An unquoted JSON number: never text.
    Number,
}

/// An anchor's number, counted from 1; 0 is none.
pub(crate) type Anchor = usize;

#[derive(Debug)]
pub(crate) enum Event<'a> {
    DocumentStart,
    DocumentEnd,
    MapStart(Anchor, Tag),
    ListStart(Anchor, Tag),
    /// End of a collection, with the offset after its closing bracket if there is one.
    End(Option<usize>),
    Scalar(Cow<'a, str>, Style, Anchor, Tag),
    Alias(Anchor),
}
