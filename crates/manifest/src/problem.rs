//! Problems of a manifest: what, where, why, what to do. Generic, so that later checks of a manifest report in the same
//! form. `render` formats them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::{Document, Path, Source, Span};

/// Error codes of the problems this crate finds.
pub mod code {
    pub const NOT_UTF8: &str = "OF1001";
    pub const SYNTAX: &str = "OF1002";
    pub const DUPLICATE_KEY: &str = "OF1004";
    pub const LIMIT: &str = "OF1005";
    pub const NOT_JSON: &str = "OF1006";
    pub const TAG_OR_ALIAS: &str = "OF1007";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Error,
    Warning,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One problem.
#[derive(Debug, Clone)]
pub struct Problem {
    pub code: &'static str,
    pub severity: Severity,
    pub message: String,
    pub help: Option<String>,
    /// True if the help is to quote the value. Where the text is known, the help shows the value as written: a bare
    /// `on` is a boolean, but its author meant `"on"`.
    pub quote: bool,
    pub path: Option<Path>,
    /// The substring of the value at the path that it is about, as written there.
    pub within: Option<String>,
    pub span: Option<Span>,
    pub source: Option<Arc<Source>>,
}

impl Problem {
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, message.into())
    }

    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, message.into())
    }

    fn new(code: &'static str, severity: Severity, message: String) -> Self {
        Self { code, severity, message, help: None, quote: false, path: None, within: None, span: None, source: None }
    }

    /// Adds a help text.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a help text that the value must be quoted.
    #[must_use]
    pub fn help_quoting(mut self, value: &str) -> Self {
        self.quote = true;
        self.help(format!("write it in quotes: \"{value}\""))
    }

    /// Points at a value of a document, or its nearest ancestor.
    #[must_use]
    pub fn at_value(mut self, document: &Document, path: &Path) -> Self {
        let span = document.source_map.value(path);
        // In a long text, point at the part. A part that is escaped in the source is not found; then point at the
        // whole.
        let part = self.within.as_deref().filter(|part| !part.is_empty());
        let found = part.and_then(|part| Some((document.source.slice(span).find(part)?, part.len())));
        self.span = Some(found.map_or(span, |(at, length)| document.source.span(span.offset + at, length)));
        self.source = Some(Arc::clone(&document.source));
        self.path = Some(path.clone());
        let bare = |text: &&str| text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
        match document.text(path).filter(bare) {
            Some(text) if self.quote => self.help_quoting(text),
            _ => self,
        }
    }

    /// Points at the key of a value of a document, or of its nearest ancestor.
    #[must_use]
    pub fn at_key(mut self, document: &Document, path: &Path) -> Self {
        self.span = Some(document.source_map.key(path));
        self.source = Some(Arc::clone(&document.source));
        self.path = Some(path.clone());
        self
    }

    /// Points at a span of a source.
    #[must_use]
    pub fn at(mut self, source: &Arc<Source>, span: Span) -> Self {
        self.span = Some(span);
        self.source = Some(Arc::clone(source));
        self
    }

    /// Sets the path of the field it is about.
    #[must_use]
    pub fn path(mut self, path: Path) -> Self {
        self.path = Some(path);
        self
    }

    /// Returns the problem as JSON, for programs.
    pub fn to_json(&self) -> Value {
        let mut object = json!({
            "code": self.code,
            "severity": self.severity.name(),
            "message": self.message,
        });
        if let Some(help) = &self.help {
            object["help"] = json!(help);
        }
        if let Some(path) = &self.path {
            object["path"] = json!(path.to_string());
        }
        if let Some(source) = &self.source {
            object["file"] = json!(source.name());
        }
        if let Some(span) = self.span {
            object["line"] = json!(span.line);
            object["column"] = json!(span.column);
            object["offset"] = json!(span.offset);
            object["length"] = json!(span.length);
        }
        object
    }

    /// Returns the problem in one line, without its place in a file.
    pub fn summary(&self) -> String {
        match &self.path {
            Some(path) => format!("{path}: {} [{}]", self.message, self.code),
            None => format!("{} [{}]", self.message, self.code),
        }
    }

    /// Renders the problem for users, with colours if asked.
    pub fn render(&self, colour: bool) -> String {
        crate::render::render(self, colour)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.render(false))
    }
}

/// Truncates a name from a manifest for a message.
pub(crate) fn shorten(name: &str) -> Cow<'_, str> {
    const LETTERS: usize = 80;
    match name.char_indices().nth(LETTERS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &name[..end])),
        None => Cow::Borrowed(name),
    }
}

/// All problems of a manifest, in the order they were found.
#[derive(Debug, Clone, Default)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// Reports whether any of them is an error.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// Renders all problems for users, separated by empty lines.
    pub fn render(&self, colour: bool) -> String {
        let problems: Vec<String> = self.0.iter().map(|problem| problem.render(colour)).collect();
        problems.join("\n")
    }

    /// Returns all problems as a JSON array, for programs.
    pub fn to_json(&self) -> Value {
        self.0.iter().map(Problem::to_json).collect()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.render(false))
    }
}

impl std::error::Error for Problems {}

impl From<Box<Problem>> for Problems {
    fn from(problem: Box<Problem>) -> Self {
        Self(vec![*problem])
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl Extend<Problem> for Problems {
    fn extend<I: IntoIterator<Item = Problem>>(&mut self, problems: I) {
        self.0.extend(problems);
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
