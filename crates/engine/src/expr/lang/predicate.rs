//! Functions that take a closure, such as `filter(list, {# > 1})`. Each element costs at least the steps of its
//! closure; the list itself is never copied without being charged.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::argument::describe;
use super::evaluate::{CallFrame, Evaluator, scan};
use super::operate;
use super::tree::{Binary, Id};
use super::work::{EvalFault, EvalWork};
use crate::expr::{Error, Span, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Predicate {
    All,
    Any,
    One,
    None,
    Map,
    Filter,
    Find,
    FindIndex,
    FindLast,
    FindLastIndex,
    Count,
    Sum,
    GroupBy,
    SortBy,
    Reduce,
}

impl Predicate {
    pub(super) const NAMES: [(&'static str, Self); 15] = [
        ("all", Self::All),
        ("any", Self::Any),
        ("one", Self::One),
        ("none", Self::None),
        ("map", Self::Map),
        ("filter", Self::Filter),
        ("find", Self::Find),
        ("findIndex", Self::FindIndex),
        ("findLast", Self::FindLast),
        ("findLastIndex", Self::FindLastIndex),
        ("count", Self::Count),
        ("sum", Self::Sum),
        ("groupBy", Self::GroupBy),
        ("sortBy", Self::SortBy),
        ("reduce", Self::Reduce),
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, predicate)| *predicate)
    }

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, predicate)| *predicate == self).map_or("", |(name, _)| name)
    }

    pub(super) fn works_without_closure(self) -> bool {
        matches!(self, Self::Count | Self::Sum)
    }

    /// Reports whether one more argument may follow the closure.
    pub(super) fn takes_extra(self) -> bool {
        matches!(self, Self::SortBy | Self::Reduce)
    }
}

type Items = Arc<Vec<Value>>;

