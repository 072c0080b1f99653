//! The input of the YAML scanner, under a budget. The scanner buffers a whole scalar, or all tokens of an open bracket,
//! before it emits an event; this cuts it off in between.

use std::cell::Cell;

use saphyr_parser::Input;
use saphyr_parser::input::is_breakz;

use super::margin::Margin;
use crate::Limits;

/// Directives have one or two words. The scanner would collect any number of them.
const MAX_DIRECTIVE_WORDS: usize = 100;

/// A byte order mark. The scanner tests for it once at the start of every token, and nowhere else.
const TOKEN_TEST: char = '\u{FEFF}';

/// The scanner never looks further ahead than this.
const LOOKAHEAD: usize = 16;

/// The limit that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    Scalar,
    ReadAhead,
}

/// The remaining budget of the scanner, shared with the code that pulls its events.
pub(super) struct Budget {
    scalar: usize,
    read_ahead: usize,
    /// Characters handed out, in the scanner's own count.
    read: Cell<usize>,
    token_start: Cell<usize>,
    tokens: Cell<usize>,
    words: Cell<usize>,
    excess: Cell<Option<(Excess, usize)>>,
    pub(super) margin: Margin,
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            scalar: limits.scalar,
            read_ahead: limits.read_ahead,
            read: Cell::new(0),
            token_start: Cell::new(0),
            tokens: Cell::new(0),
            words: Cell::new(0),
            excess: Cell::new(None),
            margin: Margin::default(),
        }
    }

    /// Resets the token count. Tokens are counted between two events: that many are buffered at once.
    pub(super) fn event_seen(&self) {
        self.tokens.set(0);
    }

    /// Returns the limit that was exceeded, and the character at which the token starts.
    pub(super) fn excess(&self) -> Option<(Excess, usize)> {
        self.excess.get()
    }

    fn token(&self) {
        self.token_start.set(self.read.get());
        self.words.set(0);
        self.tokens.set(self.tokens.get() + 1);
        if self.tokens.get() > self.read_ahead {
            self.exceed(Excess::ReadAhead);
        }
    }

    fn exceed(&self, excess: Excess) {
        if self.excess.get().is_none() {
            self.excess.set(Some((excess, self.token_start.get())));
        }
    }
}

/// An input that ends early once its budget is spent.
pub(super) struct BudgetedInput<'a> {
    rest: &'a str,
    /// Spaces to hand out before the rest.
    spaces: usize,
    lookahead: usize,
    budget: &'a Budget,
}

impl<'a> BudgetedInput<'a> {
    pub(super) fn new(text: &'a str, budget: &'a Budget) -> Self {
        Self { rest: text, spaces: 0, lookahead: 0, budget }
    }

    #[inline]
    fn take(&mut self) -> Option<char> {
        self.budget.read.set(self.budget.read.get() + 1);
        if self.spaces > 0 {
            self.spaces -= 1;
            return Some(' ');
        }
        let mut letters = self.rest.chars();
        let letter = letters.next()?;
        self.rest = letters.as_str();
        let read = self.budget.read.get();
        if read - self.budget.token_start.get() > self.budget.scalar {
            self.budget.exceed(Excess::Scalar);
        }
        if self.budget.excess.get().is_some() {
            self.rest = "";
        }
        self.spaces = self.budget.margin.taken(letter, self.rest, read);
        self.exclude(self.spaces);
        Some(letter)
    }

    /// Excludes characters from the current token's length.
    fn exclude(&self, characters: usize) {
        self.budget.token_start.set(self.budget.token_start.get() + characters);
    }
}

impl Input for BudgetedInput<'_> {
    #[inline]
    fn lookahead(&mut self, count: usize) {
        self.lookahead = self.lookahead.max(count);
    }

    #[inline]
    fn buflen(&self) -> usize {
        self.lookahead
    }

    #[inline]
    fn bufmaxlen(&self) -> usize {
        LOOKAHEAD
    }

    #[inline]
    fn raw_read_ch(&mut self) -> char {
        self.take().unwrap_or('\0')
    }

    #[inline]
    fn raw_read_non_breakz_ch(&mut self) -> Option<char> {
        if ends_line(self.peek()) { None } else { self.take() }
    }

    #[inline]
    fn skip(&mut self) {
        let letter = self.peek();
        self.take();
        self.budget.margin.skipped(letter);
    }

    #[inline]
    fn skip_n(&mut self, count: usize) {
        for _ in 0..count {
            self.take();
        }
    }

    #[inline]
    fn peek(&self) -> char {
        self.peek_opt().unwrap_or('\0')
    }

    #[inline]
    fn peek_nth(&self, n: usize) -> char {
        if n < self.spaces {
            return ' ';
        }
        self.rest.chars().nth(n - self.spaces).unwrap_or('\0')
    }

    #[inline]
    fn peek_opt(&self) -> Option<char> {
        if self.spaces > 0 { Some(' ') } else { self.rest.chars().next() }
    }

    #[inline]
    fn next_char_is(&self, letter: char) -> bool {
        let next = self.peek();
        if letter == TOKEN_TEST {
            self.budget.token();
            self.budget.margin.token(next);
        }
        next == letter
    }

    fn skip_while_non_breakz(&mut self) -> usize {
        let mut count = 0;
        while !ends_line(self.peek()) {
            // This skips comments only.
            self.exclude(1);
            self.take();
            count += 1;
        }
        count
    }

    fn fetch_while_is_yaml_non_space(&mut self, out: &mut String) -> usize {
        self.budget.words.set(self.budget.words.get() + 1);
        if self.budget.words.get() > MAX_DIRECTIVE_WORDS {
            self.budget.exceed(Excess::ReadAhead);
            self.rest = "";
        }
        let mut count = 0;
        while !ends_line(self.peek()) && !matches!(self.peek(), ' ' | '\t') {
            out.extend(self.take());
            count += 1;
        }
        count
    }
}

/// A byte order mark ends a line for the scanner, so that it can refuse it.
#[inline]
fn ends_line(letter: char) -> bool {
    is_breakz(letter) || letter == TOKEN_TEST
}
