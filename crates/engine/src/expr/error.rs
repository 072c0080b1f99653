//! The error of the three expression languages: a message and its position in the text. It never holds the text itself;
//! callers pass the text to [`Error::render`].

/// An error in an expression, and its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The whole sentence, ready for a user.
    pub message: String,
    /// Column where it starts: 1-based, in characters.
    pub column: usize,
    /// Length in characters, at least one.
    pub length: usize,
    /// True if the text is fine, but the budget to evaluate it was exhausted.
    exhausted: bool,
}

/// A range of characters in an expression's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    /// 0-based, in characters.
    pub(crate) start: usize,
    pub(crate) length: usize,
}

/// Width of a rendered line, cut around the position, so that a long text still fits a terminal.
const WINDOW: usize = 100;

/// Maximum length of a message: it may quote a value, but megabytes help nobody.
const MAX_MESSAGE: usize = 4_000;

impl Error {
    pub(crate) fn at(span: Span, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if let Some((cut, _)) = message.char_indices().nth(MAX_MESSAGE) {
            message.truncate(cut);
            message.push('…');
        }
        Self { message, column: span.start + 1, length: span.length.max(1), exhausted: false }
    }

    /// Marks the error as an exhausted budget.
    pub(crate) fn exhausted(self) -> Self {
        Self { exhausted: true, ..self }
    }

    /// Reports whether a budget was exhausted. Neither a default nor a retry helps then.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Renders the line of `text` with the error, and a line of carets below it.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        let characters: Vec<char> = text.chars().collect();
        let place = (self.column - 1).min(characters.len());
        let begin = characters[..place].iter().rposition(|&c| c == '\n').map_or(0, |at| at + 1);
        let end = characters[place..].iter().position(|&c| c == '\n').map_or(characters.len(), |at| place + at);
        let first = begin.max(place.saturating_sub(WINDOW / 2));
        let last = end.min(first + WINDOW);
        let line: String = characters[first..last].iter().map(|&c| if c.is_control() { ' ' } else { c }).collect();
        let carets = self.length.min((last - place).max(1));
        format!("{line}\n{}{}", " ".repeat(place - first), "^".repeat(carets))
    }
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start, length: end.saturating_sub(start) }
    }

    /// Returns the span from the start of this one to the end of the other.
    pub(crate) fn to(self, other: Self) -> Self {
        Self::new(self.start, other.start + other.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_below_the_place() {
        let error = Error::at(Span::new(7, 9), "no");
        assert_eq!(error.render("first\nsé cond"), "sé cond\n ^^");
        assert_eq!(error.column, 8);
    }

    #[test]
    fn a_message_is_never_endless() {
        assert_eq!(Error::at(Span::default(), "é".repeat(5_000)).message.chars().count(), MAX_MESSAGE + 1);
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = "x".repeat(5_000);
        let shown = Error::at(Span::new(4_000, 4_001), "no").render(&text);
        assert_eq!(shown.lines().map(str::len).max(), Some(WINDOW));
        assert!(shown.ends_with(&format!("{}^", " ".repeat(WINDOW / 2))));
    }

    #[test]
    fn a_place_behind_the_end_is_shown_behind_the_end() {
        assert_eq!(Error::at(Span::new(3, 3), "no").render("a =="), "a ==\n   ^");
        assert_eq!(Error::at(Span::new(9, 9), "no").render("a"), "a\n ^");
    }
}
