//! What the scanners of both notations say to the composer, with byte ranges of the text.

use std::borrow::Cow;

/// A tag as far as it matters here.
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

/// How a scalar was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Bare: its meaning depends on its text.
    Plain,
    /// Quoted or as a block: always text.
    Text,
    /// A bare number of JSON: never text.
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
    /// With the bracket's end where there is one.
    End(Option<usize>),
    Scalar(Cow<'a, str>, Style, Anchor, Tag),
    Alias(Anchor),
}
