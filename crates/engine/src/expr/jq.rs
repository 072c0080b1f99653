//! The filters of `jqFilter`: paths, pipes, comparisons, constructors and common functions on objects. A subset of jq:
//! no variables, no definitions, no reduce. Work and nesting are bounded.

use serde_json::Value;

mod function;
mod parse;
mod run;

/// A parsed filter.
#[derive(Clone, Debug)]
pub struct Filter(Tree);

pub fn parse(text: &str) -> Result<Filter, String> {
    parse::parse(text).map(Filter)
}

impl Filter {
    /// Renders one result per line: texts as they are, everything else as JSON.
    pub fn render(&self, object: &Value) -> Result<String, String> {
        self.render_counted(object).0
    }

    /// Renders the results, and returns the steps it took.
    pub(crate) fn render_counted(&self, object: &Value) -> (Result<String, String>, u64) {
        let mut machine = run::Machine::default();
        let results = machine.run(&self.0, object);
        let text = results.map(|results| results.iter().map(plain).collect::<Vec<_>>().join("\n"));
        (text, machine.spent())
    }
}

/// The text of a value: a string as it is, everything else as JSON.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[derive(Clone, Debug)]
enum Tree {
    Same,
    Literal(Value),
    /// `base[key]`; missing keys yield null.
    At(Box<Tree>, Box<Tree>),
    Slice(Box<Tree>, Option<Box<Tree>>, Option<Box<Tree>>),
    Each(Box<Tree>),
    Everything,
    /// Errors inside yield no result.
    Try(Box<Tree>),
    Pipe(Box<Tree>, Box<Tree>),
    Comma(Box<Tree>, Box<Tree>),
    Else(Box<Tree>, Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
    Operate(Operator, Box<Tree>, Box<Tree>),
    List(Option<Box<Tree>>),
    Map(Vec<(Tree, Tree)>),
    If(Box<Tree>, Box<Tree>, Box<Tree>),
    Call(String, Vec<Tree>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    Differ,
    Less,
    Most,
    Greater,
    Least,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[cfg(test)]
mod tests;
