//! The remaining budget of an evaluation, its compiled patterns, and its evaluation context. Everything that loops over
//! user data or creates values must charge it here first.

use std::collections::HashMap;

use super::{EvalContext, Limits};
use crate::expr::budget::{self, BYTES_A_STEP, BudgetScope, COMPILING};
use crate::expr::pattern::Pattern;
use crate::expr::random::Rng;
use crate::expr::{OffsetDateTime, Value};

/// Why a function failed. The caller adds the position in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EvalFault(pub(super) String);

/// The result of a function.
pub(super) type CallResult = Result<Value, EvalFault>;

/// Maximum nesting of lists and maps. JSON readers stop at the same depth, and everything that walks a value recurses.
const VALUE_DEPTH: usize = 128;

/// Minimum size of one more element of a list or map.
pub(super) const ELEMENT: usize = size_of::<Value>();

/// Size of the cache of compiled patterns; an expression with more compiles some again, which is only slower.
const PATTERNS: usize = 32;

pub(super) struct EvalWork {
    steps: u64,
    bytes: usize,
    /// The scope that set the limits.
    scope: BudgetScope,
    exhausted: bool,
    patterns: HashMap<String, Pattern>,
    context: Option<(OffsetDateTime, Rng)>,
}

impl EvalWork {
    pub(super) fn new(limits: Limits, context: Option<EvalContext>) -> Self {
        let context = context.map(|context| (OffsetDateTime::utc(context.moment), Rng::new(context.seed)));
        let Limits { steps, bytes, scope, .. } = limits;
        Self { steps, bytes, scope, exhausted: false, patterns: HashMap::new(), context }
    }

    /// Returns the time of the evaluation.
    pub(super) fn moment(&self, asking: &str) -> Result<OffsetDateTime, EvalFault> {
        self.context.as_ref().map(|(moment, _)| *moment).ok_or_else(|| early(asking))
    }

    /// Returns the random number generator of the evaluation.
    pub(super) fn draws(&mut self, asking: &str) -> Result<&mut Rng, EvalFault> {
        self.context.as_mut().map(|(_, draws)| draws).ok_or_else(|| early(asking))
    }

    /// Charges steps, or fails if there are none left.
    pub(super) fn spend(&mut self, steps: u64) -> Result<(), EvalFault> {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => {
                (self.steps, self.exhausted) = (0, true);
                Err(EvalFault(budget::too_many(self.scope)))
            }
        }
    }

    /// Charges memory before it is allocated.
    pub(super) fn claim(&mut self, bytes: usize) -> Result<(), EvalFault> {
        match self.bytes.checked_sub(bytes) {
            Some(left) => {
                self.bytes = left;
                Ok(())
            }
            None => {
                (self.bytes, self.exhausted) = (0, true);
                Err(EvalFault(
                    "the expression makes values that are too large; compute this in a task instead".to_owned(),
                ))
            }
        }
    }

    /// Charges a list of this many elements before it is created.
    pub(super) fn claim_list(&mut self, elements: usize) -> Result<(), EvalFault> {
        self.spend(elements as u64)?;
        self.claim(elements.saturating_mul(ELEMENT))
    }

    /// Reports whether steps or bytes ran out.
    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Returns what was used of these limits, in steps.
    pub(super) fn spent(&self, limits: Limits) -> u64 {
        let bytes = limits.bytes.saturating_sub(self.bytes) as u64;
        limits.steps.saturating_sub(self.steps) + bytes / BYTES_A_STEP
    }

    /// Charges a value that was built for this evaluation outside of it.
    pub(super) fn charge_value(&mut self, value: &Value) -> Result<(), EvalFault> {
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            match value {
                Value::Str(text) => self.spend(text.len() as u64 / BYTES_A_STEP)?,
                Value::List(items) => {
                    self.spend(items.len() as u64)?;
                    open.extend(items.iter());
                }
                Value::Map(entries) => {
                    self.spend(entries.len() as u64)?;
                    open.extend(entries.values());
                }
                Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Date(_) | Value::Duration(_) => {
                }
            }
        }
        Ok(())
    }

    /// Returns the bytes left.
    pub(super) fn room(&self) -> usize {
        self.bytes
    }

    /// Charges a new value, and refuses one that nests too deep. Because every new list and map passes here, no value
    /// has more parts than there are steps, however often it shares them.
    pub(super) fn made(&mut self, value: Value) -> CallResult {
        match &value {
            Value::Str(text) => self.claim(text.len())?,
            Value::List(_) | Value::Map(_) => self.measure(&value, 0)?,
            Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Date(_) | Value::Duration(_) => {}
        }
        Ok(value)
    }

    fn measure(&mut self, value: &Value, depth: usize) -> Result<(), EvalFault> {
        if depth > VALUE_DEPTH {
            return Err(EvalFault(format!("lists and maps nest deeper than {VALUE_DEPTH} levels")));
        }
        if holds_values(value) {
            self.claim_list(value.elements().count())?;
        }
        value.elements().filter(|item| holds_values(item)).try_for_each(|item| self.measure(item, depth + 1))
    }

    /// Returns a compiled pattern, charging one pass over the text it is for.
    pub(super) fn pattern(&mut self, source: &str, text: &str) -> Result<Pattern, EvalFault> {
        let pattern = match self.patterns.get(source) {
            Some(pattern) => pattern.clone(),
            None => {
                self.spend(COMPILING)?;
                let pattern = Pattern::new(source).map_err(EvalFault)?;
                if self.patterns.len() < PATTERNS {
                    self.patterns.insert(source.to_owned(), pattern.clone());
                }
                pattern
            }
        };
        self.spend(pattern.cost(text))?;
        Ok(pattern)
    }
}

fn early(asking: &str) -> EvalFault {
    EvalFault(format!("{asking}() has a value only while a workflow runs"))
}

fn holds_values(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Map(_))
}

impl From<&str> for EvalFault {
    fn from(message: &str) -> Self {
        Self(message.to_owned())
    }
}

impl From<String> for EvalFault {
    fn from(message: String) -> Self {
        Self(message)
    }
}
