//! Parses calls: functions, functions with closures, pipes, and `sprig.*`. A function that does not exist, is refused,
//! or gets the wrong number of arguments is an error here, not at run time.

use super::Parser;
use crate::expr::lang::builtin::{self, Function};
use crate::expr::lang::predicate::Predicate;
use crate::expr::lang::sprig;
use crate::expr::lang::token::ExprToken;
use crate::expr::lang::tree::{ExprKind, Id};
use crate::expr::{Error, Span, nearest};

impl Parser {
    /// Parses `value | function(…)`: the value becomes the first argument.
    pub(super) fn pipe(&mut self, value: Id) -> Result<Id, Error> {
        let (token, span) = self.here();
        let ExprToken::Word(name) = token else {
            let message = format!("expected the name of a function after '|', not {}", token.describe());
            return Err(Error::at(span, message));
        };
        let name = name.clone();
        self.advance();
        if name == "sprig" && self.is(".") {
            return self.sprig(Some(value));
        }
        self.call(&name, span, Some(value))
    }

    pub(super) fn call(&mut self, name: &str, span: Span, piped: Option<Id>) -> Result<Id, Error> {
        if let Some(predicate) = Predicate::named(name) {
            return self.over(predicate, name, span, piped);
        }
        let Some(function) = builtin::find(name) else {
            return Err(Error::at(span, unknown(name)));
        };
        self.apply(function, span, piped)
    }

    /// Parses `.name(…)` after `sprig`.
    pub(super) fn sprig(&mut self, piped: Option<Id>) -> Result<Id, Error> {
        self.expect(".")?;
        let (token, span) = self.here();
        let ExprToken::Word(name) = token else {
            let message = format!("expected the name of a sprig function before {}", token.describe());
            return Err(Error::at(span, message));
        };
        let name = name.clone();
        self.advance();
        let Some(function) = sprig::find(&name) else {
            return Err(Error::at(span, sprig::unknown(&name)));
        };
        self.apply(function, span, piped)
    }

    fn apply(&mut self, function: &'static Function, span: Span, piped: Option<Id>) -> Result<Id, Error> {
        let mut arguments: Vec<Id> = piped.into_iter().collect();
        arguments.extend(self.arguments()?);
        let given = arguments.len();
        if given < function.least || given > function.most {
            return Err(Error::at(span, function.wrong_count(given)));
        }
        Ok(self.tree.add(ExprKind::Call { function, arguments }, span))
    }

    pub(super) fn arguments(&mut self) -> Result<Vec<Id>, Error> {
        let opening = self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.is(")") {
            arguments.push(self.expression(0)?);
            self.separator(opening)?;
        }
        self.advance();
        Ok(arguments)
    }

    fn separator(&mut self, opening: Span) -> Result<(), Error> {
        if self.take(",") || self.is(")") {
            return Ok(());
        }
        let (token, here) = self.here();
        if *token == ExprToken::End {
            return Err(Error::at(opening, "this '(' is never closed"));
        }
        Err(Error::at(here, format!("expected ',' or ')' before {}", token.describe())))
    }

    fn over(&mut self, predicate: Predicate, name: &str, span: Span, piped: Option<Id>) -> Result<Id, Error> {
        let opening = self.expect("(")?;
        let list = match piped {
            Some(value) => value,
            None if self.is(")") => {
                return Err(Error::at(span, format!("{name}() needs an array as argument 1")));
            }
            None => {
                let list = self.expression(0)?;
                self.separator(opening)?;
                list
            }
        };
        let mut closure = None;
        let mut extra = None;
        if !self.is(")") {
            closure = Some(self.closure(predicate)?);
            self.separator(opening)?;
        } else if !predicate.works_without_closure() {
            return Err(Error::at(span, format!("{name}() needs a closure such as {{# > 1}} as its last argument")));
        }
        if !self.is(")") && predicate.takes_extra() {
            extra = Some(self.expression(0)?);
            self.separator(opening)?;
        }
        if !self.is(")") {
            return Err(Error::at(span, format!("{name}() has too many arguments")));
        }
        self.advance();
        let kind = ExprKind::Over { predicate, list, closure, extra };
        Ok(self.tree.add(kind, span))
    }

    fn closure(&mut self, predicate: Predicate) -> Result<Id, Error> {
        self.closures.push(predicate == Predicate::Reduce);
        let braced = self.take("{");
        let body = if braced { self.sequence()? } else { self.expression(0)? };
        if braced {
            self.expect("}")?;
        }
        self.closures.pop();
        Ok(body)
    }
}

fn unknown(name: &str) -> String {
    let known = builtin::names().chain(Predicate::NAMES.iter().map(|(known, _)| *known));
    let hint = if sprig::find(name).is_some() {
        format!("; did you mean 'sprig.{name}'?")
    } else {
        nearest(name, known).map(|known| format!("; did you mean '{known}'?")).unwrap_or_default()
    };
    format!("unknown function '{name}'{hint}")
}
