//! Evaluates a condition while parsing it, from left to right, by operator precedence. A short-circuited side (`false
//! && …`) is parsed but not evaluated. Depth, text and matching are limited.

use super::operate::{Budget, binary, negate};
use super::token::{Sign, WhenLexer, WhenToken};
use super::{Span, VariableLookup, WhenFault};
use crate::expr::{NESTING, Value};

pub(super) struct Computer<'a> {
    lexer: WhenLexer,
    token: WhenToken,
    span: Span,
    lookup: VariableLookup<'a>,
    depth: usize,
    budget: Budget,
}

/// A value and its span. In a short-circuited side the value is nil.
type Part = (Value, Span);

/// Returns the precedence of a binary operator; `None` for other signs.
fn binding(sign: Sign) -> Option<u8> {
    Some(match sign {
        Sign::Or => 1,
        Sign::And => 2,
        Sign::Equal
        | Sign::Unequal
        | Sign::Less
        | Sign::LessOrEqual
        | Sign::Greater
        | Sign::GreaterOrEqual
        | Sign::Matches
        | Sign::MatchesNot
        | Sign::In => 3,
        Sign::BitAnd | Sign::BitOr | Sign::BitXor => 4,
        Sign::ShiftLeft | Sign::ShiftRight => 5,
        Sign::Plus | Sign::Minus => 6,
        Sign::Times | Sign::Divide | Sign::Modulo => 7,
        Sign::Power => 8,
        Sign::Not
        | Sign::BitNot
        | Sign::Question
        | Sign::Colon
        | Sign::Coalesce
        | Sign::Open
        | Sign::Close
        | Sign::Comma => return None,
    })
}

impl<'a> Computer<'a> {
    pub(super) fn new(text: &str, lookup: VariableLookup<'a>) -> Self {
        Self {
            lexer: WhenLexer::new(text),
            token: WhenToken::End,
            span: Span::default(),
            lookup,
            depth: 0,
            budget: Budget::default(),
        }
    }

    pub(super) fn run(mut self) -> Result<Value, WhenFault> {
        self.advance()?;
        let (value, _) = self.choice(true)?;
        match &self.token {
            WhenToken::End => Ok(value),
            WhenToken::Sign(Sign::Close) => Err(WhenFault::new(self.span, "there is no '(' for this ')'")),
            WhenToken::Sign(Sign::Comma) => Err(WhenFault::new(self.span, "a list needs parentheses around it")),
            token @ (WhenToken::Literal(_) | WhenToken::Name(_) | WhenToken::Sign(_)) => {
                let reason = format!("{} cannot follow what stands before it", token.describe());
                Err(WhenFault::new(self.span, reason).with_quote_hint())
            }
        }
    }

    fn advance(&mut self) -> Result<(), WhenFault> {
        (self.token, self.span) = self.lexer.next()?;
        Ok(())
    }

