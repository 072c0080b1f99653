//! Methods of dates and durations: `.Year()`, `.Format("2006-01-02")`, `.Hours()`. Other values have none.

use jiff::SignedDuration;

use super::argument::{Arguments, describe};
use super::work::{CallResult, EvalFault};
use crate::expr::calendar::{self, Layout};
use crate::expr::{OffsetDateTime, Value, nearest, number};

const DATE: [&str; 20] = [
    "Year",
    "Month",
    "Day",
    "Hour",
    "Minute",
    "Second",
    "Nanosecond",
    "Weekday",
    "YearDay",
    "Unix",
    "UnixMilli",
    "Format",
    "Add",
    "Sub",
    "Before",
    "After",
    "Equal",
    "In",
    "UTC",
    "String",
];

const DURATION: [&str; 7] = ["Hours", "Minutes", "Seconds", "Milliseconds", "Microseconds", "Nanoseconds", "String"];

pub(super) fn call(value: &Value, name: &str, values: &[Value]) -> CallResult {
    let arguments = Arguments { name, values };
    match value {
        Value::Date(moment) => date(*moment, name, &arguments),
        Value::Duration(length) => duration(*length, name),
        Value::Nil
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Str(_)
        | Value::List(_)
        | Value::Map(_) => Err(EvalFault(format!("{} has no method '{name}'", describe(value)))),
    }
}

fn date(moment: OffsetDateTime, name: &str, arguments: &Arguments<'_>) -> CallResult {
    let civil = moment.civil();
    Ok(match name {
        "Year" => Value::Int(civil.year().into()),
        "Month" => Value::Int(civil.month().into()),
        "Day" => Value::Int(civil.day().into()),
        "Hour" => Value::Int(civil.hour().into()),
        "Minute" => Value::Int(civil.minute().into()),
        "Second" => Value::Int(civil.second().into()),
        "Nanosecond" => Value::Int(civil.subsec_nanosecond().into()),
        "Weekday" => Value::Int(moment.weekday().to_sunday_zero_offset().into()),
        "YearDay" => Value::Int(civil.date().day_of_year().into()),
        "Unix" => Value::Int(moment.at.as_second()),
        "UnixMilli" => Value::Int(moment.at.as_millisecond()),
        "Format" => Value::from(Layout::new(arguments.text(0)?).write(moment)),
        "String" => Value::from(moment.to_string()),
        "Add" => {
            let Value::Duration(length) = arguments.any(0) else {
                return Err(arguments.wrong(0, "a duration", arguments.any(0)));
            };
            moment.plus(*length).map(Value::Date).ok_or_else(|| EvalFault::from("there is no such date"))?
        }
        "In" => {
            let offset = calendar::zone(arguments.text(0)?).map_err(|why| arguments.fault(why))?;
            Value::Date(OffsetDateTime { offset, ..moment })
        }
        "UTC" => Value::Date(OffsetDateTime::utc(moment.at)),
        "Sub" => Value::Duration(moment.since(other_date(arguments)?)),
        "Before" => Value::Bool(moment.at < other_date(arguments)?.at),
        "After" => Value::Bool(moment.at > other_date(arguments)?.at),
        "Equal" => Value::Bool(moment.at == other_date(arguments)?.at),
        _ => return Err(unknown("date", name, &DATE)),
    })
}

fn other_date(arguments: &Arguments<'_>) -> Result<OffsetDateTime, EvalFault> {
    let value = arguments.any(0);
    if let Value::Date(moment) = value { Ok(*moment) } else { Err(arguments.wrong(0, "a date", value)) }
}

fn duration(length: SignedDuration, name: &str) -> CallResult {
    let seconds = length.as_secs_f64();
    let whole = |count: i128| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(match name {
        "Hours" => Value::Float(seconds / 3_600.0),
        "Minutes" => Value::Float(seconds / 60.0),
        "Seconds" => Value::Float(seconds),
        "Milliseconds" => whole(length.as_millis()),
        "Microseconds" => whole(length.as_micros()),
        "Nanoseconds" => whole(length.as_nanos()),
        "String" => Value::from(calendar::spell(length)),
        _ => return Err(unknown("duration", name, &DURATION)),
    })
}

fn unknown(kind: &str, name: &str, known: &[&'static str]) -> EvalFault {
    let hint =
        nearest(name, known.iter().copied()).map(|known| format!("; did you mean '{known}'?")).unwrap_or_default();
    EvalFault(format!("a {kind} has no method '{name}'{hint}"))
}

/// Converts a date or a Unix timestamp to a point in time; fractions of a second are dropped.
pub(super) fn seconds(value: &Value) -> Option<OffsetDateTime> {
    match value {
        Value::Date(moment) => Some(*moment),
        Value::Int(seconds) => OffsetDateTime::from_seconds(*seconds),
        Value::Float(seconds) => number::whole(*seconds).and_then(OffsetDateTime::from_seconds),
        Value::Nil | Value::Bool(_) | Value::Str(_) | Value::List(_) | Value::Map(_) | Value::Duration(_) => None,
    }
}
