//! Which times a schedule names, also where clocks change.

use octoflow_model::Time;
use proptest::prelude::*;

use crate::cron::Schedule;

fn at(text: &str) -> Time {
    Time::parse(text).unwrap()
}

fn schedule(text: &str, zone: &str) -> Schedule {
    Schedule::parse(text, Some(zone), at("2026-01-01T00:00:00Z")).unwrap()
}

fn next(text: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
    let schedule = schedule(text, zone);
    let mut time = at(from);
    let step = |_| {
        time = schedule.next_after(time).unwrap();
        time.to_string()
    };
    (0..count).map(step).collect()
}

#[test]
fn fields_nicknames_and_intervals_name_times() {
    for (text, first, second) in [
        ("*/20 * * * *", "2026-05-01T10:20:00Z", "2026-05-01T10:40:00Z"),
        ("5/20 * * * *", "2026-05-01T10:05:00Z", "2026-05-01T10:25:00Z"),
        ("0 9 * * MON-FRI", "2026-05-04T09:00:00Z", "2026-05-05T09:00:00Z"),
        ("0 9 1 * SUN", "2026-05-03T09:00:00Z", "2026-05-10T09:00:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"),
        ("@hourly", "2026-05-01T11:00:00Z", "2026-05-01T12:00:00Z"),
        ("@midnight", "2026-05-02T00:00:00Z", "2026-05-03T00:00:00Z"),
        ("@weekly", "2026-05-03T00:00:00Z", "2026-05-10T00:00:00Z"),
        ("@monthly", "2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z"),
        ("@annually", "2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"),
        ("@every 90m", "2026-05-01T10:30:00Z", "2026-05-01T12:00:00Z"),
        ("CRON_TZ=Asia/Tokyo 0 6 * * *", "2026-05-01T21:00:00Z", "2026-05-02T21:00:00Z"),
        ("TZ=Asia/Kolkata @daily", "2026-05-01T18:30:00Z", "2026-05-02T18:30:00Z"),
    ] {
        assert_eq!(next(text, "UTC", "2026-05-01T10:00:00Z", 2), [first, second], "{text}");
    }
}

#[test]
fn j08_a_time_is_that_of_the_zone() {
    // Niue is eleven hours behind UTC.
    assert_eq!(next("30 6 * * *", "Pacific/Niue", "2026-05-01T17:30:00Z", 1), ["2026-05-02T17:30:00Z"]);
    assert_eq!(next("30 6 * * *", "Pacific/Niue", "2026-05-01T17:29:59Z", 1), ["2026-05-01T17:30:00Z"]);
}

#[test]
fn a_fixed_time_in_a_skipped_hour_comes_when_the_clocks_have_gone_forward() {
    // Clocks go from 02:00 to 03:00 on 29 March.
    let zone = "Europe/Zurich";
    assert_eq!(
        next("30 2 * * *", zone, "2026-03-28T00:00:00Z", 3),
        ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
    );
    let nominal = at("2026-03-29T01:00:00Z");
    let note = schedule("30 2 * * *", zone).note(nominal, None).unwrap();
    assert!(note.contains("skipped"), "{note}");
    // What comes every half hour comes every half hour, and never twice.
    assert_eq!(
        next("*/30 * * * *", zone, "2026-03-29T00:00:00Z", 3),
        ["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]
    );
}

#[test]
fn a_fixed_time_in_a_doubled_hour_comes_once_and_an_interval_in_both() {
    // Clocks go from 03:00 to 02:00 on 25 October.
    let zone = "Europe/Zurich";
    assert_eq!(next("30 2 * * *", zone, "2026-10-24T01:00:00Z", 2), ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    assert_eq!(
        next("0 * * * *", zone, "2026-10-24T23:00:00Z", 3),
        ["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"]
    );
    let hourly = schedule("0 * * * *", zone);
    let note = |text: &str| hourly.note(at(text), None).unwrap_or_default();
    assert_eq!(note("2026-10-25T00:00:00Z"), "this hour comes twice, this is the first");
    assert_eq!(note("2026-10-25T01:00:00Z"), "this hour comes twice, this is the second");
    let daily = schedule("0 12 * * *", zone);
    let note = daily.note(at("2026-10-25T11:00:00Z"), Some(at("2026-10-24T10:00:00Z"))).unwrap();
    assert_eq!(note, "clocks have gone back since the time before: +02 is now +01");
    assert_eq!(daily.note(at("2026-10-26T11:00:00Z"), Some(at("2026-10-25T11:00:00Z"))), None);
}

#[test]
fn what_is_no_schedule_says_why() {
    for (text, part) in [
        ("", "it needs five fields (minute, hour, day of month, month, day of week), and has 0"),
        ("* * * * * *", "and has 6"),
        ("61 * * * *", "the minute cannot be `61`; it goes from 0 to 59"),
        ("* * * 13 *", "the month cannot be `13`"),
        ("* * * * 8", "the day of week cannot be `8`"),
        ("*/0 * * * *", "the minute cannot be `*/0`"),
        ("0 0 30 2 *", "that time never comes"),
        ("@fortnightly", "known are @yearly"),
        ("@every soon", "`soon` is no length of time such as 1h30m"),
        ("CRON_TZ=Mars/Olympus * * * * *", "there is no time zone `Mars/Olympus`"),
        ("CRON_TZ=UTC", "and has 0"),
    ] {
        let why = Schedule::parse(text, None, Time(0)).unwrap_err();
        assert!(why.contains(part), "{text}: {why}");
    }
}

const TEXTS: [&str; 8] = [
    "*/7 * * * *",
    "30 2 * * *",
    "0 3 * * *",
    "15 1,2,3 * * 0",
    "0 */5 * * *",
    "59 23 31 * *",
    "@every 17m",
    "0 0 1-7 * MON",
];
const ZONES: [&str; 6] =
    ["UTC", "Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Pacific/Niue", "Africa/Casablanca"];

proptest! {
    #[test]
    fn no_text_makes_it_panic_or_linger(text in "[-*/,0-9 @LW#?+A-Za-z=_é]{0,40}", zone in "[A-Za-z/_.]{0,20}") {
        if let Ok(schedule) = Schedule::parse(&text, Some(&zone), Time(0)) {
            prop_assert!(schedule.next_after(Time(0)).is_some());
        }
        let _ = Schedule::parse(&format!("{text} * * * *"), None, Time(i64::MAX));
        let _ = Schedule::parse(&format!("* * {text} * *"), None, Time(i64::MIN));
    }

    #[test]
    fn looking_back_finds_the_times_that_looking_forward_found(
        text in 0..TEXTS.len(), zone in 0..ZONES.len(), start in 1_767_225_600_i64..1_830_297_600
    ) {
        let schedule = schedule(TEXTS[text], ZONES[zone]);
        let mut time = Time::from_secs(start);
        for _ in 0..60 {
            let next = schedule.next_after(time).unwrap();
            prop_assert!(next > time);
            prop_assert_eq!(schedule.latest(next), Some(next), "{} {}", TEXTS[text], ZONES[zone]);
            let just_before = Time(next.0 - 1_000_000);
            if let Some(latest) = schedule.latest(just_before) {
                prop_assert!(latest <= time || just_before < time, "{} lies between {} and {}", latest, time, next);
            }
            time = next;
        }
    }
}
