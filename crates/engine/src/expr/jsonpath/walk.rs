//! Evaluates a parsed path. Missing values match nothing.

use std::cmp::Ordering;

use serde_json::Value;

use super::parse::{Compare, From, Operand, Path, PathStep, PathTest};

/// Returns the values that the path matches, within a step budget; every value visited costs one step.
pub(super) fn find<'a>(path: &Path, root: &'a Value, current: &'a Value, left: &mut u64) -> Option<Vec<&'a Value>> {
    let mut found = vec![if path.from == From::Root { root } else { current }];
    for step in &path.steps {
        let mut next = Vec::new();
        for value in found {
            next.extend(follow(step, root, value, left)?);
            *left = left.checked_sub(1)?;
        }
        *left = left.checked_sub(next.len() as u64)?;
        found = next;
    }
    Some(found)
}

fn follow<'a>(step: &PathStep, root: &'a Value, value: &'a Value, left: &mut u64) -> Option<Vec<&'a Value>> {
    Some(match step {
        PathStep::Key(key) => value.get(key).into_iter().collect(),
        PathStep::Keys(keys) => keys.iter().filter_map(|key| value.get(key)).collect(),
        PathStep::All => members(value),
        PathStep::Below => below(value),
        PathStep::Indexes(places) => {
            let list = items(value);
            places.iter().filter_map(|place| list.get(index(*place, list.len())?)).collect()
        }
        PathStep::Slice { from, to, step } => {
            let list = items(value);
            let from = from.map_or(0, |from| bound(from, list.len()));
            let to = to.map_or(list.len(), |to| bound(to, list.len()));
            let stride = usize::try_from(*step).unwrap_or(1);
            list.iter().take(to).skip(from).step_by(stride).collect()
        }
        PathStep::Filter(test) => {
            let mut kept = Vec::new();
            for item in members(value) {
                if holds(test, root, item, left)? {
                    kept.push(item);
                }
            }
            kept
        }
    })
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn members(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Returns the value and all its descendants, parents first.
fn below(value: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        found.push(value);
        open.extend(members(value).into_iter().rev());
    }
    found
}

fn index(place: i64, length: usize) -> Option<usize> {
    if place >= 0 {
        usize::try_from(place).ok()
    } else {
        length.checked_sub(usize::try_from(place.unsigned_abs()).ok()?)
    }
}

fn bound(place: i64, length: usize) -> usize {
    index(place, length).unwrap_or(0).min(length)
}

fn holds(test: &PathTest, root: &Value, item: &Value, steps: &mut u64) -> Option<bool> {
    *steps = steps.checked_sub(1)?;
    let left = operand(&test.left, root, item, steps)?;
    Some(match &test.compare {
        // A bare path tests for existence.
        None => left.is_some(),
        Some((compare, right)) => {
            let right = operand(right, root, item, steps)?;
            match compare {
                Compare::Equal => equal(left, right),
                Compare::Unequal => !equal(left, right),
                Compare::Less => order(left, right) == Some(Ordering::Less),
                Compare::LessOrEqual => matches!(order(left, right), Some(Ordering::Less | Ordering::Equal)),
                Compare::Greater => order(left, right) == Some(Ordering::Greater),
                Compare::GreaterOrEqual => matches!(order(left, right), Some(Ordering::Greater | Ordering::Equal)),
            }
        }
    })
}

/// Evaluates an operand. The outer `Option` is `None` if the budget is exhausted, the inner one if there is no value.
fn operand<'a>(operand: &'a Operand, root: &'a Value, item: &'a Value, steps: &mut u64) -> Option<Option<&'a Value>> {
    Some(match operand {
        Operand::Literal(value) => Some(value),
        Operand::Path(path) => find(path, root, item, steps)?.into_iter().next(),
    })
}

fn equal(left: Option<&Value>, right: Option<&Value>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => left == right || order(Some(left), Some(right)) == Some(Ordering::Equal),
        (left, right) => left.is_none() && right.is_none(),
    }
}

fn order(left: Option<&Value>, right: Option<&Value>) -> Option<Ordering> {
    match (left?, right?) {
        (Value::Number(left), Value::Number(right)) => left.as_f64()?.partial_cmp(&right.as_f64()?),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}
