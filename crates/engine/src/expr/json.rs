//! Converts values to JSON text. It never writes more than a limit: the size of a value's text is not bounded by the
//! size of the value in memory, because parts of it may be shared.

use super::{Value, number};

/// Formatting options of JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Escape `<`, `>` and `&` as `\u003c`, `\u003e`, `\u0026`.
    pub(crate) html: bool,
    /// Spaces per level; `None` writes everything on one line.
    pub(crate) indent: Option<usize>,
}

/// Why a value cannot be written as JSON.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JsonRefusal {
    /// The text would be longer than allowed.
    TooLong,
    /// JSON cannot represent this number.
    NotANumber(f64),
}

impl Style {
    pub(crate) const COMPACT: Self = Self { html: true, indent: None };
    pub(crate) const PRETTY: Self = Self { html: true, indent: Some(2) };
    pub(crate) const RAW: Self = Self { html: false, indent: None };

    /// Writes the whole text, whatever its length, with `null` for what JSON cannot represent.
    pub(crate) fn write(self, value: &Value) -> String {
        let mut writer = Writer { style: self, text: String::new(), limit: usize::MAX, strict: false };
        writer.value(value, 0).expect("a lenient writer without a limit has nothing to refuse");
        writer.text
    }

    /// Writes the text, unless it is longer than `limit` bytes or JSON cannot represent it.
    pub(crate) fn write_within(self, value: &Value, limit: usize) -> Result<String, JsonRefusal> {
        let mut writer = Writer { style: self, text: String::new(), limit, strict: true };
        writer.value(value, 0)?;
        Ok(writer.text)
    }
}

struct Writer {
    style: Style,
    text: String,
    limit: usize,
    strict: bool,
}

impl Writer {
    fn value(&mut self, value: &Value, level: usize) -> Result<(), JsonRefusal> {
        if self.text.len() > self.limit {
            return Err(JsonRefusal::TooLong);
        }
        match value {
            Value::Nil => self.text.push_str("null"),
            Value::Bool(value) => self.text.push_str(if *value { "true" } else { "false" }),
            Value::Int(value) => self.text.push_str(&value.to_string()),
            Value::Float(value) => match number::json(*value) {
                Some(text) => self.text.push_str(&text),
                None if self.strict => return Err(JsonRefusal::NotANumber(*value)),
                None => self.text.push_str("null"),
            },
            Value::Str(text) => self.string(text)?,
            Value::List(items) => {
                self.text.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.separate(index, level + 1);
                    self.value(item, level + 1)?;
                }
                self.close(items.is_empty(), level, ']');
            }
            Value::Map(entries) => {
                self.text.push('{');
                for (index, (key, item)) in entries.iter().enumerate() {
                    self.separate(index, level + 1);
                    self.string(key)?;
                    self.text.push(':');
                    if self.style.indent.is_some() {
                        self.text.push(' ');
                    }
                    self.value(item, level + 1)?;
                }
                self.close(entries.is_empty(), level, '}');
            }
            Value::Date(moment) => self.string(&moment.rfc3339())?,
            Value::Duration(length) => self.text.push_str(&length.as_nanos().to_string()),
        }
        Ok(())
    }

    fn separate(&mut self, index: usize, level: usize) {
        if index > 0 {
            self.text.push(',');
        }
        self.line(level);
    }

    fn close(&mut self, empty: bool, level: usize, bracket: char) {
        if !empty {
            self.line(level);
        }
        self.text.push(bracket);
    }

    fn line(&mut self, level: usize) {
        if let Some(indent) = self.style.indent {
            self.text.push('\n');
            self.text.extend(std::iter::repeat_n(' ', indent * level));
        }
    }

    fn string(&mut self, text: &str) -> Result<(), JsonRefusal> {
        if text.len() > self.limit.saturating_sub(self.text.len()) {
            return Err(JsonRefusal::TooLong);
        }
        quote(text, self.style.html, &mut self.text);
        Ok(())
    }
}

fn quote(text: &str, html: bool, into: &mut String) {
    into.push('"');
    let mut rest = text;
    // Runs without anything to escape are copied whole; 0xe2 starts the two separators below.
    let special = |byte: u8| matches!(byte, 0..0x20 | b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2);
    while let Some(at) = rest.bytes().position(special) {
        let (plain, after) = rest.split_at(at);
        into.push_str(plain);
        let mut characters = after.chars();
        let Some(c) = characters.next() else { break };
        rest = characters.as_str();
        match c {
            '"' => into.push_str("\\\""),
            '\\' => into.push_str("\\\\"),
            '\n' => into.push_str("\\n"),
            '\r' => into.push_str("\\r"),
            '\t' => into.push_str("\\t"),
            '\u{8}' => into.push_str("\\b"),
            '\u{c}' => into.push_str("\\f"),
            '<' | '>' | '&' if html => into.push_str(&format!("\\u{:04x}", u32::from(c))),
            '\0'..'\u{20}' | '\u{2028}' | '\u{2029}' => into.push_str(&format!("\\u{:04x}", u32::from(c))),
            other => into.push(other),
        }
    }
    into.push_str(rest);
    into.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        serde_json::from_str::<serde_json::Value>(text).unwrap().into()
    }

    #[test]
    fn compact_json_sorts_keys_and_escapes_markup() {
        let written = value(r#"{"b":[1,2.5,1e21,null,true],"a":"<x> & \"y\"\n\u2028"}"#).to_json();
        assert_eq!(written, r#"{"a":"\u003cx\u003e \u0026 \"y\"\n\u2028","b":[1,2.5,1e+21,null,true]}"#);
    }

    #[test]
    fn pretty_json_indents_by_two_and_keeps_empty_brackets_closed() {
        let written = Style::PRETTY.write(&value(r#"{"a":{"b":[1]},"c":[],"d":{}}"#));
        assert_eq!(written, "{\n  \"a\": {\n    \"b\": [\n      1\n    ]\n  },\n  \"c\": [],\n  \"d\": {}\n}");
    }

    #[test]
    fn raw_json_keeps_markup() {
        assert_eq!(Style::RAW.write(&value(r#""<&>""#)), r#""<&>""#);
    }

    #[test]
    fn a_shared_value_is_refused_when_its_text_is_too_long() {
        let mut shared = Value::from("x".repeat(10));
        for _ in 0..40 {
            shared = Value::list(vec![shared.clone(), shared]);
        }
        assert_eq!(Style::COMPACT.write_within(&shared, 1_000), Err(JsonRefusal::TooLong));
    }

    #[test]
    fn infinity_is_refused_by_name() {
        let refused = Style::COMPACT.write_within(&Value::Float(f64::INFINITY), 100);
        assert_eq!(refused, Err(JsonRefusal::NotANumber(f64::INFINITY)));
    }
}
