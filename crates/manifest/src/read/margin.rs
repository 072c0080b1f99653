//! Fixes indentation inside brackets and quotes. It is meaningless there and Kubernetes' loader ignores it, but the
//! scanner enforces it. So lines that are indented too little are padded with spaces, and positions are reported
//! without those spaces.

use std::cell::{Cell, RefCell};

/// Maximum padding of a line. Nobody indents further, and padding costs memory.
const MAX_COLUMN: usize = 1000;

/// Maximum padding of one text; beyond it, the scanner's own rule applies.
const MAX_SPACES: usize = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quote {
    Outside,
    Opening(char),
    Inside(char),
}

/// Inserted spaces: the position in the scanner's count of characters, and the number inserted before.
#[derive(Debug, Clone, Copy)]
struct Insertion {
    at: usize,
    count: usize,
    before: usize,
}

/// Tracks brackets and quotes in the text.
pub(super) struct Margin {
    quote: Cell<Quote>,
    brackets: Cell<usize>,
    column: Cell<usize>,
    /// Column of the outermost bracket or quote: lines must not start left of it.
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
    /// Notes that a token starts with this character.
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

    /// Notes that this character was skipped on its own. A doubled or escaped quote never is.
    #[inline]
    pub(super) fn skipped(&self, letter: char) {
        match self.quote.get() {
            Quote::Opening(quote) => self.quote.set(Quote::Inside(quote)),
            Quote::Inside(quote) if quote == letter => self.quote.set(Quote::Outside),
            Quote::Outside | Quote::Inside(_) => {}
        }
    }

    /// Notes that this character was read, `rest` follows, and `read` characters were returned so far. Returns the
    /// number of spaces to insert next.
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

    /// Converts the scanner's character count to a character of the text.
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
