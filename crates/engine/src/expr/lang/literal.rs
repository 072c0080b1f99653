//! Patterns and paths that are written out in an expression: whether they can be read is known before it runs.

use super::jsonpath;
use super::tree::{Binary, Id, Kind, Tree};
use crate::expr::Error;
use crate::expr::pattern::Pattern;

/// More of them than this in one expression are not looked at; compiling them takes time.
const MOST: usize = 20;

/// What is wrong with the patterns of `matches` and `sprig.regex…` and the paths of `jsonpath`, where they are literals.
pub(super) fn check(tree: &Tree) -> Vec<Error> {
    let literals = tree.iter().filter_map(|(_, node)| match &node.kind {
        Kind::Binary(Binary::Matches, _, pattern) => Some((*pattern, false)),
        Kind::Call { function, arguments }
            if function.name.starts_with("regex") && function.name != "regexQuoteMeta" =>
        {
            Some((*arguments.first()?, false))
        }
        Kind::Call { function, arguments } if function.name == "jsonpath" => Some((*arguments.get(1)?, true)),
        _ => None,
    });
    literals.take(MOST).filter_map(|(id, path)| wrong(tree, id, path)).collect()
}

fn wrong(tree: &Tree, id: Id, path: bool) -> Option<Error> {
    let node = tree.node(id);
    let Kind::Text(text) = &node.kind else { return None };
    let why = if path { jsonpath::check(text).err()?.0 } else { Pattern::new(text).err()? };
    Some(Error::at(node.span, why))
}
