//! The gate of working hours: outside of them jobs wait until the next window opens.

use jiff::{
    ToSpan, Zoned,
    civil::{Date, Time as ClockTime, Weekday},
    tz::TimeZone,
};
use serde_json::{Value, json};

use super::{Context, settings::Settings};

const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

/// A window on each of some days. One that ends before it begins lasts into the next day; one that ends as it begins
/// lasts a whole day.
pub(super) struct Hours {
    days: Vec<Weekday>,
    from: ClockTime,
    to: ClockTime,
    zone: TimeZone,
}

impl Hours {
    pub(super) fn read(settings: &Settings<'_>) -> Result<Self, String> {
        settings.only(&["days", "from", "to", "timezone"])?;
        let mut days: Vec<Weekday> = DAYS[..5].iter().map(|(_, day)| *day).collect();
        if let Some(given) = settings.get("days") {
            let wanted = || settings.wrong("days", "a list of days such as [Mon, Tue]");
            let day = |value: &Value| {
                let word = value.as_str()?.to_ascii_lowercase();
                DAYS.iter().find(|(short, _)| word.len() >= 3 && full(short).starts_with(&word)).map(|(_, day)| *day)
            };
            let given = given.as_array().filter(|days| !days.is_empty()).ok_or_else(wanted)?;
            days = given.iter().map(day).collect::<Option<_>>().ok_or_else(wanted)?;
        }
        let time = |name: &str, otherwise: &'static str| {
            let text = settings.text(name)?.unwrap_or(otherwise);
            clock_time(text).ok_or_else(|| settings.wrong(name, "a time of day such as 08:00"))
        };
        let zone = match settings.text("timezone")? {
            None => TimeZone::UTC,
            Some(name) => {
                let wanted = || settings.wrong("timezone", "a time zone such as Europe/Berlin");
                TimeZone::get(name).map_err(|_| wanted())?
            }
        };
        Ok(Self { days, from: time("from", "08:00")?, to: time("to", "18:00")?, zone })
    }

    /// Returns the window that begins on this day, if it is one with a window.
    fn window(&self, date: Date) -> Option<(Zoned, Zoned)> {
        if !self.days.contains(&date.weekday()) {
            return None;
        }
        let last = if self.to <= self.from { date.tomorrow().ok()? } else { date };
        let at = |date: Date, time: ClockTime| date.to_datetime(time).to_zoned(self.zone.clone()).ok();
        Some((at(date, self.from)?, at(last, self.to)?))
    }
}

fn full(short: &str) -> &'static str {
    match short {
        "mon" => "monday",
        "tue" => "tuesday",
        "wed" => "wednesday",
        "thu" => "thursday",
        "fri" => "friday",
        "sat" => "saturday",
        _ => "sunday",
    }
}

fn clock_time(text: &str) -> Option<ClockTime> {
    let (hour, minute) = text.split_once(':')?;
    let number = |text: &str| if text.len() == 2 { text.parse::<i8>().ok() } else { None };
    match (number(hour)?, number(minute)?) {
        (24, 0) => Some(ClockTime::midnight()),
        (hour, minute) => ClockTime::new(hour, minute, 0, 0).ok(),
    }
}

pub(super) fn decide(hours: &Hours, context: &Context) -> Value {
    let now = context.now.timestamp().to_zoned(hours.zone.clone());
    let today = now.date();
    // Yesterday's window may last until today, and every window comes again within a week.
    let days = (-1..=8).filter_map(|ahead: i64| today.checked_add(ahead.days()).ok());
    let windows: Vec<(Zoned, Zoned)> = days.filter_map(|day| hours.window(day)).collect();
    if let Some((_, to)) = windows.iter().find(|(from, to)| *from <= now && now < *to) {
        return json!({"decision": "pass", "reason": format!("within working hours, which end {}", shown(to))});
    }
    let next = windows.iter().find(|(from, _)| now < *from);
    let Some((from, _)) = next else {
        return json!({"decision": "suspend", "reason": "outside working hours", "recheckAfter": 3600});
    };
    // Not a moment before it opens.
    let micros = from.timestamp().as_microsecond().saturating_sub(context.now.0);
    let seconds = micros.div_euclid(1_000_000) + i64::from(micros.rem_euclid(1_000_000) > 0);
    json!({
        "decision": "suspend",
        "reason": format!("outside working hours, which begin {}", shown(from)),
        "recheckAfter": seconds.max(1),
    })
}

fn shown(time: &Zoned) -> String {
    time.strftime("%a %Y-%m-%d %H:%M %Z").to_string()
}
