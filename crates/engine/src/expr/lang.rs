//! The language of `{{= }}`, of retry expressions and of hooks: values, operators, pipes, closures and functions. A
//! text is parsed once into an [`Expression`] and evaluated against an [`Env`] that resolves names on demand.
//! Evaluation is bounded by [`Limits`]. Time and random numbers come from the [`EvalContext`] of the environment, so
//! that evaluating an expression again yields the same value; functions that would need the machine are refused by
//! name.

use std::fmt;

use super::{Error, TEXT, Value, budget::BudgetScope, random::Seed};

mod argument;
mod builtin;
mod evaluate;
mod jsonpath;
mod literal;
mod method;
mod operate;
mod parse;
mod predicate;
mod reference;
mod sprig;
mod token;
mod tree;
mod work;

pub use reference::Reference;

/// Resolves the names of an expression.
pub trait Env {
    /// Returns the value of a root name (`inputs`, `item`, `lastRetry`), or `None` if unknown.
    fn root(&self, name: &str) -> Option<Value>;

    /// Returns the value of `root.key` or `root['key']`. Called before [`Env::root`], so that
    /// `tasks['a'].outputs.result` builds one task's outputs and not all of them. `None` falls back to the root's own
    /// members.
    fn member(&self, root: &str, key: &str) -> Option<Value> {
        let _ = (root, key);
        None
    }

    /// Returns the time and the seed for `now()` and `sprig.uuidv4()`; `None` if an expression is only checked, so that
    /// what depends on them has no value yet.
    fn eval_context(&self) -> Option<EvalContext> {
        None
    }

    /// Returns names to suggest for an unknown root.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The time of an evaluation and the seed of its random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvalContext {
    pub moment: jiff::Timestamp,
    pub seed: Seed,
}

/// An environment without names.
impl Env for () {
    fn root(&self, _name: &str) -> Option<Value> {
        None
    }
}

/// Limits of one evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Levels of nested evaluation.
    pub depth: usize,
    /// Nodes evaluated and elements touched.
    pub steps: u64,
    /// Bytes of all values created.
    pub bytes: usize,
    /// The scope that set these limits.
    pub scope: BudgetScope,
}

impl Limits {
    /// Twice what the parser lets nest, so that it never refuses what was parsed, and small enough for a 2 MiB stack.
    pub const DEPTH: usize = 2 * super::NESTING;
    /// About a tenth of a second of work: an expression runs inside the one thread that decides everything, and while it
    /// runs every other workflow waits.
    pub const STEPS: u64 = 2_000_000;
    /// Enough to take apart a parameter of some twenty mebibytes, and little enough that a handful of evaluations cannot
    /// exhaust a small machine.
    pub const BYTES: usize = 128 * 1024 * 1024;
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: Self::DEPTH, steps: Self::STEPS, bytes: Self::BYTES, scope: BudgetScope::Evaluation }
    }
}

/// A parsed expression.
#[derive(Clone)]
pub struct Expression {
    tree: tree::ExprTree,
}

/// Parses an expression.
pub fn parse(text: &str) -> Result<Expression, Error> {
    if text.len() > TEXT {
        let message = format!("the expression is longer than {TEXT} bytes");
        return Err(Error::at(super::Span::default(), message));
    }
    let tree = parse::parse(text)?;
    Ok(Expression { tree })
}

impl Expression {
    /// Evaluates the expression.
    pub fn evaluate(&self, env: &dyn Env) -> Result<Value, Error> {
        self.evaluate_within(env, Limits::default())
    }

    /// Evaluates the expression within the given limits.
    pub fn evaluate_within(&self, env: &dyn Env, limits: Limits) -> Result<Value, Error> {
        self.evaluate_counted(env, limits).0
    }

    /// Evaluates the expression and returns the steps it took; bytes created count as steps too.
    pub(crate) fn evaluate_counted(&self, env: &dyn Env, limits: Limits) -> (Result<Value, Error>, u64) {
        evaluate::Evaluator::new(&self.tree, env, limits).run()
    }

    /// Returns the errors in literal patterns and paths; empty if there are none.
    #[must_use]
    pub fn flaws(&self) -> Vec<Error> {
        literal::check(&self.tree)
    }

    /// Returns the variables the expression mentions, in text order, each path once.
    #[must_use]
    pub fn roots(&self) -> Vec<Reference> {
        reference::collect(&self.tree)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("roots", &self.roots()).finish()
    }
}

#[cfg(test)]
mod tests;
