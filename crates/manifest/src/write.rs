//! Writes values as YAML, in block style. The output is read back as the same value by YAML 1.1 and 1.2 readers alike:
//! text that either could misread is quoted.

use std::fmt::Write as _;

use serde_json::{Number, Value};

use crate::number_text;

/// YAML allows keys without `?` up to 1024 characters.
const LONG_KEY: usize = 1000;

/// Words that some reader does not treat as text, in any case.
const WORDS: [&str; 11] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"];

/// Writes the value as a YAML document, ended by a line break. Keys keep the order of the map. Numbers have the form
/// JSON gives them, so an integral float is written as an integer.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => block(&mut out, value, 0, true),
        Value::Array(list) if !list.is_empty() => block(&mut out, value, 0, true),
        _ => {
            scalar(&mut out, value, 0);
            out.push('\n');
        }
    }
    out
}

/// Writes a collection with entries. `inline`: the first line is already started.
fn block(out: &mut String, value: &Value, indent: usize, inline: bool) {
    let mut inline = inline;
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                start_line(out, indent, &mut inline);
                let long = key.chars().count() > LONG_KEY;
                if long {
                    out.push_str("? ");
                }
                text(out, key);
                if long {
                    out.push('\n');
                    out.push_str(&" ".repeat(indent));
                }
                out.push(':');
                entry(out, value, indent, false);
            }
        }
        Value::Array(list) => {
            for value in list {
                start_line(out, indent, &mut inline);
                out.push('-');
                entry(out, value, indent, true);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            unreachable!("only collections are blocks")
        }
    }
}

fn start_line(out: &mut String, indent: usize, inline: &mut bool) {
    if !std::mem::take(inline) {
        out.push_str(&" ".repeat(indent));
    }
}

/// Writes what follows a `key:` or a `-`, up to the end of its last line.
fn entry(out: &mut String, value: &Value, indent: usize, item: bool) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push(if item { ' ' } else { '\n' });
            block(out, value, indent + 2, item);
        }
        Value::Array(list) if !list.is_empty() => {
            out.push(if item { ' ' } else { '\n' });
            block(out, value, if item { indent + 2 } else { indent }, item);
        }
        _ => {
            out.push(' ');
            scalar(out, value, indent + 2);
            out.push('\n');
        }
    }
}

fn scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number_for_all(number)),
        Value::String(string) if is_block_text(string) => block_text(out, string, indent.max(2)),
        Value::String(string) => text(out, string),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// Formats a number for all readers: YAML 1.1 reads a number with an exponent as text unless it has a point.
fn number_for_all(number: &Number) -> String {
    let text = number_text(number);
    match text.split_once('e') {
        Some((digits, power)) if !digits.contains('.') => format!("{digits}.0e{power}"),
        _ => text,
    }
}

fn text(out: &mut String, text: &str) {
    if is_plain_text(text) {
        out.push_str(text);
    } else if text.chars().all(is_printable) {
        let _ = write!(out, "'{}'", text.replace('\'', "''"));
    } else {
        double_quoted(out, text);
    }
}

fn is_plain_text(text: &str) -> bool {
    let allowed = |letter: char| {
        letter.is_ascii_alphanumeric()
            || matches!(letter, '_' | '-' | '.' | '/' | '@' | '=' | '+' | ' ' | ':' | '(' | ')' | ',')
    };
    let starts = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || matches!(letter, '_' | '/'));
    starts
        && text.chars().all(allowed)
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Reports whether a literal block preserves every character of a multi-line text: no line of only blanks, nothing that
/// a reader could treat as a line break, and a first line that shows the indentation.
fn is_block_text(text: &str) -> bool {
    let breaks_only = text.chars().all(|letter| letter == '\n');
    text.contains('\n')
        && !breaks_only
        && !text.starts_with(['\n', ' ', '\t'])
        && text.chars().all(|letter| letter == '\n' || letter == '\t' || is_printable(letter))
        && text.split('\n').all(|line| line.is_empty() || !line.trim().is_empty())
}

fn block_text(out: &mut String, text: &str, indent: usize) {
    let body = text.trim_end_matches('\n');
    let trailing = text.len() - body.len();
    out.push_str(match trailing {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            out.push_str(&" ".repeat(indent));
            out.push_str(line);
        }
    }
    // The caller ends the last line.
    out.push_str(&"\n".repeat(trailing.saturating_sub(1)));
}

fn is_printable(letter: char) -> bool {
    !letter.is_control() && !matches!(letter, '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}')
}

fn double_quoted(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if is_printable(letter) => out.push(letter),
            _ if u32::from(letter) < 0x100 => {
                let _ = write!(out, "\\x{:02X}", u32::from(letter));
            }
            _ => {
                let _ = write!(out, "\\u{:04X}", u32::from(letter));
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_written_as_people_write_manifests() {
        let value = json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "empty": {"list": [], "map": {}, "text": ""},
            "list": ["a", ["b", ["c"]], {"k": 1, "l": [true]}, null],
            "script": "set -e\n\n  echo hi\n",
            "strip": "a\nb",
            "keep": "a\n\n\n",
        });
        let expected = "\
apiVersion: argoproj.io/v1alpha1
empty:
  list: []
  map: {}
  text: ''
keep: |+
  a


list:
- a
- - b
  - - c
- k: 1
  l:
  - true
- null
script: |
  set -e

    echo hi
strip: |-
  a
  b
";
        assert_eq!(to_yaml(&value), expected);
    }

    #[test]
    fn text_that_could_be_misread_is_quoted() {
        for (text, written) in [
            ("plain text/path:8080", "plain text/path:8080"),
            ("yes", "'yes'"),
            ("Y", "'Y'"),
            ("NULL", "'NULL'"),
            ("~", "'~'"),
            ("1", "'1'"),
            ("0o7", "'0o7'"),
            ("12:30", "'12:30'"),
            ("2024-01-01", "'2024-01-01'"),
            ("1e3", "'1e3'"),
            (".5", "'.5'"),
            ("- a", "'- a'"),
            ("a: b", "'a: b'"),
            ("a:", "'a:'"),
            ("a #b", "'a #b'"),
            ("{{x}}", "'{{x}}'"),
            ("<<", "'<<'"),
            ("*a", "'*a'"),
            ("it's", "'it''s'"),
            (" a", "' a'"),
            ("a ", "'a '"),
            ("a\tb", "\"a\\tb\""),
            ("\u{1b}\u{85}\u{2028}\u{feff}", "\"\\x1B\\x85\\u2028\\uFEFF\""),
            ("\n", "\"\\n\""),
            ("a\r\nb", "\"a\\r\\nb\""),
            ("---", "'---'"),
            ("größe", "'größe'"),
        ] {
            assert_eq!(to_yaml(&json!(text)), format!("{written}\n"));
        }
    }

    #[test]
    fn numbers_are_numbers_to_every_reader() {
        assert_eq!(
            to_yaml(&json!([1, -2, 0.5, 1e300, 1.5e-9, u64::MAX])),
            "- 1\n- -2\n- 0.5\n- 1.0e+300\n- 1.5e-9\n- 18446744073709551615\n"
        );
    }
}
