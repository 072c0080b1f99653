//! Checks loops: only one kind per call, well-formed items, and no more items than the limit.

use octoflow_model::{
    argo::{Call, Sequence},
    scalar::IntOrText,
};
use serde_json::Value;

use super::{
    code,
    findings::{At, Findings},
    name,
};
use crate::{
    admit::shape::short,
    dialects::argo::{expand::MAX_ITEMS, sequence::check_format},
};

pub(super) fn check(report: &mut Findings, at: &At<'_>, of: &dyn Fn() -> String, call: &Call) {
    let kinds = [call.with_items.is_some(), call.with_param.is_some(), call.with_sequence.is_some()];
    if kinds.iter().filter(|given| **given).count() > 1 {
        report.error(at, code::LOOP, || {
            format!("{} only one of withItems, withParam, withSequence can be specified", of())
        });
    }
    if let Some(items) = &call.with_items {
        let place = at.key("withItems");
        for index in items.iter().enumerate().filter(|(_, item)| **item == Value::Null).map(|(index, _)| index) {
            report.error(&place.index(index), code::LOOP, || format!("{} unsupported withItems type: null", of()));
        }
    }
    if let Some(text) = &call.with_param
        && !name::has_variables(&text.0)
        && let Err(error) = serde_json::from_str::<Vec<Value>>(&text.0)
    {
        report.error_with(&at.key("withParam"), code::LOOP, || {
            let message =
                format!("{} withParam value could not be parsed as a JSON list: {}: {error}", of(), short(&text.0));
            (message, Some("a list that is known beforehand can be written under `withItems`".to_owned()))
        });
    }
    if let Some(sequence) = &call.with_sequence {
        numbers(report, &at.key("withSequence"), of, sequence);
    }
}

fn numbers(report: &mut Findings, at: &At<'_>, of: &dyn Fn() -> String, sequence: &Sequence) {
    match (&sequence.count, &sequence.end) {
        (Some(_), Some(_)) => {
            report.error(at, code::LOOP, || format!("{} only one of count or end can be defined in withSequence", of()))
        }
        (None, None) => report.error(at, code::LOOP, || format!("{} must have count or end in withSequence", of())),
        _ => {}
    }
    if let Some(format) = sequence.format.as_deref().filter(|format| !name::has_variables(format))
        && let Err(why) = check_format(format)
    {
        report.error(&at.key("format"), code::LOOP, || format!("{} {why}", of()));
    }
    let start = number(report, &at.key("start"), of, "start", sequence.start.as_ref());
    let end = number(report, &at.key("end"), of, "end", sequence.end.as_ref());
    let count = number(report, &at.key("count"), of, "count", sequence.count.as_ref());
    if let Some(count) = count
        && count < 0
    {
        report.error(&at.key("count"), code::LOOP, || format!("{} withSequence.count {count} is below zero", of()));
    }
    let start = if sequence.start.is_none() { Some(0) } else { start };
    let items = match (count, end, start) {
        (Some(count), _, _) => u64::try_from(count).unwrap_or(0),
        (None, Some(end), Some(start)) => end.abs_diff(start).saturating_add(1),
        _ => return,
    };
    if items > MAX_ITEMS as u64 {
        report.error_with(at, code::LOOP_TOO_LARGE, || {
            (
                format!("{} withSequence makes {items} items, the limit is {MAX_ITEMS}", of()),
                Some("let each task handle a range of numbers, or split the workflow".to_owned()),
            )
        });
    }
}

/// Parses a number. A text with variables is only known at run time.
fn number(
    report: &mut Findings,
    at: &At<'_>,
    of: &dyn Fn() -> String,
    field: &str,
    text: Option<&IntOrText>,
) -> Option<i64> {
    let text = &text?.0;
    if name::has_variables(text) {
        return None;
    }
    let number = text.trim().parse().ok();
    if number.is_none() {
        report
            .error(at, code::LOOP, || format!("{} withSequence.{field} '{}' is not a whole number", of(), short(text)));
    }
    number
}
