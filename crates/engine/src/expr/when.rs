//! The language of `when`: comparisons of substituted text, where a bare word is a text. A condition is evaluated while
//! it is parsed, so no deep tree is ever built; it never looks at anything but the text and the variables it is given.

use super::{Error, Span, TEXT, Value};

mod compute;
mod operate;
mod token;

use compute::Computer;

/// Resolves a name without quotes.
type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<Value>;

/// Evaluates a condition, reading every unquoted word as a text: `foo == foo`, `{{x}} in (a, b)` after substitution.
/// The empty condition holds.
pub fn evaluate(text: &str) -> Result<bool, Error> {
    decide(text, &|word| Some(Value::from(word)))
}

/// Evaluates a condition, reading unquoted words as variables.
pub fn evaluate_with(text: &str, variables: &dyn Fn(&str) -> Option<Value>) -> Result<bool, Error> {
    decide(text, variables)
}

/// An error inside a condition, before the condition itself is named.
#[derive(Debug)]
struct WhenFault {
    span: Span,
    reason: String,
    /// True if quoting a text would probably help.
    quote: bool,
}

impl WhenFault {
    fn new(span: Span, reason: impl Into<String>) -> Self {
        Self { span, reason: reason.into(), quote: false }
    }

    fn with_quote_hint(mut self) -> Self {
        self.quote = true;
        self
    }
}

fn decide(text: &str, lookup: VariableLookup<'_>) -> Result<bool, Error> {
    if text.is_empty() {
        return Ok(true);
    }
    if text.len() > TEXT {
        let message = format!("Invalid 'when' expression '{}': it is longer than {TEXT} bytes", shorten(text));
        return Err(Error::at(Span::default(), message));
    }
    let value = Computer::new(text, lookup).run().map_err(|fault| {
        let hint = if fault.quote {
            " (hint: put the whole text in quotes, as in 'some/text here' == 'other text')"
        } else {
            ""
        };
        let message = format!("Invalid 'when' expression '{}': {}{hint}", shorten(text), fault.reason);
        Error::at(fault.span, message)
    })?;
    value.as_bool().ok_or_else(|| {
        let got = shorten(&value.to_string());
        let message = format!("Expected boolean evaluation for '{}'. Got {got}", shorten(text));
        Error::at(Span::new(0, text.chars().count()), message)
    })
}

/// Truncates the text for a message.
fn shorten(text: &str) -> String {
    const MAX_SHOWN: usize = 1_000;
    match text.char_indices().nth(MAX_SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
