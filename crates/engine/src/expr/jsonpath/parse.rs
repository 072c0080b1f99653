//! Parses path templates. Every error names a column; nesting is bounded.

use serde_json::Value;

use super::SyntaxError;

/// Maximum nesting of ranges; nobody nests deeper by hand.
const NESTING: usize = 20;

#[derive(Clone, Debug)]
pub(super) enum Piece {
    Text(String),
    Path(Path),
    Range(Path, Vec<Self>),
}

#[derive(Clone, Debug)]
pub(super) struct Path {
    pub from: From,
    pub steps: Vec<PathStep>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Root,
    Current,
}

#[derive(Clone, Debug)]
pub(super) enum PathStep {
    Key(String),
    /// All values of a list or a mapping.
    All,
    /// The value itself and everything below it.
    Below,
    /// Indices of a list; negative ones count from its end.
    Indexes(Vec<i64>),
    Keys(Vec<String>),
    Slice {
        from: Option<i64>,
        to: Option<i64>,
        step: i64,
    },
    Filter(Box<PathTest>),
}

#[derive(Clone, Debug)]
pub(super) struct PathTest {
    pub left: Operand,
    pub compare: Option<(Compare, Operand)>,
}

#[derive(Clone, Debug)]
pub(super) enum Operand {
    Path(Path),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

pub(super) fn template(text: &str) -> Result<Vec<Piece>, SyntaxError> {
    let letters: Vec<char> = text.chars().collect();
    let mut reader = Reader { letters: &letters, at: 0 };
    // The innermost open range is last; the first entry is the template itself.
    let mut open: Vec<(Option<Path>, usize, Vec<Piece>)> = vec![(None, 0, Vec::new())];
    while let Some(letter) = reader.peek() {
        if letter != '{' {
            let literal = reader.take_while(|letter| letter != '{');
            top(&mut open).push(Piece::Text(literal));
            continue;
        }
        let start = reader.at;
        reader.at += 1;
        reader.spaces();
        let word_at = reader.at;
        match reader.word().as_str() {
            "range" => {
                if open.len() > NESTING {
                    return Err(reader.wrong_at("ranges are nested too deeply", word_at));
                }
                reader.spaces();
                let path = reader.path()?;
                open.push((Some(path), word_at, Vec::new()));
            }
            "end" => match open.pop() {
                Some((Some(path), _, body)) => top(&mut open).push(Piece::Range(path, body)),
                _ => return Err(reader.wrong_at("there is no range to end", word_at)),
            },
            _ => {
                reader.at = word_at;
                let piece = match reader.peek() {
                    Some('"' | '\'') => Piece::Text(reader.quoted()?),
                    _ => Piece::Path(reader.path()?),
                };
                top(&mut open).push(piece);
            }
        }
        reader.spaces();
        if reader.peek() != Some('}') {
            let what = if reader.peek().is_none() { "the `{` is not closed" } else { "a `}` expected" };
            let place = if reader.peek().is_none() { start } else { reader.at };
            return Err(reader.wrong_at(what, place));
        }
        reader.at += 1;
    }
    match open.pop() {
        Some((None, _, pieces)) => Ok(pieces),
        Some((Some(_), place, _)) => Err(reader.wrong_at("this range has no {end}", place)),
        None => unreachable!("the template itself is only taken off at the end"),
    }
}

fn top(open: &mut [(Option<Path>, usize, Vec<Piece>)]) -> &mut Vec<Piece> {
    let (_, _, pieces) = open.last_mut().expect("the template itself is only taken off at the end");
    pieces
}

struct Reader<'a> {
    letters: &'a [char],
    at: usize,
}