    fn take(&mut self, sign: Sign) -> Result<bool, WhenFault> {
        let found = self.token == WhenToken::Sign(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Parses `a ? b : c` and `a ?? b`, which bind least.
    fn choice(&mut self, live: bool) -> Result<Part, WhenFault> {
        let (mut value, mut span) = self.joined(1, live)?;
        loop {
            if self.take(Sign::Coalesce)? {
                let needed = live && value.is_nil();
                let (other, end) = self.joined(1, needed)?;
                span = span.to(end);
                if needed {
                    value = other;
                }
            } else if self.take(Sign::Question)? {
                let holds = live && truth(&value, span, Sign::Question)?;
                self.enter()?;
                let (yes, _) = self.choice(live && holds)?;
                if !self.take(Sign::Colon)? {
                    return Err(WhenFault::new(self.span, "expected ':' and the other choice"));
                }
                let (no, end) = self.choice(live && !holds)?;
                self.depth -= 1;
                span = span.to(end);
                value = if holds { yes } else { no };
            } else {
                return Ok((value, span));
            }
        }
    }

    fn joined(&mut self, least: u8, live: bool) -> Result<Part, WhenFault> {
        let (mut left, mut span) = self.single(live)?;
        while let WhenToken::Sign(sign) = self.token {
            let Some(strength) = binding(sign).filter(|&strength| strength >= least) else {
                break;
            };
            let place = self.span;
            self.advance()?;
            let short_circuits = matches!(sign, Sign::And | Sign::Or);
            let settled = live && short_circuits && truth(&left, span, sign)? == (sign == Sign::Or);
            let (right, end) = self.joined(strength + 1, live && !settled)?;
            if live && !settled {
                left = if short_circuits {
                    Value::Bool(truth(&right, end, sign)?)
                } else {
                    binary(sign, &left, &right, place, &mut self.budget)?
                };
            }
            span = span.to(end);
        }
        Ok((left, span))
    }

    fn single(&mut self, live: bool) -> Result<Part, WhenFault> {
        self.enter()?;
        let start = self.span;
        let part = match &self.token {
            WhenToken::Literal(value) => {
                let value = value.clone();
                self.advance()?;
                (value, start)
            }
            WhenToken::Name(name) => {
                let value = if live { self.look_up(name)? } else { Value::Nil };
                self.advance()?;
                (value, start)
            }
            WhenToken::Sign(sign @ (Sign::Not | Sign::Minus | Sign::BitNot)) => {
                let sign = *sign;
                self.advance()?;
                let (value, end) = self.single(live)?;
                let value = if live { negate(sign, &value, start)? } else { value };
                (value, start.to(end))
            }
            WhenToken::Sign(Sign::Open) => {
                self.advance()?;
                let value = self.parenthesised(start, live)?;
                (value, start)
            }
            token @ (WhenToken::Sign(_) | WhenToken::End) => {
                let reason = format!("expected a value before {}", token.describe());
                let fault = WhenFault::new(start, reason);
                let hinted = matches!(token, WhenToken::Sign(_));
                return Err(if hinted { fault.with_quote_hint() } else { fault });
            }
        };
        self.depth -= 1;
        Ok(part)
    }

    /// Parses a value in parentheses, or a list of several.
    fn parenthesised(&mut self, opening: Span, live: bool) -> Result<Value, WhenFault> {
        if self.take(Sign::Close)? {
            return Ok(Value::list(Vec::new()));
        }
        let (first, _) = self.choice(live)?;
        if self.take(Sign::Close)? {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.take(Sign::Comma)? {
            items.push(self.choice(live)?.0);
        }
        if self.take(Sign::Close)? {
            Ok(Value::list(items))
        } else if self.token == WhenToken::End {
            Err(WhenFault::new(opening, "this '(' is never closed"))
        } else {
            let reason = format!("expected ',' or ')' before {}", self.token.describe());
            Err(WhenFault::new(self.span, reason).with_quote_hint())
        }
    }

    fn look_up(&self, name: &str) -> Result<Value, WhenFault> {
        match (self.lookup)(name) {
            Some(Value::Int(whole)) => Ok(Value::Float(crate::expr::number::real(whole))),
            Some(value) => Ok(value),
            None => Err(WhenFault::new(self.span, format!("there is no variable '{name}'")).with_quote_hint()),
        }
    }

    fn enter(&mut self) -> Result<(), WhenFault> {
        self.depth += 1;
        if self.depth > NESTING {
            return Err(WhenFault::new(self.span, format!("it nests deeper than {NESTING} levels")));
        }
        Ok(())
    }
}

fn truth(value: &Value, span: Span, sign: Sign) -> Result<bool, WhenFault> {
    value.as_bool().ok_or_else(|| {
        let reason = format!("'{}' needs true or false on both sides, but '{value}' is neither", sign.spelling());
        WhenFault::new(span, reason).with_quote_hint()
    })
}
