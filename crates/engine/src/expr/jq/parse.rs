//! Parses filters into a tree.

use serde_json::{Value, json};

use super::{JqTree, Operator};

/// Maximum nesting: deeper than anyone writes, and shallow enough for every stack.
const MAX_DEPTH: usize = 48;

#[derive(Clone, Debug, PartialEq)]
enum JqToken {
    Word(String),
    /// `.name`, `."name"`
    Field(String),
    Text(String),
    Number(f64),
    Sign(&'static str),
}

/// Longer signs first.
const SIGNS: [&str; 25] = [
    "..", "//", "==", "!=", "<=", ">=", "<", ">", "|", ",", "(", ")", "[", "]", "{", "}", ":", ";", "?", "+", "-", "*",
    "/", "%", ".",
];

pub(super) fn parse(text: &str) -> Result<JqTree, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let tree = parser.pipe()?;
    match parser.tokens.get(parser.at) {
        None => Ok(tree),
        Some(left) => Err(format!("{left:?} was not expected")),
    }
}

fn tokens(text: &str) -> Result<Vec<JqToken>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    let word_end = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    while let Some(first) = rest.chars().next() {
        let before = rest.len();
        if first == '"' {
            let (value, length) = quoted(rest)?;
            tokens.push(JqToken::Text(value));
            rest = &rest[length..];
        } else if first.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            tokens.push(JqToken::Number(rest[..end].parse().map_err(|_| format!("{} is no number", &rest[..end]))?));
            rest = &rest[end..];
        } else if first.is_alphabetic() || first == '_' {
            let end = word_end(rest);
            tokens.push(JqToken::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        } else if let Some(after) = rest.strip_prefix('.')
            && after.starts_with(|c: char| c.is_alphabetic() || c == '_')
        {
            let end = word_end(after);
            tokens.push(JqToken::Field(after[..end].to_owned()));
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix('.')
            && after.starts_with('"')
        {
            let (value, length) = quoted(after)?;
            tokens.push(JqToken::Field(value));
            rest = &after[length..];
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(JqToken::Sign(sign));
            rest = &rest[sign.len()..];
        } else {
            return Err(format!("'{first}' is not understood here"));
        }
        debug_assert!(rest.len() < before, "every token takes something");
        rest = rest.trim_start();
    }
    Ok(tokens)
}

/// Reads a JSON string at the start; returns it with its length.
fn quoted(text: &str) -> Result<(String, usize), String> {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => {
                let value = serde_json::from_str(&text[..=at]).map_err(|error| error.to_string())?;
                return Ok((value, at + 1));
            }
            _ => {}
        }
    }
    Err("a text has no closing quote".to_owned())
}

struct Parser {
    tokens: Vec<JqToken>,
    at: usize,
    depth: usize,
}

fn boxed(tree: JqTree) -> Box<JqTree> {
    Box::new(tree)
}

