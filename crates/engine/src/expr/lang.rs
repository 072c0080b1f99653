//! The language of `{{= }}`, of retry expressions and of hooks: values, operators, pipes, closures and functions.
//! A text is parsed once into a [`Program`] and evaluated against an [`Env`] that answers names on demand. Evaluation is
//! bounded by [`Limits`]. Time and chance come from the [`Occasion`] the environment hands in, so that an expression which is
//! evaluated again gives the same again; functions that would need the machine are refused by name.

use std::fmt;

use super::{Error, TEXT, Value, budget::Payer, chance::Seed};

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

/// Where the names of an expression get their values from.
pub trait Env {
    /// The value bound to a root name (`inputs`, `item`, `lastRetry`), or `None` when unknown.
    fn root(&self, name: &str) -> Option<Value>;

    /// The value of `root.key` or `root['key']`, asked before [`Env::root`], so that `tasks['a'].outputs.result` builds
    /// one task's outputs and not all of them. `None` falls back to the root's own members.
    fn member(&self, root: &str, key: &str) -> Option<Value> {
        let _ = (root, key);
        None
    }

    /// The time and the seed that `now()` and `sprig.uuidv4()` go by; `None` where an expression is only looked at, and
    /// what depends on them has no value yet.
    fn occasion(&self) -> Option<Occasion> {
        None
    }

    /// Names worth suggesting for an unknown root.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// When an expression is evaluated, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occasion {
    pub moment: jiff::Timestamp,
    pub seed: Seed,
}

/// An expression that knows no names.
impl Env for () {
    fn root(&self, _name: &str) -> Option<Value> {
        None
    }
}

/// What one evaluation may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Levels of nested evaluation.
    pub depth: usize,
    /// Nodes evaluated and elements touched.
    pub steps: u64,
    /// Bytes of values made, all together.
    pub bytes: usize,
    /// Whose limits these are.
    pub payer: Payer,
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
        Self { depth: Self::DEPTH, steps: Self::STEPS, bytes: Self::BYTES, payer: Payer::Evaluation }
    }
}

/// A parsed expression.
#[derive(Clone)]
pub struct Program {
    tree: tree::Tree,
}

/// Reads an expression.
pub fn parse(text: &str) -> Result<Program, Error> {
    if text.len() > TEXT {
        let message = format!("the expression is longer than {TEXT} bytes");
        return Err(Error::at(super::Span::default(), message));
    }
    let tree = parse::parse(text)?;
    Ok(Program { tree })
}

impl Program {
    /// The value of the expression.
    pub fn evaluate(&self, env: &dyn Env) -> Result<Value, Error> {
        self.evaluate_within(env, Limits::default())
    }

    /// The value of the expression, computed within the given limits.
    pub fn evaluate_within(&self, env: &dyn Env, limits: Limits) -> Result<Value, Error> {
        self.evaluate_counted(env, limits).0
    }

    /// The same, and how many steps it took; bytes that were made count as steps too.
    pub(crate) fn evaluate_counted(&self, env: &dyn Env, limits: Limits) -> (Result<Value, Error>, u64) {
        evaluate::Machine::new(&self.tree, env, limits).run()
    }

    /// What is wrong with the patterns and paths that are written out in it; without a flaw it is empty.
    #[must_use]
    pub fn flaws(&self) -> Vec<Error> {
        literal::check(&self.tree)
    }

    /// The variables the expression mentions, in the order of the text, each path once.
    #[must_use]
    pub fn roots(&self) -> Vec<Reference> {
        reference::collect(&self.tree)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("roots", &self.roots()).finish()
    }
}

#[cfg(test)]
mod tests;
