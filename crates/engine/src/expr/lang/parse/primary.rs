//! Parses primary expressions: literals, names, parentheses, and their suffixes (`.x`, `[0]`, `[1:2]`, `?.x`).

use super::{KEYWORDS, NEGATION, Parser, SIGN};
use crate::expr::lang::token::ExprToken;
use crate::expr::lang::tree::{ExprKind, Id, Unary};
use crate::expr::{Error, Span};

impl Parser {
    pub(super) fn primary(&mut self) -> Result<Id, Error> {
        let (token, span) = self.here();
        let id = match token {
            ExprToken::Sign("!") => return self.unary(Unary::Not, NEGATION, span),
            ExprToken::Word(word) if word == "not" => return self.unary(Unary::Not, NEGATION, span),
            ExprToken::Sign("-") => return self.unary(Unary::Minus, SIGN, span),
            ExprToken::Sign("+") => return self.unary(Unary::Plus, SIGN, span),
            ExprToken::Sign("(") => {
                self.advance();
                let inside = self.sequence()?;
                if !self.is(")") {
                    let (token, _) = self.here();
                    let message = format!("this '(' is not closed before {}", token.describe());
                    return Err(Error::at(span, message));
                }
                self.advance();
                inside
            }
            ExprToken::Sign("#") => self.pointer(span)?,
            // `.x` in a closure is short for `#.x`; the point itself is parsed as a suffix.
            ExprToken::Sign(".") if !self.closures.is_empty() => self.tree.add(ExprKind::Item, span),
            ExprToken::Sign(".") => return Err(outside(span, "'.'")),
            ExprToken::Sign("[") => self.list(span)?,
            ExprToken::Sign("{") => self.map(span)?,
            ExprToken::Sign("::") => {
                self.advance();
                let (token, span) = self.here();
                let ExprToken::Word(name) = token else {
                    return Err(Error::at(span, "expected the name of a function after '::'"));
                };
                let name = name.clone();
                self.advance();
                self.call(&name, span, None)?
            }
            ExprToken::Int(value) => self.literal(ExprKind::Int(*value), span),
            ExprToken::Float(value) => self.literal(ExprKind::Float(*value), span),
            ExprToken::Text(text) => self.literal(ExprKind::Text(text.as_str().into()), span),
            ExprToken::Word(word) => {
                let word = word.clone();
                self.word(&word, span)?
            }
            ExprToken::End | ExprToken::Sign(_) => {
                return Err(Error::at(span, format!("expected a value before {}", token.describe())));
            }
        };
        self.attached(id, span)
    }

    fn unary(&mut self, operator: Unary, strength: u16, span: Span) -> Result<Id, Error> {
        self.advance();
        let operand = self.expression(strength)?;
        let id = self.tree.add(ExprKind::Unary(operator, operand), span);
        self.attached(id, span)
    }

    fn literal(&mut self, kind: ExprKind, span: Span) -> Id {
        self.advance();
        self.tree.add(kind, span)
    }

    fn word(&mut self, word: &str, span: Span) -> Result<Id, Error> {
        let kind = match word {
            "true" => ExprKind::Bool(true),
            "false" => ExprKind::Bool(false),
            "nil" | "null" => ExprKind::Nil,
            _ if KEYWORDS.contains(&word) => {
                return Err(Error::at(span, format!("expected a value before '{word}'")));
            }
            _ => {
                self.advance();
                if self.is("(") {
                    return self.call(word, span, None);
                }
                if word == "sprig" && self.is(".") && !self.bound(word) {
                    return self.sprig(None);
                }
                return Ok(self.name(word, span));
            }
        };
        Ok(self.literal(kind, span))
    }

    fn name(&mut self, word: &str, span: Span) -> Id {
        let kind = if self.bound(word) { ExprKind::Local(word.into()) } else { ExprKind::Name(word.into()) };
        self.tree.add(kind, span)
    }

    fn bound(&self, word: &str) -> bool {
        self.locals.iter().any(|local| local.as_ref() == word)
    }

