//! Checks literal patterns and paths of an expression before it runs.

use super::jsonpath;
use super::tree::{Binary, ExprKind, ExprTree, Id};
use crate::expr::Error;
use crate::expr::pattern::Pattern;

/// Maximum number of literals checked in one expression; compiling them takes time.
const MAX_CHECKED: usize = 20;

/// Returns the errors in the literal patterns of `matches` and `sprig.regex…` and the literal paths of `jsonpath`.
pub(super) fn check(tree: &ExprTree) -> Vec<Error> {
    let literals = tree.iter().filter_map(|(_, node)| {
        if let ExprKind::Binary(Binary::Matches, _, pattern) = &node.kind {
            return Some((*pattern, false));
        }
        let ExprKind::Call { function, arguments } = &node.kind else { return None };
        if function.name == "jsonpath" {
            return Some((*arguments.get(1)?, true));
        }
        let takes_pattern = function.name.starts_with("regex") && function.name != "regexQuoteMeta";
        arguments.first().filter(|_| takes_pattern).map(|pattern| (*pattern, false))
    });
    literals.take(MAX_CHECKED).filter_map(|(id, path)| wrong(tree, id, path)).collect()
}

fn wrong(tree: &ExprTree, id: Id, path: bool) -> Option<Error> {
    let node = tree.node(id);
    let ExprKind::Text(text) = &node.kind else { return None };
    let why = if path { jsonpath::check(text).err()?.0 } else { Pattern::new(text).err()? };
    Some(Error::at(node.span, why))
}
