//! Dates and durations as values: parsing and formatting by layouts such as `2006-01-02 15:04:05`. Never reads the
//! clock, and knows no time zones but UTC and fixed offsets: zone tables differ between machines.

use std::fmt;

use jiff::civil::{DateTime, Weekday};
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};

mod layout;
mod zone;

pub(crate) use layout::Layout;
pub(crate) use zone::offset as zone;

/// A point in time and the UTC offset it is displayed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetDateTime {
    pub at: Timestamp,
    pub offset: Offset,
}

/// Formats in which a quoted text in a `when` counts as a date; times without a zone are UTC.
const ISO: [&str; 9] = [
    "2006-01-02",
    "2006-01-02 15:04",
    "2006-01-02 15:04:05",
    "2006-01-02 15:04:05-07:00",
    "2006-01-02T15:04:05Z07:00",
    "2006-01-02T15Z0700",
    "2006-01-02T15:04Z0700",
    "2006-01-02T15:04:05Z0700",
    "2006-01-02T15:04:05",
];

/// Formats that `date(text)` accepts without a layout.
const KNOWN: [&str; 9] = [
    "2006-01-02",
    "15:04:05",
    "2006-01-02 15:04:05",
    "2006-01-02T15:04:05Z07:00",
    "02 Jan 06 15:04 MST",
    "Monday, 02-Jan-06 15:04:05 MST",
    "Mon, 02 Jan 2006 15:04:05 MST",
    "Mon, 02 Jan 2006 15:04:05 -0700",
    "2006-01-02T15:04:05Z0700",
];

impl OffsetDateTime {
    pub(crate) fn utc(at: Timestamp) -> Self {
        Self { at, offset: Offset::UTC }
    }

    pub(crate) fn from_seconds(seconds: i64) -> Option<Self> {
        Timestamp::from_second(seconds).ok().map(Self::utc)
    }

    /// Parses a text in one of the ISO formats.
    pub(crate) fn iso(text: &str) -> Option<Self> {
        // Every format starts with ten characters of date; this check spares the layouts for almost every other text.
        if text.len() < 10 || text.len() > 40 || !text.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        ISO.iter().find_map(|form| Layout::new(form).read(text).ok())
    }

    /// Parses a text in one of the formats known without a layout.
    pub(crate) fn known(text: &str) -> Option<Self> {
        KNOWN.iter().find_map(|form| Layout::new(form).read(text).ok())
    }

    pub(crate) fn civil(self) -> DateTime {
        self.offset.to_datetime(self.at)
    }

    pub(crate) fn weekday(self) -> Weekday {
        self.civil().weekday()
    }

    pub(crate) fn plus(self, length: SignedDuration) -> Option<Self> {
        let at = self.at.checked_add(length).ok()?;
        Some(Self { at, ..self })
    }

    pub(crate) fn minus(self, length: SignedDuration) -> Option<Self> {
        let at = self.at.checked_sub(length).ok()?;
        Some(Self { at, ..self })
    }

    pub(crate) fn since(self, earlier: Self) -> SignedDuration {
        self.at.duration_since(earlier.at)
    }

    /// Formats it as JSON does.
    pub(crate) fn rfc3339(self) -> String {
        Layout::new("2006-01-02T15:04:05.999999999Z07:00").write(self)
    }
}

impl fmt::Display for OffsetDateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Layout::new("2006-01-02 15:04:05.999999999 -0700 MST").write(*self))
    }
}

/// Nanoseconds in each unit of a duration, longest spelling first where one is a prefix of another.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a duration such as `1h30m`, `-1.5s` or `300ms`. It must fit 64 bits of nanoseconds, some 292 years.
pub(crate) fn duration(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (amount, after) = rest.split_at(end);
        let (unit, nanoseconds) =
            UNITS.iter().filter(|(unit, _)| after.starts_with(unit)).max_by_key(|(unit, _)| unit.len())?;
        total = total.checked_add(scale(amount, *nanoseconds)?)?;
        rest = &after[unit.len()..];
    }
    let total = i64::try_from(if negative { -total } else { total }).ok()?;
    Some(SignedDuration::from_nanos(total))
}

fn scale(amount: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || amount.len() > 30 {
        return None;
    }
    let mut total = if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()?.checked_mul(unit)? };
    let mut place = unit;
    for digit in fraction.bytes() {
        place /= 10;
        total += i128::from(digit - b'0') * place;
    }
    Some(total)
}

/// Formats a duration: `1h30m0s`, `1.5s`, `300ms`, `0s`.
pub(crate) fn spell(length: SignedDuration) -> String {
    let nanoseconds = length.as_nanos().unsigned_abs();
    let sign = if length.is_negative() { "-" } else { "" };
    let seconds = nanoseconds / 1_000_000_000;
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    if seconds == 0 {
        let (unit, size) = match nanoseconds {
            0..1_000 => ("ns", 1),
            1_000..1_000_000 => ("µs", 1_000),
            _ => ("ms", 1_000_000),
        };
        return format!("{sign}{}{unit}", decimal(nanoseconds, size));
    }
    let minute = decimal(nanoseconds % 60_000_000_000, 1_000_000_000);
    match (seconds / 3_600, seconds / 60 % 60) {
        (0, 0) => format!("{sign}{minute}s"),
        (0, minutes) => format!("{sign}{minutes}m{minute}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{minute}s"),
    }
}

fn decimal(amount: u128, unit: u128) -> String {
    let width = unit.ilog10() as usize;
    let text = format!("{}.{:0width$}", amount / unit, amount % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_spelled() {
        for (text, spelled) in [
            ("1h30m", "1h30m0s"),
            ("90s", "1m30s"),
            ("1.5s", "1.5s"),
            ("-2m", "-2m0s"),
            ("300ms", "300ms"),
            ("1500us", "1.5ms"),
            ("7ns", "7ns"),
            ("0", "0s"),
            (".5h", "30m0s"),
        ] {
            assert_eq!(spell(duration(text).unwrap()), spelled, "{text}");
        }
        for text in ["", "-", "1", "h", "1x", "1..5s", "99999999999h", "1h-2m"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn iso_texts_become_moments() {
        for (text, seconds) in [
            ("2024-01-02", 1_704_153_600),
            ("2024-01-02 03:04", 1_704_164_640),
            ("2024-01-02 03:04:05", 1_704_164_645),
            ("2024-01-02T03:04:05Z", 1_704_164_645),
            ("2024-01-02T03:04:05.5Z", 1_704_164_645),
            ("2024-01-02T05:04:05+02:00", 1_704_164_645),
            ("2024-01-02T05:04:05+0200", 1_704_164_645),
        ] {
            assert_eq!(OffsetDateTime::iso(text).map(|m| m.at.as_second()), Some(seconds), "{text}");
        }
        for text in ["2024-13-02", "2024-01-32", "hello world", "2024-01-02x", "20240102"] {
            assert_eq!(OffsetDateTime::iso(text), None, "{text}");
        }
    }

    #[test]
    fn a_moment_is_shown_with_its_offset() {
        let moment = OffsetDateTime::iso("2024-01-02T05:04:05+02:00").unwrap();
        assert_eq!(moment.rfc3339(), "2024-01-02T05:04:05+02:00");
        let utc = OffsetDateTime::known("2024-01-02").unwrap();
        assert_eq!(utc.to_string(), "2024-01-02 00:00:00 +0000 UTC");
    }
}
