//! The small notations of test files: spans and counts with bounds, moments, names with `*`, and texts compared in
//! several ways. They read and compare; where they stand in a file is not their business.

use std::{fmt, str::FromStr, time::Duration};

use octoflow_engine::expr::nearest;
use octoflow_model::Time;
use regex::Regex;

use crate::cli::span;

pub(crate) fn is_span(text: &str) -> Result<(), String> {
    span::parse(text).map(drop)
}

pub(crate) fn is_span_bound(text: &str) -> Result<(), String> {
    Bound::<Span>::parse(text).map(drop)
}

pub(crate) fn is_count_bound(text: &str) -> Result<(), String> {
    Bound::<Count>::parse(text).map(drop)
}

pub(crate) const NODE_PHASES: [&str; 7] = ["Pending", "Running", "Succeeded", "Skipped", "Failed", "Error", "Omitted"];

/// `Succeeded`, or `Pod Succeeded`.
pub(crate) fn is_node(text: &str) -> Result<(), String> {
    let phase = node(text).1;
    if NODE_PHASES.contains(&phase) {
        return Ok(());
    }
    let hint = nearest(phase, NODE_PHASES).map(|near| format!("; did you mean `{near}`?"));
    Err(format!("`{phase}` is not one of: {}{}", NODE_PHASES.join(", "), hint.unwrap_or_default()))
}

/// The type, if it is there, and the phase.
pub(crate) fn node(text: &str) -> (Option<&str>, &str) {
    match text.trim().split_once(' ') {
        Some((kind, phase)) => (Some(kind), phase.trim()),
        None => (None, text.trim()),
    }
}

pub(crate) fn is_progress(text: &str) -> Result<(), String> {
    progress(text).map(drop).ok_or_else(|| format!("`{text}` is not a progress; write it like 3/4"))
}

pub(crate) fn progress(text: &str) -> Option<(u32, u32)> {
    let (done, total) = text.split_once('/')?;
    Some((done.trim().parse().ok()?, total.trim().parse().ok()?))
}

pub(crate) fn is_moment(text: &str) -> Result<(), String> {
    moment(text).map(drop)
}

pub(crate) fn is_pattern(text: &str) -> Result<(), String> {
    pattern(text).map(drop)
}

pub(crate) fn moment(text: &str) -> Result<Time, String> {
    let stamp = jiff::Timestamp::from_str(text)
        .map_err(|_| format!("`{text}` is not a time; write it like 2026-01-31T12:00:00Z"))?;
    Ok(Time(stamp.as_microsecond()))
}

/// Bounded, so that no test file can make the machine compile for minutes.
pub(crate) fn pattern(text: &str) -> Result<Regex, String> {
    const LARGEST: usize = 1 << 20;
    regex::RegexBuilder::new(text).size_limit(LARGEST).build().map_err(|error| {
        let why = error.to_string();
        format!("not a regular expression: {}", why.lines().last().unwrap_or_default().trim_start_matches("error: "))
    })
}

/// A span of virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        span::parse(text).map(Self)
    }
}

/// As people write it, to the last digit: `1h2m3.5s`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        if fraction > 0 {
            let digits = format!("{fraction:06}");
            return write!(f, "{rest}.{}s", digits.trim_end_matches('0'));
        }
        if rest > 0 || seconds == 0 { write!(f, "{rest}s") } else { Ok(()) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Count(pub usize);

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| format!("`{text}` is not a whole number; write it like 3, '<=3' or 2..5"))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `5`, `<=5`, `<5`, `>=5`, `>5`, or `2..5` with both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound<T> {
    Exactly(T),
    Most(T),
    Below(T),
    Least(T),
    Above(T),
    Within(T, T),
}

impl<T: FromStr<Err = String> + PartialOrd + Copy> Bound<T> {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let read = |text: &str| text.trim().parse::<T>();
        let after = |signs: [&str; 2]| signs.iter().find_map(|sign| text.strip_prefix(sign));
        if let Some(rest) = after(["<=", "≤"]) {
            read(rest).map(Self::Most)
        } else if let Some(rest) = after([">=", "≥"]) {
            read(rest).map(Self::Least)
        } else if let Some(rest) = text.strip_prefix('<') {
            read(rest).map(Self::Below)
        } else if let Some(rest) = text.strip_prefix('>') {
            read(rest).map(Self::Above)
        } else if let Some((from, to)) = text.split_once("..") {
            Ok(Self::Within(read(from)?, read(to)?))
        } else {
            read(text).map(Self::Exactly)
        }
    }

    pub(crate) fn holds(&self, value: T) -> bool {
        match self {
            Self::Exactly(wanted) => value == *wanted,
            Self::Most(most) => value <= *most,
            Self::Below(most) => value < *most,
            Self::Least(least) => value >= *least,
            Self::Above(least) => value > *least,
            Self::Within(least, most) => value >= *least && value <= *most,
        }
    }
}

/// Whether a name is like a pattern in which `*` stands for anything. Without recursion: a pattern is anyone's text.
pub(crate) fn like(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_what_they_say() {
        let table = [
            ("90s", 90, 91),
            ("<=1m", 60, 61),
            ("≥ 1m", 60, 59),
            ("<1m", 59, 60),
            ("> 1m", 61, 60),
            ("1m..2m", 120, 121),
        ];
        for (text, inside, outside) in table {
            let bound = Bound::<Span>::parse(text).unwrap();
            assert!(bound.holds(Span(Duration::from_secs(inside))), "{text}");
            assert!(!bound.holds(Span(Duration::from_secs(outside))), "{text}");
        }
        assert!(is_span_bound("<=").is_err() && is_span_bound("soon").is_err() && is_count_bound("-1").is_err());
        assert!(is_count_bound("2..5").is_ok());
    }

    #[test]
    fn spans_print_to_the_last_digit() {
        let table = [(0, "0s"), (500, "0.5s"), (60_000, "1m"), (3_723_500, "1h2m3.5s"), (3_600_000, "1h")];
        for (millis, text) in table {
            assert_eq!(Span(Duration::from_millis(millis)).to_string(), text);
        }
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name) in
            [("a", "a"), ("a*", "a"), ("*", ""), ("a*c*e", "abcde"), ("*(0)", "w(0)"), ("a**b", "ab")]
        {
            assert!(like(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a", "ab"), ("a*b", "a"), ("ab*ba", "aba"), ("*x", "xy"), ("", "a")] {
            assert!(!like(pattern, name), "{pattern} {name}");
        }
    }
}
