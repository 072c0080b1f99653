//! Formats times and durations for people: `3m ago`, `1 minute 13 seconds`, `12:00:01`. The present is always a
//! parameter; the time zone is the machine's.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};
use octoflow_model::Time;
pub(crate) use octoflow_runtime::clock::now;

/// Where the machine keeps the rules of its time zone.
const LOCAL_ZONE: &str = "/etc/localtime";

/// Returns the machine's time zone. The library lists every zone of the machine to find the name of this one, which takes
/// longer than a short run does; its rules are in a file of their own. `TZ` goes first, as everywhere.
pub(crate) fn local_zone() -> TimeZone {
    if std::env::var_os("TZ").is_some() {
        return TimeZone::system();
    }
    let rules = std::fs::read(LOCAL_ZONE).ok();
    let zone = rules.and_then(|rules| TimeZone::tzif("local", &rules).ok());
    zone.unwrap_or_else(TimeZone::system)
}

/// Parses `2026-01-01T00:00:00Z`; `None` for an absent or null time.
pub(crate) fn parse(text: &str) -> Option<Time> {
    text.parse::<Timestamp>().ok().map(|stamp| Time(stamp.as_microsecond()))
}

/// `Tue Jun 02 16:04:21 +0000 (3 minutes ago)`
pub(crate) fn stamp(time: Time, now: Time, zone: &TimeZone) -> String {
    let shown = time.timestamp().to_zoned(zone.clone()).strftime("%a %b %d %H:%M:%S %z").to_string();
    format!("{shown} ({})", ago(time, now))
}

/// `16:04:21`
pub(crate) fn of_day(time: Time, zone: &TimeZone) -> String {
    time.timestamp().to_zoned(zone.clone()).strftime("%H:%M:%S").to_string()
}

fn ago(time: Time, now: Time) -> String {
    let span = now.since(time);
    if span < Duration::from_secs(1) {
        return "now".to_owned();
    }
    let (count, unit) = units(span.as_secs())[0];
    format!("{} ago", counted(count, unit))
}

/// `1 minute 13 seconds`: the two largest units.
pub(crate) fn long(span: Duration) -> String {
    if span < Duration::from_secs(1) && !span.is_zero() {
        return format!("{} milliseconds", span.as_millis().max(1));
    }
    let parts: Vec<String> = units(span.as_secs()).into_iter().map(|(count, unit)| counted(count, unit)).collect();
    parts.join(" ")
}

/// `1m13s`: the two largest units, whole seconds.
pub(crate) fn short(span: Duration) -> String {
    units(span.as_secs()).into_iter().map(|(count, unit)| format!("{count}{}", &unit[..1])).collect()
}

/// `12ms`, `0.3s` below a minute, then as `short`.
pub(crate) fn fine(span: Duration) -> String {
    if span < Duration::from_millis(100) {
        format!("{}ms", span.as_millis())
    } else if span < Duration::from_secs(60) {
        format!("{:.1}s", span.as_secs_f64())
    } else {
        short(span)
    }
}

fn counted(count: u64, unit: &str) -> String {
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// Returns the largest non-zero unit, and the next one below it unless that is zero.
fn units(seconds: u64) -> Vec<(u64, &'static str)> {
    let all = [
        (seconds / 86_400, "day"),
        (seconds / 3600 % 24, "hour"),
        (seconds / 60 % 60, "minute"),
        (seconds % 60, "second"),
    ];
    let first = all.iter().position(|(count, _)| *count > 0).unwrap_or(all.len() - 1);
    all.iter()
        .skip(first)
        .take(2)
        .enumerate()
        .filter(|(place, (count, _))| *place == 0 || *count > 0)
        .map(|(_, unit)| *unit)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn spans_show_their_two_largest_units() {
        let table = [
            (0, "0s", "0 seconds"),
            (1, "1s", "1 second"),
            (73, "1m13s", "1 minute 13 seconds"),
            (3600, "1h", "1 hour"),
            (7_325, "2h2m", "2 hours 2 minutes"),
            (200_000, "2d7h", "2 days 7 hours"),
        ];
        for (seconds, brief, words) in table {
            assert_eq!(short(span(seconds)), brief);
            assert_eq!(long(span(seconds)), words);
        }
        assert_eq!(long(Duration::from_millis(42)), "42 milliseconds");
        assert_eq!(fine(Duration::from_millis(340)), "0.3s");
        assert_eq!(fine(span(90)), "1m30s");
        assert_eq!(fine(Duration::from_micros(12_700)), "12ms");
    }

    #[test]
    fn the_local_zone_is_the_one_the_library_finds() {
        let (ours, theirs) = (local_zone(), TimeZone::system());
        for time in ["1999-01-15T12:00:00Z", "2026-01-15T12:00:00Z", "2026-07-15T12:00:00Z", "2060-07-15T12:00:00Z"] {
            let time = parse(time).unwrap().timestamp();
            assert_eq!(ours.to_offset(time), theirs.to_offset(time), "{time}");
        }
    }

    #[test]
    fn a_stamp_says_the_date_and_how_long_ago() {
        let then = parse("2020-06-02T16:04:21Z").unwrap();
        let now = parse("2020-06-02T16:07:30Z").unwrap();
        assert_eq!(stamp(then, now, &TimeZone::UTC), "Tue Jun 02 16:04:21 +0000 (3 minutes ago)");
        assert_eq!(stamp(then, then, &TimeZone::UTC), "Tue Jun 02 16:04:21 +0000 (now)");
        assert_eq!(of_day(then, &TimeZone::UTC), "16:04:21");
        assert_eq!(parse("null"), None);
    }
}
