//! Selectors: a boolean expression over named conditions, each a pattern for one value of a job's header. The parser
//! has limits on length, depth and size, so no text can exhaust the stack.

use std::collections::BTreeMap;

use octoflow_manifest::{Path, Problem};
use octoflow_model::plugin::{ConditionSpec, SelectorSpec};
use serde_json::Value;

use crate::{
    admit::code,
    expr::{NESTING, nearest, pattern::Pattern},
};

/// Limits of one selector. A person writes a dozen conditions.
const MAX_CONDITIONS: usize = 256;
const MAX_EXPRESSION: usize = 16 * 1024;
/// How much of a value is tested; a header is some kilobytes.
const MAX_VALUE: usize = 256 * 1024;

/// A compiled selector.
#[derive(Clone, Debug)]
pub struct JobSelector {
    conditions: Vec<Condition>,
    rule: Rule,
}

#[derive(Clone, Debug)]
struct Condition {
    /// Names of the members that lead to the value.
    key: Vec<String>,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    /// The pattern matches somewhere in the value.
    Search(Pattern),
    /// The pattern matches the whole value.
    Whole(Pattern),
}

/// An expression; conditions by their number.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Always,
    Condition(usize),
    Not(Box<Rule>),
    All(Vec<Rule>),
    Any(Vec<Rule>),
}

impl JobSelector {
    /// Compiles a selector; on error returns every problem. `path` is where it is written.
    pub fn compile(spec: &SelectorSpec, path: &Path) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let (mut names, mut conditions) = (BTreeMap::new(), Vec::new());
        let at_conditions = path.join("conditions");
        if spec.conditions.len() > MAX_CONDITIONS {
            let message = format!("a selector has at most {MAX_CONDITIONS} conditions");
            return Err(vec![Problem::error(code::SELECTOR, message).path(at_conditions)]);
        }
        for (at, condition) in spec.conditions.iter().enumerate() {
            let path = at_conditions.join(at);
            let refused = |message: String, field: &str| Problem::error(code::SELECTOR, message).path(path.join(field));
            if !is_name(&condition.name) {
                let message = match condition.name.as_str() {
                    "" => "a condition needs a name".to_owned(),
                    name => format!("`{name}` is no name: letters, digits, `_`, `-` and `.`, a letter or `_` first"),
                };
                problems.push(refused(message, "name"));
            }
            if condition.key.is_empty() {
                problems.push(refused(format!("the condition `{}` needs a key", condition.name), "key"));
            }
            // Also a condition that does not compile has its number: the expression is checked with it.
            if names.insert(condition.name.as_str(), at).is_some() {
                problems.push(refused(format!("the condition `{}` is there twice", condition.name), "name"));
            }
            match Test::compile(condition) {
                Ok(test) => {
                    let key = condition.key.split('.').map(str::to_owned).collect();
                    conditions.push(Condition { key, test });
                }
                Err(why) => problems.push(refused(why, "expect")),
            }
        }
        let rule = match parse(&spec.expression, &names) {
            Ok(rule) => Some(rule),
            Err(error) => {
                let message = format!("expression, column {}: {}", error.column, error.message);
                let problem = Problem::error(code::SELECTOR, message).path(path.join("expression"));
                problems.push(match error.help {
                    Some(help) => problem.help(help),
                    None => problem,
                });
                None
            }
        };
        match rule {
            Some(rule) if problems.is_empty() => Ok(Self { conditions, rule }),
            _ => Err(problems),
        }
    }

    /// Reports whether a job with this header is selected.
    pub fn matches(&self, header: &Value) -> bool {
        self.holds(&self.rule, header)
    }

    fn holds(&self, rule: &Rule, header: &Value) -> bool {
        match rule {
            Rule::Always => true,
            Rule::Condition(at) => self.conditions[*at].holds(header),
            Rule::Not(inner) => !self.holds(inner, header),
            Rule::All(inner) => inner.iter().all(|rule| self.holds(rule, header)),
            Rule::Any(inner) => inner.iter().any(|rule| self.holds(rule, header)),
        }
    }
}

impl Condition {
    fn holds(&self, header: &Value) -> bool {
        let value = self.key.iter().try_fold(header, |value, name| value.get(name));
        let text = match value {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        // A longer value is nobody's to match by a pattern.
        text.len() <= MAX_VALUE && self.test.holds(&text)
    }
}

impl Test {
    fn compile(condition: &ConditionSpec) -> Result<Self, String> {
        let expect = condition.expect.as_str();
        if let Some(rest) = expect.strip_prefix('/')
            && let Some((source, flags)) = rest.rsplit_once('/')
            && (flags.is_empty() || flags == "i")
        {
            let source = if flags == "i" { format!("(?i:{source})") } else { source.to_owned() };
            return Pattern::new(&source).map(Self::Search);
        }
        // Judged on its own first: `a)(?:b` must not become valid by what is put around it.
        Pattern::new(expect)?;
        Pattern::new(&format!("^(?:{expect})$")).map(Self::Whole)
    }

