//! Collects the variables an expression mentions. Reads the tree only; whether a variable exists is checked elsewhere.

use super::tree::{ExprKind, ExprTree, Id};

/// One mention of a variable: its root and as much of the path below it as is written out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// `["tasks", "a-b", "outputs", "result"]` for `tasks['a-b'].outputs.result`.
    pub path: Vec<String>,
    /// Column in the text: 1-based, in characters.
    pub column: usize,
    /// Length of the root name in characters.
    pub length: usize,
}

impl Reference {
    /// Returns the first name of the path.
    #[must_use]
    pub fn root(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }
}

pub(super) fn collect(tree: &ExprTree) -> Vec<Reference> {
    let above = parents(tree);
    let mut found: Vec<Reference> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (id, node) in tree.iter() {
        let ExprKind::Name(name) = &node.kind else { continue };
        let mut path = vec![name.to_string()];
        let mut at = id;
        while let Some(next) = above[at.index()] {
            let above = &tree.node(next).kind;
            if let ExprKind::Member { key, .. } = above {
                path.push(key.to_string());
            } else if let ExprKind::At { key, .. } = above
                && let ExprKind::Text(key) = &tree.node(*key).kind
            {
                path.push(key.to_string());
            } else if !matches!(above, ExprKind::Chain(_)) {
                break;
            }
            at = next;
        }
        if path.len() > 1 && path[0] == "$env" {
            path.remove(0);
        }
        if seen.insert(path.clone()) {
            found.push(Reference { path, column: node.span.start + 1, length: node.span.length });
        }
    }
    found.sort_by_key(|reference| reference.column);
    found
}

/// Returns, for every node that is the target of a member access, that access.
fn parents(tree: &ExprTree) -> Vec<Option<Id>> {
    let mut above = vec![None; tree.len()];
    for (id, node) in tree.iter() {
        if let ExprKind::Member { target, .. } | ExprKind::At { target, .. } | ExprKind::Chain(target) = &node.kind {
            above[target.index()] = Some(id);
        }
    }
    above
}
