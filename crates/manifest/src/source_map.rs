//! Source spans of every value of a document. Flat arrays: a value is a number, its children follow it, so 28 bytes per
//! value suffice. Immutable.

use std::fmt;
use std::sync::Arc;

use crate::{Path, Segment, Source, Span};

/// No key: the root, or an item of a list.
pub(crate) const NO_KEY: u32 = u32::MAX;

/// Steps from here on are no keys that can be looked up: merge keys, and keys that were refused.
pub(crate) const HIDDEN: u32 = u32::MAX - 1;

/// A byte range of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) offset: u32,
    pub(crate) length: u32,
}

/// One value. Its children are the entries after it; `size` counts it and all its descendants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) parent: u32,
    pub(crate) size: u32,
    /// Index into the table of keys, or of the item in its list.
    pub(crate) step: u32,
    pub(crate) value: Range,
    pub(crate) key: Range,
}

/// The source spans of one document.
///
/// A lookup walks the siblings of a mapping and does a binary search in a list, so it is meant for reporting, not for
/// every value of a large document.
#[derive(Clone)]
pub struct SourceMap {
    source: Arc<Source>,
    table: Arc<Table>,
}

struct Table {
    entries: Vec<Entry>,
    keys: Vec<Arc<str>>,
}

impl SourceMap {
    pub(crate) fn new(source: Arc<Source>, mut entries: Vec<Entry>, keys: Vec<Arc<str>>) -> Self {
        assert!(!entries.is_empty(), "a document has at least its root");
        entries.shrink_to_fit();
        Self { source, table: Arc::new(Table { entries, keys }) }
    }

    /// Returns the span of the value at a path, or of its nearest ancestor if there is none.
    ///
    /// Below an alias the spans are those of the anchored text; the alias itself stands for the value it names.
    pub fn value(&self, path: &Path) -> Span {
        self.span(self.table.entries[self.nearest(path).0].value)
    }

    /// Returns the span of the key of the value at a path; of the value itself for items of a list and for the root. If
    /// there is no such value, the same of its nearest ancestor: a missing field is best reported there.
    pub fn key(&self, path: &Path) -> Span {
        let entry = &self.table.entries[self.nearest(path).0];
        self.span(if entry.key.offset == NO_KEY { entry.value } else { entry.key })
    }

    /// Returns the span of the value at a path, if there is one.
    pub fn exact(&self, path: &Path) -> Option<Span> {
        let (entry, found) = self.nearest(path);
        found.then(|| self.span(self.table.entries[entry].value))
    }

    /// Returns the number of values.
    pub fn count(&self) -> usize {
        self.table.entries.len()
    }

    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    fn span(&self, range: Range) -> Span {
        self.source.span(range.offset as usize, range.length as usize)
    }

    fn nearest(&self, path: &Path) -> (usize, bool) {
        let mut at = 0;
        for segment in path.segments() {
            let next = match segment {
                Segment::Key(key) => self.child_by_key(at, key),
                Segment::Index(index) => self.child_by_index(at, *index),
            };
            let Some(next) = next else { return (at, false) };
            at = next;
        }
        (at, true)
    }

    fn child_by_key(&self, parent: usize, key: &str) -> Option<usize> {
        children(&self.table.entries, parent).find(|&child| {
            let entry = &self.table.entries[child];
            entry.key.offset != NO_KEY && entry.step < HIDDEN && &*self.table.keys[entry.step as usize] == key
        })
    }

    fn child_by_index(&self, parent: usize, index: usize) -> Option<usize> {
        let mut low = parent + 1;
        let mut high = parent + self.table.entries[parent].size as usize;
        while low < high {
            let mut child = low + (high - low) / 2;
            while self.table.entries[child].parent as usize != parent {
                child = self.table.entries[child].parent as usize;
            }
            let entry = &self.table.entries[child];
            if entry.key.offset != NO_KEY {
                return None;
            }
            match (entry.step as usize).cmp(&index) {
                std::cmp::Ordering::Equal => return Some(child),
                std::cmp::Ordering::Less => low = child + entry.size as usize,
                std::cmp::Ordering::Greater => high = child,
            }
        }
        None
    }
}

impl fmt::Debug for SourceMap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SourceMap({} values of {:?})", self.table.entries.len(), self.source)
    }
}

/// The children of a complete entry, in order.
pub(crate) fn children(entries: &[Entry], parent: usize) -> impl Iterator<Item = usize> {
    let end = parent + entries[parent].size as usize;
    let mut next = parent + 1;
    std::iter::from_fn(move || {
        let child = next;
        if child >= end {
            return None;
        }
        next += entries[child].size as usize;
        Some(child)
    })
}
