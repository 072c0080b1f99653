//! Scans strict JSON straight into the composer: no tokens buffered, surrogate pairs supported. A text that is not
//! strict JSON is left to the YAML scanner; nothing is reported here.

use std::borrow::Cow;

use super::compose::{Composer, Stop};
use super::event::{Event, Style, Tag};

pub(super) enum Failure {
    NotJson,
    /// The composer aborted.
    Stopped(Stop),
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        Self::Stopped(stop)
    }
}

pub(super) fn looks_like(text: &str) -> bool {
    text.trim_start_matches(BLANKS).starts_with(['{', '['])
}

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Sends the events of one JSON document.
pub(super) fn scan(text: &str, composer: &mut Composer<'_>) -> Result<(), Failure> {
    let mut scanner = Scanner { text, bytes: text.as_bytes(), at: 0 };
    scanner.blanks();
    composer.event(Event::DocumentStart, scanner.at, scanner.at)?;
    scanner.root(composer)?;
    scanner.blanks();
    if scanner.at != text.len() {
        return Err(Failure::NotJson);
    }
    composer.event(Event::DocumentEnd, scanner.at, scanner.at)?;
    Ok(())
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Scans the root value. The stack of open brackets is a vector, bounded by the composer's depth limit.
    fn root(&mut self, composer: &mut Composer<'_>) -> Result<(), Failure> {
        let mut open: Vec<u8> = Vec::new();
        loop {
            self.blanks();
            let start = self.at;
            match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    self.at += 1;
                    let event =
                        if bracket == b'{' { Event::MapStart(0, Tag::None) } else { Event::ListStart(0, Tag::None) };
                    composer.event(event, start, self.at)?;
                    self.blanks();
                    let close = if bracket == b'{' { b'}' } else { b']' };
                    if self.peek() != Some(close) {
                        open.push(close);
                        self.key(close, composer)?;
                        continue;
                    }
                    self.at += 1;
                    composer.event(Event::End(Some(self.at)), self.at - 1, self.at)?;
                }
                Some(_) => self.scalar(composer)?,
                None => return Err(Failure::NotJson),
            }
            if self.after_value(&mut open, composer)? {
                return Ok(());
            }
        }
    }

    /// Closes collections that end here; returns true at the end of the root.
    fn after_value(&mut self, open: &mut Vec<u8>, composer: &mut Composer<'_>) -> Result<bool, Failure> {
        loop {
            let Some(&close) = open.last() else { return Ok(true) };
            self.blanks();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.key(close, composer)?;
                    return Ok(false);
                }
                Some(byte) if byte == close => {
                    self.at += 1;
                    open.pop();
                    composer.event(Event::End(Some(self.at)), self.at - 1, self.at)?;
                }
                _ => return Err(Failure::NotJson),
            }
        }
    }

    fn key(&mut self, close: u8, composer: &mut Composer<'_>) -> Result<(), Failure> {
        if close != b'}' {
            return Ok(());
        }
        self.blanks();
        if self.peek() != Some(b'"') {
            return Err(Failure::NotJson);
        }
        self.string(composer)?;
        self.blanks();
        if self.peek() != Some(b':') {
            return Err(Failure::NotJson);
        }
        self.at += 1;
        Ok(())
    }

    fn scalar(&mut self, composer: &mut Composer<'_>) -> Result<(), Failure> {
        if self.peek() == Some(b'"') {
            return self.string(composer);
        }
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')) {
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        let style = match word {
            "true" | "false" | "null" => Style::Plain,
            _ if is_number(word.as_bytes()) => Style::Number,
            _ => return Err(Failure::NotJson),
        };
        composer.event(Event::Scalar(Cow::Borrowed(word), style, 0, Tag::None), start, self.at)?;
        Ok(())
    }

    fn string(&mut self, composer: &mut Composer<'_>) -> Result<(), Failure> {
        let start = self.at;
        self.at += 1;
        let text = self.string_content()?;
        composer.event(Event::Scalar(text, Style::Text, 0, Tag::None), start, self.at)?;
        Ok(())
    }

    fn string_content(&mut self) -> Result<Cow<'a, str>, Failure> {
        let mut start = self.at;
        let mut unescaped = String::new();
        loop {
            match self.peek() {
                Some(b'"') => {
                    let tail = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(if unescaped.is_empty() { Cow::Borrowed(tail) } else { Cow::Owned(unescaped + tail) });
                }
                Some(b'\\') => {
                    unescaped.push_str(&self.text[start..self.at]);
                    unescaped.push(self.escape().ok_or(Failure::NotJson)?);
                    start = self.at;
                }
                Some(0..=0x1F) | None => return Err(Failure::NotJson),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let letter = *self.bytes.get(self.at + 1)?;
        self.at += 2;
        Some(match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hex()?;
                if !(0xD800..0xDC00).contains(&first) {
                    return char::from_u32(first);
                }
                if !self.bytes[self.at..].starts_with(b"\\u") {
                    return None;
                }
                self.at += 2;
                let second = self.hex()?.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
                return char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + second);
            }
            _ => return None,
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.bytes.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

/// Matches `-? ( 0 | [1-9] digits ) ( . digits )? ( [eE] [-+]? digits )?`
fn is_number(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(text);
    if whole == 0 || (whole > 1 && text[0] == b'0') {
        return false;
    }
    let mut text = &text[whole..];
    if let [b'.', rest @ ..] = text {
        let count = digits(rest);
        if count == 0 {
            return false;
        }
        text = &rest[count..];
    }
    if let [b'e' | b'E', rest @ ..] = text {
        let rest = rest.strip_prefix(b"+").or_else(|| rest.strip_prefix(b"-")).unwrap_or(rest);
        return !rest.is_empty() && digits(rest) == rest.len();
    }
    text.is_empty()
}
