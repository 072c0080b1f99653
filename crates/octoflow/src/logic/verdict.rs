//! What became of a case: every expectation that was not met, with its place in the test file.

use octoflow_manifest::Span;

use super::{suite::Case, test_document::Located};

/// An expectation that was not met.
#[derive(Debug)]
pub(crate) struct Mismatch {
    pub file: String,
    pub place: Span,
    /// What was looked at, such as `nodes.fetch.phase`.
    pub what: String,
    pub expected: String,
    pub actual: String,
}

impl Mismatch {
    pub(crate) fn new(
        located: &Located<'_>,
        what: String,
        expected: impl Into<String>,
        actual: impl Into<String>,
    ) -> Self {
        Self {
            file: located.file().to_owned(),
            place: located.place(),
            what,
            expected: expected.into(),
            actual: actual.into(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub misses: Vec<Mismatch>,
    /// Why it was not tried.
    pub skipped: Option<String>,
    /// How the runs ended, for people: phase and virtual duration of each.
    pub ends: Vec<(String, String, String)>,
    /// What became of every node of a case that failed, a line each, for whoever wants to know more.
    pub node_lines: Vec<String>,
}

impl Verdict {
    pub(crate) fn passed(&self) -> bool {
        self.misses.is_empty()
    }

    pub(crate) fn miss(
        &mut self,
        located: &Located<'_>,
        what: impl Into<String>,
        expected: impl Into<String>,
        actual: impl Into<String>,
    ) {
        self.misses.push(Mismatch::new(located, what.into(), expected, actual));
    }

    /// Something about the case as a whole.
    pub(crate) fn fault(&mut self, case: &Case<'_>, text: impl Into<String>) {
        let located = case.own.get("name").unwrap_or_else(|| case.own.clone());
        self.miss(&located, "the case", "it can be played to its end", text);
    }
}
