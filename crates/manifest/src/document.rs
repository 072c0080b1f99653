//! One document of a manifest: its value, and the source span of each part of it.

use std::sync::Arc;

use serde_json::Value;

use crate::{Path, Source, SourceMap};

/// A document that was read. The value has no duplicate keys, no aliases and no merge keys left.
#[derive(Debug, Clone)]
pub struct Document {
    /// The text it was read from.
    pub source: Arc<Source>,
    /// The parsed value.
    pub value: Value,
    /// The source span of every value.
    pub source_map: SourceMap,
    /// The line its content starts on, counted from 1.
    pub line: usize,
}

impl Document {
    /// Returns the text of a value exactly as written: `1.10` where the value tree holds 1.1.
    pub fn text(&self, path: &Path) -> Option<&str> {
        let span = self.source_map.exact(path)?;
        Some(self.source.slice(span))
    }
}
