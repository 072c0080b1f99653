//! Expands `withSequence`: numbers up or down, printed by a format.

use octoflow_model::{
    argo::{NumberRange, Sequence},
    scalar::IntOrText,
};
use serde_json::Value;

use super::{
    expand::MAX_ITEMS,
    scope::Scope,
    substitute::{Missing, fill},
};

/// Expands a sequence from texts without variables.
pub(super) fn numbered(
    start: Option<String>,
    count: Option<String>,
    end: Option<String>,
    format: Option<&str>,
) -> Result<Vec<Value>, String> {
    let number = |text: Option<String>| text.map(|text| text.trim().parse::<i64>().map_err(|_| text)).transpose();
    let range = range(number(start)?.unwrap_or(0), number(count)?, number(end)?, format.map(str::to_owned))?;
    Ok((0..range.count as usize).filter_map(|index| nth(&range, index)).collect())
}

/// Returns the item at this index of a range.
pub(super) fn nth(range: &NumberRange, index: usize) -> Option<Value> {
    range.get(index).map(|number| Value::String(print(range.format.as_deref(), number)))
}

pub(super) fn range_of(sequence: &Sequence, scope: &Scope<'_>) -> Result<NumberRange, String> {
    let number = |field: &str, text: &Option<IntOrText>| -> Result<Option<i64>, String> {
        let Some(text) = text else { return Ok(None) };
        let text = fill(&text.0, scope, Missing::Refuse).map_err(|error| error.to_string())?;
        let parsed = text.trim().parse().map_err(|_| format!("withSequence.{field} is not a whole number: '{text}'"));
        parsed.map(Some)
    };
    let start = number("start", &sequence.start)?.unwrap_or(0);
    let (count, end) = (number("count", &sequence.count)?, number("end", &sequence.end)?);
    let format = sequence.format.as_deref().map(|format| fill(format, scope, Missing::Refuse)).transpose();
    let format = format.map_err(|error| error.to_string())?;
    let range = range(start, count, end, format.map(Into::into))?;
    range.format.as_deref().map_or(Ok(()), check_format)?;
    Ok(range)
}

fn range(start: i64, count: Option<i64>, end: Option<i64>, format: Option<String>) -> Result<NumberRange, String> {
    let (length, down) = match (count, end) {
        (Some(count), None) => (i128::from(count.max(0)), false),
        (None, Some(end)) => ((i128::from(end) - i128::from(start)).abs() + 1, end < start),
        _ => return Err("withSequence needs either count or end".to_owned()),
    };
    match u32::try_from(length).ok().filter(|count| *count as usize <= MAX_ITEMS) {
        Some(count) => Ok(NumberRange { start, count, down, format }),
        None => Err(format!("withSequence has {length} items; at most {MAX_ITEMS} are allowed")),
    }
}

/// Maximum padding in characters. Numbers have twenty digits at most, and every item pays for its padding.
const WIDEST: usize = 256;

/// Checks a format; fails with the reason.
pub(in crate::dialects::argo) fn check_format(format: &str) -> Result<(), String> {
    let mut width = 0;
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        let spec = &rest[at + 1..];
        let flags = spec.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | ' ')).unwrap_or(spec.len());
        let digits = spec[..flags].trim_start_matches(['-', '+', ' ', '0']);
        width += if digits.is_empty() { 0 } else { digits.parse().unwrap_or(usize::MAX).min(WIDEST + 1) };
        rest = &spec[flags..];
        rest = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
    }
    if width > WIDEST {
        return Err(format!("withSequence.format pads numbers to more than {WIDEST} characters"));
    }
    Ok(())
}

/// Prints a number by a format with one verb (`%d %i %x %X %o %b %s %v`, with zero padding and width), or plainly.
fn print(format: Option<&str>, number: i64) -> String {
    let Some(format) = format.filter(|format| !format.is_empty()) else { return number.to_string() };
    let mut text = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        let spec = &rest[at + 1..];
        let flags = spec.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | ' ')).unwrap_or(spec.len());
        let verb = spec[flags..].chars().next();
        rest = &spec[flags + verb.map_or(0, char::len_utf8)..];
        match verb {
            Some('%') => text.push('%'),
            Some(verb) => text.push_str(&pad(&spec[..flags], &digits(verb, number))),
            None => text.push('%'),
        }
    }
    text.push_str(rest);
    text
}

fn digits(verb: char, number: i64) -> String {
    let magnitude = number.unsigned_abs();
    let body = match verb {
        'x' => format!("{magnitude:x}"),
        'X' => format!("{magnitude:X}"),
        'o' => format!("{magnitude:o}"),
        'b' => format!("{magnitude:b}"),
        _ => magnitude.to_string(),
    };
    if number < 0 { format!("-{body}") } else { body }
}

fn pad(flags: &str, digits: &str) -> String {
    let zero = flags.trim_start_matches(['-', '+', ' ']).starts_with('0');
    let width: usize = flags.trim_start_matches(['-', '+', ' ', '0']).parse().unwrap_or(0);
    let signed = if flags.contains('+') && !digits.starts_with('-') { format!("+{digits}") } else { digits.to_owned() };
    let missing = width.saturating_sub(signed.len());
    if flags.contains('-') {
        format!("{signed}{}", " ".repeat(missing))
    } else if zero {
        let (sign, body) = signed.split_at(usize::from(signed.starts_with(['-', '+'])));
        format!("{sign}{}{body}", "0".repeat(missing))
    } else {
        format!("{}{signed}", " ".repeat(missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_run_up_and_down() {
        let list = |start, count, end| {
            let numbers = range(start, count, end, None)?;
            Ok::<_, String>((0..numbers.count as usize).filter_map(|at| numbers.get(at)).collect::<Vec<_>>())
        };
        assert_eq!(list(0, Some(3), None), Ok(vec![0, 1, 2]));
        assert_eq!(list(101, Some(2), None), Ok(vec![101, 102]));
        assert_eq!(list(52, None, Some(50)), Ok(vec![52, 51, 50]));
        assert_eq!(list(8, None, Some(8)), Ok(vec![8]));
        assert_eq!(list(0, Some(0), None), Ok(vec![]));
        assert!(list(0, Some(1_000_000_000), None).is_err());
        assert!(list(i64::MIN, None, Some(i64::MAX)).is_err());
    }

    #[test]
    fn formats_print_as_printf_would() {
        assert_eq!(print(Some("testuser%02X"), 10), "testuser0A");
        assert_eq!(print(Some("%d-%%"), 7), "7-%");
        assert_eq!(print(Some("%5d|"), -42), "  -42|");
        assert_eq!(print(Some("%05d"), -42), "-0042");
        assert_eq!(print(Some("%-4d|"), 5), "5   |");
        assert_eq!(print(None, 3), "3");
    }

    #[test]
    fn a_format_cannot_ask_for_all_the_memory() {
        for fine in ["", "%d", "%%", "%020x-%5d", "%256d", "%", "%5", "100%"] {
            assert_eq!(check_format(fine), Ok(()), "{fine}");
        }
        for wide in ["%257d", "%999999999d", "%99999999999999999999999d", "%0200d%0200d"] {
            assert!(check_format(wide).is_err(), "{wide}");
        }
    }
}
