//! `jsonpath(text, path)`: `$.a.b`, `$.a[0]`, `$..x`, `[*]`, `[1:3]`, `['a','b']` and filters such as `[?(@.x == 1)]`.
//! A definite path yields its value, and a missing value is an error; a path that can match several values yields an
//! array.

use super::work::{CallResult, EvalFault, EvalWork};
use crate::expr::Value;

mod filter;
mod path;

use path::{LocatedSegment, Segment};

/// Maximum steps of a path: each walks all values found so far, and users write a handful.
const STEPS: usize = 64;

pub(super) fn query(document: &Value, path: &str, work: &mut EvalWork) -> CallResult {
    let steps = path::parse(path)?;
    let definite = steps.iter().all(LocatedSegment::is_definite);
    let mut found = vec![document.clone()];
    for step in &steps {
        let mut next = Vec::new();
        for value in &found {
            if step.deep {
                descend(value, &step.segment, document, &mut next, work)?;
            } else {
                select(value, &step.segment, document, &mut next, work)?;
            }
        }
        if definite && next.is_empty() {
            return Err(EvalFault(format!("there is nothing at '{path}': {} was not found", step.segment)));
        }
        found = next;
    }
    if definite {
        return Ok(found.pop().unwrap_or_default());
    }
    Ok(Value::list(found))
}

/// Checks the syntax of a path.
pub(super) fn check(path: &str) -> Result<(), EvalFault> {
    path::parse(path).map(drop)
}

/// Selects from a value and from everything inside it.
fn descend(
    value: &Value,
    segment: &Segment,
    document: &Value,
    found: &mut Vec<Value>,
    work: &mut EvalWork,
) -> Result<(), EvalFault> {
    select(value, segment, document, found, work)?;
    value.elements().try_for_each(|item| descend(item, segment, document, found, work))
}

fn select(
    value: &Value,
    segment: &Segment,
    document: &Value,
    found: &mut Vec<Value>,
    work: &mut EvalWork,
) -> Result<(), EvalFault> {
    let before = found.len();
    match (segment, value) {
        (Segment::Names(names), Value::Map(entries)) => {
            found.extend(names.iter().filter_map(|name| entries.get(name)).cloned());
        }
        (Segment::Positions(positions), Value::List(items)) => {
            let at = positions.iter().filter_map(|&position| nth(items, position));
            found.extend(at.cloned());
        }
        (Segment::All, _) => found.extend(value.elements().cloned()),
        (Segment::Slice { from, to, step }, Value::List(items)) => {
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let place = |given: i64| if given < 0 { given.saturating_add(length) } else { given }.clamp(0, length);
            let (from, to) = (place(from.unwrap_or(0)), place(to.unwrap_or(length)));
            let picked = (from..to.max(from)).step_by(usize::try_from(*step).unwrap_or(1));
            found.extend(picked.filter_map(|position| nth(items, position)).cloned());
        }
        (Segment::Filter(filter), _) => {
            for item in value.elements() {
                if filter.holds(item, document, work)? {
                    found.push(item.clone());
                }
            }
        }
        (Segment::Names(_) | Segment::Positions(_) | Segment::Slice { .. }, _) => {}
    }
    work.claim_list(found.len() - before + 1)
}

fn nth(items: &[Value], position: i64) -> Option<&Value> {
    let length = i64::try_from(items.len()).ok()?;
    let counted = if position < 0 { position.checked_add(length)? } else { position };
    items.get(usize::try_from(counted).ok()?)
}
