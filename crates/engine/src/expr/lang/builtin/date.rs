//! Functions that make dates and durations out of text. The clock is never read.

use super::Function;
use crate::expr::calendar::{self, Layout};
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::work::Made;
use crate::expr::{Moment, Value};

pub(in crate::expr::lang) const FUNCTIONS: &[Function] = &[
    Function::new("date", 1, 3, |a, _| date(a)),
    Function::new("duration", 1, 1, |a, _| {
        calendar::duration(a.text(0)?).map(Value::Duration).ok_or_else(|| {
            a.fault(format!("'{}' is not a duration such as 1h30m or 300ms", a.text(0).unwrap_or_default()))
        })
    }),
];

fn date(a: &Arguments<'_>) -> Made {
    let text = a.text(0)?;
    if a.len() == 3 && !matches!(a.text(2)?, "UTC" | "Etc/UTC" | "GMT" | "Z") {
        return Err(a.fault(format!(
            "the time zone '{}' is not available, because zone tables differ between machines; \
             use UTC, or write the offset into the text of the date",
            a.text(2)?
        )));
    }
    if a.len() > 1 {
        let layout = a.text(1)?;
        return Layout::new(layout)
            .read(text)
            .map(Value::Date)
            .map_err(|reason| a.fault(format!("'{text}' is not a date like '{layout}': {reason}")));
    }
    Moment::known(text)
        .map(Value::Date)
        .ok_or_else(|| a.fault(format!("'{text}' is not a date such as 2006-01-02 or 2006-01-02T15:04:05Z")))
}
