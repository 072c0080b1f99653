//! Numbers as JSON carries them between Kubernetes programs: an integral float is an integer (`1.0` is `1`, `1e3` is
//! `1000`), and text forms follow one rule.

use serde_json::Number;

/// JSON writes floats from here on with an exponent.
const EXPONENT_FROM: f64 = 1e21;

/// JSON writes floats below this with an exponent.
const EXPONENT_BELOW: f64 = 1e-6;

/// Formats a number as JSON carries it, and so as a workflow parameter shows it: `1.1` for `1.10`, `1000` for `1e3`,
/// `1e+21` for 10²¹.
pub fn number_text(number: &Number) -> String {
    if number.is_i64() || number.is_u64() {
        return number.to_string();
    }
    let Some(float) = number.as_f64() else {
        return number.to_string();
    };
    let size = float.abs();
    if size != 0.0 && !(EXPONENT_BELOW..EXPONENT_FROM).contains(&size) {
        let text = format!("{float:e}");
        return match text.split_once('e') {
            Some((digits, power)) if !power.starts_with('-') => format!("{digits}e+{power}"),
            _ => text,
        };
    }
    format!("{float}")
}

/// Converts a float to a JSON number, an integer where JSON would show one. `None` for infinities and NaN.
pub(crate) fn from_float(float: f64) -> Option<Number> {
    if float.abs() < EXPONENT_FROM {
        let text = format!("{float}");
        if let Ok(integer) = text.parse::<i64>() {
            return Some(integer.into());
        }
        if let Ok(integer) = text.parse::<u64>() {
            return Some(integer.into());
        }
    }
    Number::from_f64(float)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_texts_are_those_of_json_between_programs() {
        for (float, text) in [
            (1.10, "1.1"),
            (1e3, "1000"),
            (-2.0, "-2"),
            (0.5, "0.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e300, "1.5e+300"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.234_567_890_123_456_8e17, "123456789012345680"),
        ] {
            let number = from_float(float).unwrap();
            assert_eq!(number_text(&number), text);
        }
        assert_eq!(number_text(&Number::from(u64::MAX)), "18446744073709551615");
        assert_eq!(from_float(f64::NAN), None);
        assert_eq!(from_float(f64::INFINITY), None);
    }

    #[test]
    fn integral_floats_are_integers() {
        assert_eq!(from_float(1e3), Some(Number::from(1000)));
        assert_eq!(from_float(-0.0), Some(Number::from(0)));
        assert_eq!(from_float(1e19), Some(Number::from(10_000_000_000_000_000_000_u64)));
    }
}
