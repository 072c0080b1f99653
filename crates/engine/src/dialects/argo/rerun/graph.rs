//! Reads the nodes of an old run and their edges from its object. The hierarchy is in the names: a node is below
//! another if its name continues with `.`, `[` or `(`.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
};

use serde_json::Value;

pub(super) struct OldNode<'o> {
    pub(super) id: &'o str,
    pub(super) name: &'o str,
    pub(super) kind: &'o str,
    pub(super) phase: &'o str,
    pub(super) children: Vec<usize>,
    /// True for a hook or an exit handler.
    pub(super) hooked: bool,
    /// True for an attempt of a retried call.
    pub(super) retried: bool,
    /// True for a daemon.
    pub(super) daemon: bool,
    /// True if its result was reused from another run, so that it is shown as skipped.
    pub(super) carried: bool,
    pub(super) value: &'o Value,
}

impl OldNode<'_> {
    pub(super) fn bad(&self) -> bool {
        matches!(self.phase, "Failed" | "Error")
    }

    pub(super) fn over(&self) -> bool {
        !matches!(self.phase, "" | "Pending" | "Running")
    }

    pub(super) fn message(&self) -> &str {
        self.value["message"].as_str().unwrap_or_default()
    }

    /// Whether it is a memoized call that hit its cache.
    pub(super) fn recalled(&self) -> bool {
        self.value["memoizationStatus"]["hit"] == true
    }
}

pub(super) struct NodeGraph<'o> {
    pub(super) run: &'o str,
    /// The nodes in the order they began.
    pub(super) nodes: Vec<OldNode<'o>>,
    by_id: HashMap<&'o str, usize>,
    by_name: BTreeMap<&'o str, usize>,
    /// Whether each node is a hook or belongs to one, by node.
    hooks: Vec<bool>,
    /// Retry nodes, by attempt.
    retries: HashMap<usize, usize>,
}

impl<'o> NodeGraph<'o> {
    pub(super) fn of(object: &'o Value) -> Self {
        let run = object["metadata"]["name"].as_str().unwrap_or_default();
        let all = object["status"]["nodes"].as_object().into_iter().flatten();
        let mut nodes: Vec<OldNode<'o>> = all.map(|(id, value)| old(id, value)).collect();
        nodes.sort_by_key(|node| (node.value["startedAt"].as_str().unwrap_or_default(), node.name.len(), node.name));
        let by_id: HashMap<&str, usize> = nodes.iter().enumerate().map(|(at, node)| (node.id, at)).collect();
        let by_name = nodes.iter().enumerate().map(|(at, node)| (node.name, at)).collect();
        for node in &mut nodes {
            let links = node.value["children"].as_array().into_iter().flatten();
            node.children = links.filter_map(|id| by_id.get(id.as_str()?).copied()).collect();
        }
        let mut graph = Self { run, hooks: vec![false; nodes.len()], nodes, by_id, by_name, retries: HashMap::new() };
        for at in 0..graph.nodes.len() {
            if graph.nodes[at].hooked {
                graph.with_below(at).into_iter().for_each(|at| graph.hooks[at] = true);
            }
            if graph.nodes[at].kind == "Retry" {
                let tries = graph.nodes[at].children.iter().filter(|child| graph.nodes[**child].retried);
                let tries: Vec<usize> = tries.copied().collect();
                graph.retries.extend(tries.into_iter().map(|attempt| (attempt, at)));
            }
        }
        graph
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(super) fn suffix<'n>(&self, name: &'n str) -> &'n str {
        name.strip_prefix(self.run).unwrap_or(name)
    }

    /// Whether its end is its own and not derived from its children.
    pub(super) fn is_leaf(&self, at: usize) -> bool {
        let node = &self.nodes[at];
        matches!(node.kind, "Pod" | "HTTP" | "Suspend") || node.carried || node.recalled()
    }

    /// Whether it is a hook or an exit handler, or belongs to one.
    pub(super) fn in_hook(&self, at: usize) -> bool {
        self.hooks[at]
    }

    /// Returns the retry node of an attempt.
    pub(super) fn retry_of(&self, at: usize) -> Option<usize> {
        self.retries.get(&at).copied()
    }

    pub(super) fn attempts_of(&self, retry: usize) -> impl Iterator<Item = usize> + '_ {
        self.nodes[retry].children.iter().copied().filter(|child| self.nodes[*child].retried)
    }

    /// Returns the pod of a container.
    pub(super) fn pod_of(&self, at: usize) -> Option<usize> {
        self.boundary_of(at)
    }

    pub(super) fn boundary_of(&self, at: usize) -> Option<usize> {
        self.by_id.get(self.nodes[at].value["boundaryID"].as_str()?).copied()
    }

    /// Returns the node and everything below it.
    pub(super) fn with_below(&self, at: usize) -> Vec<usize> {
        let name = self.nodes[at].name;
        let mut found = vec![at];
        for sign in ['(', '.', '['] {
            let start = format!("{name}{sign}");
            let from = (Bound::Included(start.as_str()), Bound::Unbounded);
            let run = self.by_name.range::<str, _>(from).take_while(|(name, _)| name.starts_with(&start));
            found.extend(run.map(|(_, at)| *at));
        }
        found
    }

    /// Iterates over everything above the node.
    pub(super) fn above(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let name = self.nodes[at].name;
        let mut inside = false;
        // An item's description is in parentheses and contains none itself.
        let ends = name.char_indices().filter(move |(_, sign)| match sign {
            '(' => !std::mem::replace(&mut inside, true),
            ')' => {
                inside = false;
                false
            }
            '.' | '[' => !inside,
            _ => false,
        });
        ends.filter_map(|(end, _)| self.find(&name[..end]))
    }

    pub(super) fn is_below(&self, at: usize, above: usize) -> bool {
        let rest = self.nodes[at].name.strip_prefix(self.nodes[above].name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '(']))
    }

    /// Returns everything reachable from these nodes, without them; each with one of them that it comes after.
    pub(super) fn after(&self, from: &[usize]) -> Vec<(usize, usize)> {
        let mut seen = vec![false; self.nodes.len()];
        from.iter().for_each(|at| seen[*at] = true);
        let mut open: Vec<(usize, usize)> = from.iter().map(|at| (*at, *at)).collect();
        let mut found = Vec::new();
        while let Some((at, source)) = open.pop() {
            for child in &self.nodes[at].children {
                if !std::mem::replace(&mut seen[*child], true) {
                    found.push((*child, source));
                    open.push((*child, source));
                }
            }
        }
        found
    }
}

fn old<'o>(id: &'o str, value: &'o Value) -> OldNode<'o> {
    let text = |field: &str| value[field].as_str().unwrap_or_default();
    let carried =
        value["type"] == "Skipped" && value["phase"] == "Skipped" && text("message").starts_with("original pod: ");
    OldNode {
        id,
        name: text("name"),
        kind: text("type"),
        phase: text("phase"),
        children: Vec::new(),
        hooked: value["nodeFlag"]["hooked"] == true,
        retried: value["nodeFlag"]["retried"] == true,
        daemon: value["podIP"].is_string(),
        carried,
        value,
    }
}
