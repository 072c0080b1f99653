//! Formats numbers the way the dialects' users know them: `1e+06` in plain text, `1000000` in JSON. It never decides
//! what a number means.

use std::cmp::Ordering;

/// Formats as plain text: the shortest digits that round-trip, with an exponent below 1e-4 and from 1e6 on.
pub(crate) fn plain(number: f64) -> String {
    if let Some(word) = unusual(number) {
        return word.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = split(&scientific);
    if number != 0.0 && !(-4..6).contains(&exponent) {
        return with_exponent(digits, exponent);
    }
    format!("{number}")
}

/// Formats as JSON; `None` for what JSON cannot represent.
pub(crate) fn json(number: f64) -> Option<String> {
    if unusual(number).is_some() {
        return None;
    }
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let scientific = format!("{number:e}");
        let (digits, exponent) = split(&scientific);
        let sign = if exponent < 0 { '-' } else { '+' };
        return Some(format!("{digits}e{sign}{}", exponent.unsigned_abs()));
    }
    Some(format!("{number}"))
}

/// Truncates to a whole number in the range of `i64`; `None` if out of range or not a number.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked on the line before")]
pub(crate) fn whole(number: f64) -> Option<i64> {
    let cut = number.trunc();
    // 2^63 itself does not fit an i64, every smaller double does.
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&cut).then_some(cut as i64)
}

/// Compares the two kinds of number exactly. Going through doubles would not do: near 2^53 neighbours become equal
/// there, and an inconsistent order cannot sort.
pub(crate) fn order(integer: i64, number: f64) -> Option<Ordering> {
    if number.is_nan() {
        return None;
    }
    let Some(cut) = whole(number) else {
        return Some(if number > 0.0 { Ordering::Less } else { Ordering::Greater });
    };
    let fraction = 0.0_f64.partial_cmp(&number.fract())?;
    Some(integer.cmp(&cut).then(fraction))
}

/// Returns the nearest double to a whole number.
#[expect(clippy::cast_precision_loss, reason = "the nearest double is what arithmetic on mixed numbers means")]
pub(crate) fn real(number: i64) -> f64 {
    number as f64
}

fn unusual(number: f64) -> Option<&'static str> {
    if number.is_nan() {
        Some("NaN")
    } else if number == f64::INFINITY {
        Some("+Inf")
    } else if number == f64::NEG_INFINITY {
        Some("-Inf")
    } else {
        None
    }
}

fn split(scientific: &str) -> (&str, i32) {
    let (digits, exponent) = scientific.split_once('e').expect("the scientific notation always has an exponent");
    (digits, exponent.parse().expect("an exponent is a small whole number"))
}

fn with_exponent(digits: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_switches_to_an_exponent_early() {
        for (number, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.5, "0.5"),
            (-2.5, "-2.5"),
            (999_999.0, "999999"),
            (1_000_000.0, "1e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (f64::INFINITY, "+Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(plain(number), text);
        }
    }

    #[test]
    fn json_switches_to_an_exponent_late() {
        for (number, text) in [
            (1_000_000.0, Some("1000000")),
            (1e20, Some("100000000000000000000")),
            (1e21, Some("1e+21")),
            (0.000_001, Some("0.000001")),
            (1.5e-7, Some("1.5e-7")),
            (f64::NAN, None),
        ] {
            assert_eq!(json(number).as_deref(), text);
        }
    }

    #[test]
    fn the_two_kinds_of_number_are_ordered_exactly() {
        for (integer, number, expected) in [
            (1, 1.0, Ordering::Equal),
            (1, 1.5, Ordering::Less),
            (-1, -1.5, Ordering::Greater),
            ((1 << 53) + 1, 9_007_199_254_740_992.0, Ordering::Greater),
            (i64::MAX, 9_223_372_036_854_775_808.0, Ordering::Less),
            (i64::MIN, f64::NEG_INFINITY, Ordering::Greater),
        ] {
            assert_eq!(order(integer, number), Some(expected), "{integer} {number}");
        }
        assert_eq!(order(1, f64::NAN), None);
    }

    #[test]
    fn whole_refuses_what_does_not_fit() {
        assert_eq!(whole(-1.9), Some(-1));
        assert_eq!(whole(9.3e18), None);
        assert_eq!(whole(-9_223_372_036_854_775_808.0), Some(i64::MIN));
        assert_eq!(whole(f64::NAN), None);
    }
}
