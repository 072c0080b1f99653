//! Durations on the command line: `60s`, `1h30m`, `7d`, `90` (seconds). Parsing only; `output::clock` formats them.

use std::time::Duration;

/// Parses a duration, for clap.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write it like 30s, 5m, 1h30m or 7d");
    if text.is_empty() {
        return Err(wrong());
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(rest.len());
        let seconds = match &rest[..letters] {
            "ms" => 0.001,
            "s" => 1.0,
            // A bare number is seconds, but only on its own.
            "" if total.is_zero() => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => return Err(wrong()),
        };
        rest = &rest[letters..];
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
        total = total.checked_add(part).ok_or_else(wrong)?;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let table = [
            ("60s", 60.0),
            ("1h30m", 5400.0),
            ("7d", 604_800.0),
            ("90", 90.0),
            ("250ms", 0.25),
            ("1.5m", 90.0),
            ("0s", 0.0),
        ];
        for (text, seconds) in table {
            assert_eq!(parse(text).map(|span| span.as_secs_f64()), Ok(seconds), "{text}");
        }
    }

    #[test]
    fn a_wrong_duration_says_how_to_write_one() {
        for text in ["", "s", "5x", "-3s", "1h30", "1e9999", "99999999999999999999w"] {
            assert!(parse(text).unwrap_err().contains("write it like"), "{text}");
        }
    }
}
