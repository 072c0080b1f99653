//! Parses filters into a tree.

use serde_json::{Value, json};

use super::{Operator, Tree};

/// Maximum nesting: deeper than anyone writes, and shallow enough for every stack.
const MAX_DEPTH: usize = 48;

#[derive(Clone, Debug, PartialEq)]
enum Token {
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

pub(super) fn parse(text: &str) -> Result<Tree, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let tree = parser.pipe()?;
    match parser.tokens.get(parser.at) {
        None => Ok(tree),
        Some(left) => Err(format!("{left:?} was not expected")),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    let word_end = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    while let Some(first) = rest.chars().next() {
        let before = rest.len();
        if first == '"' {
            let (value, length) = quoted(rest)?;
            tokens.push(Token::Text(value));
            rest = &rest[length..];
        } else if first.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            tokens.push(Token::Number(rest[..end].parse().map_err(|_| format!("{} is no number", &rest[..end]))?));
            rest = &rest[end..];
        } else if first.is_alphabetic() || first == '_' {
            let end = word_end(rest);
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        } else if let Some(after) = rest.strip_prefix('.')
            && after.starts_with(|c: char| c.is_alphabetic() || c == '_')
        {
            let end = word_end(after);
            tokens.push(Token::Field(after[..end].to_owned()));
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix('.')
            && after.starts_with('"')
        {
            let (value, length) = quoted(after)?;
            tokens.push(Token::Field(value));
            rest = &after[length..];
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
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
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

fn boxed(tree: Tree) -> Box<Tree> {
    Box::new(tree)
}

impl Parser {
    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Sign(next)) if *next == sign);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Word(next)) if next == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.sign(sign) { Ok(()) } else { Err(format!("'{sign}' is missing")) }
    }

