//! Regular expressions with the semantics the dialects' users know (`\d`, `\w`, `\s`, `\b` are ASCII, brackets do not
//! nest) and a cost: matching is linear in the text, and the cost per byte is known before it starts. It never compiles
//! a pattern that could grow large.

use regex::{Regex, RegexBuilder};

/// A compiled pattern and its cost per byte of text, in evaluation steps.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    regex: Regex,
    cost: u64,
}

/// Size classes of compiled patterns, in bytes, with the cost of matching one byte of text. The work per byte grows
/// with the size, so a large pattern costs more; beyond the last size it is refused. A kibibyte holds about thirty
/// states, so that even the largest admitted pattern has only some thousands.
const SIZES: [(usize, u64); 3] = [(16 * 1024, 2), (64 * 1024, 20), (256 * 1024, 100)];

/// Maximum length of a pattern; nobody could read a longer one.
const MAX_LENGTH: usize = 16 * 1024;

/// Maximum nesting of groups: the parser of patterns recurses.
const MAX_NESTING: u32 = 50;

impl Pattern {
    pub(crate) fn new(source: &str) -> Result<Self, String> {
        if source.len() > MAX_LENGTH {
            return Err(format!("the pattern is longer than {MAX_LENGTH} bytes"));
        }
        let translated = translate(source);
        let mut reason = String::new();
        for (size, cost) in SIZES {
            let built =
                RegexBuilder::new(&translated).size_limit(size).dfa_size_limit(size).nest_limit(MAX_NESTING).build();
            match built {
                Ok(regex) => return Ok(Self { regex, cost }),
                Err(regex::Error::CompiledTooBig(_)) => {
                    reason = format!("the pattern '{}' grows too large when compiled", shorten(source));
                }
                Err(error) => {
                    let text = error.to_string();
                    let last = text.lines().last().unwrap_or_default();
                    let cause = last.strip_prefix("error: ").unwrap_or(last);
                    return Err(format!("the pattern '{}' is not valid: {cause}", shorten(source)));
                }
            }
        }
        Err(reason)
    }

    pub(crate) fn regex(&self) -> &Regex {
        &self.regex
    }

    /// Returns the steps one pass over `text` may cost.
    pub(crate) fn cost(&self, text: &str) -> u64 {
        self.cost * (text.len() as u64 + 1)
    }
}

/// Returns a pattern that matches exactly this text.
pub(crate) fn literal(text: &str) -> String {
    regex::escape(text)
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Translates a pattern to the syntax of the `regex` crate.
fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let mut characters = source.chars().peekable();
    let mut class = false;
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some('d') => out.push_str(if class { "0-9" } else { "[0-9]" }),
                Some('w') => out.push_str(if class { "0-9A-Za-z_" } else { "[0-9A-Za-z_]" }),
                Some('s') => out.push_str(if class { "\\t\\n\\f\\r " } else { "[\\t\\n\\f\\r ]" }),
                Some('D') => out.push_str("[^0-9]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('S') => out.push_str("[^\\t\\n\\f\\r ]"),
                Some('b') if !class => out.push_str("(?-u:\\b)"),
                Some('Q') if !class => {
                    let rest: String = characters.by_ref().collect();
                    let (quoted, after) = rest.split_once("\\E").unwrap_or((&rest, ""));
                    out.push_str(&regex::escape(quoted));
                    out.push_str(&translate(after));
                }
                Some(other) => {
                    out.push('\\');
                    out.push(other);
                }
                None => out.push('\\'),
            },
            '[' if !class => {
                class = true;
                out.push('[');
                if characters.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // A bracket right after the opening one is literal.
                if characters.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            '[' if characters.peek() == Some(&':') => {
                out.push('[');
                for named in characters.by_ref() {
                    out.push(named);
                    if named == ']' {
                        break;
                    }
                }
            }
            '[' => out.push_str("\\["),
            ']' if class => {
                class = false;
                out.push(']');
            }
            '&' | '~' if class => {
                out.push('\\');
                out.push(c);
            }
            '-' if class && characters.peek() == Some(&'-') => out.push_str("\\-"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).unwrap().regex().is_match(text)
    }

    #[test]
    fn classes_are_ascii() {
        assert!(matches(r"^\d+$", "123"));
        assert!(!matches(r"^\d+$", "١٢٣"));
        assert!(!matches(r"^\w+$", "é"));
        assert!(matches(r"^[\d_]+$", "1_2"));
        assert!(matches(r"^[^\s]+$", "a-b"));
        assert!(matches(r"^[\D]$", "x"));
        assert!(matches(r"\bfoo\b", "a foo b"));
        assert!(!matches(r"\bfoo\b", "afoob"));
    }

    #[test]
    fn brackets_do_not_nest() {
        assert!(matches("^[[]$", "["));
        assert!(matches("^[]a]$", "]"));
        assert!(matches("^[a&&b]$", "&"));
        assert!(matches("^[[:alpha:]]+$", "abc"));
        assert!(matches(r"^\Qa.b\E$", "a.b"));
    }

    #[test]
    fn a_bomb_is_refused() {
        assert!(Pattern::new("((a{100}){100}){100}").unwrap_err().contains("too large"));
        assert!(Pattern::new(&"(".repeat(10_000)).is_err());
        assert!(Pattern::new(&"a".repeat(100_000)).unwrap_err().contains("longer"));
        assert!(Pattern::new("(?=x)").is_err());
    }

    #[test]
    fn a_large_pattern_costs_more_per_byte() {
        let small = Pattern::new("a+b").unwrap().cost("text");
        let large = Pattern::new("(ab?c*){300}").unwrap().cost("text");
        assert!(large > small);
    }
}
