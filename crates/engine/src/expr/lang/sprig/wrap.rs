//! `sprig.*` functions that wrap or truncate long text.

use super::coerce;
use crate::expr::Value;
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::builtin::Function;
use crate::expr::lang::work::{CallResult, EvalWork};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("wrap", 2, 2, |a, work| lines(a.text(1)?, coerce::int(a.any(0)), "\n", false, work)),
    Function::new("wrapWith", 3, 3, |a, work| lines(a.text(2)?, coerce::int(a.any(0)), a.text(1)?, true, work)),
    Function::new("abbrevboth", 3, 3, both_ends),
];

/// Wraps a text into lines of at most `width` characters, broken at blanks; longer words stay whole, or are cut with
/// `cut`.
fn lines(text: &str, width: i64, glue: &str, cut: bool, work: &mut EvalWork) -> CallResult {
    let width = usize::try_from(width).unwrap_or(1).max(1);
    let letters: Vec<char> = text.chars().collect();
    // Every line has at least one character of the text.
    work.claim_list(letters.len())?;
    work.claim(text.len().saturating_add(glue.len().saturating_mul(letters.len() / width + 1)))?;
    let mut wrapped = String::new();
    let mut at = 0;
    while letters.len() - at > width {
        if letters[at] == ' ' {
            at += 1;
            continue;
        }
        let window = &letters[at..(at + width + 1).min(letters.len())];
        let (end, next) = match window.iter().rposition(|c| *c == ' ') {
            Some(blank) => (at + blank, at + blank + 1),
            None if cut => (at + width, at + width),
            None => match letters[at + width..].iter().position(|c| *c == ' ') {
                Some(blank) => (at + width + blank, at + width + blank + 1),
                None => break,
            },
        };
        work.claim(glue.len())?;
        wrapped.extend(&letters[at..end]);
        wrapped.push_str(glue);
        at = next;
    }
    wrapped.extend(&letters[at..]);
    Ok(Value::from(wrapped))
}

/// Implements `abbrevboth(from, width, text)`: dots replace the text before `from`, and the end.
fn both_ends(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let (from, width, text) = (coerce::int(a.any(0)), coerce::int(a.any(1)), a.text(2)?);
    if width < 4 || from > 0 && width < 7 {
        return Ok(Value::from(text));
    }
    let letters: Vec<char> = text.chars().collect();
    work.claim_list(letters.len())?;
    let width = usize::try_from(width).unwrap_or(usize::MAX);
    if letters.len() <= width {
        return Ok(Value::from(text));
    }
    let shown = width - 3;
    let from = usize::try_from(from).unwrap_or(0).min(letters.len() - shown);
    let text = |part: &[char]| part.iter().collect::<String>();
    Ok(Value::from(if from <= 4 {
        format!("{}...", text(&letters[..shown]))
    } else if from + shown < letters.len() {
        format!("...{}...", text(&letters[from..from + shown - 3]))
    } else {
        format!("...{}", text(&letters[letters.len() - shown..]))
    }))
}
