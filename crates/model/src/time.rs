//! Timestamps: microseconds since the epoch, UTC. Never reads a clock; the time is always passed in.

use std::{fmt, time::Duration};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    pub fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// Whole seconds, rounded down, as wire formats carry them.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Returns the time elapsed since `earlier`; zero if this is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    pub fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Returns the time this many microseconds later, or earlier if negative.
    pub fn shifted(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// Parses what [`fmt::Display`] prints.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<Timestamp>().ok().map(|stamp| Self(stamp.as_microsecond()))
    }

    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_microsecond(self.0).unwrap_or(if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX })
    }
}

/// RFC 3339 in whole seconds with `Z`, the form the wire formats use.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = Self::from_secs(self.seconds());
        write!(f, "{}", whole.timestamp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_prints_as_rfc_3339_without_fractions() {
        assert_eq!(Time(1_700_000_000_999_999).to_string(), "2023-11-14T22:13:20Z");
    }

    #[test]
    fn what_was_printed_can_be_read_back() {
        let time = Time(1_700_000_000_000_000);
        assert_eq!(Time::parse(&time.to_string()), Some(time));
        assert_eq!(Time::parse("yesterday"), None);
    }

    #[test]
    fn a_span_is_never_negative() {
        assert_eq!(Time(5).since(Time(9)), Duration::ZERO);
        assert_eq!(Time(9).since(Time(5)), Duration::from_micros(4));
    }
}
