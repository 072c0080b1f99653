//! Parses tokens into a tree, by operator precedence. Nesting is counted on the way down, so no text can exhaust the
//! stack; function names are checked here.

use std::sync::Arc;

use super::token::{ExprToken, lex};
use super::tree::{Binary, ExprKind, ExprTree, Id, Unary};
use crate::expr::{Error, NESTING, Span};

mod call;
mod primary;

pub(super) fn parse(text: &str) -> Result<ExprTree, Error> {
    let mut parser = Parser {
        tokens: lex(text)?,
        position: 0,
        tree: ExprTree::default(),
        depth: 0,
        closures: Vec::new(),
        locals: Vec::new(),
    };
    let root = parser.sequence()?;
    let (token, span) = parser.here();
    if *token != ExprToken::End {
        let message = if matches!(token, ExprToken::Sign(")" | "]" | "}")) {
            format!("nothing was opened that {} could close", token.describe())
        } else {
            format!("{} cannot follow what stands before it", token.describe())
        };
        return Err(Error::at(span, message));
    }
    parser.tree.set_root(root);
    Ok(parser.tree)
}

struct Parser {
    tokens: Vec<(ExprToken, Span)>,
    position: usize,
    tree: ExprTree,
    depth: usize,
    /// For each enclosing closure, whether it has an accumulator.
    closures: Vec<bool>,
    /// Names bound by `let`, innermost last.
    locals: Vec<Arc<str>>,
}

/// Returns the precedence of a binary operator. `??` binds tightest of all, and mixing it with others needs
/// parentheses.
fn binding(token: &ExprToken) -> Option<(Binary, u16)> {
    let spelling = match token {
        ExprToken::Sign(sign) => sign,
        ExprToken::Word(word) => word.as_str(),
        ExprToken::Int(_) | ExprToken::Float(_) | ExprToken::Text(_) | ExprToken::End => return None,
    };
    Some(match spelling {
        "||" | "or" => (Binary::Or, 10),
        "&&" | "and" => (Binary::And, 15),
        "==" => (Binary::Equal, 20),
        "!=" => (Binary::Unequal, 20),
        "<" => (Binary::Less, 20),
        "<=" => (Binary::LessOrEqual, 20),
        ">" => (Binary::Greater, 20),
        ">=" => (Binary::GreaterOrEqual, 20),
        "in" => (Binary::In, 20),
        "matches" => (Binary::Matches, 20),
        "contains" => (Binary::Contains, 20),
        "startsWith" => (Binary::StartsWith, 20),
        "endsWith" => (Binary::EndsWith, 20),
        ".." => (Binary::Range, 25),
        "+" => (Binary::Add, 30),
        "-" => (Binary::Subtract, 30),
        "*" => (Binary::Multiply, 60),
        "/" => (Binary::Divide, 60),
        "%" => (Binary::Modulo, 60),
        "**" | "^" => (Binary::Power, 100),
        "??" => (Binary::Coalesce, 500),
        _ => return None,
    })
}

/// Words that are operators or statements, and so never variables.
const KEYWORDS: [&str; 11] =
    ["in", "or", "and", "not", "matches", "contains", "startsWith", "endsWith", "let", "if", "else"];

const NEGATION: u16 = 50;
const SIGN: u16 = 90;

impl Parser {
    fn here(&self) -> (&ExprToken, Span) {
        let (token, span) = &self.tokens[self.position];
        (token, *span)
    }

