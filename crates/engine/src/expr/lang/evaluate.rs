//! Evaluates a tree against an environment.
//! Chains are walked in a loop and only real nesting recurses, which is counted; every node costs a step.

use std::sync::Arc;

use super::argument::{Arguments, describe};
use super::operate;
use super::tree::{Binary, ExprKind, ExprTree, Id};
use super::work::{EvalFault, EvalWork};
use super::{Env, Limits, method};
use crate::expr::{Error, Span, Value, json, nearest, number};

pub(super) struct Evaluator<'a> {
    tree: &'a ExprTree,
    env: &'a dyn Env,
    pub(super) work: EvalWork,
    depth: usize,
    limits: Limits,
    locals: Vec<(Arc<str>, Value)>,
    /// The closures being evaluated, innermost last.
    pub(super) frames: Vec<CallFrame>,
}

/// Values of `#`, `#index` and `#acc`.
pub(super) struct CallFrame {
    pub(super) item: Value,
    pub(super) index: usize,
    pub(super) accumulator: Value,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(tree: &'a ExprTree, env: &'a dyn Env, limits: Limits) -> Self {
        Self {
            tree,
            env,
            work: EvalWork::new(limits, env.eval_context()),
            depth: 0,
            limits,
            locals: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Returns the value, and the steps it took.
    pub(super) fn run(mut self) -> (Result<Value, Error>, u64) {
        let outcome = self.value();
        let outcome = outcome.map_err(|error| if self.work.is_exhausted() { error.exhausted() } else { error });
        (outcome, self.work.spent(self.limits))
    }

    fn value(&mut self) -> Result<Value, Error> {
        let root = self.tree.root();
        let value = self.eval(root)?;
        let place = self.tree.node(root).span;
        if matches!(value, Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Str(_)) {
            return Ok(value);
        }
        // A result is converted to text sooner or later; one that cannot be is refused here.
        match json::Style::COMPACT.write_within(&value, self.limits.bytes) {
            Ok(_) => Ok(value),
            Err(json::JsonRefusal::TooLong) => Err(Error::at(place, "the result is too large")),
            Err(json::JsonRefusal::NotANumber(value)) => {
                let message = format!("the result is {}, which is not a number", number::plain(value));
                Err(Error::at(place, message))
            }
        }
    }

    pub(super) fn eval(&mut self, id: Id) -> Result<Value, Error> {
        self.depth += 1;
        if self.depth > self.limits.depth {
            let message = format!("evaluation nests deeper than {} levels", self.limits.depth);
            return Err(Error::at(self.tree.node(id).span, message));
        }
        let mut chain = Vec::new();
        let mut value = self.descend(id, &mut chain)?;
        while let Some(next) = chain.pop() {
            let node = self.tree.node(next);
            let at = |fault: EvalFault| Error::at(node.span, fault.0);
            self.work.spend(1).map_err(at)?;
            value = if let ExprKind::Choose { yes, no, .. } = &node.kind {
                // The branch taken is the next link, not a level deeper: lists of alternatives may be long.
                let held = operate::truth(&value, "a condition").map_err(at)?;
                self.descend(if held { *yes } else { *no }, &mut chain)?
            } else {
                self.apply(&node.kind, node.span, value, &mut chain)?
            };
        }
        self.depth -= 1;
        Ok(value)
    }

    /// Walks down to the start of a chain and evaluates it; the links above it are left to be applied.
    fn descend(&mut self, id: Id, chain: &mut Vec<Id>) -> Result<Value, Error> {
        let mut at = id;
        while let Some(operand) = self.tree.node(at).kind.operand() {
            chain.push(at);
            at = operand;
        }
        self.leaf(at, chain)
    }

    /// Evaluates a node that starts a chain.
    fn leaf(&mut self, id: Id, chain: &mut Vec<Id>) -> Result<Value, Error> {
        let tree = self.tree;
        let node = tree.node(id);
        let span = node.span;
        self.work.spend(1).map_err(|fault| Error::at(span, fault.0))?;
        match &node.kind {
            ExprKind::Nil => Ok(Value::Nil),
            ExprKind::Bool(value) => Ok(Value::Bool(*value)),
            ExprKind::Int(value) => Ok(Value::Int(*value)),
            ExprKind::Float(value) => Ok(Value::Float(*value)),
            ExprKind::Text(text) => Ok(Value::Str(Arc::clone(text))),
            ExprKind::Name(name) => self.variable(name, span, chain),
            ExprKind::Local(name) => {
                let bound = self.locals.iter().rev().find(|(local, _)| local == name);
                let (_, value) = bound.expect("the parser marks a name as local only inside its 'let'");
                Ok(value.clone())
            }
            ExprKind::Item => Ok(self.frame().item.clone()),
            ExprKind::Index => Ok(Value::Int(i64::try_from(self.frame().index).unwrap_or(i64::MAX))),
            ExprKind::Accumulator => Ok(self.frame().accumulator.clone()),
            ExprKind::List(items) => {
                let mut values = Vec::with_capacity(items.len());
                for item in items {
                    values.push(self.eval(*item)?);
                }
                self.made(Value::list(values), span)
            }
            ExprKind::Map(entries) => self.map(entries, span),
            ExprKind::Let { name, value, body } => {
                let value = self.eval(*value)?;
                self.locals.push((Arc::clone(name), value));
                let result = self.eval(*body);
                self.locals.pop();
                result
            }
            ExprKind::Sequence(parts) => {
                let mut last = Value::Nil;
                for part in parts {
                    last = self.eval(*part)?;
                }
                Ok(last)
            }
            // The only call without a first argument to start the chain with.
            ExprKind::Call { function, .. } => self.call(function, &[], span),
            ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Choose { .. }
            | ExprKind::Member { .. }
            | ExprKind::At { .. }
            | ExprKind::Slice { .. }
            | ExprKind::Chain(_)
            | ExprKind::Over { .. }
            | ExprKind::Method { .. } => unreachable!("these have an operand and so never begin a chain"),
        }
    }

    /// Applies one link of a chain to the value before it.
    fn apply(&mut self, kind: &'a ExprKind, span: Span, value: Value, chain: &mut Vec<Id>) -> Result<Value, Error> {
        let at = |fault: EvalFault| Error::at(span, fault.0);
        match kind {
            ExprKind::Unary(operator, _) => operate::unary(*operator, &value).map_err(at),
            ExprKind::Binary(operator, _, right) => self.binary(*operator, value, *right, span),
            ExprKind::Member { optional: true, .. }
            | ExprKind::At { optional: true, .. }
            | ExprKind::Method { optional: true, .. }
                if value.is_nil() =>
            {
                self.leave_chain(chain);
                Ok(Value::Nil)
            }
            ExprKind::Member { key, .. } => member(&value, key).map_err(at),
            ExprKind::At { key, .. } => {
                let key = self.eval(*key)?;
                index(&value, &key).map_err(at)
            }
            ExprKind::Slice { from, to, .. } => {
                let from = from.map(|from| self.eval(from)).transpose()?;
                let to = to.map(|to| self.eval(to)).transpose()?;
                operate::slice(&value, from.as_ref(), to.as_ref(), &mut self.work).map_err(at)
            }
            ExprKind::Chain(_) => Ok(value),
            ExprKind::Call { function, arguments } => {
                let mut values = vec![value];
                for argument in &arguments[1..] {
                    values.push(self.eval(*argument)?);
                }
                self.call(function, &values, span)
            }
            ExprKind::Over { predicate, closure, extra, .. } => {
                let extra = extra.map(|extra| self.eval(extra)).transpose()?;
                let result = self.over(*predicate, &value, *closure, extra, span)?;
                self.made(result, span)
            }
            ExprKind::Method { name, arguments, .. } => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(self.eval(*argument)?);
                }
                let result = method::call(&value, name, &values).map_err(at)?;
                self.made(result, span)
            }
            ExprKind::Nil
            | ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Text(_)
            | ExprKind::Name(_)
            | ExprKind::Local(_)
            | ExprKind::Item
            | ExprKind::Index
            | ExprKind::Accumulator
            | ExprKind::List(_)
            | ExprKind::Map(_)
            | ExprKind::Let { .. }
            | ExprKind::Sequence(_)
            | ExprKind::Choose { .. } => unreachable!("these begin a chain, or choose how it goes on"),
        }
    }

