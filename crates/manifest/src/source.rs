//! The named text of a manifest, and conversion between offsets, lines and columns. Holds text only; it never reads a
//! file.

use std::fmt;

/// Lines are counted per block of this many bytes, so that a text of nothing but line breaks costs
/// no more than any other.
const BLOCK: usize = 4096;

/// A range of a source. Lines and columns count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub line: usize,
    pub column: usize,
    /// Length in bytes, possibly zero, possibly over several lines.
    pub length: usize,
    /// Offset in bytes, a byte order mark not counted.
    pub offset: usize,
}

/// A named text.
pub struct Source {
    name: String,
    text: String,
    /// Number of line breaks before each block.
    breaks: Vec<usize>,
    lines: usize,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let mut total = 0;
        let mut breaks = Vec::with_capacity(text.len() / BLOCK + 1);
        for block in text.as_bytes().chunks(BLOCK) {
            breaks.push(total);
            total += count_breaks(block);
        }
        Self { name: name.into(), text, breaks, lines: total + 1 }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn line_count(&self) -> usize {
        self.lines
    }

    /// Returns the line with this number, counted from 1, without its line break. Empty past the end.
    pub fn line(&self, number: usize) -> &str {
        if number == 0 || number > self.lines {
            return "";
        }
        let start = self.line_start(number);
        let rest = &self.text[start..];
        let line = rest.split('\n').next().unwrap_or_default();
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// Returns the span of `length` bytes from `offset` on. Offsets past the end mean the end.
    pub fn span(&self, offset: usize, length: usize) -> Span {
        let offset = self.floor(offset);
        let length = self.floor(offset + length) - offset;
        let block = offset / BLOCK;
        let before = self.breaks.get(block).copied().unwrap_or(self.lines - 1);
        let bytes = self.text.as_bytes();
        let line = before + count_breaks(&bytes[(block * BLOCK).min(offset)..offset]) + 1;
        let start = self.text[..offset].rfind('\n').map_or(0, |at| at + 1);
        Span { line, column: self.text[start..offset].chars().count() + 1, length, offset }
    }

    /// Returns the text of a span.
    pub fn slice(&self, span: Span) -> &str {
        let start = self.floor(span.offset);
        &self.text[start..self.floor(start + span.length)]
    }

    fn line_start(&self, number: usize) -> usize {
        let passed = number - 1;
        if passed == 0 {
            return 0;
        }
        let block = self.breaks.partition_point(|&before| before < passed) - 1;
        let start = block * BLOCK;
        let missing = passed - self.breaks[block];
        let mut breaks = self.text.bytes().enumerate().skip(start).filter(|(_, byte)| *byte == b'\n');
        let (at, _) = breaks.nth(missing - 1).expect("the line was counted when the source was made");
        at + 1
    }

    fn floor(&self, offset: usize) -> usize {
        self.text.floor_char_boundary(offset)
    }
}

fn count_breaks(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

impl fmt::Debug for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Source({}, {} bytes)", self.name, self.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_found_again_by_number_and_by_offset() {
        let text: String = (1..=3000).map(|number| format!("line {number}\r\n")).collect();
        let source = Source::new("s", text.clone());
        assert_eq!(source.line_count(), 3001);
        for number in 1..=3000 {
            let line = format!("line {number}");
            assert_eq!(source.line(number), line);
            let offset = text.find(&format!("{line}\r")).unwrap();
            let span = source.span(offset + 5, 3);
            assert_eq!((span.line, span.column, source.slice(span)), (number, 6, &text[offset + 5..offset + 8]));
        }
        assert_eq!((source.line(0), source.line(3001), source.line(3002)), ("", "", ""));
    }

    #[test]
    fn columns_count_characters_and_spans_stay_inside_the_text() {
        let source = Source::new("s", "a\näö€x");
        let span = source.span(2 + 2 + 2 + 3, 99);
        assert_eq!((span.line, span.column, span.length), (2, 4, 1));
        let end = source.span(1000, 5);
        assert_eq!((end.line, end.column, end.length), (2, 5, 0));
        assert_eq!(source.span(3, 1).offset, 2, "an offset inside a character means the character");
    }
}