impl Reader<'_> {
    fn path(&mut self) -> Result<Path, SyntaxError> {
        let from = match self.peek() {
            Some('$') => {
                self.at += 1;
                From::Root
            }
            Some('@') => {
                self.at += 1;
                From::Current
            }
            Some('.' | '[') => From::Current,
            _ => return Err(self.wrong("a path starts with `.`, `$`, `@` or `[`")),
        };
        let mut steps = Vec::new();
        loop {
            match self.peek() {
                Some('.') => {
                    self.at += 1;
                    if self.peek() == Some('.') {
                        self.at += 1;
                        steps.push(PathStep::Below);
                    }
                    match self.peek() {
                        Some('*') => {
                            self.at += 1;
                            steps.push(PathStep::All);
                        }
                        Some('[') => {}
                        _ => {
                            let key = self.key();
                            // A lone `.` is the value itself.
                            if !key.is_empty() {
                                steps.push(PathStep::Key(key));
                            }
                        }
                    }
                }
                Some('[') => {
                    self.at += 1;
                    steps.push(self.bracket()?);
                }
                _ => return Ok(Path { from, steps }),
            }
        }
    }

    /// Reads a plain key; a backslash escapes the next character.
    fn key(&mut self) -> String {
        let mut key = String::new();
        while let Some(letter) = self.peek() {
            match letter {
                '\\' => {
                    self.at += 1;
                    key.extend(self.peek());
                }
                '.' | '[' | ']' | '}' | '(' | ')' | '=' | '!' | '<' | '>' | '~' => break,
                letter if letter.is_whitespace() => break,
                letter => key.push(letter),
            }
            self.at += 1;
        }
        key
    }

    fn bracket(&mut self) -> Result<PathStep, SyntaxError> {
        self.spaces();
        let step = match self.peek() {
            Some('*') => {
                self.at += 1;
                PathStep::All
            }
            Some('?') => self.filter()?,
            Some('\'' | '"') => {
                let mut keys = vec![self.quoted()?];
                while self.comma() {
                    keys.push(self.quoted()?);
                }
                PathStep::Keys(keys)
            }
            Some(letter) if letter.is_ascii_digit() || matches!(letter, '-' | ':') => self.numbers()?,
            _ => return Err(self.wrong("a number, a quoted key, `*` or `?(…)` expected")),
        };
        self.spaces();
        self.expect(']')?;
        Ok(step)
    }

    fn numbers(&mut self) -> Result<PathStep, SyntaxError> {
        let first = self.number()?;
        if self.peek() == Some(':') {
            self.at += 1;
            let to = self.number()?;
            let step = if self.peek() == Some(':') {
                self.at += 1;
                self.number()?.unwrap_or(1)
            } else {
                1
            };
            if step < 1 {
                return Err(self.wrong("the step of a slice must be positive"));
            }
            return Ok(PathStep::Slice { from: first, to, step });
        }
        let mut places = vec![first.ok_or_else(|| self.wrong("a number expected"))?];
        while self.comma() {
            places.push(self.number()?.ok_or_else(|| self.wrong("a number expected"))?);
        }
        Ok(PathStep::Indexes(places))
    }

    fn filter(&mut self) -> Result<PathStep, SyntaxError> {
        self.at += 1;
        self.expect('(')?;
        self.spaces();
        let left = self.operand()?;
        self.spaces();
        let compare = if self.peek() == Some(')') {
            None
        } else {
            let compare = self.compare()?;
            self.spaces();
            Some((compare, self.operand()?))
        };
        self.spaces();
        self.expect(')')?;
        Ok(PathStep::Filter(Box::new(PathTest { left, compare })))
    }

    /// Reads an operand of a filter. Filters inside filters are refused, so recursion is bounded.
    fn operand(&mut self) -> Result<Operand, SyntaxError> {
        match self.peek() {
            Some('@' | '$' | '.') => {
                let start = self.at;
                let path = self.flat_path()?;
                path.ok_or_else(|| self.wrong_at("a filter inside a filter is not supported", start)).map(Operand::Path)
            }
            Some('"' | '\'') => self.quoted().map(|text| Operand::Literal(Value::String(text))),
            _ => {
                let start = self.at;
                let word =
                    self.take_while(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '+' | '.'));
                match serde_json::from_str(&word) {
                    Ok(value) => Ok(Operand::Literal(value)),
                    Err(_) => {
                        Err(self.wrong_at("a path, a quoted text, a number, true, false or null expected", start))
                    }
                }
            }
        }
    }

    fn flat_path(&mut self) -> Result<Option<Path>, SyntaxError> {
        let ahead = &self.letters[self.at..];
        let end =
            ahead.iter().position(|letter| letter.is_whitespace() || matches!(letter, ')' | '=' | '!' | '<' | '>'));
        if ahead[..end.unwrap_or(ahead.len())].contains(&'?') {
            return Ok(None);
        }
        self.path().map(Some)
    }

    fn compare(&mut self) -> Result<Compare, SyntaxError> {
        let table = [
            ("==", Compare::Equal),
            ("!=", Compare::Unequal),
            ("<=", Compare::LessOrEqual),
            (">=", Compare::GreaterOrEqual),
            ("<", Compare::Less),
            (">", Compare::Greater),
        ];
        for (sign, compare) in table {
            if self.letters[self.at..].iter().copied().take(sign.len()).eq(sign.chars()) {
                self.at += sign.len();
                return Ok(compare);
            }
        }
        Err(self.wrong("one of == != < <= > >= expected"))
    }

    fn quoted(&mut self) -> Result<String, SyntaxError> {
        let start = self.at;
        let Some(quote @ ('"' | '\'')) = self.peek() else {
            return Err(self.wrong("a quoted text expected"));
        };
        self.at += 1;
        let mut text = String::new();
        while let Some(letter) = self.peek() {
            self.at += 1;
            match letter {
                '\\' => {
                    let escaped = self.peek();
                    self.at += 1;
                    text.push(match escaped {
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some('r') => '\r',
                        Some(other) => other,
                        None => break,
                    });
                }
                letter if letter == quote => return Ok(text),
                letter => text.push(letter),
            }
        }
        Err(self.wrong_at("this quote is not closed", start))
    }

    fn number(&mut self) -> Result<Option<i64>, SyntaxError> {
        let start = self.at;
        let digits = self.take_while(|letter| letter.is_ascii_digit() || letter == '-');
        if digits.is_empty() {
            return Ok(None);
        }
        digits.parse().map(Some).map_err(|_| self.wrong_at("this is not a number", start))
    }

    fn word(&mut self) -> String {
        self.take_while(|letter| letter.is_ascii_alphabetic())
    }

    fn comma(&mut self) -> bool {
        self.spaces();
        let found = self.peek() == Some(',');
        if found {
            self.at += 1;
            self.spaces();
        }
        found
    }

    fn spaces(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
        self.letters[start..self.at].iter().collect()
    }

    fn expect(&mut self, letter: char) -> Result<(), SyntaxError> {
        if self.peek() != Some(letter) {
            return Err(self.wrong(&format!("a `{letter}` expected")));
        }
        self.at += 1;
        Ok(())
    }

    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn wrong(&self, what: &str) -> SyntaxError {
        self.wrong_at(what, self.at)
    }

    fn wrong_at(&self, what: &str, at: usize) -> SyntaxError {
        SyntaxError { what: what.to_owned(), column: at + 1 }
    }
}
