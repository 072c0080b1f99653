//! `sprig.*` functions on maps. None mutates a map: `set` and `unset` return a new one.

use std::collections::BTreeMap;

use super::coerce;
use crate::expr::Value;
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::builtin::{Function, MANY};
use crate::expr::lang::work::{CallResult, EvalFault, EvalWork};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("dict", 0, MANY, dict),
    Function::new("get", 2, 2, |a, _| Ok(a.map(0)?.get(a.text(1)?).cloned().unwrap_or_else(|| Value::from("")))),
    Function::new("set", 3, 3, |a, work| {
        let mut map = copy(a, 0, work)?;
        map.insert(a.text(1)?.to_owned(), a.any(2).clone());
        Ok(Value::map(map))
    }),
    Function::new("unset", 2, 2, |a, work| {
        let mut map = copy(a, 0, work)?;
        map.remove(a.text(1)?);
        Ok(Value::map(map))
    }),
    Function::new("hasKey", 2, 2, |a, _| Ok(Value::Bool(a.map(0)?.contains_key(a.text(1)?)))),
    Function::new("pluck", 1, MANY, |a, _| {
        let key = a.text(0)?;
        let mut found = Vec::new();
        for index in 1..a.len() {
            found.extend(a.map(index)?.get(key).cloned());
        }
        Ok(Value::list(found))
    }),
    Function::new("keys", 1, MANY, |a, work| {
        let mut keys = Vec::new();
        for index in 0..a.len() {
            work.claim_list(a.map(index)?.len())?;
            keys.extend(a.map(index)?.keys().map(|key| Value::from(key.as_str())));
        }
        Ok(Value::list(keys))
    }),
    Function::new("values", 1, 1, |a, work| {
        work.claim_list(a.map(0)?.len())?;
        Ok(a.map(0)?.values().cloned().collect())
    }),
    Function::new("pick", 1, MANY, |a, work| {
        let wanted = names(a)?;
        let mut map = copy(a, 0, work)?;
        map.retain(|key, _| wanted.contains(&key.as_str()));
        Ok(Value::map(map))
    }),
    Function::new("omit", 1, MANY, |a, work| {
        let unwanted = names(a)?;
        let mut map = copy(a, 0, work)?;
        map.retain(|key, _| !unwanted.contains(&key.as_str()));
        Ok(Value::map(map))
    }),
    Function::new("merge", 1, MANY, |a, work| {
        let mut merged = copy(a, 0, work)?;
        for index in 1..a.len() {
            merge(&mut merged, a.map(index)?, false, 0, work)?;
        }
        Ok(Value::map(merged))
    }),
    Function::new("mergeOverwrite", 1, MANY, |a, work| {
        let mut merged = copy(a, 0, work)?;
        for index in 1..a.len() {
            merge(&mut merged, a.map(index)?, true, 0, work)?;
        }
        Ok(Value::map(merged))
    }),
    Function::new("dig", 3, MANY, dig),
];

fn dict(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let mut map = BTreeMap::new();
    for pair in a.values.chunks(2) {
        let key = coerce::text(&pair[0], work)?;
        let value = pair.get(1).cloned().unwrap_or_else(|| Value::from(""));
        map.insert(key, value);
    }
    Ok(Value::map(map))
}

fn copy(a: &Arguments<'_>, index: usize, work: &mut EvalWork) -> Result<BTreeMap<String, Value>, EvalFault> {
    let map = a.map(index)?;
    work.claim_list(map.len())?;
    Ok(BTreeMap::clone(map))
}

fn names<'a>(a: &Arguments<'a>) -> Result<Vec<&'a str>, EvalFault> {
    (1..a.len()).map(|index| a.text(index)).collect()
}

/// Merges a map into another: missing or empty entries, and with `overwrite` all; nested maps are merged.
fn merge(
    into: &mut BTreeMap<String, Value>,
    from: &BTreeMap<String, Value>,
    overwrite: bool,
    depth: usize,
    work: &mut EvalWork,
) -> Result<(), EvalFault> {
    if depth > crate::expr::NESTING {
        return Err(EvalFault::from("merge(): the maps nest too deep"));
    }
    work.claim_list(from.len())?;
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Map(kept)), Value::Map(new)) => {
                let mut inner = BTreeMap::clone(kept);
                work.claim_list(inner.len())?;
                merge(&mut inner, new, overwrite, depth + 1, work)?;
                into.insert(key.clone(), Value::map(inner));
            }
            (Some(kept), _) if !overwrite && !coerce::is_empty(kept) => {}
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
    Ok(())
}

/// Implements `dig(key, key, …, default, map)`.
fn dig(a: &Arguments<'_>, _: &mut EvalWork) -> CallResult {
    let last = a.len() - 1;
    let mut at = Value::Map(a.map(last)?.clone());
    for index in 0..last - 1 {
        let key = a.text(index)?;
        let Value::Map(entries) = &at else {
            return Err(a.fault(format!("there is no map to look for '{key}' in")));
        };
        match entries.get(key).cloned() {
            Some(next) => at = next,
            None => return Ok(a.any(last - 1).clone()),
        }
    }
    Ok(at)
}
