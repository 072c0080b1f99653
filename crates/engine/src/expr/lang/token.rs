//! The tokenizer of expressions. It splits text into tokens and never checks whether they fit together.

use crate::expr::{Error, Span};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ExprToken {
    Int(i64),
    Float(f64),
    Text(String),
    /// A word, keyword or not: whether `in` is an operator or a member's name depends on the context.
    Word(String),
    Sign(&'static str),
    End,
}

/// Longer operators first, where one is a prefix of another.
const SIGNS: [&str; 33] = [
    "**", "..", "?.", "??", "==", "!=", "<=", ">=", "&&", "||", "::", "(", ")", "[", "]", "{", "}", ".", ",", ";", ":",
    "?", "+", "-", "*", "/", "%", "^", "<", ">", "!", "|", "#",
];

impl ExprToken {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Int(value) => format!("'{value}'"),
            Self::Float(value) => format!("'{value}'"),
            Self::Text(text) => {
                let short: String = text.chars().take(40).collect();
                format!("the text '{short}'")
            }
            Self::Word(word) => format!("'{word}'"),
            Self::Sign(sign) => format!("'{sign}'"),
            Self::End => "the end".to_owned(),
        }
    }
}

pub(super) fn lex(text: &str) -> Result<Vec<(ExprToken, Span)>, Error> {
    let mut lexer = ExprLexer { characters: text.chars().collect(), position: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip()?;
        let start = lexer.position;
        let token = lexer.token()?;
        let done = token == ExprToken::End;
        tokens.push((token, Span::new(start, lexer.position)));
        if done {
            return Ok(tokens);
        }
    }
}

struct ExprLexer {
    characters: Vec<char>,
    position: usize,
}

