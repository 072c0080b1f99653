//! `sprig.*` functions on dates: a date, or a Unix timestamp. All are shown in UTC unless the date has its own offset.
//! The current time is part of the evaluation context.

use crate::expr::calendar::{self, Layout};
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::builtin::Function;
use crate::expr::lang::method::seconds;
use crate::expr::lang::work::{CallResult, EvalFault};
use crate::expr::{OffsetDateTime, Value};

use super::coerce;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("now", 0, 0, |a, work| work.moment(a.name).map(Value::Date)),
    Function::new("ago", 1, 1, |a, work| {
        let passed = work.moment(a.name)?.since(moment(a, 0)?);
        let whole = passed.round(jiff::Unit::Second).unwrap_or(passed);
        Ok(Value::from(calendar::spell(whole)))
    }),
    Function::new("date", 2, 2, |a, _| Ok(Value::from(Layout::new(a.text(0)?).write(moment(a, 1)?)))),
    Function::new("htmlDate", 1, 1, |a, _| Ok(Value::from(Layout::new("2006-01-02").write(moment(a, 0)?)))),
    Function::new("dateInZone", 3, 3, |a, _| in_zone(a, a.text(0)?, 1, 2)),
    Function::new("date_in_zone", 3, 3, |a, _| in_zone(a, a.text(0)?, 1, 2)),
    Function::new("htmlDateInZone", 2, 2, |a, _| in_zone(a, "2006-01-02", 0, 1)),
    Function::new("dateModify", 2, 2, |a, _| modify(a)),
    Function::new("date_modify", 2, 2, |a, _| modify(a)),
    Function::new("toDate", 2, 2, |a, _| {
        let (layout, text) = (a.text(0)?, a.text(1)?);
        Layout::new(layout)
            .read(text)
            .map(Value::Date)
            .map_err(|reason| a.fault(format!("'{text}' is not a date like '{layout}': {reason}")))
    }),
    Function::new("unixEpoch", 1, 1, |a, _| Ok(Value::from(moment(a, 0)?.at.as_second().to_string()))),
    Function::new("durationRound", 1, 1, |a, _| {
        let value = a.any(0);
        let length = if let Value::Duration(length) = value {
            *length
        } else if let Some(text) = value.as_str() {
            calendar::duration(text).unwrap_or_default()
        } else {
            jiff::SignedDuration::from_nanos(coerce::int(value))
        };
        Ok(Value::from(rounded(length)))
    }),
    Function::new("duration", 1, 1, |a, _| {
        let length = jiff::SignedDuration::from_secs(coerce::int(a.any(0)));
        Ok(Value::from(calendar::spell(length)))
    }),
];

fn moment(a: &Arguments<'_>, index: usize) -> Result<OffsetDateTime, EvalFault> {
    seconds(a.any(index)).ok_or_else(|| a.wrong(index, "a date or seconds since 1970", a.any(index)))
}

fn in_zone(a: &Arguments<'_>, layout: &str, date: usize, zone: usize) -> CallResult {
    let offset = calendar::zone(a.text(zone)?).map_err(|why| a.fault(why))?;
    let there = OffsetDateTime { offset, ..moment(a, date)? };
    Ok(Value::from(Layout::new(layout).write(there)))
}

/// Rounds a duration to the largest unit it has more than one of, as in `3mo`.
fn rounded(length: jiff::SignedDuration) -> String {
    const UNITS: [(i64, &str); 6] =
        [(365 * 86_400, "y"), (30 * 86_400, "mo"), (86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let length = length.abs();
    let unit = UNITS.iter().find(|(seconds, _)| length > jiff::SignedDuration::from_secs(*seconds));
    unit.map_or_else(|| "0s".to_owned(), |(seconds, unit)| format!("{}{unit}", length.as_secs() / seconds))
}

fn modify(a: &Arguments<'_>) -> CallResult {
    let text = a.text(0)?;
    let length =
        calendar::duration(text).ok_or_else(|| a.fault(format!("'{text}' is not a duration such as -1h30m")))?;
    moment(a, 1)?.plus(length).map(Value::Date).ok_or_else(|| a.fault("there is no such date"))
}