    fn binary(&mut self, operator: Binary, left: Value, right: Id, span: Span) -> Result<Value, Error> {
        let at = |fault: EvalFault| Error::at(span, fault.0);
        let quoted = || format!("'{}'", operator.spelling());
        if operator == Binary::Coalesce {
            return if left.is_nil() { self.eval(right) } else { Ok(left) };
        }
        if matches!(operator, Binary::And | Binary::Or) {
            let settles = operator == Binary::Or;
            if operate::truth(&left, &quoted()).map_err(at)? == settles {
                return Ok(left);
            }
            let right = self.eval(right)?;
            operate::truth(&right, &quoted()).map_err(at)?;
            return Ok(right);
        }
        if operator == Binary::In && matches!(&self.tree.node(right).kind, ExprKind::Name(name) if &**name == "$env") {
            let known = left.as_str().is_some_and(|name| self.env.root(name).is_some());
            return Ok(Value::Bool(known));
        }
        let right = self.eval(right)?;
        operate::binary(operator, &left, &right, &mut self.work).map_err(at)
    }

    /// Evaluates a variable, together with the following member access if the environment can resolve both at once.
    fn variable(&mut self, name: &str, span: Span, chain: &mut Vec<Id>) -> Result<Value, Error> {
        let all = name == "$env";
        let key = match chain.last().map(|&next| &self.tree.node(next).kind) {
            Some(ExprKind::Member { key, .. }) => Some(Arc::clone(key)),
            Some(ExprKind::At { key, .. }) => {
                if let Value::Str(key) = self.eval(*key)? {
                    Some(key)
                } else {
                    None
                }
            }
            _ => None,
        };
        if let Some(key) = key {
            let member = if all { Some(self.env.root(&key).unwrap_or_default()) } else { self.env.member(name, &key) };
            if let Some(value) = member {
                chain.pop();
                return self.taken(value, span);
            }
        }
        if all {
            return Err(Error::at(span, "'$env' is not a value by itself; use $env['name']"));
        }
        let found = self.env.root(name).ok_or_else(|| {
            let names = self.env.names();
            let hint = nearest(name, names.iter().map(String::as_str))
                .map(|known| format!("; did you mean '{known}'?"))
                .unwrap_or_default();
            Error::at(span, format!("unknown name '{name}'{hint}"))
        })?;
        self.taken(found, span)
    }