impl Parser {
    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(JqToken::Sign(next)) if *next == sign);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(JqToken::Word(next)) if next == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.sign(sign) { Ok(()) } else { Err(format!("'{sign}' is missing")) }
    }

    fn pipe(&mut self) -> Result<JqTree, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it nests more than {MAX_DEPTH} deep"));
        }
        let mut tree = self.comma()?;
        while self.sign("|") {
            tree = JqTree::Pipe(boxed(tree), boxed(self.comma()?));
        }
        self.depth -= 1;
        Ok(tree)
    }

    fn comma(&mut self) -> Result<JqTree, String> {
        let mut tree = self.otherwise()?;
        while self.sign(",") {
            tree = JqTree::Comma(boxed(tree), boxed(self.otherwise()?));
        }
        Ok(tree)
    }

    /// Parses an expression that a comma ends: an entry of an object, an argument.
    fn otherwise(&mut self) -> Result<JqTree, String> {
        let mut tree = self.or()?;
        while self.sign("//") {
            tree = JqTree::Else(boxed(tree), boxed(self.or()?));
        }
        Ok(tree)
    }

    fn or(&mut self) -> Result<JqTree, String> {
        let mut tree = self.and()?;
        while self.word("or") {
            tree = JqTree::Or(boxed(tree), boxed(self.and()?));
        }
        Ok(tree)
    }

    fn and(&mut self) -> Result<JqTree, String> {
        let mut tree = self.compare()?;
        while self.word("and") {
            tree = JqTree::And(boxed(tree), boxed(self.compare()?));
        }
        Ok(tree)
    }

    fn compare(&mut self) -> Result<JqTree, String> {
        let left = self.sum()?;
        let signs = [
            ("==", Operator::Equal),
            ("!=", Operator::Differ),
            ("<=", Operator::Most),
            (">=", Operator::Least),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        for (sign, operator) in signs {
            if self.sign(sign) {
                return Ok(JqTree::Operate(operator, boxed(left), boxed(self.sum()?)));
            }
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<JqTree, String> {
        let mut tree = self.product()?;
        loop {
            let operator = if self.sign("+") {
                Operator::Add
            } else if self.sign("-") {
                Operator::Subtract
            } else {
                return Ok(tree);
            };
            tree = JqTree::Operate(operator, boxed(tree), boxed(self.product()?));
        }
    }

    fn product(&mut self) -> Result<JqTree, String> {
        let mut tree = self.suffixed()?;
        loop {
            let operator = if self.sign("*") {
                Operator::Multiply
            } else if self.sign("/") {
                Operator::Divide
            } else if self.sign("%") {
                Operator::Remainder
            } else {
                return Ok(tree);
            };
            tree = JqTree::Operate(operator, boxed(tree), boxed(self.suffixed()?));
        }
    }

    fn suffixed(&mut self) -> Result<JqTree, String> {
        let mut tree = self.primary()?;
        loop {
            if let Some(JqToken::Field(name)) = self.tokens.get(self.at) {
                tree = JqTree::At(boxed(tree), boxed(JqTree::Literal(json!(name))));
                self.at += 1;
            } else if self.sign("?") {
                tree = JqTree::Try(boxed(tree));
            } else if self.sign("[") {
                tree = self.index(tree)?;
            } else if matches!(
                (self.tokens.get(self.at), self.tokens.get(self.at + 1)),
                (Some(JqToken::Sign(".")), Some(JqToken::Sign("[")))
            ) {
                self.at += 1;
            } else {
                return Ok(tree);
            }
        }
    }

    fn index(&mut self, base: JqTree) -> Result<JqTree, String> {
        if self.sign("]") {
            return Ok(JqTree::Each(boxed(base)));
        }
        if self.sign(":") {
            let end = self.pipe()?;
            self.expect("]")?;
            return Ok(JqTree::Slice(boxed(base), None, Some(boxed(end))));
        }
        let start = self.pipe()?;
        let tree = if self.sign(":") {
            let end = if matches!(self.tokens.get(self.at), Some(JqToken::Sign("]"))) {
                None
            } else {
                Some(boxed(self.pipe()?))
            };
            JqTree::Slice(boxed(base), Some(boxed(start)), end)
        } else {
            JqTree::At(boxed(base), boxed(start))
        };
        self.expect("]")?;
        Ok(tree)
    }

    fn primary(&mut self) -> Result<JqTree, String> {
        let Some(token) = self.tokens.get(self.at).cloned() else { return Err("it ends too early".to_owned()) };
        self.at += 1;
        Ok(match token {
            JqToken::Field(name) => JqTree::At(boxed(JqTree::Same), boxed(JqTree::Literal(json!(name)))),
            JqToken::Text(text) => JqTree::Literal(Value::String(text)),
            JqToken::Number(number) => JqTree::Literal(super::run::number(number)),
            JqToken::Sign(".") => JqTree::Same,
            JqToken::Sign("..") => JqTree::Everything,
            JqToken::Sign("-") => {
                JqTree::Operate(Operator::Subtract, boxed(JqTree::Literal(json!(0))), boxed(self.suffixed()?))
            }
            JqToken::Sign("(") => {
                let tree = self.pipe()?;
                self.expect(")")?;
                tree
            }
            JqToken::Sign("[") if self.sign("]") => JqTree::List(None),
            JqToken::Sign("[") => {
                let tree = self.pipe()?;
                self.expect("]")?;
                JqTree::List(Some(boxed(tree)))
            }
            JqToken::Sign("{") => self.map()?,
            JqToken::Sign(sign) => return Err(format!("'{sign}' was not expected")),
            JqToken::Word(word) => self.named(&word)?,
        })
    }

    fn map(&mut self) -> Result<JqTree, String> {
        let mut entries = Vec::new();
        while !self.sign("}") {
            if !entries.is_empty() {
                self.expect(",")?;
            }
            let Some(token) = self.tokens.get(self.at).cloned() else { return Err("'}' is missing".to_owned()) };
            self.at += 1;
            let (key, name) = match token {
                JqToken::Word(name) | JqToken::Text(name) => (JqTree::Literal(json!(name)), Some(name)),
                JqToken::Sign("(") => {
                    let key = self.pipe()?;
                    self.expect(")")?;
                    (key, None)
                }
                JqToken::Field(_) | JqToken::Number(_) | JqToken::Sign(_) => {
                    return Err(format!("{token:?} is no key"));
                }
            };
            let value = match name {
                Some(name) if !self.sign(":") => JqTree::At(boxed(JqTree::Same), boxed(JqTree::Literal(json!(name)))),
                Some(_) => self.nested()?,
                None => {
                    self.expect(":")?;
                    self.nested()?
                }
            };
            entries.push((key, value));
        }
        Ok(JqTree::Map(entries))
    }

    /// Parses an expression without commas, counted as a nesting level.
    fn nested(&mut self) -> Result<JqTree, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it nests more than {MAX_DEPTH} deep"));
        }
        let tree = self.otherwise()?;
        self.depth -= 1;
        Ok(tree)
    }

    fn named(&mut self, word: &str) -> Result<JqTree, String> {
        Ok(match word {
            "true" => JqTree::Literal(json!(true)),
            "false" => JqTree::Literal(json!(false)),
            "null" => JqTree::Literal(Value::Null),
            "if" => self.choice()?,
            _ => {
                let mut arguments = Vec::new();
                if self.sign("(") {
                    loop {
                        arguments.push(self.pipe()?);
                        if self.sign(")") {
                            break;
                        }
                        self.expect(";")?;
                    }
                }
                super::function::known(word, arguments.len())?;
                JqTree::Call(word.to_owned(), arguments)
            }
        })
    }

    fn choice(&mut self) -> Result<JqTree, String> {
        let condition = self.pipe()?;
        if !self.word("then") {
            return Err("'then' is missing".to_owned());
        }
        let yes = self.pipe()?;
        let no = if self.word("else") { self.pipe()? } else { JqTree::Same };
        if !self.word("end") {
            return Err("'end' is missing".to_owned());
        }
        Ok(JqTree::If(boxed(condition), boxed(yes), boxed(no)))
    }
}