impl ExprLexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.position + ahead).copied()
    }

    fn looking_at(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c))
    }

    fn fault(&self, start: usize, message: impl Into<String>) -> Error {
        Error::at(Span::new(start, self.position.max(start + 1)), message)
    }

    /// Skips blanks and comments.
    fn skip(&mut self) -> Result<(), Error> {
        loop {
            if self.peek(0).is_some_and(char::is_whitespace) {
                self.position += 1;
            } else if self.looking_at("//") {
                while self.peek(0).is_some_and(|c| c != '\n') {
                    self.position += 1;
                }
            } else if self.looking_at("/*") {
                let start = self.position;
                self.position += 2;
                while !self.looking_at("*/") {
                    if self.peek(0).is_none() {
                        self.position = start + 2;
                        return Err(self.fault(start, "this comment is never closed with */"));
                    }
                    self.position += 1;
                }
                self.position += 2;
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<ExprToken, Error> {
        let Some(c) = self.peek(0) else {
            return Ok(ExprToken::End);
        };
        let fraction = c == '.' && self.peek(1).is_some_and(|next| next.is_ascii_digit());
        if c.is_ascii_digit() || fraction {
            return self.number();
        }
        if c == '\'' || c == '"' {
            return self.quoted(c);
        }
        if c == '`' {
            return self.raw();
        }
        if in_word(c) {
            let start = self.position;
            while self.peek(0).is_some_and(in_word) {
                self.position += 1;
            }
            return Ok(ExprToken::Word(self.characters[start..self.position].iter().collect()));
        }
        let begun = SIGNS.iter().filter(|sign| sign.starts_with(c));
        let Some(sign) = begun.copied().find(|sign| self.looking_at(sign)) else {
            if c == '=' {
                self.position += 1;
                return Ok(ExprToken::Sign("="));
            }
            return Err(self.fault(self.position, format!("'{c}' has no meaning here")));
        };
        self.position += sign.len();
        Ok(ExprToken::Sign(sign))
    }

    fn number(&mut self) -> Result<ExprToken, Error> {
        let start = self.position;
        let radix = match (self.peek(0), self.peek(1)) {
            (Some('0'), Some('x' | 'X')) => 16,
            (Some('0'), Some('o' | 'O')) => 8,
            (Some('0'), Some('b' | 'B')) => 2,
            _ => 10,
        };
        self.position += if radix == 10 { 0 } else { 2 };
        let mut digits = self.digits(radix);
        let mut real = false;
        // `1..3` is a range, not a number with two points.
        if radix == 10 && self.peek(0) == Some('.') && self.peek(1) != Some('.') {
            real = true;
            self.position += 1;
            digits.push('.');
            digits += &self.digits(10);
        }
        if radix == 10 && matches!(self.peek(0), Some('e' | 'E')) {
            real = true;
            self.position += 1;
            digits.push('e');
            if let Some(sign @ ('+' | '-')) = self.peek(0) {
                self.position += 1;
                digits.push(sign);
            }
            digits += &self.digits(10);
        }
        if self.peek(0).is_some_and(in_word) {
            while self.peek(0).is_some_and(in_word) {
                self.position += 1;
            }
            let word: String = self.characters[start..self.position].iter().collect();
            return Err(self.fault(start, format!("'{word}' is not a number")));
        }
        if real {
            let value: Option<f64> = digits.parse().ok().filter(|value: &f64| value.is_finite());
            return value.map(ExprToken::Float).ok_or_else(|| self.fault(start, format!("'{digits}' is not a number")));
        }
        i64::from_str_radix(&digits, radix)
            .map(ExprToken::Int)
            .map_err(|_| self.fault(start, format!("'{digits}' is not a whole number of 64 bits")))
    }

    fn digits(&mut self, radix: u32) -> String {
        let mut digits = String::new();
        while let Some(c) = self.peek(0).filter(|&c| c == '_' || c.is_digit(radix)) {
            if c != '_' {
                digits.push(c);
            }
            self.position += 1;
        }
        digits
    }

    fn raw(&mut self) -> Result<ExprToken, Error> {
        let start = self.position;
        self.position += 1;
        let mut text = String::new();
        loop {
            let Some(c) = self.peek(0) else {
                self.position = start + 1;
                return Err(self.fault(start, "this text is never closed with `"));
            };
            self.position += 1;
            if c != '`' {
                text.push(c);
            } else if self.peek(0) == Some('`') {
                // A doubled backtick is one backtick.
                self.position += 1;
                text.push('`');
            } else {
                return Ok(ExprToken::Text(text));
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Result<ExprToken, Error> {
        let start = self.position;
        self.position += 1;
        let mut text = String::new();
        loop {
            let Some(c) = self.peek(0) else {
                self.position = start + 1;
                return Err(self.fault(start, format!("this text is never closed with {quote}")));
            };
            self.position += 1;
            match c {
                '\\' => text.push(self.escape()?),
                _ if c == quote => return Ok(ExprToken::Text(text)),
                _ => text.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let start = self.position - 1;
        let c = self.peek(0);
        self.position += 1;
        Ok(match c {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('v') => '\u{b}',
            Some(itself @ ('\\' | '\'' | '"' | '`')) => itself,
            Some('x') => self.code(start, 2, 16)?,
            Some('u') => self.surrogate_pair(start)?,
            Some('U') => self.code(start, 8, 16)?,
            Some('0'..='7') => {
                self.position -= 1;
                self.code(start, 3, 8)?
            }
            Some(other) => {
                return Err(self.fault(start, format!("'\\{other}' is not an escape; write '\\\\' for a backslash")));
            }
            None => return Err(self.fault(start, "the text ends in a backslash")),
        })
    }

    fn code(&mut self, start: usize, digits: usize, radix: u32) -> Result<char, Error> {
        let code = self.number_of(start, digits, radix)?;
        char::from_u32(code).ok_or_else(|| self.fault(start, "this escape is not a character"))
    }

    /// Reads `\uXXXX`, where two of them may form one character.
    fn surrogate_pair(&mut self, start: usize) -> Result<char, Error> {
        let first = self.number_of(start, 4, 16)?;
        if (0xd800..0xdc00).contains(&first) && self.looking_at("\\u") {
            self.position += 2;
            let second = self.number_of(start, 4, 16)?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return char::from_u32(code).ok_or_else(|| self.fault(start, "this escape is not a character"));
            }
        }
        char::from_u32(first).ok_or_else(|| self.fault(start, "this escape is half a character"))
    }

    fn number_of(&mut self, start: usize, digits: usize, radix: u32) -> Result<u32, Error> {
        let mut code = 0;
        for _ in 0..digits {
            let digit = self.peek(0).and_then(|c| c.to_digit(radix));
            let digit = digit.ok_or_else(|| self.fault(start, format!("this escape needs {digits} digits")))?;
            code = code * radix + digit;
            self.position += 1;
        }
        Ok(code)
    }
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}