    /// Parses `#`, `#index` and `#acc`.
    fn pointer(&mut self, span: Span) -> Result<Id, Error> {
        self.advance();
        let Some(&accumulates) = self.closures.last() else {
            return Err(outside(span, "'#'"));
        };
        let (token, end) = self.here();
        // Only a word that touches the sign belongs to it: in `# in list` it does not.
        let word = if let ExprToken::Word(word) = token { Some(word.as_str()) } else { None };
        let kind = match word.filter(|_| end.start == span.start + span.length) {
            Some("index") => ExprKind::Index,
            Some("acc") if accumulates => ExprKind::Accumulator,
            Some("acc") => return Err(Error::at(span.to(end), "'#acc' is known inside reduce() only")),
            Some(other) => {
                let message = format!("'#{other}' is unknown; there are '#', '#index' and '#acc'");
                return Err(Error::at(span.to(end), message));
            }
            None => return Ok(self.tree.add(ExprKind::Item, span)),
        };
        self.advance();
        Ok(self.tree.add(kind, span.to(end)))
    }

    fn list(&mut self, span: Span) -> Result<Id, Error> {
        self.advance();
        let mut items = Vec::new();
        while !self.is("]") {
            items.push(self.expression(0)?);
            if !self.take(",") && !self.is("]") {
                let (token, here) = self.here();
                let message = format!("expected ',' or ']' before {}", token.describe());
                return Err(Error::at(here, message));
            }
        }
        self.advance();
        Ok(self.tree.add(ExprKind::List(items), span))
    }

    fn map(&mut self, span: Span) -> Result<Id, Error> {
        self.advance();
        let mut entries = Vec::new();
        while !self.is("}") {
            let (token, place) = self.here();
            let key = match token {
                ExprToken::Text(key) | ExprToken::Word(key) => self.literal(ExprKind::Text(key.as_str().into()), place),
                ExprToken::Int(key) => self.literal(ExprKind::Text(key.to_string().into()), place),
                ExprToken::Float(key) => self.literal(ExprKind::Text(key.to_string().into()), place),
                ExprToken::Sign("(") => self.expression(0)?,
                ExprToken::Sign(_) | ExprToken::End => {
                    let message = format!(
                        "a key of a map is a name, a text, a number or something in parentheses, not {}",
                        token.describe()
                    );
                    return Err(Error::at(place, message));
                }
            };
            self.expect(":")?;
            let value = self.expression(0)?;
            entries.push((key, value));
            if !self.take(",") && !self.is("}") {
                let (token, here) = self.here();
                let message = format!("expected ',' or '}}' before {}", token.describe());
                return Err(Error::at(here, message));
            }
        }
        self.advance();
        Ok(self.tree.add(ExprKind::Map(entries), span))
    }

    /// Parses all suffixes of a value.
    fn attached(&mut self, value: Id, start: Span) -> Result<Id, Error> {
        let mut value = value;
        let mut chained = false;
        loop {
            let optional = self.is("?.");
            if optional || self.is(".") {
                self.advance();
                value = if optional && self.is("[") {
                    self.bracket(value, start, true)?
                } else {
                    self.member(value, start, optional)?
                };
            } else if self.is("[") {
                value = self.bracket(value, start, false)?;
            } else {
                break;
            }
            chained |= optional;
        }
        if chained {
            value = self.tree.add(ExprKind::Chain(value), start);
        }
        Ok(value)
    }

    fn member(&mut self, target: Id, start: Span, optional: bool) -> Result<Id, Error> {
        let (token, place) = self.here();
        let ExprToken::Word(key) = token else {
            let message = format!("expected the name of a member before {}", token.describe());
            return Err(Error::at(place, message));
        };
        let key: std::sync::Arc<str> = key.as_str().into();
        self.advance();
        let span = start.to(place);
        let kind = if self.is("(") {
            ExprKind::Method { target, name: key, arguments: self.arguments()?, optional }
        } else {
            ExprKind::Member { target, key, optional }
        };
        Ok(self.tree.add(kind, span))
    }

    fn bracket(&mut self, target: Id, start: Span, optional: bool) -> Result<Id, Error> {
        self.advance();
        let first = if self.is(":") { None } else { Some(self.expression(0)?) };
        let kind = match first {
            Some(key) if !self.is(":") => ExprKind::At { target, key, optional },
            from => {
                self.expect(":")?;
                let to = if self.is("]") { None } else { Some(self.expression(0)?) };
                ExprKind::Slice { target, from, to }
            }
        };
        let end = self.expect("]")?;
        Ok(self.tree.add(kind, start.to(end)))
    }
}

fn outside(span: Span, sign: &str) -> Error {
    Error::at(span, format!("{sign} stands for the element of a closure, but there is no closure around it"))
}
