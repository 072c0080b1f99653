//! Date layouts: the reference time `Mon Jan 2 15:04:05 -0700 2006`, written in the desired format, defines how dates
//! are parsed and formatted. Formatting never fails; parsing says what it stumbled over.

use jiff::civil::Date;
use jiff::tz::Offset;

use super::OffsetDateTime;

/// A layout, split into its parts.
pub(crate) struct Layout<'a>(Vec<Part<'a>>);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Part<'a> {
    Text(&'a str),
    Year,
    ShortYear,
    Month,
    ShortMonth,
    MonthNumber(Pad),
    Weekday,
    ShortWeekday,
    Day(Pad),
    YearDay,
    Hour,
    HalfHour(Pad),
    Minute(Pad),
    Second(Pad),
    /// Digits after the second; trailing zeros are left out when `trim`.
    Fraction {
        digits: usize,
        trim: bool,
    },
    Noon {
        upper: bool,
    },
    Zone,
    Shift {
        z: bool,
        colon: bool,
        minutes: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Pad {
    None,
    Zero,
    Space,
}

/// Longer spellings first, where one is a prefix of another.
const PARTS: [(&str, Part<'static>); 28] = [
    ("January", Part::Month),
    ("Monday", Part::Weekday),
    ("Jan", Part::ShortMonth),
    ("Mon", Part::ShortWeekday),
    ("MST", Part::Zone),
    ("2006", Part::Year),
    ("Z07:00", Part::Shift { z: true, colon: true, minutes: true }),
    ("Z0700", Part::Shift { z: true, colon: false, minutes: true }),
    ("Z07", Part::Shift { z: true, colon: false, minutes: false }),
    ("-07:00", Part::Shift { z: false, colon: true, minutes: true }),
    ("-0700", Part::Shift { z: false, colon: false, minutes: true }),
    ("-07", Part::Shift { z: false, colon: false, minutes: false }),
    ("002", Part::YearDay),
    ("01", Part::MonthNumber(Pad::Zero)),
    ("02", Part::Day(Pad::Zero)),
    ("03", Part::HalfHour(Pad::Zero)),
    ("04", Part::Minute(Pad::Zero)),
    ("05", Part::Second(Pad::Zero)),
    ("06", Part::ShortYear),
    ("15", Part::Hour),
    ("PM", Part::Noon { upper: true }),
    ("pm", Part::Noon { upper: false }),
    ("_2", Part::Day(Pad::Space)),
    ("1", Part::MonthNumber(Pad::None)),
    ("2", Part::Day(Pad::None)),
    ("3", Part::HalfHour(Pad::None)),
    ("4", Part::Minute(Pad::None)),
    ("5", Part::Second(Pad::None)),
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

impl<'a> Layout<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut parts = Vec::new();
        let mut start = 0;
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let found = fraction(rest).or_else(|| {
                let found = PARTS.iter().find(|(spelling, _)| rest.starts_with(spelling));
                found.map(|(spelling, part)| (spelling.len(), *part))
            });
            if let Some((length, part)) = found {
                if start < at {
                    parts.push(Part::Text(&text[start..at]));
                }
                parts.push(part);
                at += length;
                start = at;
            } else {
                at += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
        if start < text.len() {
            parts.push(Part::Text(&text[start..]));
        }
        Self(parts)
    }

    pub(crate) fn write(&self, moment: OffsetDateTime) -> String {
        let civil = moment.civil();
        let month = MONTHS[usize::from(civil.month().unsigned_abs()) - 1];
        let weekday = DAYS[usize::from(moment.weekday().to_monday_zero_offset().unsigned_abs())];
        let half = match civil.hour() % 12 {
            0 => 12,
            hour => hour,
        };
        let mut text = String::new();
        for part in &self.0 {
            match *part {
                Part::Text(fixed) => text.push_str(fixed),
                Part::Year => text.push_str(&format!("{:04}", civil.year())),
                Part::ShortYear => text.push_str(&format!("{:02}", civil.year().rem_euclid(100))),
                Part::Month => text.push_str(month),
                Part::ShortMonth => text.push_str(&month[..3]),
                Part::MonthNumber(pad) => text.push_str(&padded(civil.month(), pad)),
                Part::Weekday => text.push_str(weekday),
                Part::ShortWeekday => text.push_str(&weekday[..3]),
                Part::Day(pad) => text.push_str(&padded(civil.day(), pad)),
                Part::YearDay => text.push_str(&format!("{:03}", civil.date().day_of_year())),
                Part::Hour => text.push_str(&padded(civil.hour(), Pad::Zero)),
                Part::HalfHour(pad) => text.push_str(&padded(half, pad)),
                Part::Minute(pad) => text.push_str(&padded(civil.minute(), pad)),
                Part::Second(pad) => text.push_str(&padded(civil.second(), pad)),
                Part::Fraction { digits, trim } => {
                    let all = format!(".{:09}", civil.subsec_nanosecond());
                    let cut = &all[..=digits];
                    text.push_str(if trim { cut.trim_end_matches('0').trim_end_matches('.') } else { cut });
                }
                Part::Noon { upper } => text.push_str(match (civil.hour() < 12, upper) {
                    (true, true) => "AM",
                    (true, false) => "am",
                    (false, true) => "PM",
                    (false, false) => "pm",
                }),
                Part::Zone if moment.offset == Offset::UTC => text.push_str("UTC"),
                Part::Zone => text.push_str(&shifted(moment.offset, false, true)),
                Part::Shift { z: true, .. } if moment.offset == Offset::UTC => text.push('Z'),
                Part::Shift { colon, minutes, .. } => text.push_str(&shifted(moment.offset, colon, minutes)),
            }
        }
        text
    }

    /// Parses a date; a time without a zone is UTC, a time without a date is in the year 0.
    pub(crate) fn read(&self, text: &str) -> Result<OffsetDateTime, String> {
        self.read_in(text, Offset::UTC)
    }

    /// Parses a date; a time without a zone is in this zone.
    pub(crate) fn read_in(&self, text: &str, zone: Offset) -> Result<OffsetDateTime, String> {
        let mut reader = Reader { offset: zone, ..Reader::new(text) };
        for part in &self.0 {
            reader.part(*part).ok_or_else(|| format!("'{}' does not fit the layout", reader.rest))?;
        }
        if reader.rest.is_empty() {
            reader.moment().ok_or_else(|| "there is no such date".to_owned())
        } else {
            Err(format!("'{}' is left over", reader.rest))
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
    year: i16,
    month: i8,
    day: i8,
    year_day: Option<i16>,
    hour: i8,
    minute: i8,
    second: i8,
    nanosecond: i32,
    afternoon: Option<bool>,
    offset: Offset,
}

impl<'a> Reader<'a> {
    fn new(rest: &'a str) -> Self {
        Self {
            rest,
            year: 0,
            month: 1,
            day: 1,
            year_day: None,
            hour: 0,
            minute: 0,
            second: 0,
            nanosecond: 0,
            afternoon: None,
            offset: Offset::UTC,
        }
    }

    fn part(&mut self, part: Part<'_>) -> Option<()> {
        match part {
            Part::Text(fixed) => self.rest = self.rest.strip_prefix(fixed)?,
            Part::Year => self.year = self.digits(4, 4)?,
            Part::ShortYear => {
                let short: i16 = self.digits(2, 2)?;
                self.year = short + if short >= 69 { 1900 } else { 2000 };
            }
            Part::Month => self.month = self.word(&MONTHS, 0)? + 1,
            Part::ShortMonth => self.month = self.word(&MONTHS, 3)? + 1,
            Part::Weekday => self.word(&DAYS, 0).map(drop)?,
            Part::ShortWeekday => self.word(&DAYS, 3).map(drop)?,
            Part::MonthNumber(pad) => self.month = self.padded(pad)?,
            Part::Day(pad) => self.day = self.padded(pad)?,
            Part::YearDay => self.year_day = Some(self.digits(3, 3)?),
            Part::Hour => self.hour = self.digits(2, 2)?,
            Part::HalfHour(pad) => self.hour = self.padded(pad)?,
            Part::Minute(pad) => self.minute = self.padded(pad)?,
            Part::Second(pad) => {
                self.second = self.padded(pad)?;
                // A fraction may follow the seconds even if the layout has none.
                self.fraction();
            }
            Part::Fraction { digits, trim: false } => {
                let given = self.nanosecond != 0 || self.fraction() == Some(digits);
                return given.then_some(());
            }
            Part::Fraction { trim: true, .. } => {
                self.fraction();
            }
            Part::Noon { .. } => {
                let (word, rest) = self.rest.split_at_checked(2)?;
                self.afternoon = Some(match word.to_ascii_lowercase().as_str() {
                    "am" => false,
                    "pm" => true,
                    _ => return None,
                });
                self.rest = rest;
            }
            Part::Zone => {
                let zones = ["UTC", "GMT"];
                self.rest = zones.iter().find_map(|zone| self.rest.strip_prefix(zone))?;
            }
            Part::Shift { z, colon, minutes } => self.shift(z, colon, minutes)?,
        }
        Some(())
    }

    fn moment(&self) -> Option<OffsetDateTime> {
        let hour = match self.afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        let date = match self.year_day {
            Some(day) => Date::new(self.year, 1, 1).ok()?.with().day_of_year(day).build().ok()?,
            None => Date::new(self.year, self.month, self.day).ok()?,
        };
        let time = jiff::civil::Time::new(hour, self.minute, self.second, self.nanosecond).ok()?;
        let at = self.offset.to_timestamp(date.to_datetime(time)).ok()?;
        Some(OffsetDateTime { at, offset: self.offset })
    }

    fn padded(&mut self, pad: Pad) -> Option<i8> {
        match pad {
            Pad::Zero => self.digits(2, 2),
            Pad::None => self.digits(1, 2),
            Pad::Space => {
                self.rest = self.rest.strip_prefix(' ').unwrap_or(self.rest);
                self.digits(1, 2)
            }
        }
    }

    fn digits<N: std::str::FromStr>(&mut self, least: usize, most: usize) -> Option<N> {
        let count = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if count < least {
            return None;
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits.parse().ok()
    }

    fn word(&mut self, words: &[&str], length: usize) -> Option<i8> {
        let found = words.iter().position(|word| {
            let wanted = if length == 0 { word } else { &word[..length] };
            let given = self.rest.get(..wanted.len());
            given.is_some_and(|given| given.eq_ignore_ascii_case(wanted))
        })?;
        let taken = if length == 0 { words[found].len() } else { length };
        self.rest = &self.rest[taken..];
        i8::try_from(found).ok()
    }

    /// Reads a point and digits, if they are next; returns how many.
    fn fraction(&mut self) -> Option<usize> {
        let after = self.rest.strip_prefix(['.', ','])?;
        let count = after.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 || count > 9 {
            return None;
        }
        let (digits, rest) = after.split_at(count);
        self.nanosecond = format!("{digits:0<9}").parse().ok()?;
        self.rest = rest;
        Some(count)
    }

    fn shift(&mut self, z: bool, colon: bool, minutes: bool) -> Option<()> {
        if z && let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Some(());
        }
        let (sign, rest) = match self.rest.as_bytes().first()? {
            b'+' => (1, &self.rest[1..]),
            b'-' => (-1, &self.rest[1..]),
            _ => return None,
        };
        self.rest = rest;
        let hours: i32 = self.digits(2, 2)?;
        if colon {
            self.rest = self.rest.strip_prefix(':')?;
        }
        let minutes: i32 = if minutes { self.digits(2, 2)? } else { 0 };
        self.offset = Offset::from_seconds(sign * (hours * 3_600 + minutes * 60)).ok()?;
        Some(())
    }
}

/// Recognises runs of `0` or `9` after a point or comma, of any length up to nine.
fn fraction(rest: &str) -> Option<(usize, Part<'static>)> {
    let mut bytes = rest.bytes();
    if !matches!(bytes.next()?, b'.' | b',') {
        return None;
    }
    let kind = bytes.next().filter(|byte| matches!(byte, b'0' | b'9'))?;
    let digits = rest[1..].bytes().take_while(|&byte| byte == kind).count();
    // `.01` is a point and a month, not a fraction.
    let followed = rest[1 + digits..].starts_with(|c: char| c.is_ascii_digit());
    (digits <= 9 && !followed).then_some((1 + digits, Part::Fraction { digits, trim: kind == b'9' }))
}

fn padded(number: i8, pad: Pad) -> String {
    match pad {
        Pad::None => number.to_string(),
        Pad::Zero => format!("{number:02}"),
        Pad::Space => format!("{number:2}"),
    }
}

fn shifted(offset: Offset, colon: bool, minutes: bool) -> String {
    let seconds = offset.seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let (hours, rest) = (seconds.abs() / 3_600, seconds.abs() / 60 % 60);
    match (colon, minutes) {
        (true, _) => format!("{sign}{hours:02}:{rest:02}"),
        (false, true) => format!("{sign}{hours:02}{rest:02}"),
        (false, false) => format!("{sign}{hours:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_write_what_they_read() {
        for (layout, text) in [
            ("2006-01-02T15:04:05Z07:00", "2024-02-29T23:59:58Z"),
            ("2006-01-02T15:04:05.000Z07:00", "2024-02-29T23:59:58.120+05:30"),
            ("Mon, 02 Jan 2006 15:04:05 MST", "Thu, 29 Feb 2024 23:59:58 UTC"),
            ("Monday, January 2, 2006 at 3:04pm", "Thursday, February 29, 2024 at 11:59pm"),
            ("02/01/06", "29/02/24"),
            ("2006-002", "2024-060"),
            ("20060102-150405", "20240229-235958"),
            ("Jan _2 03:04:05 PM 2006 -0700", "Feb  9 12:04:05 AM 2024 -0330"),
        ] {
            let layout = Layout::new(layout);
            let moment = layout.read(text).unwrap();
            assert_eq!(layout.write(moment), text);
        }
    }

    #[test]
    fn reading_says_what_it_stumbled_over() {
        let layout = Layout::new("2006-01-02");
        assert_eq!(layout.read("2024-02-30").unwrap_err(), "there is no such date");
        assert_eq!(layout.read("2024-02-28T").unwrap_err(), "'T' is left over");
        assert_eq!(layout.read("24-02-28").unwrap_err(), "'24-02-28' does not fit the layout");
        assert!(layout.read("é").is_err());
    }
}
