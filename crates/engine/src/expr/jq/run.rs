//! Evaluates a filter on a value. A filter yields any number of results.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use super::{JqTree, Operator, function, plain};
use crate::expr::budget::BYTES_A_STEP;

/// Maximum steps of one filter, including every part of every value it creates. Objects are small, so an honest filter
/// never comes near. Values are copied here, so a step costs a few times as much as one of another expression.
const MAX_STEPS: usize = 500_000;

#[derive(Default)]
pub(super) struct JqMachine {
    steps: usize,
}

pub(super) type Results = Result<Vec<Value>, String>;

impl JqMachine {
    pub(super) fn run(&mut self, tree: &JqTree, input: &Value) -> Results {
        self.step(1)?;
        let results = self.results(tree, input)?;
        // A filter that doubles its input is stopped before it has doubled it often.
        for value in &results {
            self.charge(value)?;
        }
        Ok(results)
    }

    fn results(&mut self, tree: &JqTree, input: &Value) -> Results {
        Ok(match tree {
            JqTree::Same => vec![input.clone()],
            JqTree::Literal(value) => vec![value.clone()],
            JqTree::At(base, key) => self.pairs(base, key, input, at)?,
            JqTree::Slice(base, start, end) => {
                let start = self.bound(start.as_deref(), input)?;
                let end = self.bound(end.as_deref(), input)?;
                let bases = self.run(base, input)?;
                bases.iter().map(|base| slice(base, start, end)).collect::<Result<_, _>>()?
            }
            JqTree::Each(base) => {
                let mut all = Vec::new();
                for base in self.run(base, input)? {
                    match base {
                        Value::Array(items) => all.extend(items),
                        Value::Object(map) => all.extend(map.into_iter().map(|(_, value)| value)),
                        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                            return Err(format!("{} has no elements", kind(&base)));
                        }
                    }
                    self.step(all.len())?;
                }
                all
            }
            JqTree::Everything => {
                let mut all = Vec::new();
                let mut open = vec![input.clone()];
                while let Some(value) = open.pop() {
                    self.step(1)?;
                    match &value {
                        Value::Array(items) => open.extend(items.iter().rev().cloned()),
                        Value::Object(map) => open.extend(map.values().rev().cloned()),
                        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
                    }
                    all.push(value);
                }
                all
            }
            JqTree::Try(inner) => {
                let before = self.steps;
                let results = self.run(inner, input);
                // An exhausted budget is not suppressed as an error of the object.
                if self.steps > MAX_STEPS {
                    return results;
                } else {
                    self.steps = self.steps.max(before)
                }
                results.unwrap_or_default()
            }
            JqTree::Pipe(left, right) => {
                let mut all = Vec::new();
                for value in self.run(left, input)? {
                    all.extend(self.run(right, &value)?);
                }
                all
            }
            JqTree::Comma(left, right) => {
                let mut all = self.run(left, input)?;
                all.extend(self.run(right, input)?);
                all
            }
            JqTree::Else(left, right) => {
                let good: Vec<Value> = self.run(left, input).unwrap_or_default().into_iter().filter(truthy).collect();
                if good.is_empty() { self.run(right, input)? } else { good }
            }
            JqTree::And(left, right) => self.pairs(left, right, input, |a, b| Ok(json!(truthy(a) && truthy(b))))?,
            JqTree::Or(left, right) => self.pairs(left, right, input, |a, b| Ok(json!(truthy(a) || truthy(b))))?,
            JqTree::Operate(operator, left, right) => {
                self.pairs(left, right, input, |a, b| operate(*operator, a, b))?
            }
            JqTree::List(None) => vec![json!([])],
            JqTree::List(Some(inner)) => vec![Value::Array(self.run(inner, input)?)],
            JqTree::Map(entries) => vec![self.map(entries, input)?],
            JqTree::If(condition, yes, no) => {
                let mut all = Vec::new();
                for holds in self.run(condition, input)? {
                    all.extend(self.run(if truthy(&holds) { yes } else { no }, input)?);
                }
                all
            }
            JqTree::Call(name, arguments) => function::call(self, name, arguments, input)?,
        })
    }

    pub(super) fn step(&mut self, many: usize) -> Result<(), String> {
        self.steps = self.steps.saturating_add(many);
        if self.steps > MAX_STEPS {
            Err(format!(
                "the filter takes too many steps: it may take {MAX_STEPS}; take apart large objects in a task instead"
            ))
        } else {
            Ok(())
        }
    }

    /// Charges all parts of a value.
    fn charge(&mut self, value: &Value) -> Result<(), String> {
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match value {
                Value::String(text) => self.step(1 + text.len() / BYTES_A_STEP as usize)?,
                Value::Array(items) => {
                    self.step(1 + items.len())?;
                    open.extend(items);
                }
                Value::Object(map) => {
                    self.step(1 + map.len())?;
                    open.extend(map.values());
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        Ok(())
    }

    /// Returns the steps taken.
    pub(super) fn spent(&self) -> u64 {
        self.steps as u64
    }

    /// Returns the first result of an argument.
    pub(super) fn one(&mut self, tree: &JqTree, input: &Value) -> Result<Value, String> {
        Ok(self.run(tree, input)?.into_iter().next().unwrap_or_default())
    }

    fn pairs(
        &mut self,
        left: &JqTree,
        right: &JqTree,
        input: &Value,
        make: impl Fn(&Value, &Value) -> Result<Value, String>,
    ) -> Results {
        let (lefts, rights) = (self.run(left, input)?, self.run(right, input)?);
        let mut all = Vec::with_capacity(lefts.len());
        for right in &rights {
            for left in &lefts {
                self.step(1)?;
                all.push(make(left, right)?);
            }
        }
        Ok(all)
    }

    fn bound(&mut self, tree: Option<&JqTree>, input: &Value) -> Result<Option<i64>, String> {
        let Some(tree) = tree else { return Ok(None) };
        let value = self.one(tree, input)?;
        if value.is_null() {
            return Ok(None);
        }
        value.as_f64().map(|number| Some(number as i64)).ok_or_else(|| "a slice needs numbers".to_owned())
    }

    /// Builds an object with one value per key; a key with several values takes the first.
    fn map(&mut self, entries: &[(JqTree, JqTree)], input: &Value) -> Result<Value, String> {
        let mut map = Map::new();
        for (key, value) in entries {
            let Value::String(key) = self.one(key, input)? else { return Err("a key must be a text".to_owned()) };
            map.insert(key, self.one(value, input)?);
        }
        Ok(Value::Object(map))
    }
}

pub(super) fn truthy(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

pub(super) fn number(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT { json!(number as i64) } else { json!(number) }
}

fn at(base: &Value, key: &Value) -> Result<Value, String> {
    match (base, key) {
        (Value::Null, _) => Ok(Value::Null),
        (Value::Object(map), Value::String(key)) => Ok(map.get(key).cloned().unwrap_or_default()),
        (Value::Array(items), Value::Number(index)) => {
            let index = index.as_f64().unwrap_or_default() as i64;
            let index = if index < 0 { index + items.len() as i64 } else { index };
            Ok(usize::try_from(index).ok().and_then(|index| items.get(index)).cloned().unwrap_or_default())
        }
        (base, key) => Err(format!("{} cannot be indexed with {}", kind(base), plain(key))),
    }
}

fn slice(base: &Value, start: Option<i64>, end: Option<i64>) -> Result<Value, String> {
    let clamp = |bound: i64, length: usize| {
        let bound = if bound < 0 { bound + length as i64 } else { bound };
        usize::try_from(bound).unwrap_or(0).min(length)
    };
    let range = |length: usize| {
        let (start, end) = (clamp(start.unwrap_or(0), length), end.map_or(length, |end| clamp(end, length)));
        start..end.max(start)
    };
    match base {
        Value::Null => Ok(Value::Null),
        Value::Array(items) => Ok(Value::Array(items[range(items.len())].to_vec())),
        Value::String(text) => {
            let letters: Vec<char> = text.chars().collect();
            Ok(Value::String(letters[range(letters.len())].iter().collect()))
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => Err(format!("{} cannot be sliced", kind(base))),
    }
}

/// Compares in jq's order: null, false, true, numbers, texts, lists, objects.
pub(super) fn order(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let first = a.iter().zip(b).map(|(a, b)| order(a, b)).find(|order| order.is_ne());
            first.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(_), Value::Object(_)) => a.to_string().cmp(&b.to_string()),
        _ => rank(a).cmp(&rank(b)),
    }
}

pub(super) fn operate(operator: Operator, a: &Value, b: &Value) -> Result<Value, String> {
    let numbers = || Some((a.as_f64()?, b.as_f64()?));
    Ok(match (operator, a, b) {
        (Operator::Equal, ..) => json!(order(a, b).is_eq()),
        (Operator::Differ, ..) => json!(order(a, b).is_ne()),
        (Operator::Less, ..) => json!(order(a, b).is_lt()),
        (Operator::Most, ..) => json!(order(a, b).is_le()),
        (Operator::Greater, ..) => json!(order(a, b).is_gt()),
        (Operator::Least, ..) => json!(order(a, b).is_ge()),
        (Operator::Add, Value::Null, other) | (Operator::Add, other, Value::Null) => other.clone(),
        (Operator::Add, Value::String(a), Value::String(b)) => json!(format!("{a}{b}")),
        (Operator::Add, Value::Array(a), Value::Array(b)) => Value::Array(a.iter().chain(b).cloned().collect()),
        (Operator::Add, Value::Object(a), Value::Object(b)) => {
            Value::Object(a.iter().chain(b).map(|(key, value)| (key.clone(), value.clone())).collect())
        }
        (Operator::Subtract, Value::Array(a), Value::Array(b)) => {
            Value::Array(a.iter().filter(|item| !b.contains(item)).cloned().collect())
        }
        (Operator::Divide, Value::String(a), Value::String(b)) => json!(a.split(b.as_str()).collect::<Vec<_>>()),
        _ => match (operator, numbers()) {
            (Operator::Add, Some((a, b))) => number(a + b),
            (Operator::Subtract, Some((a, b))) => number(a - b),
            (Operator::Multiply, Some((a, b))) => number(a * b),
            (Operator::Divide | Operator::Remainder, Some((_, 0.0))) => return Err("division by zero".to_owned()),
            (Operator::Divide, Some((a, b))) => number(a / b),
            (Operator::Remainder, Some((a, b))) => number(a.trunc() % b.trunc()),
            _ => return Err(format!("{} and {} cannot be combined so", kind(a), kind(b))),
        },
    })
}