    fn ahead(&self) -> &ExprToken {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.position + 1).min(last)].0
    }

    fn advance(&mut self) {
        if self.position + 1 < self.tokens.len() {
            self.position += 1;
        }
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.here().0, ExprToken::Sign(found) if *found == sign)
    }

    fn is_word(&self, wanted: &str) -> bool {
        matches!(self.here().0, ExprToken::Word(word) if word == wanted)
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Result<Span, Error> {
        let (token, span) = self.here();
        if self.is(sign) {
            self.advance();
            return Ok(span);
        }
        Err(Error::at(span, format!("expected '{sign}' before {}", token.describe())))
    }

    fn enter(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > NESTING {
            let (_, span) = self.here();
            let message = format!("the expression nests deeper than {NESTING} levels");
            return Err(Error::at(span, message));
        }
        Ok(())
    }

    /// Parses expressions joined by `;`: the last one is the value.
    fn sequence(&mut self) -> Result<Id, Error> {
        let start = self.here().1;
        let mut parts = vec![self.expression(0)?];
        while self.take(";") {
            if matches!(self.here().0, ExprToken::End | ExprToken::Sign(")" | "}")) {
                break;
            }
            parts.push(self.expression(0)?);
        }
        match parts.as_slice() {
            [only] => Ok(*only),
            _ => Ok(self.tree.add(ExprKind::Sequence(parts), start)),
        }
    }

    fn expression(&mut self, least: u16) -> Result<Id, Error> {
        self.enter()?;
        let id = if least == 0 && self.is_word("let") {
            self.binding()?
        } else if least == 0 && self.is_word("if") {
            self.branch()?
        } else {
            let joined = self.joined(least)?;
            if least == 0 { self.ternary(joined)? } else { joined }
        };
        self.depth -= 1;
        Ok(id)
    }

    fn joined(&mut self, least: u16) -> Result<Id, Error> {
        let mut left = self.primary()?;
        let mut coalesced = false;
        loop {
            if least == 0 && self.is("|") {
                self.advance();
                left = self.pipe(left)?;
                coalesced = false;
                continue;
            }
            let negated =
                self.is_word("not") && matches!(binding(self.ahead()), Some((operator, _)) if negatable(operator));
            let token = if negated { self.ahead() } else { self.here().0 };
            let Some((operator, strength)) = binding(token).filter(|(_, strength)| *strength >= least) else {
                return Ok(left);
            };
            let mut place = self.here().1;
            self.advance();
            if negated {
                place = place.to(self.here().1);
                self.advance();
            }
            if coalesced && operator != Binary::Coalesce {
                let message = format!(
                    "'{}' and '??' cannot be mixed without parentheses around one of them",
                    operator.spelling()
                );
                return Err(Error::at(place, message));
            }
            coalesced = operator == Binary::Coalesce;
            if chainable(operator) {
                left = self.comparisons(left, operator, strength, place)?;
                continue;
            }
            // The power operator is right-associative: 2 ** 3 ** 2 is 2 ** 9.
            let right = self.expression(if operator == Binary::Power { strength } else { strength + 1 })?;
            left = self.tree.add(ExprKind::Binary(operator, left, right), place);
            if negated {
                left = self.tree.add(ExprKind::Unary(Unary::Not, left), place);
            }
        }
    }

    /// Parses chained comparisons: `a < b <= c` holds if both comparisons do.
    fn comparisons(&mut self, left: Id, operator: Binary, strength: u16, place: Span) -> Result<Id, Error> {
        let mut previous = self.expression(strength + 1)?;
        let mut all = self.tree.add(ExprKind::Binary(operator, left, previous), place);
        while let Some((operator, _)) = binding(self.here().0).filter(|(operator, _)| chainable(*operator)) {
            let place = self.here().1;
            self.advance();
            let next = self.expression(strength + 1)?;
            let one = self.tree.add(ExprKind::Binary(operator, previous, next), place);
            all = self.tree.add(ExprKind::Binary(Binary::And, all, one), place);
            previous = next;
        }
        Ok(all)
    }

    /// Parses `a ? b : c ? d : e`: the alternatives are collected in a loop, so that a long list of them costs no
    /// depth.
    fn ternary(&mut self, condition: Id) -> Result<Id, Error> {
        let mut choices = Vec::new();
        let mut last = condition;
        while self.is("?") {
            let place = self.here().1;
            self.advance();
            let yes = if self.is(":") { last } else { self.expression(0)? };
            self.expect(":")?;
            choices.push((last, yes, place));
            last = if self.is_word("let") || self.is_word("if") { self.expression(0)? } else { self.joined(0)? };
        }
        Ok(self.alternatives(choices, last))
    }

    fn alternatives(&mut self, choices: Vec<(Id, Id, Span)>, last: Id) -> Id {
        choices
            .into_iter()
            .rfold(last, |no, (condition, yes, place)| self.tree.add(ExprKind::Choose { condition, yes, no }, place))
    }

    fn binding(&mut self) -> Result<Id, Error> {
        self.advance();
        let (token, span) = self.here();
        let ExprToken::Word(name) = token else {
            return Err(Error::at(span, format!("expected a name after 'let', not {}", token.describe())));
        };
        let name: Arc<str> = name.as_str().into();
        if KEYWORDS.contains(&name.as_ref()) {
            return Err(Error::at(span, format!("'{name}' is a word of the language and cannot be bound")));
        }
        self.advance();
        self.expect("=")?;
        let value = self.expression(0)?;
        self.expect(";")?;
        self.locals.push(Arc::clone(&name));
        let body = self.sequence()?;
        self.locals.pop();
        Ok(self.tree.add(ExprKind::Let { name, value, body }, span))
    }

    fn branch(&mut self) -> Result<Id, Error> {
        let mut choices = Vec::new();
        while self.is_word("if") {
            let place = self.here().1;
            self.advance();
            let condition = self.expression(0)?;
            let yes = self.block()?;
            if !self.is_word("else") {
                let (token, span) = self.here();
                let message = format!("expected 'else' before {}", token.describe());
                return Err(Error::at(span, message));
            }
            self.advance();
            choices.push((condition, yes, place));
        }
        let last = self.block()?;
        Ok(self.alternatives(choices, last))
    }

    fn block(&mut self) -> Result<Id, Error> {
        self.expect("{")?;
        let inside = self.sequence()?;
        self.expect("}")?;
        Ok(inside)
    }
}

fn negatable(operator: Binary) -> bool {
    matches!(operator, Binary::In | Binary::Matches | Binary::Contains | Binary::StartsWith | Binary::EndsWith)
}

fn chainable(operator: Binary) -> bool {
    matches!(operator, Binary::Less | Binary::LessOrEqual | Binary::Greater | Binary::GreaterOrEqual)
}
