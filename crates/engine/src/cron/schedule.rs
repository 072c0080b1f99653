//! One cron schedule: five fields, a nickname or an interval, in a time zone. It computes its times before and after
//! any other; it never reads the clock.

use std::time::Duration;

use croner::{
    Cron,
    errors::CronError,
    parser::{CronParser, Seconds, Year},
};
use jiff::{
    Timestamp, Zoned,
    tz::{TimeZone, TimeZoneDatabase},
};
use octoflow_model::Time;

use crate::dialects::argo::duration;

/// Names of the five fields, in order.
const FIELDS: [&str; 5] = ["minute", "hour", "day of month", "month", "day of week"];

/// A schedule in its time zone.
#[derive(Clone, Debug)]
pub struct Schedule {
    text: String,
    zone: TimeZone,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Pattern(Box<Cron>),
    /// Counted from a fixed time, so that a restart does not shift the schedule.
    Every {
        seconds: i64,
        anchor: i64,
    },
}

impl Schedule {
    /// Reads `0 6 * * 1-5`, `@daily`, `@every 90m`, each also behind `CRON_TZ=Zone` or `TZ=Zone`, which is stronger
    /// than `zone`. Without a zone it is UTC. Intervals are counted from `anchor`.
    pub fn parse(text: &str, zone: Option<&str>, anchor: Time) -> Result<Self, String> {
        let trimmed = text.trim();
        let prefix = ["CRON_TZ=", "TZ="].iter().find_map(|prefix| trimmed.strip_prefix(prefix));
        let (own, rest) = match prefix {
            Some(rest) => {
                let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                (Some(name), rest.trim())
            }
            None => (None, trimmed),
        };
        let wrong = |why: String| format!("`{}` is no schedule: {why}", crate::admit::shape::short(text));
        let zone = match own.or(zone.filter(|zone| !zone.is_empty())) {
            Some(name) => self::zone(name).map_err(wrong)?,
            None => TimeZone::UTC,
        };
        let rule = rule(rest, anchor).map_err(wrong)?;
        let schedule = Self { text: text.to_owned(), zone, rule };
        // 1996 to 2000 hold every weekday of every date but 29 February; the search goes on far beyond.
        if schedule.next_after(Time::from_secs(820_454_400)).is_none() {
            return Err(wrong("that time never comes".to_owned()));
        }
        Ok(schedule)
    }

    /// Returns the schedule as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Returns its first time after this one.
    pub fn next_after(&self, time: Time) -> Option<Time> {
        match &self.rule {
            Rule::Pattern(cron) => moment(cron.find_next_occurrence(&self.zoned(time), false)),
            Rule::Every { seconds, anchor } => {
                let passed = time.seconds().saturating_sub(*anchor);
                let at = anchor.saturating_add(passed.div_euclid(*seconds).saturating_add(1).saturating_mul(*seconds));
                Some(Time::from_secs(at)).filter(|at| *at > time)
            }
        }
    }

    /// Returns its last time that is not after this one. An interval has none before its anchor.
    pub fn latest(&self, time: Time) -> Option<Time> {
        match &self.rule {
            Rule::Pattern(cron) => moment(cron.find_previous_occurrence(&self.zoned(time), true)),
            Rule::Every { seconds, anchor } => {
                let passed = time.seconds().saturating_sub(*anchor);
                (passed >= *seconds).then(|| Time::from_secs(anchor + passed.div_euclid(*seconds) * seconds))
            }
        }
    }

    /// Returns a note about a daylight-saving change at this time; `before` is the schedule's previous time.
    pub fn note(&self, time: Time, before: Option<Time>) -> Option<String> {
        let at = self.zoned(time);
        if let Rule::Pattern(cron) = &self.rule
            && !cron.is_time_matching(&at).unwrap_or(true)
        {
            return Some("its hour is skipped on this day, so it comes when the clocks have gone forward".to_owned());
        }
        let ambiguous = self.zone.to_ambiguous_zoned(at.datetime());
        if let jiff::tz::AmbiguousOffset::Fold { before: first, .. } = ambiguous.offset() {
            let which = if at.offset() == first { "first" } else { "second" };
            return Some(format!("this hour comes twice, this is the {which}"));
        }
        let earlier = self.zoned(before?);
        let (was, is) = (earlier.offset(), at.offset());
        (was != is).then(|| {
            let way = if is > was { "forward" } else { "back" };
            format!("clocks have gone {way} since the time before: {was} is now {is}")
        })
    }

    fn zoned(&self, time: Time) -> Zoned {
        let whole = Timestamp::from_second(time.seconds()).unwrap_or(time.timestamp());
        whole.to_zoned(self.zone.clone())
    }
}

/// Returns the zone of this name from the bundled database: the machine's own may be missing or differ.
pub fn zone(name: &str) -> Result<TimeZone, String> {
    // `Local` is not supported: it would make a schedule depend on the machine.
    TimeZoneDatabase::bundled().get(name).map_err(|_| {
        format!("there is no time zone `{}`; use a name such as Europe/Zurich", crate::admit::shape::short(name))
    })
}

fn rule(text: &str, anchor: Time) -> Result<Rule, String> {
    if let Some(length) = text.strip_prefix("@every") {
        let length = length.trim();
        let length = duration::units(length)
            .ok_or_else(|| format!("`{}` is no length of time such as 1h30m", crate::admit::shape::short(length)))?;
        // A schedule counts in seconds.
        let length = length.max(Duration::from_secs(1));
        let seconds = i64::try_from(length.as_secs()).unwrap_or(i64::MAX);
        return Ok(Rule::Every { seconds, anchor: anchor.seconds() });
    }
    let pattern = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        nickname if nickname.starts_with('@') => {
            return Err("known are @yearly, @monthly, @weekly, @daily, @hourly and @every with a length".to_owned());
        }
        pattern => pattern,
    };
    let fields: Vec<&str> = pattern.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("it needs five fields ({}), and has {}", FIELDS.join(", "), fields.len()));
    }
    match parser().parse(pattern) {
        Ok(cron) => Ok(Rule::Pattern(Box::new(cron))),
        Err(error) => Err(culprit(&fields).unwrap_or_else(|| error.to_string())),
    }
}

fn parser() -> CronParser {
    CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).sloppy_ranges(true).build()
}

/// Finds the invalid field by parsing each one alone.
fn culprit(fields: &[&str]) -> Option<String> {
    const RANGES: [&str; 5] = ["0 to 59", "0 to 23", "1 to 31", "1 to 12 or JAN to DEC", "0 to 7 or SUN to SAT"];
    fields.iter().enumerate().find_map(|(at, field)| {
        let mut alone = ["*"; 5];
        alone[at] = field;
        let wrong = parser().parse(&alone.join(" ")).is_err();
        wrong.then(|| {
            let (name, range) = (FIELDS[at], RANGES[at]);
            format!("the {name} cannot be `{}`; it goes from {range}", crate::admit::shape::short(field))
        })
    })
}

fn moment(found: Result<Zoned, CronError>) -> Option<Time> {
    found.ok().map(|at| Time::from_secs(at.timestamp().as_second()))
}
