//! The built-in functions of the language, by name. A function takes values and returns a value; it never sees names,
//! the tree or the environment.

use super::argument::Arguments;
use super::work::{CallResult, EvalWork};

mod convert;
pub(super) use convert::{decoded, from_json, text_of, to_json};
mod date;
pub(super) mod list;
mod map;
mod math;
pub(super) mod text;

/// A function: its name, its number of arguments, and its implementation.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) least: usize,
    pub(super) most: usize,
    pub(super) call: fn(&Arguments<'_>, &mut EvalWork) -> CallResult,
}

/// Any number of arguments from `least` on.
pub(super) const MANY: usize = usize::MAX;

impl Function {
    pub(super) const fn new(
        name: &'static str,
        least: usize,
        most: usize,
        call: fn(&Arguments<'_>, &mut EvalWork) -> CallResult,
    ) -> Self {
        Self { name, least, most, call }
    }

    pub(super) fn wrong_count(&self, given: usize) -> String {
        let wanted = match (self.least, self.most) {
            (least, MANY) => format!("at least {least}"),
            (least, most) if least == most => least.to_string(),
            (least, most) => format!("{least} to {most}"),
        };
        let plural = if wanted == "1" { "" } else { "s" };
        format!("{}() takes {wanted} argument{plural}, not {given}", self.name)
    }
}

const FAMILIES: [&[Function]; 6] =
    [text::FUNCTIONS, list::FUNCTIONS, map::FUNCTIONS, math::FUNCTIONS, convert::FUNCTIONS, date::FUNCTIONS];

pub(super) fn find(name: &str) -> Option<&'static Function> {
    FAMILIES.iter().copied().flatten().find(|function| function.name == name)
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().copied().flatten().map(|function| function.name)
}
