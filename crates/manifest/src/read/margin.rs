//! Indentation inside brackets and quotes. It means nothing there, and Kubernetes' loader ignores
//! it, but the scanner insists on it. So lines that hang too far left get spaces put before them,
//! and whoever asks for positions gets them without those spaces.

use std::cell::{Cell, RefCell};

/// Nobody indents further, and each line costs its spaces.
const MAX_COLUMN: usize = 1000;

/// All spaces put into one text; beyond, the scanner's own rule holds.
const MAX_SPACES: usize = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quote {
    Outside,
    Opening(char),
    Inside(char),
}

/// Spaces put in: where, in the scanner's count of characters, and how many up to there.
#[derive(Debug, Clone, Copy)]
struct Insertion {
    at: usize,
    count: usize,
    before: usize,
}

/// Follows brackets and quotes through the text.
pub(super) struct Margin {
    quote: Cell<Quote>,
    brackets: Cell<usize>,
    column: Cell<usize>,
    /// The column of the outermost bracket or quote: lines must not hang left of it.
    base: Cell<usize>,
    inserted: Cell<usize>,
    insertions: RefCell<Vec<Insertion>>,
}

impl Default for Margin {
    fn default() -> Self {
        Self {
            quote: Cell::new(Quote::Outside),
            brackets: Cell::new(0),
            column: Cell::new(0),
            base: Cell::new(0),
            inserted: Cell::new(0),
            insertions: RefCell::default(),
        }
    }
}

impl Margin {
    /// A token begins with this character.
    #[inline]
    pub(super) fn token(&self, letter: char) {
        match letter {
            '[' | '{' => {
                self.set_base();
                self.brackets.set(self.brackets.get() + 1);
            }
            ']' | '}' => self.brackets.set(self.brackets.get().saturating_sub(1)),
            '"' | '\'' => {
                self.set_base();
                self.quote.set(Quote::Opening(letter));
            }
            _ => {}
        }
    }

    /// This character was skipped on its own. A quote that is only doubled or escaped never is.
    #[inline]
    pub(super) fn skipped(&self, letter: char) {
        match self.quote.get() {
            Quote::Opening(quote) => self.quote.set(Quote::Inside(quote)),
            Quote::Inside(quote) if quote == letter => self.quote.set(Quote::Outside),
            Quote::Outside | Quote::Inside(_) => {}
        }
    }

    /// This character was taken from the text, `rest` follows, `read` were handed out so far.
    /// Says how many spaces to hand out next.
    #[inline]
    pub(super) fn taken(&self, letter: char, rest: &str, read: usize) -> usize {
        let breaks = letter == '\n' || (letter == '\r' && !rest.starts_with('\n'));
        if !breaks {
            self.column.set(self.column.get() + 1);
            return 0;
        }
        self.column.set(0);
        if self.brackets.get() == 0 && self.quote.get() == Quote::Outside {
            return 0;
        }
        self.insert(rest, read)
    }

    fn insert(&self, rest: &str, read: usize) -> usize {
        let base = self.base.get();
        if base > MAX_COLUMN {
            return 0;
        }
        let blanks = rest.bytes().take(base).take_while(|byte| *byte == b' ').count();
        let line = &rest[blanks..];
        let blank = line.is_empty() || line.starts_with(['\n', '\r']);
        let ends = blanks == 0 && (rest.starts_with("---") || rest.starts_with("..."));
        let count = base - blanks;
        if blank || ends || count == 0 || self.inserted.get() + count > MAX_SPACES {
            return 0;
        }
        self.insertions.borrow_mut().push(Insertion { at: read, count, before: self.inserted.get() });
        self.inserted.set(self.inserted.get() + count);
        self.column.set(count);
        count
    }

    /// The character of the text that the scanner counts as this one.
    pub(super) fn character(&self, counted: usize) -> usize {
        let insertions = self.insertions.borrow();
        let after = insertions.partition_point(|insertion| insertion.at <= counted);
        match after.checked_sub(1).map(|last| insertions[last]) {
            Some(last) => counted - last.before - last.count.min(counted - last.at),
            None => counted,
        }
    }

    fn set_base(&self) {
        if self.brackets.get() == 0 {
            self.base.set(self.column.get());
        }
    }
}