    fn holds(&self, text: &str) -> bool {
        match self {
            Self::Search(pattern) => pattern.regex().is_match(text),
            Self::Whole(pattern) => {
                let found = pattern.regex().find(text);
                found.is_some_and(|found| found.start() == 0 && found.end() == text.len())
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    let first = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && characters.all(is_name_character)
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

#[derive(Debug, PartialEq, Eq)]
struct ParseError {
    /// Counted from 1, in characters.
    column: usize,
    message: String,
    help: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Name(String),
    And,
    Or,
    Not,
    Open,
    Close,
    Star,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::And => "&&",
            Self::Or => "||",
            Self::Not => "!",
            Self::Open => "(",
            Self::Close => ")",
            Self::Star => "*",
        }
    }
}

fn parse(text: &str, names: &BTreeMap<&str, usize>) -> Result<Rule, ParseError> {
    if text.len() > MAX_EXPRESSION {
        return Err(fault(1, format!("it is longer than {MAX_EXPRESSION} bytes")));
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, end: text.chars().count() + 1, names };
    if let [(column, Token::Star)] = tokens[..] {
        debug_assert!(column > 0, "columns count from 1");
        return Ok(Rule::Always);
    }
    if tokens.is_empty() {
        let help = "write the names of conditions joined by `&&`, `||`, `!` and parentheses; `*` matches every job";
        return Err(ParseError { help: Some(help.to_owned()), ..fault(1, "it is empty".to_owned()) });
    }
    let rule = parser.any(0)?;
    match parser.peek() {
        None => Ok(rule),
        Some((column, token)) => {
            let message = match token {
                Token::Close => "this parenthesis was never opened".to_owned(),
                Token::Name(_) | Token::And | Token::Or | Token::Not | Token::Open | Token::Star => {
                    format!("`{}` follows without `&&` or `||` before it", token.text())
                }
            };
            Err(fault(*column, message))
        }
    }
}

fn fault(column: usize, message: String) -> ParseError {
    ParseError { column, message, help: None }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ParseError> {
    let mut tokens = Vec::new();
    let mut characters = text.chars().enumerate().map(|(at, c)| (at + 1, c)).peekable();
    while let Some((column, c)) = characters.next() {
        let token = match c {
            c if c.is_whitespace() => continue,
            '(' => Token::Open,
            ')' => Token::Close,
            '!' => Token::Not,
            '*' => Token::Star,
            '&' | '|' => {
                if characters.next_if(|(_, next)| *next == c).is_none() {
                    return Err(fault(column, format!("a single `{c}`; write `{c}{c}`")));
                }
                if c == '&' { Token::And } else { Token::Or }
            }
            c if c.is_ascii_alphabetic() || c == '_' => {
                let mut name = String::from(c);
                while let Some((_, next)) = characters.next_if(|(_, next)| is_name_character(*next)) {
                    name.push(next);
                }
                Token::Name(name)
            }
            other => return Err(fault(column, format!("`{other}` means nothing here"))),
        };
        tokens.push((column, token));
    }
    Ok(tokens)
}

/// A parser by recursive descent; `!` binds closest, then `&&`, then `||`.
struct Parser<'a> {
    tokens: &'a [(usize, Token)],
    at: usize,
    /// The column behind the last character.
    end: usize,
    names: &'a BTreeMap<&'a str, usize>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&(usize, Token)> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, wanted: &Token) -> bool {
        let found = self.peek().is_some_and(|(_, token)| token == wanted);
        self.at += usize::from(found);
        found
    }

    fn any(&mut self, depth: usize) -> Result<Rule, ParseError> {
        let mut rules = vec![self.all(depth)?];
        while self.take(&Token::Or) {
            rules.push(self.all(depth)?);
        }
        Ok(if rules.len() == 1 { rules.remove(0) } else { Rule::Any(rules) })
    }

    fn all(&mut self, depth: usize) -> Result<Rule, ParseError> {
        let mut rules = vec![self.one(depth)?];
        while self.take(&Token::And) {
            rules.push(self.one(depth)?);
        }
        Ok(if rules.len() == 1 { rules.remove(0) } else { Rule::All(rules) })
    }

    fn one(&mut self, depth: usize) -> Result<Rule, ParseError> {
        let Some((column, token)) = self.peek().cloned() else {
            return Err(fault(self.end, "it ends where a condition should follow".to_owned()));
        };
        if depth > NESTING {
            return Err(fault(column, format!("it is nested more than {NESTING} levels deep")));
        }
        self.at += 1;
        match token {
            Token::Name(name) => match self.names.get(name.as_str()) {
                Some(at) => Ok(Rule::Condition(*at)),
                None => {
                    let help = nearest(&name, self.names.keys().copied()).map(|near| format!("did you mean `{near}`?"));
                    Err(ParseError { help, ..fault(column, format!("there is no condition `{name}`")) })
                }
            },
            Token::Not => Ok(Rule::Not(Box::new(self.one(depth + 1)?))),
            Token::Open => {
                let inner = self.any(depth + 1)?;
                if self.take(&Token::Close) {
                    return Ok(inner);
                }
                match self.peek() {
                    Some((at, other)) => {
                        Err(fault(*at, format!("`{}` where `&&`, `||` or `)` should stand", other.text())))
                    }
                    None => Err(fault(column, "this parenthesis is never closed".to_owned())),
                }
            }
            Token::Star => Err(fault(column, "`*` stands alone or not at all".to_owned())),
            Token::And | Token::Or | Token::Close => {
                Err(fault(column, format!("`{}` where a condition should stand", token.text())))
            }
        }
    }
}

#[cfg(test)]
mod tests;
