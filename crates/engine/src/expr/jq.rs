//! The filters of `jqFilter`: paths, pipes, comparisons, constructors and common functions on objects. A subset of jq:
//! no variables, no definitions, no reduce. Work and nesting are bounded.

use serde_json::Value;

mod function;
mod parse;
mod run;

/// A parsed filter.
#[derive(Clone, Debug)]
pub struct JqFilter(JqTree);

pub fn parse(text: &str) -> Result<JqFilter, String> {
    parse::parse(text).map(JqFilter)
}

impl JqFilter {
    /// Renders one result per line: texts as they are, everything else as JSON.
    pub fn render(&self, object: &Value) -> Result<String, String> {
        self.render_counted(object).0
    }

    /// Renders the results, and returns the steps it took.
    pub(crate) fn render_counted(&self, object: &Value) -> (Result<String, String>, u64) {
        let mut machine = run::JqMachine::default();
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
enum JqTree {
    Same,
    Literal(Value),
    /// `base[key]`; missing keys yield null.
    At(Box<JqTree>, Box<JqTree>),
    Slice(Box<JqTree>, Option<Box<JqTree>>, Option<Box<JqTree>>),
    Each(Box<JqTree>),
    Everything,
    /// Errors inside yield no result.
    Try(Box<JqTree>),
    Pipe(Box<JqTree>, Box<JqTree>),
    Comma(Box<JqTree>, Box<JqTree>),
    Else(Box<JqTree>, Box<JqTree>),
    And(Box<JqTree>, Box<JqTree>),
    Or(Box<JqTree>, Box<JqTree>),
    Operate(Operator, Box<JqTree>, Box<JqTree>),
    List(Option<Box<JqTree>>),
    Map(Vec<(JqTree, JqTree)>),
    If(Box<JqTree>, Box<JqTree>, Box<JqTree>),
    Call(String, Vec<JqTree>),
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
