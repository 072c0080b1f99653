//! The table of a run's nodes with their tree, which `get` shows below the header. Columns are defined here, the order
//! in `tree`.

use octoflow_engine::dialect::NodeTable;
use octoflow_model::Time;

use super::{
    clock,
    colour::{Colour, Paint, icon, one_line, phase_colour},
    table::{Cell, Table},
    tree,
};
use crate::source::workflow::{Node, Workflow, artifacts};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    Usual,
    Short,
    Wide,
}

impl Columns {
    fn titles(self, table: NodeTable) -> &'static [&'static str] {
        match self {
            Self::Wide if table == NodeTable::Members => {
                &["NAME", "STATE", "RETRIES", "EXIT", "PODNAME", "ADDRESS", "DURATION", "PHASE", "MESSAGE"]
            }
            _ if table == NodeTable::Members => &["NAME", "STATE", "RETRIES", "EXIT", "PODNAME", "DURATION", "MESSAGE"],
            Self::Usual => &["STEP", "TEMPLATE", "PODNAME", "DURATION", "MESSAGE"],
            Self::Short => &["STEP", "TEMPLATE", "PODNAME", "DURATION", "MESSAGE", "NODENAME"],
            Self::Wide => {
                &["STEP", "TEMPLATE", "PODNAME", "DURATION", "ARTIFACTS", "MESSAGE", "RESOURCESDURATION", "NODENAME"]
            }
        }
    }
}

/// Renders the table; empty for a workflow without nodes.
pub(crate) fn render<'a>(
    workflow: Workflow<'a>,
    columns: Columns,
    titles: bool,
    wanted: impl Fn(&Node<'a>) -> bool,
    now: Time,
    paint: Paint,
) -> String {
    let nodes = workflow.nodes();
    if nodes.is_empty() {
        return String::new();
    }
    let (shapes, roots) = tree::shapes(&nodes, workflow.name(), wanted);
    let mut table = Table::new(columns.titles(workflow.node_table())).without_header(!titles);
    for line in tree::draw(&shapes, &roots) {
        match line.node {
            Some(at) if workflow.node_table() == NodeTable::Members => {
                table.push(member(nodes[at], line.prefix, columns, now))
            }
            Some(at) => table.push(row(workflow, nodes[at], line.prefix, columns, now)),
            None => table.push(Vec::new()),
        }
    }
    table.render(paint)
}

/// Makes the first cell of a line: `├─✔ name`.
pub(crate) fn step(prefix: String, phase: &str, waiting: bool, display: &str) -> Cell {
    let (icon, colour) = icon(phase, waiting);
    Cell::pieces(vec![
        (prefix, Colour::Plain),
        (icon.to_owned(), colour),
        (format!(" {}", one_line(display)), Colour::Plain),
    ])
}

fn row(workflow: Workflow<'_>, node: Node<'_>, prefix: String, columns: Columns, now: Time) -> Vec<Cell> {
    let pod = node.is_pod();
    let took = match (node.started(), pod || node.kind() == "Container") {
        (Some(started), true) => clock::short(node.finished().unwrap_or(now).since(started)),
        _ => String::new(),
    };
    let mut cells = vec![
        step(prefix, node.phase(), node.waits_for_resume(), node.display()),
        node.template().into(),
        if pod { workflow.pod_name(node).into() } else { "".into() },
        took.into(),
    ];
    if columns == Columns::Wide {
        let names: Vec<&str> = artifacts(&node.outputs()["artifacts"]).into_iter().map(|(name, _)| name).collect();
        cells.push(names.join(",").into());
    }
    cells.push(workflow.readable(node.message()).into());
    if columns == Columns::Wide {
        cells.push(node.resources_duration().into());
    }
    if columns != Columns::Usual {
        cells.push(node.host().into());
    }
    cells
}

/// Makes the row of the whole, of a group of members, or of a member.
fn member(node: Node<'_>, prefix: String, columns: Columns, now: Time) -> Vec<Cell> {
    let field = |name: &str| node.field(name).unwrap_or_default();
    let took = node.started().map(|started| clock::short(node.finished().unwrap_or(now).since(started)));
    let retries = field("retries");
    let mut cells = vec![
        step(prefix, node.phase(), false, node.display()),
        Cell::coloured(node.phase(), phase_colour(node.phase())),
        if retries == "0" { "".into() } else { retries.into() },
        field("outputs.exitCode").into(),
        field("podName").into(),
    ];
    if columns == Columns::Wide {
        cells.push(field("address").into());
    }
    cells.push(took.unwrap_or_default().into());
    if columns == Columns::Wide {
        cells.push(field("step").into());
    }
    cells.push(one_line(node.message()).into());
    cells
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object() -> Value {
        json!({"kind": "Workflow", "metadata": {"name": "w"}, "status": {"nodes": {
            "w": {"id": "w", "name": "w", "displayName": "w", "type": "Steps", "phase": "Running", "templateName": "main",
                  "startedAt": "2026-01-01T00:00:00Z", "children": ["w-1"]},
            "w-1": {"id": "w-1", "name": "w[0]", "displayName": "[0]", "type": "StepGroup", "phase": "Running",
                    "boundaryID": "w", "startedAt": "2026-01-01T00:00:00Z", "children": ["w-2", "w-3", "w-4"]},
            "w-2": {"id": "w-2", "name": "w[0].ok", "displayName": "ok", "type": "Pod", "phase": "Succeeded", "boundaryID": "w",
                    "templateName": "echo", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:06Z",
                    "outputs": {"artifacts": [{"name": "report"}, {"name": "main-logs"}]}},
            "w-3": {"id": "w-3", "name": "w[0].bad", "displayName": "bad", "type": "Pod", "phase": "Failed", "boundaryID": "w",
                    "templateName": "fail", "startedAt": "2026-01-01T00:00:01Z", "finishedAt": "2026-01-01T00:01:14Z",
                    "message": "main: Error (exit code 1)"},
            "w-4": {"id": "w-4", "name": "w[0].ask", "displayName": "ask", "type": "Suspend", "phase": "Running", "boundaryID": "w",
                    "templateName": "ask", "startedAt": "2026-01-01T00:00:02Z"}
        }}})
    }

    #[test]
    fn the_tree_stands_beside_template_pod_duration_and_message() {
        let object = object();
        let shown = render(Workflow::new(&object), Columns::Usual, true, |_| true, Time(0), Paint::OFF);
        let expected = "\
STEP        TEMPLATE  PODNAME            DURATION  MESSAGE
 ● w        main
 └─┬─✔ ok   echo      w-echo-411305892   6s
   ├─✖ bad  fail      w-fail-3591872549  1m13s     main: Error (exit code 1)
   └─ǁ ask  ask
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_selector_leaves_out_nodes_but_not_what_is_below_them() {
        let object = object();
        let shown = render(Workflow::new(&object), Columns::Short, false, |node| node.is_bad(), Time(0), Paint::OFF);
        assert_eq!(shown.lines().count(), 1, "{shown}");
        assert!(shown.contains("✖ bad"), "{shown}");
    }

    #[test]
    fn wide_adds_artifacts() {
        let object = object();
        let shown = render(Workflow::new(&object), Columns::Wide, true, |_| true, Time(0), Paint::OFF);
        assert!(shown.lines().next().unwrap().ends_with("RESOURCESDURATION  NODENAME"), "{shown}");
        assert!(shown.contains("report,main-logs"), "{shown}");
    }
}
