//! Functions on maps. Keys are always sorted: results must be deterministic.

use std::collections::BTreeMap;

use super::Function;
use crate::expr::Value;
use crate::expr::lang::argument::{Arguments, describe};
use crate::expr::lang::evaluate::index;
use crate::expr::lang::work::{CallResult, EvalWork};

pub(in crate::expr::lang) const FUNCTIONS: &[Function] = &[
    Function::new("keys", 1, 1, |a, work| {
        work.claim_list(a.map(0)?.len())?;
        Ok(a.map(0)?.keys().map(|key| Value::from(key.as_str())).collect())
    }),
    Function::new("values", 1, 1, |a, work| {
        work.claim_list(a.map(0)?.len())?;
        Ok(a.map(0)?.values().cloned().collect())
    }),
    Function::new("toPairs", 1, 1, |a, work| {
        work.claim_list(a.map(0)?.len().saturating_mul(3))?;
        let pairs = a.map(0)?.iter();
        Ok(pairs.map(|(key, value)| Value::list(vec![Value::from(key.as_str()), value.clone()])).collect())
    }),
    Function::new("fromPairs", 1, 1, from_pairs),
    // A missing value is nil, whatever the reason.
    Function::new("get", 2, 2, |a, _| Ok(index(a.any(0), a.any(1)).unwrap_or_default())),
];

fn from_pairs(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let mut map = BTreeMap::new();
    work.claim_list(a.list(0)?.len())?;
    for (position, pair) in a.list(0)?.iter().enumerate() {
        let Value::List(pair) = pair else {
            return Err(a.fault(format!("element {position} is not a pair but {}", describe(pair))));
        };
        let [key, value] = pair.as_slice() else {
            return Err(a.fault(format!("element {position} has {} parts, not 2", pair.len())));
        };
        let Some(key) = key.as_key() else {
            return Err(a.fault(format!("the key of pair {position} must be a string, not {}", describe(key))));
        };
        map.insert(key, value.clone());
    }
    Ok(Value::map(map))
}
