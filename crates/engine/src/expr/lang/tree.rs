//! The parsed form of an expression: nodes in one list that refer to each other by index.
//! Indices instead of boxes, so that dropping a tree of any shape never recurses.

use std::sync::Arc;

use super::builtin::Function;
use super::predicate::Predicate;
use crate::expr::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id(u32);

#[derive(Debug, Clone, Default)]
pub(super) struct ExprTree {
    nodes: Vec<ExprNode>,
    root: Option<Id>,
}

#[derive(Debug, Clone)]
pub(super) struct ExprNode {
    pub(super) kind: ExprKind,
    pub(super) span: Span,
}

#[derive(Debug, Clone)]
pub(super) enum ExprKind {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
    /// A variable of the environment.
    Name(Arc<str>),
    /// A variable bound by `let`.
    Local(Arc<str>),
    /// `#`, `#index` and `#acc` of the innermost closure.
    Item,
    Index,
    Accumulator,
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    Choose {
        condition: Id,
        yes: Id,
        no: Id,
    },
    List(Vec<Id>),
    Map(Vec<(Id, Id)>),
    Member {
        target: Id,
        key: Arc<str>,
        optional: bool,
    },
    At {
        target: Id,
        key: Id,
        optional: bool,
    },
    Slice {
        target: Id,
        from: Option<Id>,
        to: Option<Id>,
    },
    /// The end of a chain of members: a nil found at a `?.` inside makes all of it nil.
    Chain(Id),
    Call {
        function: &'static Function,
        arguments: Vec<Id>,
    },
    /// A function with a closure. The closure is a node that is evaluated once per element.
    Over {
        predicate: Predicate,
        list: Id,
        closure: Option<Id>,
        extra: Option<Id>,
    },
    /// A method of a value, such as `.Year()` of a date.
    Method {
        target: Id,
        name: Arc<str>,
        arguments: Vec<Id>,
        optional: bool,
    },
    Let {
        name: Arc<str>,
        value: Id,
        body: Id,
    },
    Sequence(Vec<Id>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Minus,
    Plus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Matches,
    Contains,
    StartsWith,
    EndsWith,
    Range,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Coalesce,
}

impl ExprTree {
    pub(super) fn add(&mut self, kind: ExprKind, span: Span) -> Id {
        let id = Id(u32::try_from(self.nodes.len()).expect("a text of a mebibyte has fewer nodes than 2^32"));
        self.nodes.push(ExprNode { kind, span });
        id
    }

    pub(super) fn node(&self, id: Id) -> &ExprNode {
        &self.nodes[id.0 as usize]
    }

    pub(super) fn set_root(&mut self, id: Id) {
        self.root = Some(id);
    }

    pub(super) fn root(&self) -> Id {
        self.root.expect("the parser sets the root of every tree it returns")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, &ExprNode)> {
        (0..).map(Id).zip(&self.nodes)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }
}

impl Id {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl ExprKind {
    /// Returns the child that is evaluated first and exactly once. Chains of these may be arbitrarily long (`a + b + c
    /// + …`, `a.b.c`, `x | f() | g()`), so they are walked in a loop and not by recursion.
    pub(super) fn operand(&self) -> Option<Id> {
        match self {
            Self::Unary(_, operand) | Self::Binary(_, operand, _) | Self::Chain(operand) => Some(*operand),
            Self::Choose { condition, .. } => Some(*condition),
            Self::Member { target, .. }
            | Self::At { target, .. }
            | Self::Slice { target, .. }
            | Self::Method { target, .. } => Some(*target),
            Self::Call { arguments, .. } => arguments.first().copied(),
            Self::Over { list, .. } => Some(*list),
            Self::Nil
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Text(_)
            | Self::Name(_)
            | Self::Local(_)
            | Self::Item
            | Self::Index
            | Self::Accumulator
            | Self::List(_)
            | Self::Map(_)
            | Self::Let { .. }
            | Self::Sequence(_) => None,
        }
    }
}

impl Binary {
    pub(super) fn spelling(self) -> &'static str {
        match self {
            Self::Or => "||",
            Self::And => "&&",
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::Matches => "matches",
            Self::Contains => "contains",
            Self::StartsWith => "startsWith",
            Self::EndsWith => "endsWith",
            Self::Range => "..",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            Self::Power => "**",
            Self::Coalesce => "??",
        }
    }
}
