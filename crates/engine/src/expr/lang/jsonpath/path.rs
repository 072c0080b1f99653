//! Parses JSON paths into steps.

use std::fmt;

use super::filter::ItemFilter;
use super::{EvalFault, STEPS};

#[derive(Debug)]
pub(super) struct LocatedSegment {
    /// True for `..`: selects from all descendants, not only from the value itself.
    pub(super) deep: bool,
    pub(super) segment: Segment,
}

#[derive(Debug)]
pub(super) enum Segment {
    Names(Vec<String>),
    Positions(Vec<i64>),
    All,
    Slice { from: Option<i64>, to: Option<i64>, step: i64 },
    Filter(ItemFilter),
}

impl LocatedSegment {
    /// Reports whether it matches at most one value.
    pub(super) fn is_definite(&self) -> bool {
        !self.deep
            && match &self.segment {
                Segment::Names(names) => names.len() == 1,
                Segment::Positions(positions) => positions.len() == 1,
                Segment::All | Segment::Slice { .. } | Segment::Filter(_) => false,
            }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Names(names) => write!(f, "'{}'", names.join("', '")),
            Self::Positions(positions) => write!(f, "{positions:?}"),
            Self::All => f.write_str("*"),
            Self::Slice { .. } => f.write_str("the slice"),
            Self::Filter(_) => f.write_str("what the filter wants"),
        }
    }
}

pub(super) fn parse(path: &str) -> Result<Vec<LocatedSegment>, EvalFault> {
    let mut rest = path.trim();
    rest = rest.strip_prefix('$').unwrap_or(rest);
    // A path may start with a name if nothing before it could own a point.
    let mut bare = !rest.is_empty() && !rest.starts_with(['.', '[']);
    let mut steps = Vec::new();
    while !rest.is_empty() || bare {
        if steps.len() == STEPS {
            return Err(EvalFault(format!("the path has more than {STEPS} steps")));
        }
        let mut deep = false;
        if let Some(after) = rest.strip_prefix("..") {
            deep = true;
            rest = after;
        } else if let Some(after) = rest.strip_prefix('.') {
            rest = after;
        } else if !rest.starts_with('[') && !bare {
            return Err(wrong(path, rest));
        }
        bare = false;
        let segment = if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) =
                bracketed(after).ok_or_else(|| EvalFault(format!("a '[' in the path '{path}' is never closed")))?;
            rest = after;
            segment(inside.trim()).ok_or_else(|| wrong(path, inside))??
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            rest = after;
            match name {
                "" => return Err(wrong(path, rest)),
                "*" => Segment::All,
                name => Segment::Names(vec![name.to_owned()]),
            }
        };
        steps.push(LocatedSegment { deep, segment });
    }
    Ok(steps)
}

fn wrong(path: &str, rest: &str) -> EvalFault {
    EvalFault(format!("the path '{path}' cannot be read at '{rest}'"))
}

/// Splits at the closing bracket, skipping quoted texts and inner brackets.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some((&text[..at], &text[at + 1..])),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

fn segment(inside: &str) -> Option<Result<Segment, EvalFault>> {
    if inside == "*" {
        return Some(Ok(Segment::All));
    }
    if let Some(filter) = inside.strip_prefix('?') {
        let filter = filter.trim();
        let filter = filter.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(filter);
        return Some(ItemFilter::parse(filter).map(Segment::Filter));
    }
    if inside.starts_with(['\'', '"']) {
        let names: Option<Vec<String>> = inside.split(',').map(|name| unquote(name.trim())).collect();
        // A name may contain a comma itself.
        let names = names.or_else(|| unquote(inside).map(|name| vec![name]))?;
        return Some(Ok(Segment::Names(names)));
    }
    if inside.contains(':') {
        let mut parts = inside.split(':').map(str::trim);
        let from = bound(parts.next())?;
        let to = bound(parts.next())?;
        let step = bound(parts.next())?.unwrap_or(1);
        return (step > 0 && parts.next().is_none()).then_some(Ok(Segment::Slice { from, to, step }));
    }
    let positions: Option<Vec<i64>> = inside.split(',').map(|part| part.trim().parse().ok()).collect();
    Some(Ok(match positions {
        Some(positions) => Segment::Positions(positions),
        None if inside.is_empty() => return None,
        None => Segment::Names(vec![inside.to_owned()]),
    }))
}

fn bound(part: Option<&str>) -> Option<Option<i64>> {
    match part {
        None | Some("") => Some(None),
        Some(number) => number.parse().ok().map(Some),
    }
}

pub(super) fn unquote(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (text.len() >= 2 && !inner.contains(quote)).then(|| inner.to_owned())
}
