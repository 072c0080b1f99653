//! Limits on rendering. A workflow may have more nodes than one answer can hold: a get is refused with a hint how to
//! ask for less; lists and watches leave out the nodes.

use octoflow_store::RunRow;
use serde_json::{Value, json};

use super::{Fault, Registry, run::of_row};
use crate::{
    Error,
    controller::unless_outage,
    event_loop::{LARGE_RUN, Shown},
    read,
};

/// Maximum number of nodes in one answer: some sixty megabytes of text, and ten times that while rendering.
pub(super) const MAX_NODES: u64 = 150_000;

/// Approximate size of a node in the final record of a run.
const BYTES_A_NODE: u64 = 400;

/// Which nodes of a large run to render.
#[derive(Clone, Copy)]
pub(super) enum NodeDetail<'a> {
    /// All nodes, whatever it costs.
    Whole,
    /// All nodes; a run that is too large is refused with a hint how to ask for less.
    Refuse,
    /// All nodes unless there are too many; then none, and a condition says so. A list must not fail because of one
    /// run.
    Omit,
    /// Nodes are not needed.
    Trim,
    /// Of a large run, only the nodes that match by id and type.
    Only(&'a dyn Fn(&str, &str) -> bool),
}

enum Size {
    Small(Value),
    /// Number of nodes.
    Large(u64),
}

impl Registry {
    /// Renders a run, or refuses if it is too large.
    pub fn shown_run(&self, row: &RunRow) -> Result<Value, Fault> {
        self.run_as(row, NodeDetail::Refuse)
    }

    /// Renders a run for lists and watches: without nodes if there are too many.
    pub fn listed_run(&self, row: &RunRow) -> Result<Value, Fault> {
        self.run_as(row, NodeDetail::Omit)
    }

    /// Renders a run for callers that do not need nodes: only a small run has them.
    pub fn trimmed_run(&self, row: &RunRow) -> Result<Value, Fault> {
        self.run_as(row, NodeDetail::Trim)
    }

    /// Renders a run with at least its pods and their containers.
    pub(super) fn run_with_pods(&self, row: &RunRow) -> Result<Value, Fault> {
        self.run_as(row, NodeDetail::Only(&|_, of| matches!(of, "Pod" | "Container")))
    }

    /// Renders a run with at least this node, if it exists.
    pub(super) fn run_with_node(&self, row: &RunRow, node: &str) -> Result<Value, Fault> {
        self.run_as(row, NodeDetail::Only(&|id, _| id == node))
    }

    pub(super) fn render(&self, row: &RunRow, detail: NodeDetail<'_>) -> Result<Value, Fault> {
        let nodes = match self.sized(row)? {
            Size::Small(object) => return Ok(object),
            Size::Large(nodes) => nodes,
        };
        match detail {
            NodeDetail::Refuse if nodes > MAX_NODES => {
                Err(Fault::TooLarge { kind: of_row(row), name: row.name.clone(), nodes })
            }
            NodeDetail::Omit if nodes > MAX_NODES => {
                let mut object = self.handle().summary(row.run)?;
                omitted(&mut object, nodes);
                Ok(object)
            }
            NodeDetail::Trim => Ok(self.handle().summary(row.run)?),
            NodeDetail::Only(keep) => self.read(|reader| Ok(read::object_where(reader, row.run, keep)?)),
            NodeDetail::Whole | NodeDetail::Refuse | NodeDetail::Omit => {
                self.read(|reader| Ok(read::object(reader, row.run)?))
            }
        }
    }

    fn sized(&self, row: &RunRow) -> Result<Size, Fault> {
        // A finished run does not change, so the event loop need not be asked.
        if !row.archived {
            match unless_outage(self.handle().look(row.run))? {
                Some(Shown::Here(object)) => return Ok(Size::Small(object)),
                Some(Shown::Elsewhere(nodes)) => return Ok(Size::Large(nodes as u64)),
                None => {}
            }
        }
        self.read(|reader| {
            let nodes = reader.archive_size(row.run).map_err(Error::from)?.unwrap_or(0) / BYTES_A_NODE;
            if nodes > LARGE_RUN as u64 {
                return Ok(Size::Large(nodes));
            }
            Ok(Size::Small(read::object(reader, row.run)?))
        })
    }
}

fn omitted(object: &mut Value, nodes: u64) {
    let condition = json!({
        "type": "NodesOmitted", "status": "True",
        "message": format!("{nodes} nodes are more than the {MAX_NODES} that are shown at once"),
    });
    match object["status"]["conditions"].as_array_mut() {
        Some(conditions) => conditions.push(condition),
        None => object["status"]["conditions"] = json!([condition]),
    }
}
