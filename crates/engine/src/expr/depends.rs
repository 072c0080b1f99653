//! The `depends` logic of a DAG task: `A && (B.Failed || !C)`. Knows names and outcomes only; the caller says whether a
//! task has an outcome.

use super::{Error, NESTING, Span, TEXT, nearest};

/// A parsed `depends`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Depends {
    tree: DependsTree,
    terms: Vec<DependsTerm>,
}

/// One mention of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependsTerm {
    pub task: String,
    /// `None` for a bare name, whose meaning depends on the task (see [`DependsTerm::holds`]).
    pub outcome: Option<TaskOutcome>,
    /// Column of the term: 1-based, in characters.
    pub column: usize,
}

/// Outcome of a task, as in `task.Succeeded`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskOutcome {
    Succeeded,
    Failed,
    Errored,
    Skipped,
    Omitted,
    Daemoned,
    /// Some item of a looped task succeeded.
    AnySucceeded,
    /// All items of a looped task failed.
    AllFailed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum DependsTree {
    /// Index into the terms.
    Term(usize),
    Not(Box<DependsTree>),
    All(Vec<DependsTree>),
    Any(Vec<DependsTree>),
}

/// Parses a `depends` text.
pub fn parse(text: &str) -> Result<Depends, Error> {
    if text.len() > TEXT {
        return Err(Error::at(Span::default(), format!("depends is longer than {TEXT} bytes")));
    }
    let tokens = lex(text)?;
    let mut parser = Parser { tokens, position: 0, depth: 0, terms: Vec::new() };
    let tree = parser.any()?;
    let (token, span) = parser.peek();
    match token {
        DependsToken::End => Ok(Depends { tree, terms: parser.terms }),
        DependsToken::Close => Err(Error::at(span, "there is no '(' for this ')'")),
        DependsToken::Word(_)
        | DependsToken::Dot
        | DependsToken::And
        | DependsToken::Or
        | DependsToken::Not
        | DependsToken::Open => Err(Error::at(span, format!("expected && or || before {}", token.describe()))),
    }
}

impl Depends {
    /// Returns the tasks mentioned, each once, in order of first mention.
    #[must_use]
    pub fn tasks(&self) -> Vec<String> {
        let mut tasks: Vec<String> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for term in &self.terms {
            if seen.insert(&term.task) {
                tasks.push(term.task.clone());
            }
        }
        tasks
    }

    /// Returns every mention, in order.
    #[must_use]
    pub fn terms(&self) -> &[DependsTerm] {
        &self.terms
    }

    /// Evaluates the condition, with bare names interpreted as in [`DependsTerm::holds`].
    pub fn evaluate(&self, ask: &mut dyn FnMut(&str, TaskOutcome) -> bool) -> bool {
        self.evaluate_terms(&mut |term| term.holds(ask))
    }

    /// Evaluates the condition; the caller answers every term, including bare names.
    pub fn evaluate_terms(&self, ask: &mut dyn FnMut(&DependsTerm) -> bool) -> bool {
        self.tree.holds(&self.terms, ask)
    }
}

impl DependsTerm {
    /// Evaluates the term. A bare name holds if its task succeeded, was skipped, or runs as a daemon.
    pub fn holds(&self, ask: &mut dyn FnMut(&str, TaskOutcome) -> bool) -> bool {
        match self.outcome {
            Some(outcome) => ask(&self.task, outcome),
            None => [TaskOutcome::Succeeded, TaskOutcome::Skipped, TaskOutcome::Daemoned]
                .into_iter()
                .any(|outcome| ask(&self.task, outcome)),
        }
    }
}

impl TaskOutcome {
    const ALL: [(&'static str, Self); 8] = [
        ("Succeeded", Self::Succeeded),
        ("Failed", Self::Failed),
        ("Errored", Self::Errored),
        ("Skipped", Self::Skipped),
        ("Omitted", Self::Omitted),
        ("Daemoned", Self::Daemoned),
        ("AnySucceeded", Self::AnySucceeded),
        ("AllFailed", Self::AllFailed),
    ];

    fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == word).map(|(_, outcome)| *outcome)
    }
}

