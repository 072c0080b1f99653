//! Layout of the tree of a workflow's nodes: parents, order and box lines. The columns belong to the caller. Never
//! recursive, because manifests may be.

use octoflow_model::Time;

use crate::source::workflow::{Node, by_id};

/// Properties of a node that the layout needs.
#[derive(Clone, Debug)]
pub(crate) struct Shape<'a> {
    /// Node it is drawn below; `None` for a root.
    pub parent: Option<usize>,
    pub kind: &'a str,
    pub phase: &'a str,
    pub display: &'a str,
    pub started: Option<Time>,
    /// Position among nodes that started together, if they have one.
    pub rank: usize,
    /// Hidden by a selector; its children are still drawn.
    pub unwanted: bool,
}

/// One line of the drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeLine {
    /// Box lines before the node.
    pub prefix: String,
    /// Index of the shape; `None` for the empty line between two trees.
    pub node: Option<usize>,
}

/// Draws every tree. Roots are drawn in the order of `roots`, without hidden ones.
pub(crate) fn draw(shapes: &[Shape<'_>], roots: &[usize]) -> Vec<TreeLine> {
    let children = children_in_order(shapes);
    let mut lines = Vec::new();
    for root in roots {
        if !lines.is_empty() {
            lines.push(TreeLine { prefix: String::new(), node: None });
        }
        draw_one(shapes, &children, *root, &mut lines);
    }
    lines
}

/// Makes the shapes of an object's nodes, and its roots: the entrypoint, then exit handler and hooks.
pub(crate) fn shapes<'a>(
    nodes: &[Node<'a>],
    workflow: &str,
    wanted: impl Fn(&Node<'a>) -> bool,
) -> (Vec<Shape<'a>>, Vec<usize>) {
    let ids = by_id(nodes);
    let mut holder: Vec<Option<usize>> = vec![None; nodes.len()];
    for (at, node) in nodes.iter().enumerate().filter(|(_, node)| holds_children(node.kind())) {
        for child in node.children().filter_map(|child| ids.get(child)) {
            // A retry inside a step group is nearer to its attempts than the group is.
            if holder[*child].is_none() || node.kind() == "Retry" {
                holder[*child] = Some(at);
            }
        }
    }
    let ranks = container_ranks(nodes);
    let shapes: Vec<Shape<'a>> = nodes
        .iter()
        .enumerate()
        .map(|(at, node)| Shape {
            parent: holder[at].or_else(|| ids.get(node.boundary()).copied()).filter(|parent| *parent != at),
            kind: node.kind(),
            phase: node.phase(),
            display: node.display(),
            started: if node.rank().is_some() { None } else { node.started() },
            rank: node.rank().unwrap_or(ranks[at]),
            unwanted: !wanted(node),
        })
        .collect();
    let mut roots: Vec<usize> = (0..nodes.len()).filter(|at| shapes[*at].parent.is_none()).collect();
    roots.sort_by_key(|at| (nodes[*at].id() != workflow, shapes[*at].started, shapes[*at].display));
    (shapes, roots)
}

/// Returns the rank of each container of a set: the length of its longest chain of dependencies.
fn container_ranks(nodes: &[Node<'_>]) -> Vec<usize> {
    let mut ranks = vec![0; nodes.len()];
    if !nodes.iter().any(|node| node.kind() == "Container") {
        return ranks;
    }
    let ids = by_id(nodes);
    let mut open: Vec<usize> = (0..nodes.len()).filter(|at| nodes[*at].kind() == "Container").collect();
    while let Some(at) = open.pop() {
        for child in nodes[at].children().filter_map(|child| ids.get(child).copied()) {
            // No chain is longer than the list; an inconsistent object is ignored.
            if nodes[child].kind() == "Container" && ranks[child] <= ranks[at] && ranks[at] < nodes.len() {
                ranks[child] = ranks[at] + 1;
                open.push(child);
            }
        }
    }
    ranks
}

/// Returns whether children are drawn below the node itself: step groups and retries. Other nodes are drawn below their
/// boundary.
fn holds_children(kind: &str) -> bool {
    matches!(kind, "StepGroup" | "Retry")
}

fn children_in_order(shapes: &[Shape<'_>]) -> Vec<Vec<usize>> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); shapes.len()];
    for (at, shape) in shapes.iter().enumerate().filter(|(_, shape)| is_drawn(shape)) {
        if let Some(parent) = shape.parent {
            children[parent].push(at);
        }
    }
    for list in &mut children {
        list.sort_by(|left, right| order(&shapes[*left]).cmp(&order(&shapes[*right])));
    }
    children
}

/// Sort key: by start; nodes that started together by rank, loop index, then name. Nodes not started come last.
fn order<'a>(shape: &Shape<'a>) -> (bool, Option<Time>, usize, u64, &'a str) {
    let item = loop_index(shape.display).unwrap_or(u64::MAX);
    (shape.started.is_none(), shape.started, shape.rank, item, shape.display)
}

/// Parses the loop index: 7 of `A(7:seven)`, 1 of `A(1)` and of `[1]`.
fn loop_index(display: &str) -> Option<u64> {
    let start = display.rfind('(').or_else(|| display.rfind('['))?;
    let digits = &display[start + 1..];
    let end = digits.find(|letter: char| !letter.is_ascii_digit())?;
    digits[..end].parse().ok()
}

/// Returns whether a node is drawn. Omitted nodes and groups of loop items are not.
fn is_drawn(shape: &Shape<'_>) -> bool {
    !(shape.phase == "Omitted" || shape.kind == "TaskGroup")
}

/// Role of a node in the drawing.
enum Part {
    Shown,
    /// Not shown; its children are connected to each other.
    Joined,
    /// Not shown; its children take its place.
    Skipped,
}

fn part(shape: &Shape<'_>, children: usize) -> Part {
    match shape.kind {
        "Retry" if children == 1 => Part::Skipped,
        "StepGroup" => Part::Joined,
        _ if shape.unwanted => Part::Skipped,
        _ => Part::Shown,
    }
}

fn draw_one(shapes: &[Shape<'_>], children: &[Vec<usize>], root: usize, lines: &mut Vec<TreeLine>) {
    // Each entry: the node, the prefix of its line, and the prefix of the lines below it.
    let mut open = vec![(root, " ".to_owned(), " ".to_owned())];
    while let Some((at, before, below)) = open.pop() {
        let below_it = &children[at];
        let part = part(&shapes[at], below_it.len());
        if matches!(part, Part::Shown) {
            lines.push(TreeLine { prefix: before.clone(), node: Some(at) });
        }
        let last = below_it.len().saturating_sub(1);
        for (place, child) in below_it.iter().enumerate().rev() {
            let (own, further) = match (&part, place) {
                (Part::Skipped, _) => ("", ""),
                (Part::Joined, 0) if last == 0 => ("──", "  "),
                (Part::Joined, 0) => ("┬─", "│ "),
                (_, place) if place == last => ("└─", "  "),
                _ => ("├─", "│ "),
            };
            // The first child of a hidden node is on that node's own line.
            let start = if matches!(part, Part::Shown) || place > 0 { &below } else { &before };
            open.push((*child, format!("{start}{own}"), format!("{below}{further}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::source::workflow::Workflow;

    fn picture(object: &Value) -> String {
        let workflow = Workflow::new(object);
        let nodes = workflow.nodes();
        let (shapes, roots) = shapes(&nodes, workflow.name(), |_| true);
        let lines = draw(&shapes, &roots);
        let texts: Vec<String> = lines
            .iter()
            .map(|line| format!("{}{}", line.prefix, line.node.map_or("", |at| shapes[at].display)))
            .collect();
        texts.join("\n")
    }

    fn object(nodes: &[Value]) -> Value {
        let map: serde_json::Map<String, Value> =
            nodes.iter().map(|node| (node["id"].as_str().unwrap().to_owned(), node.clone())).collect();
        json!({"metadata": {"name": "w"}, "status": {"nodes": map}})
    }

    fn node(id: &str, display: &str, kind: &str, boundary: &str, second: u32, children: &[&str]) -> Value {
        json!({"id": id, "name": id, "displayName": display, "type": kind, "phase": "Succeeded", "boundaryID": boundary,
               "startedAt": format!("2026-01-01T00:00:{second:02}Z"), "children": children})
    }

    #[test]
    fn steps_in_one_group_are_joined_and_groups_are_hidden() {
        let object = object(&[
            node("w", "w", "Steps", "", 0, &["g0"]),
            node("g0", "[0]", "StepGroup", "w", 0, &["a"]),
            node("a", "hello1", "Pod", "w", 0, &["g1"]),
            node("g1", "[1]", "StepGroup", "w", 1, &["b", "c", "d"]),
            node("b", "hello2a", "Pod", "w", 1, &[]),
            node("c", "hello2b", "Pod", "w", 1, &[]),
            node("d", "hello2c", "Pod", "w", 1, &[]),
        ]);
        assert_eq!(picture(&object), " w\n ├───hello1\n └─┬─hello2a\n   ├─hello2b\n   └─hello2c");
    }

    #[test]
    fn dag_tasks_stand_below_their_dag_and_omitted_ones_nowhere() {
        let mut omitted = node("c", "C", "Skipped", "w", 3, &[]);
        omitted["phase"] = json!("Omitted");
        let object = object(&[
            node("w", "w", "DAG", "", 0, &["a"]),
            node("a", "A", "Pod", "w", 0, &["b", "c"]),
            node("b", "B", "DAG", "w", 1, &["x"]),
            node("x", "X", "Pod", "b", 1, &[]),
            omitted,
        ]);
        assert_eq!(picture(&object), " w\n ├─A\n └─B\n   └─X");
    }

    #[test]
    fn containers_stand_below_their_pod() {
        let object = object(&[
            node("w", "w", "DAG", "", 0, &["p"]),
            node("p", "set", "Pod", "w", 0, &["c1"]),
            node("c1", "one", "Container", "p", 1, &["c2", "c3"]),
            node("c2", "then", "Container", "p", 1, &["c3"]),
            node("c3", "last", "Container", "p", 1, &[]),
        ]);
        assert_eq!(picture(&object), " w\n └─set\n   ├─one\n   ├─then\n   └─last");
    }

    #[test]
    fn a_single_attempt_stands_for_its_retry_and_several_stand_below_it() {
        let object = object(&[
            node("w", "w", "DAG", "", 0, &["r1", "r2"]),
            node("r1", "once", "Retry", "w", 0, &["r1a"]),
            node("r1a", "once(0)", "Pod", "w", 0, &[]),
            node("r2", "twice", "Retry", "w", 1, &["r2a", "r2b"]),
            node("r2b", "twice(1)", "Pod", "w", 2, &[]),
            node("r2a", "twice(0)", "Pod", "w", 1, &[]),
        ]);
        assert_eq!(picture(&object), " w\n ├─once(0)\n └─twice\n   ├─twice(0)\n   └─twice(1)");
    }

    #[test]
    fn loop_items_stand_in_order_of_their_index() {
        let mut nodes = vec![node("w", "w", "DAG", "", 0, &[]), node("t", "fan", "TaskGroup", "w", 0, &[])];
        for index in [10, 2, 0, 9] {
            nodes.push(node(&format!("i{index}"), &format!("fan({index}:x)"), "Pod", "w", 1, &[]));
        }
        assert_eq!(picture(&object(&nodes)), " w\n ├─fan(0:x)\n ├─fan(2:x)\n ├─fan(9:x)\n └─fan(10:x)");
    }

    #[test]
    fn the_exit_handler_is_a_second_tree() {
        let object = object(&[
            node("w", "w", "Pod", "", 0, &["w-9"]),
            node("w-9", "w.onExit", "Steps", "", 5, &["g"]),
            node("g", "[0]", "StepGroup", "w-9", 5, &["p"]),
            node("p", "notify", "Pod", "w-9", 5, &[]),
        ]);
        assert_eq!(picture(&object), " w\n\n w.onExit\n └───notify");
    }

    #[test]
    fn deep_recursion_is_drawn_without_using_the_stack() {
        let mut nodes = vec![node("n0", "w", "Steps", "", 0, &["g1"])];
        nodes[0]["id"] = json!("w");
        for depth in 1..3000 {
            let above = if depth == 1 { "w".to_owned() } else { format!("n{}", depth - 1) };
            nodes.push(node(&format!("n{depth}"), "again", "Steps", &above, 0, &[]));
        }
        assert_eq!(picture(&object(&nodes)).lines().count(), 3000);
    }
}
