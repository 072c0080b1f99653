//! Time zones by name: UTC, and fixed offsets. A place such as `Europe/Berlin` has rules that differ between machines
//! and years, and an expression must yield the same on all of them, so places are refused.

use jiff::tz::Offset;

/// Returns the offset of a zone, or why there is none.
pub(crate) fn offset(name: &str) -> Result<Offset, String> {
    let plain = name.strip_prefix("Etc/").unwrap_or(name);
    if matches!(plain, "" | "UTC" | "GMT" | "Z" | "Zulu" | "Universal" | "UCT" | "Local" | "Greenwich") {
        return Ok(Offset::UTC);
    }
    fixed(name).ok_or_else(|| {
        format!(
            "the time zone '{name}' is not available, because zone tables differ between machines; \
             use UTC or a fixed offset such as +02:00"
        )
    })
}

fn fixed(name: &str) -> Option<Offset> {
    // The sign of these zones is inverted, by POSIX convention.
    if let Some(rest) = name.strip_prefix("Etc/GMT") {
        return signed(rest).filter(|_| !rest.contains(':')).map(|seconds| -seconds).and_then(from_seconds);
    }
    let rest = name.strip_prefix("UTC").or_else(|| name.strip_prefix("GMT")).unwrap_or(name);
    signed(rest).and_then(from_seconds)
}

fn from_seconds(seconds: i32) -> Option<Offset> {
    Offset::from_seconds(seconds).ok()
}

/// Parses `+2`, `+02`, `+0230` or `+02:30` into seconds.
fn signed(text: &str) -> Option<i32> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = &text[1..];
    let (hours, minutes) = match (digits.split_once(':'), digits.len()) {
        (Some((hours, minutes)), _) if minutes.len() == 2 => (hours, minutes),
        (None, 1 | 2) => (digits, "00"),
        (None, 4) => (digits.get(..2)?, digits.get(2..)?),
        _ => return None,
    };
    if !(hours.bytes().chain(minutes.bytes())).all(|byte| byte.is_ascii_digit()) || hours.len() > 2 {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 15 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_that_are_offsets_are_known() {
        for (name, seconds) in [
            ("UTC", 0),
            ("Etc/UTC", 0),
            ("", 0),
            ("+02:00", 7_200),
            ("-0730", -27_000),
            ("+5", 18_000),
            ("UTC+3", 10_800),
            ("Etc/GMT+5", -18_000),
        ] {
            assert_eq!(offset(name).map(Offset::seconds), Ok(seconds), "{name}");
        }
    }

    #[test]
    fn places_and_nonsense_are_refused() {
        for name in ["Europe/Berlin", "CET", "+", "+25:00", "+02:75", "+1:2", "++2", "+é", "Etc/GMT+01:00"] {
            assert!(offset(name).unwrap_err().contains("zone tables differ"), "{name}");
        }
    }
}
