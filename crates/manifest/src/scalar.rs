//! Types plain scalars. The rules are those of the loader Kubernetes uses (mostly YAML 1.1), so that a manifest means
//! the same here and in a cluster. Quoted text never comes here.

use serde_json::Number;

use crate::number::from_float;

/// The meaning of a plain scalar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Number(Number),
    /// Infinity or not-a-number: YAML has them, JSON does not.
    NotJson,
    Text,
}

/// Resolves a plain scalar.
///
/// Single letters `y`, `n` are booleans, as the Kubernetes loader has it. Dates and base-60
/// numbers stay text. A number too large for a float stays text, since it is most likely a hash
/// such as `7e12345`.
pub(crate) fn resolve(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf"
        | "-.INF" => Scalar::NotJson,
        _ => number(text).map_or(Scalar::Text, Scalar::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    match text.as_bytes().first()? {
        b'.' => float(text),
        b'0'..=b'9' | b'+' | b'-' => {
            if text.contains('_') {
                let text = text.replace('_', "");
                integer(&text).or_else(|| float(&text)).or_else(|| large_integer(&text))
            } else {
                integer(text).or_else(|| float(text)).or_else(|| large_integer(text))
            }
        }
        _ => None,
    }
}

fn integer(text: &str) -> Option<Number> {
    let (sign, digits, radix) = digits(text)?;
    match sign {
        Some('-') => i64::from_str_radix(&format!("-{digits}"), radix).ok().map(Number::from),
        Some(_) => i64::from_str_radix(digits, radix).ok().map(Number::from),
        None => u64::from_str_radix(digits, radix).ok().map(Number::from),
    }
}

/// Converts hexadecimal, octal and binary integers beyond 64 bits to the nearest float, as decimal ones are.
fn large_integer(text: &str) -> Option<Number> {
    let (sign, digits, radix) = digits(text)?;
    if radix == 10 {
        return None;
    }
    let size = u128::from_str_radix(digits, radix).ok()?;
    #[expect(clippy::cast_precision_loss, reason = "the nearest float is what is wanted")]
    let float = size as f64;
    from_float(if sign == Some('-') { -float } else { float })
}

fn digits(text: &str) -> Option<(Option<char>, &str, u32)> {
    let sign = text.chars().next().filter(|sign| matches!(sign, '+' | '-'));
    let size = if sign.is_some() { &text[1..] } else { text };
    let bytes = size.as_bytes();
    let (digits, radix) = match (bytes.first()?, bytes.get(1)) {
        (b'0', Some(b'x' | b'X')) => (&size[2..], 16),
        (b'0', Some(b'o' | b'O')) => (&size[2..], 8),
        (b'0', Some(b'b' | b'B')) => (&size[2..], 2),
        (b'0', Some(_)) => (&size[1..], 8),
        _ => (size, 10),
    };
    // The parsing functions of the standard library accept a sign of their own.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    Some((sign, digits, radix))
}

fn float(text: &str) -> Option<Number> {
    if !is_float(text.as_bytes()) {
        return None;
    }
    text.parse::<f64>().ok().filter(|float| float.is_finite()).and_then(from_float)
}

/// Matches `[-+]? ( .digits | digits [ . digits? ] ) ( [eE] [-+]? digits )?`
fn is_float(text: &[u8]) -> bool {
    let text = match text {
        [b'+' | b'-', rest @ ..] => rest,
        _ => text,
    };
    let (whole, text) = split_digits(text);
    let (fraction, text) = match text {
        [b'.', rest @ ..] => split_digits(rest),
        _ => (0, text),
    };
    if whole + fraction == 0 {
        return false;
    }
    match text {
        [] => true,
        [b'e' | b'E', b'+' | b'-', rest @ ..] | [b'e' | b'E', rest @ ..] => {
            let (power, rest) = split_digits(rest);
            power > 0 && rest.is_empty()
        }
        _ => false,
    }
}

fn split_digits(text: &[u8]) -> (usize, &[u8]) {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count, &text[count..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_mean_what_they_mean_to_kubernetes() {
        let int = |value: i64| Scalar::Number(value.into());
        let float = |value: f64| Scalar::Number(Number::from_f64(value).unwrap());
        let table = [
            ("", Scalar::Null),
            ("~", Scalar::Null),
            ("null", Scalar::Null),
            ("NULL", Scalar::Null),
            ("nUll", Scalar::Text),
            ("yes", Scalar::Bool(true)),
            ("y", Scalar::Bool(true)),
            ("On", Scalar::Bool(true)),
            ("TRUE", Scalar::Bool(true)),
            ("N", Scalar::Bool(false)),
            ("off", Scalar::Bool(false)),
            ("oFF", Scalar::Text),
            ("0", int(0)),
            ("-17", int(-17)),
            ("+12", int(12)),
            ("1_000", int(1000)),
            ("0x1F", int(31)),
            ("-0x1f", int(-31)),
            ("0o14", int(12)),
            ("014", int(12)),
            ("0777", int(511)),
            ("0b101", int(5)),
            ("-0b11", int(-3)),
            ("08", int(8)),
            ("089.5", float(89.5)),
            ("0x", Scalar::Text),
            ("0xg", Scalar::Text),
            ("0x-1", Scalar::Text),
            ("--1", Scalar::Text),
            ("9223372036854775807", int(i64::MAX)),
            ("-9223372036854775808", int(i64::MIN)),
            ("18446744073709551615", Scalar::Number(u64::MAX.into())),
            ("18446744073709551616", float(18_446_744_073_709_551_616.0)),
            ("-9223372036854775809", float(-9_223_372_036_854_775_809.0)),
            ("0x10000000000000000", float(18_446_744_073_709_551_616.0)),
            ("1.10", float(1.1)),
            ("1.0", int(1)),
            ("1.", int(1)),
            (".5", float(0.5)),
            ("-.5", float(-0.5)),
            ("1e3", int(1000)),
            ("1.5e-3", float(0.0015)),
            ("1e", Scalar::Text),
            (".", Scalar::Text),
            ("-", Scalar::Text),
            ("+", Scalar::Text),
            ("-.", Scalar::Text),
            ("_1", Scalar::Text),
            ("1e400", Scalar::Text),
            (".inf", Scalar::NotJson),
            ("-.INF", Scalar::NotJson),
            (".NaN", Scalar::NotJson),
            ("inf", Scalar::Text),
            ("+inf", Scalar::Text),
            ("nan", Scalar::Text),
            ("1:30", Scalar::Text),
            ("2001-12-14", Scalar::Text),
            ("2001-12-14T21:59:43Z", Scalar::Text),
            ("1.2.3", Scalar::Text),
            ("5Gi", Scalar::Text),
            ("<<", Scalar::Text),
            ("=", Scalar::Text),
            ("١", Scalar::Text),
        ];
        for (text, meaning) in table {
            assert_eq!(resolve(text), meaning, "{text:?}");
        }
    }
}
