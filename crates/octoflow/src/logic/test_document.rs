//! A test file in memory: its checked values, and where each of them stands in the text.
//! It answers questions; what the values mean is not known here.

use std::sync::Arc;

use octoflow_manifest::{Document, Path, Problem, Span};
use serde_json::Value;

/// One document of a test file.
#[derive(Debug)]
pub(crate) struct TestDocument {
    pub document: Arc<Document>,
    /// Without nulls, and only what the tables know.
    pub value: Value,
}

impl TestDocument {
    pub(crate) fn root(&self) -> Located<'_> {
        Located { test_document: self, value: &self.value, path: Path::root() }
    }
}

/// A value of a test_document that knows its place.
#[derive(Clone, Debug)]
pub(crate) struct Located<'a> {
    pub test_document: &'a TestDocument,
    pub value: &'a Value,
    pub path: Path,
}

impl<'a> Located<'a> {
    pub(crate) fn get(&self, key: &str) -> Option<Self> {
        let value = self.value.get(key)?;
        Some(Self { test_document: self.test_document, value, path: self.path.join(key) })
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let (test_document, path) = (self.test_document, self.path.clone());
        let map = self.value.as_object().into_iter().flatten();
        map.map(move |(key, value)| (key.as_str(), Self { test_document, value, path: path.join(key.as_str()) }))
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        let (test_document, path) = (self.test_document, self.path.clone());
        let list = self.value.as_array().into_iter().flatten().enumerate();
        list.map(move |(index, value)| Self { test_document, value, path: path.join(index) })
    }

    /// The entries below a key, none when there is no such key.
    pub(crate) fn entries_of(&self, key: &str) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        self.get(key).into_iter().flat_map(|below| below.entries())
    }

    pub(crate) fn items_of(&self, key: &str) -> impl Iterator<Item = Self> + use<'a> {
        self.get(key).into_iter().flat_map(|below| below.items())
    }

    /// A text as it is, a number as it was written, anything else as JSON.
    pub(crate) fn text(&self) -> String {
        match self.value {
            Value::String(text) => text.clone(),
            Value::Number(number) => {
                self.test_document.document.text(&self.path).map_or_else(|| number.to_string(), str::to_owned)
            }
            other => other.to_string(),
        }
    }

    pub(crate) fn text_of(&self, key: &str) -> Option<String> {
        self.get(key).map(|located| located.text())
    }

    /// The texts of a list; a single value stands for a list of one.
    pub(crate) fn texts(&self) -> Vec<String> {
        if self.value.is_array() { self.items().map(|item| item.text()).collect() } else { vec![self.text()] }
    }

    /// A problem of the test file at this place.
    pub(crate) fn problem(&self, code: &'static str, message: impl Into<String>) -> Problem {
        Problem::error(code, message).at_value(&self.test_document.document, &self.path)
    }

    /// Where the key stands, or the value where there is no key.
    pub(crate) fn place(&self) -> Span {
        self.test_document.document.source_map.key(&self.path)
    }

    pub(crate) fn file(&self) -> &'a str {
        self.test_document.document.source.name()
    }
}
