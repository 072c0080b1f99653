//! Functions that create dates and durations. The current time is part of the evaluation context; the clock is never
//! read.

use super::Function;
use crate::expr::calendar::{self, Layout};
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::work::CallResult;
use crate::expr::{OffsetDateTime, Value};

pub(in crate::expr::lang) const FUNCTIONS: &[Function] = &[
    Function::new("now", 0, 0, |a, work| work.moment(a.name).map(Value::Date)),
    Function::new("date", 1, 3, |a, _| date(a)),
    Function::new("timezone", 1, 1, |a, _| {
        // A zone is represented by its name.
        calendar::zone(a.text(0)?).map_err(|why| a.fault(why))?;
        Ok(a.any(0).clone())
    }),
    Function::new("duration", 1, 1, |a, _| {
        calendar::duration(a.text(0)?).map(Value::Duration).ok_or_else(|| {
            a.fault(format!("'{}' is not a duration such as 1h30m or 300ms", a.text(0).unwrap_or_default()))
        })
    }),
];

fn date(a: &Arguments<'_>) -> CallResult {
    let text = a.text(0)?;
    if a.len() > 1 {
        let layout = a.text(1)?;
        let zone = if a.len() == 3 { a.text(2)? } else { "UTC" };
        return Layout::new(layout)
            .read_in(text, calendar::zone(zone).map_err(|why| a.fault(why))?)
            .map(Value::Date)
            .map_err(|reason| a.fault(format!("'{text}' is not a date like '{layout}': {reason}")));
    }
    OffsetDateTime::known(text)
        .map(Value::Date)
        .ok_or_else(|| a.fault(format!("'{text}' is not a date such as 2006-01-02 or 2006-01-02T15:04:05Z")))
}