impl DependsTree {
    fn holds(&self, terms: &[DependsTerm], ask: &mut dyn FnMut(&DependsTerm) -> bool) -> bool {
        match self {
            Self::Term(index) => ask(&terms[*index]),
            Self::Not(inner) => !inner.holds(terms, ask),
            Self::All(parts) => parts.iter().all(|part| part.holds(terms, ask)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(terms, ask)),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum DependsToken {
    Word(String),
    Dot,
    And,
    Or,
    Not,
    Open,
    Close,
    End,
}

impl DependsToken {
    fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("'{word}'"),
            Self::Dot => "'.'".to_owned(),
            Self::And => "'&&'".to_owned(),
            Self::Or => "'||'".to_owned(),
            Self::Not => "'!'".to_owned(),
            Self::Open => "'('".to_owned(),
            Self::Close => "')'".to_owned(),
            Self::End => "the end".to_owned(),
        }
    }
}

fn lex(text: &str) -> Result<Vec<(DependsToken, Span)>, Error> {
    let mut tokens = Vec::new();
    let mut characters = text.chars().enumerate().peekable();
    let mut end = 0;
    while let Some((start, c)) = characters.next() {
        end = start + 1;
        let token = match c {
            _ if c.is_whitespace() => continue,
            '(' => DependsToken::Open,
            ')' => DependsToken::Close,
            '!' => DependsToken::Not,
            '.' => DependsToken::Dot,
            '&' | '|' => {
                if characters.next_if(|&(_, next)| next == c).is_none() {
                    return Err(Error::at(Span::new(start, end), format!("'{c}' must be doubled: '{c}{c}'")));
                }
                end += 1;
                if c == '&' { DependsToken::And } else { DependsToken::Or }
            }
            _ if in_name(c) => {
                let mut word = String::from(c);
                while let Some((_, next)) = characters.next_if(|&(_, next)| in_name(next)) {
                    word.push(next);
                    end += 1;
                }
                DependsToken::Word(word)
            }
            other => {
                let message = format!("'{other}' has no meaning here; depends knows names, &&, ||, ! and parentheses");
                return Err(Error::at(Span::new(start, end), message));
            }
        };
        tokens.push((token, Span::new(start, end)));
    }
    tokens.push((DependsToken::End, Span::new(end, end)));
    Ok(tokens)
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

struct Parser {
    tokens: Vec<(DependsToken, Span)>,
    position: usize,
    depth: usize,
    terms: Vec<DependsTerm>,
}

impl Parser {
    fn peek(&self) -> (DependsToken, Span) {
        self.tokens[self.position].clone()
    }

    fn take(&mut self, wanted: &DependsToken) -> bool {
        let found = self.tokens[self.position].0 == *wanted;
        if found {
            self.position += 1;
        }
        found
    }

    fn any(&mut self) -> Result<DependsTree, Error> {
        let mut parts = vec![self.all()?];
        while self.take(&DependsToken::Or) {
            parts.push(self.all()?);
        }
        Ok(single(parts, DependsTree::Any))
    }

    fn all(&mut self) -> Result<DependsTree, Error> {
        let mut parts = vec![self.one()?];
        while self.take(&DependsToken::And) {
            parts.push(self.one()?);
        }
        Ok(single(parts, DependsTree::All))
    }

    fn one(&mut self) -> Result<DependsTree, Error> {
        let (token, span) = self.peek();
        self.depth += 1;
        if self.depth > NESTING {
            return Err(Error::at(span, format!("depends nests deeper than {NESTING} levels")));
        }
        let tree = match token {
            DependsToken::Not => {
                self.position += 1;
                DependsTree::Not(Box::new(self.one()?))
            }
            DependsToken::Open => {
                self.position += 1;
                let inner = self.any()?;
                if !self.take(&DependsToken::Close) {
                    return Err(Error::at(span, "this '(' is never closed"));
                }
                inner
            }
            DependsToken::Word(task) => {
                self.position += 1;
                self.term(task, span)?
            }
            DependsToken::Dot | DependsToken::And | DependsToken::Or | DependsToken::Close | DependsToken::End => {
                let message = format!("expected a task name before {}", token.describe());
                return Err(Error::at(span, message));
            }
        };
        self.depth -= 1;
        Ok(tree)
    }

    fn term(&mut self, task: String, span: Span) -> Result<DependsTree, Error> {
        let mut outcome = None;
        if self.take(&DependsToken::Dot) {
            let (token, place) = self.peek();
            let DependsToken::Word(word) = token else {
                return Err(Error::at(place, format!("expected a task result after '{task}.'")));
            };
            self.position += 1;
            outcome = Some(TaskOutcome::named(&word).ok_or_else(|| {
                let known = nearest(&word, TaskOutcome::ALL.map(|(name, _)| name));
                let hint = known.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default();
                Error::at(place, format!("task result '{word}' for task '{task}' is invalid{hint}"))
            })?);
        }
        self.terms.push(DependsTerm { task, outcome, column: span.start + 1 });
        Ok(DependsTree::Term(self.terms.len() - 1))
    }
}

fn single(mut parts: Vec<DependsTree>, join: fn(Vec<DependsTree>) -> DependsTree) -> DependsTree {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            join(parts)
        }
        None => unreachable!("a condition has at least one part"),
    }
}

#[cfg(test)]
mod tests;
