//! Parses durations as manifests write them: a bare number of seconds, or units as in `1h2m3.5s`.
//! The meaning of a missing duration is the caller's.

use std::time::Duration;

/// Parses a duration; `None` for an unknown unit, a negative value, or more than can be represented.
pub fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().map(Duration::from_secs);
    }
    units(text)
}

/// Parses a duration with units only, for fields that do not allow bare numbers.
pub fn units(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    rest = rest.strip_prefix('+').unwrap_or(rest);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut total: u128 = 0;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (amount, tail) = rest.split_at(digits);
        let unit_length = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_length);
        total = total.checked_add(nanoseconds(amount, unit)?)?;
        if tail.is_empty() {
            break;
        }
        rest = tail;
    }
    // The wire format counts nanoseconds in 63 bits, about 292 years.
    u64::try_from(total).ok().filter(|total| i64::try_from(*total).is_ok()).map(Duration::from_nanos)
}

fn nanoseconds(amount: &str, unit: &str) -> Option<u128> {
    let scale: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let mut total = if whole.is_empty() { 0 } else { whole.parse::<u128>().ok()?.checked_mul(scale)? };
    // Digits below a nanosecond of an hour change nothing.
    let kept = &fraction[..fraction.len().min(20)];
    if !kept.is_empty() {
        let power = 10_u128.checked_pow(u32::try_from(kept.len()).ok()?)?;
        total = total.checked_add(kept.parse::<u128>().ok()?.checked_mul(scale)? / power)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_numbers_are_seconds_and_units_add_up() {
        for (text, milliseconds) in [
            ("0", 0),
            ("2", 2_000),
            (" 20 ", 20_000),
            ("2s", 2_000),
            ("1m", 60_000),
            ("1h2m3.5s", 3_723_500),
            ("1.5h", 5_400_000),
            (".5s", 500),
            ("1.s", 1_000),
            ("+3s", 3_000),
            ("250ms", 250),
            ("1500us", 1),
        ] {
            assert_eq!(parse(text).map(|found| found.as_millis()), Some(milliseconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_none() {
        for text in
            ["", " ", "s", "2d", "1h 2m", "-1s", "-1", "1.5", "1e3", "two", "1..5s", ".s", "5sx", "1h2", "9999999999h"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(units("10"), None);
        assert_eq!(units("10s"), Some(Duration::from_secs(10)));
    }

    #[test]
    fn no_text_makes_it_panic_or_linger() {
        let digits = "9".repeat(100_000);
        assert_eq!(parse(&digits), None);
        assert_eq!(parse(&format!("{digits}s")), None);
        assert_eq!(parse(&format!("0.{digits}s")).map(|found| found.as_millis()), Some(999));
        assert_eq!(parse(&"1s".repeat(1_000)), Some(Duration::from_secs(1_000)));
    }
}
