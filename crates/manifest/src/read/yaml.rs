//! Scans YAML with the event parser, under a budget, and converts the parser's marks into exact byte ranges of the
//! text. The composer does all checks.

use saphyr_parser::{Event as Raw, Parser, ScalarStyle, Tag as RawTag};

use super::compose::{Composer, Stop, range};
use super::event::{Event, Style, Tag};
use super::input::{Budget, BudgetedInput, Excess};
use super::syntax;
use super::tree::number;

/// Sends the events of all documents.
pub(super) fn scan(composer: &mut Composer<'_>) -> Result<(), Stop> {
    let source = composer.source;
    let text = source.text();
    let offsets = Offsets::new(text);
    let budget = Budget::new(composer.limits);
    let mut parser = Parser::new(BudgetedInput::new(text, &budget));
    while let Some(result) = parser.next_event() {
        if let Some((excess, character)) = budget.excess() {
            let place = offsets.byte(budget.margin.character(character));
            return Err(match excess {
                Excess::Scalar => {
                    let what = if is_blank_run(&text[place..]) { "a run of blank lines" } else { "a value" };
                    let message = format!("{what} is longer than {} bytes", composer.limits.scalar);
                    composer.limit(message, "large data belongs into a file or an artifact", range(place, place))
                }
                Excess::ReadAhead => {
                    let message = format!(
                        "more than {} parts in one bracketed collection or directive",
                        composer.limits.read_ahead
                    );
                    composer.limit(message, "write it as plain JSON, or without brackets", range(place, place))
                }
            });
        }
        budget.event_seen();
        let (raw, span) = match result {
            Ok(event) => event,
            Err(error) => {
                let place = offsets.byte(budget.margin.character(error.marker().index()));
                composer.problems.push(syntax::problem(source, composer.limits, error.info(), place));
                return Err(Stop);
            }
        };
        let start = offsets.byte(budget.margin.character(span.start.index()));
        let end = offsets.byte(budget.margin.character(span.end.index())).max(start);
        if let Some((event, start, end)) = translate(text, raw, start, end) {
            composer.event(event, start, end)?;
        }
    }
    Ok(())
}

/// Reports whether the text is a run of blank lines, which count towards the token before them.
fn is_blank_run(text: &str) -> bool {
    const ENOUGH: usize = 100_000;
    let after = text.split_once('\n').map_or("", |(_, after)| after);
    after.chars().take(ENOUGH).all(char::is_whitespace) && !after.is_empty()
}

fn translate<'a>(text: &str, raw: Raw<'a>, start: usize, end: usize) -> Option<(Event<'a>, usize, usize)> {
    let content = match &raw {
        Raw::MappingStart(anchor, tag) | Raw::SequenceStart(anchor, tag) | Raw::Scalar(_, _, anchor, tag)
            if *anchor != 0 || tag.is_some() =>
        {
            skip_properties(text, start)
        }
        _ => start,
    };
    Some(match raw {
        Raw::Nothing | Raw::StreamStart | Raw::StreamEnd => return None,
        Raw::DocumentStart(_) => (Event::DocumentStart, start, end),
        Raw::DocumentEnd => (Event::DocumentEnd, start, end),
        Raw::Alias(anchor) => (Event::Alias(anchor), start, end),
        Raw::MappingStart(anchor, tag) => (Event::MapStart(anchor, tag_of(tag.as_deref())), content, content + 1),
        Raw::SequenceStart(anchor, tag) => {
            let start = dash_before(text, content);
            (Event::ListStart(anchor, tag_of(tag.as_deref())), start, start + 1)
        }
        Raw::SequenceEnd | Raw::MappingEnd => {
            let bracket = end > start && matches!(text.as_bytes().get(start), Some(b']' | b'}'));
            (Event::End(bracket.then_some(start + 1)), start, end)
        }
        Raw::Scalar(value, style, anchor, tag) => {
            let end = match style {
                ScalarStyle::Plain if value.is_empty() => content,
                ScalarStyle::Plain => end,
                ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => end_of_quote(text, content, end),
                ScalarStyle::Literal | ScalarStyle::Folded => content + text[content.min(end)..end].trim_end().len(),
            };
            let untyped = style == ScalarStyle::Plain && !tag.as_deref().is_some_and(is_text_by_force);
            let style = if untyped { Style::Plain } else { Style::Text };
            (Event::Scalar(value, style, anchor, tag_of(tag.as_deref())), content, end)
        }
    })
}