    fn pipe(&mut self) -> Result<Tree, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it nests more than {MAX_DEPTH} deep"));
        }
        let mut tree = self.comma()?;
        while self.sign("|") {
            tree = Tree::Pipe(boxed(tree), boxed(self.comma()?));
        }
        self.depth -= 1;
        Ok(tree)
    }

    fn comma(&mut self) -> Result<Tree, String> {
        let mut tree = self.otherwise()?;
        while self.sign(",") {
            tree = Tree::Comma(boxed(tree), boxed(self.otherwise()?));
        }
        Ok(tree)
    }

    /// Parses an expression that a comma ends: an entry of an object, an argument.
    fn otherwise(&mut self) -> Result<Tree, String> {
        let mut tree = self.or()?;
        while self.sign("//") {
            tree = Tree::Else(boxed(tree), boxed(self.or()?));
        }
        Ok(tree)
    }

    fn or(&mut self) -> Result<Tree, String> {
        let mut tree = self.and()?;
        while self.word("or") {
            tree = Tree::Or(boxed(tree), boxed(self.and()?));
        }
        Ok(tree)
    }

    fn and(&mut self) -> Result<Tree, String> {
        let mut tree = self.compare()?;
        while self.word("and") {
            tree = Tree::And(boxed(tree), boxed(self.compare()?));
        }
        Ok(tree)
    }

    fn compare(&mut self) -> Result<Tree, String> {
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
                return Ok(Tree::Operate(operator, boxed(left), boxed(self.sum()?)));
            }
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Tree, String> {
        let mut tree = self.product()?;
        loop {
            let operator = if self.sign("+") {
                Operator::Add
            } else if self.sign("-") {
                Operator::Subtract
            } else {
                return Ok(tree);
            };
            tree = Tree::Operate(operator, boxed(tree), boxed(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Tree, String> {
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
            tree = Tree::Operate(operator, boxed(tree), boxed(self.suffixed()?));
        }
    }

    fn suffixed(&mut self) -> Result<Tree, String> {
        let mut tree = self.primary()?;
        loop {
            if let Some(Token::Field(name)) = self.tokens.get(self.at) {
                tree = Tree::At(boxed(tree), boxed(Tree::Literal(json!(name))));
                self.at += 1;
            } else if self.sign("?") {
                tree = Tree::Try(boxed(tree));
            } else if self.sign("[") {
                tree = self.index(tree)?;
            } else if matches!(
                (self.tokens.get(self.at), self.tokens.get(self.at + 1)),
                (Some(Token::Sign(".")), Some(Token::Sign("[")))
            ) {
                self.at += 1;
            } else {
                return Ok(tree);
            }
        }
    }

    fn index(&mut self, base: Tree) -> Result<Tree, String> {
        if self.sign("]") {
            return Ok(Tree::Each(boxed(base)));
        }
        if self.sign(":") {
            let end = self.pipe()?;
            self.expect("]")?;
            return Ok(Tree::Slice(boxed(base), None, Some(boxed(end))));
        }
        let start = self.pipe()?;
        let tree = if self.sign(":") {
            let end = if matches!(self.tokens.get(self.at), Some(Token::Sign("]"))) {
                None
            } else {
                Some(boxed(self.pipe()?))
            };
            Tree::Slice(boxed(base), Some(boxed(start)), end)
        } else {
            Tree::At(boxed(base), boxed(start))
        };
        self.expect("]")?;
        Ok(tree)
    }

    fn primary(&mut self) -> Result<Tree, String> {
        let Some(token) = self.tokens.get(self.at).cloned() else { return Err("it ends too early".to_owned()) };
        self.at += 1;
        Ok(match token {
            Token::Field(name) => Tree::At(boxed(Tree::Same), boxed(Tree::Literal(json!(name)))),
            Token::Text(text) => Tree::Literal(Value::String(text)),
            Token::Number(number) => Tree::Literal(super::run::number(number)),
            Token::Sign(".") => Tree::Same,
            Token::Sign("..") => Tree::Everything,
            Token::Sign("-") => {
                Tree::Operate(Operator::Subtract, boxed(Tree::Literal(json!(0))), boxed(self.suffixed()?))
            }
            Token::Sign("(") => {
                let tree = self.pipe()?;
                self.expect(")")?;
                tree
            }
            Token::Sign("[") if self.sign("]") => Tree::List(None),
            Token::Sign("[") => {
                let tree = self.pipe()?;
                self.expect("]")?;
                Tree::List(Some(boxed(tree)))
            }
            Token::Sign("{") => self.map()?,
            Token::Sign(sign) => return Err(format!("'{sign}' was not expected")),
            Token::Word(word) => self.named(&word)?,
        })
    }

    fn map(&mut self) -> Result<Tree, String> {
        let mut entries = Vec::new();
        while !self.sign("}") {
            if !entries.is_empty() {
                self.expect(",")?;
            }
            let Some(token) = self.tokens.get(self.at).cloned() else { return Err("'}' is missing".to_owned()) };
            self.at += 1;
            let (key, name) = match token {
                Token::Word(name) | Token::Text(name) => (Tree::Literal(json!(name)), Some(name)),
                Token::Sign("(") => {
                    let key = self.pipe()?;
                    self.expect(")")?;
                    (key, None)
                }
                Token::Field(_) | Token::Number(_) | Token::Sign(_) => return Err(format!("{token:?} is no key")),
            };
            let value = match name {
                Some(name) if !self.sign(":") => Tree::At(boxed(Tree::Same), boxed(Tree::Literal(json!(name)))),
                Some(_) => self.nested()?,
                None => {
                    self.expect(":")?;
                    self.nested()?
                }
            };
            entries.push((key, value));
        }
        Ok(Tree::Map(entries))
    }

    /// Parses an expression without commas, counted as a nesting level.
    fn nested(&mut self) -> Result<Tree, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it nests more than {MAX_DEPTH} deep"));
        }
        let tree = self.otherwise()?;
        self.depth -= 1;
        Ok(tree)
    }

    fn named(&mut self, word: &str) -> Result<Tree, String> {
        Ok(match word {
            "true" => Tree::Literal(json!(true)),
            "false" => Tree::Literal(json!(false)),
            "null" => Tree::Literal(Value::Null),
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
                Tree::Call(word.to_owned(), arguments)
            }
        })
    }

    fn choice(&mut self) -> Result<Tree, String> {
        let condition = self.pipe()?;
        if !self.word("then") {
            return Err("'then' is missing".to_owned());
        }
        let yes = self.pipe()?;
        let no = if self.word("else") { self.pipe()? } else { Tree::Same };
        if !self.word("end") {
            return Err("'end' is missing".to_owned());
        }
        Ok(Tree::If(boxed(condition), boxed(yes), boxed(no)))
    }
}
