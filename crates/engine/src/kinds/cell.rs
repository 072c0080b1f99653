//! Formats table cells: texts, durations, and placeholders for missing values.

use std::time::Duration;

use octoflow_model::Time;
use serde_json::{Value, json};

/// Placeholder for a missing value.
pub(crate) const NONE: &str = "<none>";
pub(crate) const UNKNOWN: &str = "<unknown>";

/// Renders the default row.
pub(super) fn name_and_age(object: &Value, now: Time) -> Vec<Value> {
    let metadata = &object["metadata"];
    vec![metadata["name"].clone(), json!(since(&metadata["creationTimestamp"], now))]
}

/// Returns the text, or the placeholder for a missing value.
pub(crate) fn text(value: &Value) -> Value {
    match value {
        Value::Null => json!(NONE),
        Value::String(text) if text.is_empty() => json!(NONE),
        Value::String(text) => json!(short(text)),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => json!(value.to_string()),
    }
}

pub(crate) fn joined(values: &[Value], between: &str) -> String {
    values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(between)
}

/// Returns the text as one line, truncated.
pub(crate) fn short(text: &str) -> String {
    const SHOWN: usize = 200;
    let line: String = text.chars().take(SHOWN).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if text.chars().nth(SHOWN).is_some() { format!("{line}…") } else { line }
}

pub(crate) fn since(time: &Value, now: Time) -> String {
    time.as_str().and_then(Time::parse).map_or_else(|| UNKNOWN.to_owned(), |time| human(now.since(time)))
}

/// Formats a duration as kubectl does: the longer, the less exact.
pub(crate) fn human(span: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const YEAR: u64 = 365 * DAY;
    let seconds = span.as_secs();
    let two = |big: u64, big_word: &str, small: u64, small_word: &str| match seconds % big / small {
        0 => format!("{}{big_word}", seconds / big),
        rest => format!("{}{big_word}{rest}{small_word}", seconds / big),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_get_less_exact_as_they_get_longer() {
        let said: Vec<String> = [5, 119, 120, 125, 700, 11_000, 50_000, 200_000, 800_000, 70_000_000]
            .map(|seconds| human(Duration::from_secs(seconds)))
            .to_vec();
        assert_eq!(said, ["5s", "119s", "2m", "2m5s", "11m", "3h3m", "13h", "2d7h", "9d", "2y80d"]);
    }
}