    /// Charges a value of the environment, which was created for this expression alone.
    fn taken(&mut self, value: Value, span: Span) -> Result<Value, Error> {
        self.work.charge_value(&value).map_err(|fault| Error::at(span, fault.0))?;
        Ok(value)
    }

    fn map(&mut self, entries: &'a [(Id, Id)], span: Span) -> Result<Value, Error> {
        let mut made = std::collections::BTreeMap::new();
        for (key, value) in entries {
            let place = self.tree.node(*key).span;
            let key = self.eval(*key)?;
            self.work.claim(key.as_str().map_or(0, str::len)).map_err(|fault| Error::at(place, fault.0))?;
            let Some(key) = key.as_key() else {
                return Err(Error::at(place, format!("a key of a map must be a string, not {}", describe(&key))));
            };
            let value = self.eval(*value)?;
            made.insert(key, value);
        }
        self.made(Value::map(made), span)
    }

    fn call(&mut self, function: &super::builtin::Function, values: &[Value], span: Span) -> Result<Value, Error> {
        let arguments = Arguments { name: function.name, values };
        // Almost every function scans all of a text it is given.
        let texts: u64 = values.iter().map(scan).sum();
        self.work.spend(texts).map_err(|fault| Error::at(span, fault.0))?;
        let result = (function.call)(&arguments, &mut self.work).map_err(|fault| Error::at(span, fault.0))?;
        self.made(result, span)
    }

    fn made(&mut self, value: Value, span: Span) -> Result<Value, Error> {
        self.work.made(value).map_err(|fault| Error::at(span, fault.0))
    }

    fn frame(&self) -> &CallFrame {
        self.frames.last().expect("the parser admits '#' inside closures only")
    }

    /// Skips the rest of a chain of members whose beginning was nil.
    fn leave_chain(&self, chain: &mut Vec<Id>) {
        while let Some(next) = chain.pop() {
            if matches!(self.tree.node(next).kind, ExprKind::Chain(_)) {
                return;
            }
        }
    }
}

/// Returns the steps of scanning a text; zero for other values.
pub(super) fn scan(value: &Value) -> u64 {
    value.as_str().map_or(0, |text| text.len() as u64 / 64)
}

/// Returns the member of a map; nil for a missing key.
fn member(value: &Value, key: &str) -> Result<Value, EvalFault> {
    let Value::Map(entries) = value else {
        return Err(EvalFault(format!("cannot fetch '{key}' from {}", describe(value))));
    };
    Ok(entries.get(key).cloned().unwrap_or_default())
}

/// Returns the element of a list, the member of a map, or the byte of a text.
pub(super) fn index(value: &Value, key: &Value) -> Result<Value, EvalFault> {
    if let (Value::Map(_), Value::Str(key)) = (value, key) {
        return member(value, key);
    }
    let wanted = key.as_whole();
    let position = |length: usize| {
        let Some(wanted) = wanted else {
            return Err(EvalFault(format!("{} needs a whole number as index, not {}", describe(value), describe(key))));
        };
        let reach = i64::try_from(length).unwrap_or(i64::MAX);
        let counted = if wanted < 0 { wanted.saturating_add(reach) } else { wanted };
        let position = usize::try_from(counted).ok().filter(|&position| position < length);
        position.ok_or_else(|| EvalFault(format!("index {wanted} is out of range: the length is {length}")))
    };
    match value {
        Value::List(items) => Ok(items[position(items.len())?].clone()),
        Value::Str(text) => Ok(Value::Int(i64::from(text.as_bytes()[position(text.len())?]))),
        Value::Map(entries) => {
            let entry = wanted.and_then(|wanted| entries.get(&wanted.to_string()));
            Ok(entry.cloned().unwrap_or_default())
        }
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Date(_) | Value::Duration(_) => {
            Err(EvalFault(format!("cannot fetch [{key}] from {}", describe(value))))
        }
    }
}