impl Evaluator<'_> {
    pub(super) fn over(
        &mut self,
        predicate: Predicate,
        list: &Value,
        closure: Option<Id>,
        extra: Option<Value>,
        span: Span,
    ) -> Result<Value, Error> {
        let Value::List(items) = list else {
            let message = format!("{}() needs an array as argument 1, not {}", predicate.name(), describe(list));
            return Err(Error::at(span, message));
        };
        let items = Arc::clone(items);
        match predicate {
            Predicate::All => {
                let miss = self.search(&items, closure, span, false, false)?;
                Ok(Value::Bool(miss.is_none()))
            }
            Predicate::Any => Ok(Value::Bool(self.search(&items, closure, span, false, true)?.is_some())),
            Predicate::None => Ok(Value::Bool(self.search(&items, closure, span, false, true)?.is_none())),
            Predicate::One => Ok(Value::Bool(self.selected(&items, closure, span)?.len() == 1)),
            Predicate::Count => {
                let count = self.selected(&items, closure, span)?.len();
                Ok(Value::Int(i64::try_from(count).unwrap_or(i64::MAX)))
            }
            Predicate::Filter => {
                let selected = self.selected(&items, closure, span)?;
                Ok(selected.into_iter().map(|index| items[index].clone()).collect())
            }
            Predicate::Find | Predicate::FindLast => {
                let last = predicate == Predicate::FindLast;
                let found = self.search(&items, closure, span, last, true)?;
                Ok(found.map(|index| items[index].clone()).unwrap_or_default())
            }
            Predicate::FindIndex | Predicate::FindLastIndex => {
                let last = predicate == Predicate::FindLastIndex;
                let found = self.search(&items, closure, span, last, true)?;
                Ok(found.and_then(|index| i64::try_from(index).ok()).map(Value::Int).unwrap_or_default())
            }
            Predicate::Map => Ok(self.mapped(&items, closure)?.into_iter().collect()),
            Predicate::Sum => self.sum(&items, closure, span),
            Predicate::GroupBy => self.group(&items, closure, span),
            Predicate::SortBy => self.sort(&items, closure, extra, span),
            Predicate::Reduce => self.reduce(&items, closure, extra, span),
        }
    }

    /// Evaluates the closure for one element; without a closure returns the element itself.
    fn element(&mut self, item: &Value, index: usize, accumulator: Value, closure: Option<Id>) -> Result<Value, Error> {
        let Some(closure) = closure else {
            return Ok(item.clone());
        };
        self.frames.push(CallFrame { item: item.clone(), index, accumulator });
        let value = self.eval(closure);
        self.frames.pop();
        value
    }

    fn holds(&mut self, item: &Value, index: usize, closure: Option<Id>, span: Span) -> Result<bool, Error> {
        let value = self.element(item, index, Value::Nil, closure)?;
        operate::truth(&value, "a closure that decides").map_err(|fault| Error::at(span, fault.0))
    }

    /// Finds the first (or last) element whose closure returns `wanted`.
    fn search(
        &mut self,
        items: &Items,
        closure: Option<Id>,
        span: Span,
        last: bool,
        wanted: bool,
    ) -> Result<Option<usize>, Error> {
        for step in 0..items.len() {
            let index = if last { items.len() - 1 - step } else { step };
            if self.holds(&items[index], index, closure, span)? == wanted {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn selected(&mut self, items: &Items, closure: Option<Id>, span: Span) -> Result<Vec<usize>, Error> {
        let mut selected = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if self.holds(item, index, closure, span)? {
                selected.push(index);
            }
        }
        Ok(selected)
    }

    fn mapped(&mut self, items: &Items, closure: Option<Id>) -> Result<Vec<Value>, Error> {
        let mut values = Vec::new();
        for (index, item) in items.iter().enumerate() {
            values.push(self.element(item, index, Value::Nil, closure)?);
        }
        Ok(values)
    }

    fn sum(&mut self, items: &Items, closure: Option<Id>, span: Span) -> Result<Value, Error> {
        let mut total = Value::Int(0);
        for (index, item) in items.iter().enumerate() {
            let value = self.element(item, index, Value::Nil, closure)?;
            if value.as_real().is_none() {
                let message = format!("sum() adds numbers, but element {index} is {}", describe(&value));
                return Err(Error::at(span, message));
            }
            total = operate::binary(Binary::Add, &total, &value, &mut self.work)
                .map_err(|fault| Error::at(span, fault.0))?;
        }
        Ok(total)
    }

    fn group(&mut self, items: &Items, closure: Option<Id>, span: Span) -> Result<Value, Error> {
        let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            let key = self.element(item, index, Value::Nil, closure)?;
            if matches!(key, Value::List(_) | Value::Map(_)) {
                let message = format!("groupBy() needs a simple value to group element {index} by");
                return Err(Error::at(span, message));
            }
            self.work.claim(key.as_str().map_or(0, str::len)).map_err(|fault| Error::at(span, fault.0))?;
            groups.entry(key.to_string()).or_default().push(item.clone());
        }
        let groups = groups.into_iter().map(|(key, items)| (key, Value::list(items)));
        Ok(groups.collect())
    }

    fn sort(&mut self, items: &Items, closure: Option<Id>, order: Option<Value>, span: Span) -> Result<Value, Error> {
        let keys = self.mapped(items, closure)?;
        let descending = descending(order.as_ref()).map_err(|fault| Error::at(span, fault.0))?;
        let keyed: Vec<(Value, Value)> = keys.into_iter().zip(items.iter().cloned()).collect();
        let sorted = sorted(keyed, descending, &mut self.work).map_err(|fault| Error::at(span, fault.0))?;
        Ok(sorted.into_iter().map(|(_, item)| item).collect())
    }

    fn reduce(&mut self, items: &Items, closure: Option<Id>, first: Option<Value>, span: Span) -> Result<Value, Error> {
        let (mut accumulator, skip) = match (first, items.first()) {
            (Some(value), _) => (value, 0),
            (None, Some(item)) => (item.clone(), 1),
            (None, None) => {
                return Err(Error::at(span, "reduce() of an empty array needs an initial value as argument 3"));
            }
        };
        for (index, item) in items.iter().enumerate().skip(skip) {
            accumulator = self.element(item, index, accumulator, closure)?;
        }
        Ok(accumulator)
    }
}

/// Parses `"asc"` and `"desc"`.
pub(super) fn descending(order: Option<&Value>) -> Result<bool, EvalFault> {
    match order {
        None => Ok(false),
        Some(Value::Str(word)) if &**word == "asc" => Ok(false),
        Some(Value::Str(word)) if &**word == "desc" => Ok(true),
        Some(other) => Err(EvalFault(format!("the order is \"asc\" or \"desc\", not {}", describe(other)))),
    }
}

/// Sorts by key, stably; keys that have no order are refused.
pub(super) fn sorted(
    mut keyed: Vec<(Value, Value)>,
    descending: bool,
    work: &mut EvalWork,
) -> Result<Vec<(Value, Value)>, EvalFault> {
    let rounds = u64::from(keyed.len().max(1).ilog2());
    let texts: u64 = keyed.iter().map(|(key, _)| 1 + scan(key)).sum();
    work.spend(texts.saturating_mul(rounds))?;
    if let Some(pair) = keyed.windows(2).find(|pair| pair[0].0.order(&pair[1].0).is_none()) {
        return Err(EvalFault(format!("{} and {} have no order", describe(&pair[0].0), describe(&pair[1].0))));
    }
    keyed.sort_by(|(left, _), (right, _)| {
        let order = left.order(right).unwrap_or(Ordering::Equal);
        if descending { order.reverse() } else { order }
    });
    Ok(keyed)
}
