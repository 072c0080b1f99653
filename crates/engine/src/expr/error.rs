//! The one error of the three languages: a sentence and the place in the text it speaks of.
//! It never holds the text itself; whoever shows the error hands the text to [`Error::render`].

/// What is wrong with an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The whole sentence, ready for a user.
    pub message: String,
    /// Where it begins: 1-based, counted in characters.
    pub column: usize,
    /// How many characters it covers, at least one.
    pub length: usize,
    /// Not the text is wrong: there was no budget left to evaluate it.
    exhausted: bool,
}

/// A stretch of characters in an expression's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    /// 0-based, in characters.
    pub(crate) start: usize,
    pub(crate) length: usize,
}

/// A rendered line is cut to this many characters around the place, so that a long text still fits a terminal.
const WINDOW: usize = 100;

/// A message may quote what it speaks of, but a value of megabytes helps nobody.
const LONGEST: usize = 4_000;

impl Error {
    pub(crate) fn at(span: Span, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if let Some((cut, _)) = message.char_indices().nth(LONGEST) {
            message.truncate(cut);
            message.push('…');
        }
        Self { message, column: span.start + 1, length: span.length.max(1), exhausted: false }
    }

    /// Says that a budget was used up.
    pub(crate) fn exhausted(self) -> Self {
        Self { exhausted: true, ..self }
    }

    /// A budget was used up. A default, or a later attempt, is no answer to that.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// The line of `text` the error speaks of, and a line of carets below it.
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

    /// From the beginning of this span to the end of the other.
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
        assert_eq!(Error::at(Span::default(), "é".repeat(5_000)).message.chars().count(), LONGEST + 1);
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
