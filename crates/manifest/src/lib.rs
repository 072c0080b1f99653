//! Reads manifests: YAML or JSON text in, values with the source span of every field out, and problems rendered for
//! users. Pure: no IO, no clock, no knowledge of any dialect.

mod document;
mod limits;
mod number;
mod path;
mod problem;
mod read;
mod render;
mod scalar;
mod source;
mod source_map;
mod write;

pub use document::Document;
pub use limits::Limits;
pub use number::number_text;
pub use path::{Path, PathError, Segment};
pub use problem::{Problem, Problems, Severity, code};
pub use read::{read, read_each};
pub use source::{Source, Span};
pub use source_map::SourceMap;
pub use write::to_yaml;