/// Reports whether the tag is `!`, which forces text.
fn is_text_by_force(tag: &RawTag) -> bool {
    tag.handle.is_empty() && tag.suffix == "!"
}

fn tag_of(tag: Option<&RawTag>) -> Tag {
    let Some(tag) = tag else { return Tag::None };
    if is_text_by_force(tag) {
        return Tag::None;
    }
    let name = format!("{}{}", tag.handle, tag.suffix);
    match name.strip_prefix("tag:yaml.org,2002:") {
        Some("str" | "timestamp") => Tag::Text,
        Some("int") => Tag::Integer,
        Some("float") => Tag::Float,
        Some("bool") => Tag::Bool,
        Some("null") => Tag::Null,
        Some("map") => Tag::Map,
        Some("seq") => Tag::List,
        Some("merge") => Tag::Merge,
        Some(other) => Tag::Other(format!("!!{other}")),
        None => Tag::Other(name),
    }
}

/// Skips anchor and tag: the parser's mark is that of the anchor or tag, the value follows them.
fn skip_properties(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    let mut last = start;
    loop {
        match bytes.get(at) {
            Some(b'&' | b'!') => {
                while bytes.get(at).is_some_and(|byte| {
                    !matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b'[' | b']' | b'{' | b'}')
                }) {
                    at += 1;
                }
                last = at;
            }
            Some(b' ' | b'\t' | b'\n' | b'\r') if at > start => at += 1,
            Some(b'#') if at > start => at += text[at..].find('\n').unwrap_or(text.len() - at),
            Some(_) => return at,
            None => return last,
        }
    }
}

/// Finds the dash of a list. A list that is not indented below its key is marked at its first item.
fn dash_before(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let at_dash = bytes.get(start) == Some(&b'-') && bytes.get(start + 1).is_none_or(u8::is_ascii_whitespace);
    if at_dash || bytes.get(start) == Some(&b'[') {
        return start;
    }
    let before = text[..start].trim_end_matches([' ', '\t']);
    if before.ends_with('-') { before.len() - 1 } else { start }
}

/// Finds the end of a quoted scalar. The parser's mark includes blanks and a comment after the closing quote.
fn end_of_quote(text: &str, start: usize, end: usize) -> usize {
    let bytes = text.as_bytes();
    let Some(&quote) = bytes.get(start) else { return end };
    let mut at = start + 1;
    while at < end {
        match bytes[at] {
            b'\\' if quote == b'"' => at += 2,
            byte if byte == quote && quote == b'\'' && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    end
}

/// Converts character offsets to byte offsets: the parser counts characters, everything else counts bytes.
struct Offsets<'a> {
    text: &'a str,
    /// Byte offset of every `STRIDE`th character; empty for ASCII text.
    marks: Vec<u32>,
}

impl<'a> Offsets<'a> {
    const STRIDE: usize = 128;

    fn new(text: &'a str) -> Self {
        let marks = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices().step_by(Self::STRIDE).map(|(byte, _)| number(byte)).collect()
        };
        Self { text, marks }
    }

    fn byte(&self, character: usize) -> usize {
        if self.marks.is_empty() {
            return character.min(self.text.len());
        }
        let Some(&mark) = self.marks.get(character / Self::STRIDE) else {
            return self.text.len();
        };
        let mark = mark as usize;
        let rest = self.text[mark..].char_indices().nth(character % Self::STRIDE);
        rest.map_or(self.text.len(), |(byte, _)| mark + byte)
    }
}
