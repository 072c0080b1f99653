//! The tokenizer of conditions. It splits text into tokens and never checks whether they fit together.

use super::{Span, WhenFault};
use crate::expr::{OffsetDateTime, Value, number};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum WhenToken {
    /// A number, a quoted text, `true` or `false`.
    Literal(Value),
    /// A word without quotes, or `[a name in brackets]`.
    Name(String),
    Sign(Sign),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Matches,
    MatchesNot,
    In,
    And,
    Or,
    Not,
    Plus,
    Minus,
    Times,
    Divide,
    Modulo,
    Power,
    BitAnd,
    BitOr,
    BitXor,
    BitNot,
    ShiftLeft,
    ShiftRight,
    Question,
    Colon,
    Coalesce,
    Open,
    Close,
    Comma,
}

/// Longer operators first, where one is a prefix of another.
const SIGNS: [(&str, Sign); 29] = [
    ("==", Sign::Equal),
    ("=~", Sign::Matches),
    ("!=", Sign::Unequal),
    ("!~", Sign::MatchesNot),
    ("<<", Sign::ShiftLeft),
    ("<=", Sign::LessOrEqual),
    (">>", Sign::ShiftRight),
    (">=", Sign::GreaterOrEqual),
    ("&&", Sign::And),
    ("||", Sign::Or),
    ("**", Sign::Power),
    ("??", Sign::Coalesce),
    ("<", Sign::Less),
    (">", Sign::Greater),
    ("!", Sign::Not),
    ("+", Sign::Plus),
    ("-", Sign::Minus),
    ("*", Sign::Times),
    ("/", Sign::Divide),
    ("%", Sign::Modulo),
    ("&", Sign::BitAnd),
    ("|", Sign::BitOr),
    ("^", Sign::BitXor),
    ("~", Sign::BitNot),
    ("?", Sign::Question),
    (":", Sign::Colon),
    ("(", Sign::Open),
    (")", Sign::Close),
    (",", Sign::Comma),
];

impl Sign {
    pub(super) fn spelling(self) -> &'static str {
        SIGNS.iter().find(|(_, sign)| *sign == self).map_or("in", |(spelling, _)| spelling)
    }
}

impl WhenToken {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Literal(value) => format!("'{value}'"),
            Self::Name(name) => format!("'{name}'"),
            Self::Sign(sign) => format!("'{}'", sign.spelling()),
            Self::End => "the end".to_owned(),
        }
    }
}

/// Splits a text into tokens, one at a time.
pub(super) struct WhenLexer {
    characters: Vec<char>,
    position: usize,
}

impl WhenLexer {
    pub(super) fn new(text: &str) -> Self {
        Self { characters: text.chars().collect(), position: 0 }
    }

    pub(super) fn next(&mut self) -> Result<(WhenToken, Span), WhenFault> {
        while self.peek(0).is_some_and(char::is_whitespace) {
            self.position += 1;
        }
        let start = self.position;
        let token = match self.peek(0) {
            None => WhenToken::End,
            Some(c) if c.is_ascii_digit() || c == '.' => self.number()?,
            Some(c) if c.is_alphabetic() || c == '_' => word(self.name()),
            Some(quote @ ('\'' | '"')) => {
                let text = self.until(quote, "text")?;
                let date = OffsetDateTime::iso(&text).map(|moment| Value::Float(number::real(moment.at.as_second())));
                WhenToken::Literal(date.unwrap_or_else(|| Value::from(text)))
            }
            Some('[') => WhenToken::Name(self.until(']', "name")?),
            Some(c) => self.sign(c)?,
        };
        Ok((token, Span::new(start, self.position)))
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.position + ahead).copied()
    }

    fn number(&mut self) -> Result<WhenToken, WhenFault> {
        let start = self.position;
        let hexadecimal = self.peek(0) == Some('0') && self.peek(1) == Some('x');
        self.position += if hexadecimal { 2 } else { 0 };
        let mut digits = String::new();
        while let Some(c) = self.peek(0) {
            let wanted = if hexadecimal { c.is_ascii_hexdigit() } else { c.is_ascii_digit() || c == '.' };
            if !wanted {
                break;
            }
            digits.push(c);
            self.position += 1;
        }
        let value =
            if hexadecimal { i64::from_str_radix(&digits, 16).ok().map(number::real) } else { digits.parse().ok() };
        let value = value.ok_or_else(|| {
            let span = Span::new(start, self.position);
            WhenFault::new(span, format!("'{digits}' is not a number")).with_quote_hint()
        })?;
        Ok(WhenToken::Literal(Value::Float(value)))
    }

    /// Reads letters, digits, `_` and `.`; a backslash escapes the next character.
    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.peek(0) {
            if c == '\\' {
                self.position += 1;
                name.extend(self.peek(0));
                // A backslash at the end escapes nothing.
                self.position -= usize::from(self.peek(0).is_none());
            } else if c.is_alphanumeric() || c == '_' || c == '.' {
                name.push(c);
            } else {
                break;
            }
            self.position += 1;
        }
        name
    }

    /// Reads up to the closing character; a backslash escapes the next character.
    fn until(&mut self, closing: char, what: &str) -> Result<String, WhenFault> {
        let start = self.position;
        self.position += 1;
        let mut text = String::new();
        loop {
            let Some(c) = self.peek(0) else {
                let reason = format!("this {what} is never closed with {closing}");
                return Err(WhenFault::new(Span::new(start, start + 1), reason));
            };
            self.position += 1;
            if c == closing {
                return Ok(text);
            }
            if c == '\\' {
                text.extend(self.peek(0));
                self.position = (self.position + 1).min(self.characters.len());
            } else {
                text.push(c);
            }
        }
    }

    fn sign(&mut self, first: char) -> Result<WhenToken, WhenFault> {
        let found = SIGNS
            .iter()
            .find(|(spelling, _)| spelling.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c)));
        let Some((spelling, sign)) = found else {
            let span = Span::new(self.position, self.position + 1);
            return Err(WhenFault::new(span, format!("Invalid token: '{first}'")).with_quote_hint());
        };
        self.position += spelling.len();
        Ok(WhenToken::Sign(*sign))
    }
}

fn word(name: String) -> WhenToken {
    match name.as_str() {
        "true" => WhenToken::Literal(Value::Bool(true)),
        "false" => WhenToken::Literal(Value::Bool(false)),
        "in" | "IN" => WhenToken::Sign(Sign::In),
        _ => WhenToken::Name(name),
    }
}
